"""The queue's places, what happens to pods in them, and what comes of it: the whole automaton as one table.

`podium.machines.scheduling.queue.queue` does what stands here; a test walks every place and happening and holds it to
that.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go, unschedulable_pods.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from podium.machines.scheduling.queue.hints import NO, Wake
from podium.machines.scheduling.queue.queued_pod import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, Place


class Happening(Enum):
    """What may happen to a pod, and the method of the queue that tells it."""

    ADDED = "add"
    UPDATED = "update"
    DELETED = "delete"
    POPPED = "pop"
    FAILED = "add_unschedulable"
    DONE = "done"
    EVENT = "move"
    ACTIVATED = "activate"
    GATE_ASKED = "ask_gate_again"
    REORDERED = "reorder"
    FLUSHED = "flush"
    JOINED = "join"
    WOKEN = "wake"
    GIVEN_BACK = "give_back"


class Step(Enum):
    """What comes of a happening; the value says it for people."""

    REFUSE = "an error"
    STAY = "stays"
    LEAVE = "leaves the queue"
    FLY = "in flight"
    FLY_EARLY = "in flight, if no pod is active and its backoff may be cut short"
    HEAR = "stays; counts once the attempt has failed"
    SORT = "stays, sorted anew; gated if QueueSort fails"
    WAKE = "active, unless it was popped too often at this instant"
    RISE = "active, if its backoff has ended"
    LAND = "lands"
    LAND_IF_WOKEN = "lands, if it is woken"
    LAND_IF_LATE = "lands, if it has waited for 5 minutes"


_TABLE = """
                 unknown  active  backoff    unschedulable  gated         in-flight
added            land     refuse  refuse     refuse         refuse        refuse
updated          land     sort    sort       land_if_woken  land          hear
deleted          stay     leave   leave      leave          leave         leave
popped           stay     fly     fly_early  stay           stay          stay
failed           stay     refuse  refuse     refuse         refuse        land
done             stay     stay    stay       stay           stay          leave
event            stay     stay    stay       land_if_woken  land_if_woken hear
activated        stay     stay    wake       land           land          hear
gate_asked       stay     stay    stay       stay           land          stay
reordered        stay     sort    sort       stay           stay          stay
flushed          stay     stay    rise       land_if_late   land_if_late  stay
joined           stay     fly     fly        fly            stay          stay
woken            stay     stay    stay       land           land          hear
given_back       stay     refuse  refuse     refuse         refuse        land
"""
UNKNOWN = "unknown"
_HEAD, *_ROWS = (line.split() for line in _TABLE.strip().splitlines())

# By place (None for a pod that the queue does not know) and happening.
STEPS: Mapping[tuple[Place | None, Happening], Step] = {
    (None if column == UNKNOWN else Place(column), Happening[row.upper()]): Step[cell.upper()]
    for row, *cells in _ROWS
    for column, cell in zip(_HEAD, cells, strict=True)
}


def landing(wake: Wake, *, is_held: bool, backs_off: bool) -> Place:
    """Where a pod lands that is to be given a place.

    ``wake`` is what has happened to it: nothing that helps, something that makes it worth an attempt after its backoff,
    or at once. ``is_held``: a PreEnqueue plugin turns it down, or QueueSort fails; that is asked of pods that are woken
    or were gated. ``backs_off``: it must, and its backoff has not ended.
    """
    if is_held:
        return GATED
    if wake is NO:
        return UNSCHEDULABLE
    return BACKOFF if backs_off else ACTIVE


def table() -> str:
    """The automaton as a table in Markdown, as the documents show it."""
    lines = [["", *_HEAD], ["---"] * (len(_HEAD) + 1)]
    for row, *cells in _ROWS:
        lines.append([f"`{Happening[row.upper()].value}`", *(Step[cell.upper()].value for cell in cells)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
