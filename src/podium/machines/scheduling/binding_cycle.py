"""One pod on its way to one node, how that may fail, and what its plugins are told at the end.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from podium.cluster.pods import PodRecord
from podium.framework.claims import ClaimBinding, DeviceReservation
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError
from podium.framework.runner import Runner
from podium.framework.status import Code, Status
from podium.machines.actions import Action, Bind, BindClaim, Record, ReserveClaim
from podium.machines.scheduling.queued_pod import QueuedPod

ClaimAction = BindClaim | ReserveClaim


class Stage(Enum):
    """Where a binding cycle stands. Up to RESERVE it is part of the scheduling attempt; at PERMIT it waits."""

    RESERVE = auto()
    PERMIT = auto()
    PRE_BIND = auto()
    BIND = auto()


@dataclass(slots=True, eq=False)
class BindingCycle:
    """One pod on its way to one node.

    ``claims`` are the claim bindings that are still to be answered. ``reservations`` are all of devices that were asked
    for, ``unanswered`` those that may have been carried out without a word, and ``ready_by_ns`` is until when they are
    waited for. ``may_be_bound``: a binding was left without an answer, which says neither that it was carried out nor
    that it was not.
    """

    queued: QueuedPod
    runner: Runner
    state: CycleState
    node_name: str
    stage: Stage = Stage.RESERVE
    claims: set[ClaimAction] = field(default_factory=set)
    reservations: list[ReserveClaim] = field(default_factory=list)
    unanswered: set[ReserveClaim] = field(default_factory=set)
    ready_by_ns: int | None = None
    may_be_bound: bool = False

    @property
    def bind(self) -> Bind:
        """The action that ends the cycle."""
        pod = self.queued.record
        return Bind(pod.key, pod.uid, self.node_name)


@dataclass(frozen=True, slots=True)
class Failure:
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
        is_early = self.cycle.stage in (Stage.RESERVE, Stage.PERMIT)
        return (self.status.plugin,) if is_early and self.status.is_rejected and self.status.plugin else ()

    @property
    def frees_room(self) -> bool:
        """Whether others may have missed the room that the pod held; not within its own attempt."""
        return self.cycle.stage is not Stage.RESERVE


# What to do now, and the failure if the cycle came to nothing.
StepResult = tuple[list[Action], Failure | None]


def unreserve(cycle: BindingCycle) -> list[Record]:
    """Let the plugins give back what they reserved; one that raises keeps neither the others from it, nor the pod."""
    pod, records = cycle.queued.record, list[Record]()
    for plugin in reversed(cycle.runner.profile.reserve):
        try:
            with Calling(plugin.name, "Unreserve", pod):
                plugin.unreserve(cycle.state, pod, cycle.node_name)
        except PluginError as error:
            records.append(Record(pod.key, pod.uid, "Warning", "FailedUnreserve", str(error), cycle.node_name))
    return records


def claim_action(claim: ClaimBinding | DeviceReservation, pod: PodRecord) -> ClaimAction:
    """The action that binds a claim for a pod, or reserves it."""
    if isinstance(claim, ClaimBinding):
        return BindClaim(claim.claim, claim.uid, claim.volume, claim.node_name, pod.uid)
    return ReserveClaim(claim.claim, claim.uid, pod.key, pod.uid, claim.allocation, claim.made, claim.mappings)


def tell_bound(cycle: BindingCycle) -> list[Action]:
    """The pod is bound: record it, and tell the plugins. One that raises changes nothing about that."""
    pod, node_name = cycle.queued.record, cycle.node_name
    message = f"Successfully assigned {pod.key} to {node_name}"
    actions: list[Action] = [Record(pod.key, pod.uid, "Normal", "Scheduled", message, node_name)]
    for plugin in cycle.runner.profile.post_bind:
        try:
            with Calling(plugin.name, "PostBind", pod):
                plugin.post_bind(cycle.state, pod, node_name)
        except PluginError as error:
            actions.append(Record(pod.key, pod.uid, "Warning", "FailedPostBind", str(error), node_name))
    return actions


def unbound_claims(cycle: BindingCycle) -> str:
    """What is said of claims that were not bound in time."""
    claims = sorted(action.claim for action in cycle.claims)
    return f"binding to {cycle.node_name}: not bound in time: {', '.join(claims)}"


def error_status(message: str) -> Status:
    """Something went wrong."""
    return Status(Code.ERROR, (message,))
