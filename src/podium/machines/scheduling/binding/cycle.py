"""One pod on its way to one node, and how that may fail.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from podium.cluster.pods import PodRecord
from podium.framework.claims import ClaimBinding, DeviceReservation
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner
from podium.framework.status import Code, Status
from podium.machines.actions import Action, Bind, BindClaim, ReserveClaim
from podium.machines.scheduling.binding.stages import Stage
from podium.machines.scheduling.queue.queued_pod import QueuedPod

ClaimAction = BindClaim | ReserveClaim


class BindingCycle(msgspec.Struct, eq=False):
    """One pod on its way to one node.

    ``claims`` are the claim bindings that are still to be answered. ``reservations`` are all of devices that were asked
    for: ``unanswered`` those that may have been carried out without a word, ``settled`` those of which it is known
    whether they were carried out. ``ready_by_ns`` is until when they are waited for. ``sent`` is the binding that was
    asked for, None before. ``is_together``: it is not asked for before enough pods of the pod's gang are ready for
    theirs.
    """

    queued: QueuedPod
    runner: Runner
    state: CycleState
    node_name: str
    stage: Stage = Stage.RESERVE
    claims: frozenset[ClaimAction] = frozenset()
    reservations: tuple[ReserveClaim, ...] = ()
    unanswered: frozenset[ReserveClaim] = frozenset()
    settled: frozenset[ReserveClaim] = frozenset()
    ready_by_ns: int | None = None
    sent: Bind | None = None
    is_together: bool = False


@dataclass(frozen=True, slots=True)
class FailedBinding:
    """A binding cycle that came to nothing. ``status`` is a plugin's rejection, or an error.

    ``aftermath`` tells what went wrong while the cycle was undone, and takes the pod off claims for devices.
    """

    cycle: BindingCycle
    status: Status
    aftermath: tuple[Action, ...] = ()

    @property
    def rejected_by(self) -> tuple[str, ...]:
        """The plugin that turned the pod down; none where something went wrong, or after Permit.

        Source: pkg/scheduler/schedule_one.go (bindingCycle): what fails after Permit does not make a pod unschedulable.
        """
        is_early = not self.cycle.stage.is_past_permit
        return (self.status.plugin,) if is_early and self.status.is_rejected and self.status.plugin else ()

    @property
    def frees_room(self) -> bool:
        """Whether others may have missed the room that the pod held; not within its own attempt."""
        return self.cycle.stage is not Stage.RESERVE


# What to do now, and the failure if the cycle came to nothing.
StepResult = tuple[list[Action], FailedBinding | None]


def claim_action(claim: ClaimBinding | DeviceReservation, pod: PodRecord) -> ClaimAction:
    """The action that binds a claim for a pod, or reserves it."""
    if isinstance(claim, ClaimBinding):
        return BindClaim(claim.claim, claim.uid, claim.volume, claim.node_name, pod.uid)
    return ReserveClaim(claim.claim, claim.uid, pod.key, pod.uid, claim.allocation, claim.made, claim.mappings)


def unbound_claims(cycle: BindingCycle) -> str:
    """What is said of claims that were not bound in time."""
    claims = sorted(action.claim for action in cycle.claims)
    return f"binding to {cycle.node_name}: not bound in time: {', '.join(claims)}"


def error_status(message: str) -> Status:
    """Something went wrong."""
    return Status(Code.ERROR, (message,))
