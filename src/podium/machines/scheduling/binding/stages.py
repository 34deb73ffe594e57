"""The stages of a binding cycle, what happens to it, and what comes of it: the whole automaton as one table.

`podium.machines.scheduling.binding.cycles` does what stands here; a test walks every stage and happening and holds it
to that.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError), which waits in place where this returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Stage(Enum):
    """Where a binding cycle stands.

    It passes them in this order, as far as it can without waiting: RESERVE is part of the scheduling attempt, at PERMIT
    plugins make the pod wait, at PRE_BIND claims are written, at PREPARE volumes and devices are awaited, at TOGETHER a
    pod of a gang waits for the others, at BIND the binding is asked for. IN_DOUBT is BIND after an answer that says
    neither that it was carried out nor that it was not. BOUND is a pod whose cycle has ended well, but which the API
    does not show on its node yet.
    """

    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "pre-bind"
    PREPARE = "prepare"
    TOGETHER = "together"
    BIND = "bind"
    IN_DOUBT = "in-doubt"
    BOUND = "bound"

    def __init__(self, _: str) -> None:
        # Plain attributes, since they are asked for at each step of each pod.
        order = ("reserve", "permit")
        # Whether all plugins have had their say that may turn the pod down.
        self.is_past_permit: bool = self.value not in order
        # Whether the binding was asked for.
        self.is_sent: bool = self.value in ("bind", "in-doubt")


class Happening(Enum):
    """What may happen to a pod that is on its way; the value says it for people."""

    ALLOWED = "all plugins let it go"
    TURNED_DOWN = "a plugin turns it down, or its wait is over"
    CLAIM_DONE = "the last claim is written"
    CLAIM_REFUSED = "a claim is refused"
    CLAIM_UNKNOWN = "a claim has no answer"
    CLAIMS_LATE = "the time for claims is over"
    READY = "its volumes and devices are ready"
    NOT_READY = "its volumes or devices are not ready"
    NEVER_READY = "the time for that is over"
    ENOUGH_READY = "enough of its gang are ready"
    TOO_FEW_LEFT = "too few of its gang are left, or the time for them is over"
    BOUND = "the binding is carried out"
    BINDING_REFUSED = "the binding is refused"
    BINDING_CONFLICTS = "the binding conflicts"
    BINDING_GONE = "the binding finds no pod"
    BINDING_UNKNOWN = "the binding has no answer"
    SEEN_THERE = "the API shows it on the node"
    SEEN_ELSEWHERE = "the API shows it on another node"
    WITHDRAWN = "it is deleted, or gone"
    CANCELLED = "a preemption calls it back"


class Step(Enum):
    """What comes of a happening; the value says it for people.

    Who fails gives back what was reserved, its room with it, and returns to the queue.
    """

    STAY = "-"
    GO_ON = "goes on"
    WAIT = "looks again later"
    AGAIN = "asks again after 1 s"
    DOUBT = "in-doubt, asks again after 1 s"
    BIND = "is bound"
    END = "is bound, and over"
    YIELD = "gives back what was reserved, but for the room"
    UNDO = "gives back what was reserved"
    FAIL = "fails"


_TABLE = """
                   permit  pre-bind  prepare  together  bind   in-doubt  bound
allowed            go_on   stay      stay     stay      stay   stay      stay
turned_down        fail    stay      stay     stay      stay   stay      stay
claim_done         stay    go_on     stay     stay      stay   stay      stay
claim_refused      stay    fail      stay     stay      stay   stay      stay
claim_unknown      stay    again     stay     stay      stay   stay      stay
claims_late        stay    fail      stay     stay      stay   stay      stay
ready              stay    stay      go_on    stay      stay   stay      stay
not_ready          stay    stay      wait     stay      stay   stay      stay
never_ready        stay    stay      fail     stay      stay   stay      stay
enough_ready       stay    stay      stay     go_on     stay   stay      stay
too_few_left       stay    stay      stay     fail      stay   stay      stay
bound              stay    stay      stay     stay      bind   bind      stay
binding_refused    stay    stay      stay     stay      fail   again     stay
binding_conflicts  stay    stay      stay     stay      fail   stay      stay
binding_gone       stay    stay      stay     stay      fail   fail      stay
binding_unknown    stay    stay      stay     stay      doubt  again     stay
seen_there         yield   yield     yield    yield     end    end       end
seen_elsewhere     yield   yield     yield    yield     yield  yield     end
withdrawn          undo    undo      undo     undo      undo   undo      end
cancelled          fail    fail      fail     fail      fail   fail      stay
"""
_HEAD, *_ROWS = (line.split() for line in _TABLE.strip().splitlines())

STEPS: Mapping[tuple[Stage, Happening], Step] = {
    (Stage(column), Happening[row.upper()]): Step[cell.upper()]
    for row, *cells in _ROWS
    for column, cell in zip(_HEAD, cells, strict=True)
}


def table() -> str:
    """The automaton as a table in Markdown, as the documents show it."""
    lines = [["", *_HEAD], ["---"] * (len(_HEAD) + 1)]
    for row, *cells in _ROWS:
        lines.append([Happening[row.upper()].value, *(Step[cell.upper()].value for cell in cells)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
