"""The state of a binding cycle, and its transitions as a table.

`podium.controllers.scheduling.binding_cycles` looks up transitions here; a test compares them for every stage. Source:
pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError), which blocks where this returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, BindClaim, ReserveClaim
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding, DeviceReservation
from podium.framework.runner import Runner
from podium.framework.verdicts import Code, Status


class BindingStage(Enum):
    """The stage of a binding cycle.

    RESERVE is part of the attempt. PERMIT: plugins make the pod wait. PRE_BIND: claims are written. PREPARE: volumes
    and devices become ready. TOGETHER: the pod waits for its gang. BIND: the binding is requested. IN_DOUBT: the
    binding got an inconclusive answer. BOUND: the cycle has succeeded, but the API does not show the pod on its node
    yet.
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
        # Plain attributes, because they are read at each step of each pod.
        order = ("reserve", "permit")
        # Whether no plugin can reject the pod any more.
        self.is_past_permit: bool = self.value not in order
        # Whether the binding was requested.
        self.is_sent: bool = self.value in ("bind", "in-doubt")


class BindingEvent(Enum):
    """The events of a binding cycle; the values describe them."""

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


class BindingTransition(Enum):
    """The results of events; the values describe them.

    A failed cycle releases its reservations and its capacity, and returns the pod to the queue.
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

TRANSITIONS: Mapping[tuple[BindingStage, BindingEvent], BindingTransition] = {
    (BindingStage(column), BindingEvent[row.upper()]): BindingTransition[cell.upper()]
    for row, *cells in _ROWS
    for column, cell in zip(_HEAD, cells, strict=True)
}


def table() -> str:
    """Return the table in Markdown."""
    lines = [["", *_HEAD], ["---"] * (len(_HEAD) + 1)]
    for row, *cells in _ROWS:
        lines.append([BindingEvent[row.upper()].value, *(BindingTransition[cell.upper()].value for cell in cells)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


ClaimAction = BindClaim | ReserveClaim


class BindingCycle(msgspec.Struct, eq=False):
    """A pod between its placement and its binding.

    ``claims`` are the claim writes without an answer. ``reservations`` are all requested reservations of devices;
    ``unanswered`` those that may have been carried out without an answer, ``settled`` those with a known result.
    ``ready_by_ns`` is the deadline for devices. ``sent`` is the requested binding. ``is_together``: it is requested
    only when enough of the pod's gang are ready.
    """

    queued: QueuedPod
    runner: Runner
    state: CycleState
    node_name: str
    stage: BindingStage = BindingStage.RESERVE
    claims: frozenset[ClaimAction] = frozenset()
    reservations: tuple[ReserveClaim, ...] = ()
    unanswered: frozenset[ReserveClaim] = frozenset()
    settled: frozenset[ReserveClaim] = frozenset()
    ready_by_ns: int | None = None
    sent: Bind | None = None
    is_together: bool = False


@dataclass(frozen=True, slots=True)
class FailedBinding:
    """A failed binding cycle.

    ``status`` is a plugin's rejection or an error; ``aftermath`` are the actions of the rollback.
    """

    cycle: BindingCycle
    status: Status
    aftermath: tuple[Action, ...] = ()

    @property
    def rejected_by(self) -> tuple[str, ...]:
        """Return the plugin that rejected the pod; empty after an error, or after Permit.

        Source: pkg/scheduler/schedule_one.go (bindingCycle): a failure after Permit does not make a pod unschedulable.
        """
        is_early = not self.cycle.stage.is_past_permit
        return (self.status.plugin,) if is_early and self.status.is_rejected and self.status.plugin else ()

    @property
    def frees_room(self) -> bool:
        """Return whether the rollback frees capacity that others may have missed; not within the attempt itself."""
        return self.cycle.stage is not BindingStage.RESERVE


# What to do now, and the failure if the cycle came to nothing.
StepResult = tuple[list[Action], FailedBinding | None]


def claim_action(claim: ClaimBinding | DeviceReservation, pod: PodRecord) -> ClaimAction:
    """Return the action that binds or reserves a claim for a pod."""
    if isinstance(claim, ClaimBinding):
        return BindClaim(claim.claim, claim.uid, claim.volume, claim.node_name, pod.uid)
    return ReserveClaim(claim.claim, claim.uid, pod.key, pod.uid, claim.allocation, claim.made, claim.mappings)


def unbound_claims(cycle: BindingCycle) -> str:
    """Return the error message for claims that were not bound in time."""
    claims = sorted(action.claim for action in cycle.claims)
    return f"binding to {cycle.node_name}: not bound in time: {', '.join(claims)}"


def error_status(message: str) -> Status:
    """Return an error."""
    return Status(Code.ERROR, (message,))
