"""The state of a binding cycle, and the calls of a profile's plugins from Reserve to PostBind.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError), which blocks where this returns;
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeVar

import msgspec

from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, BindClaim, Record, ReserveClaim
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding, DeviceReservation, PermitResult, Plugin
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Calling, Code, PluginError, Status
from podium.plugins.registry import DefaultBinder


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
        # Whether no plugin can reject the pod any more.
        self.is_past_permit: bool = self.value not in ("reserve", "permit")
        # Whether the binding was requested.
        self.is_sent: bool = self.value in ("bind", "in-doubt")


ClaimAction = BindClaim | ReserveClaim


class BindingCycle(msgspec.Struct, eq=False):
    """A pod between its placement and its binding.

    ``claims`` are the claim writes without an answer. ``reservations`` are all requested reservations of devices;
    ``unanswered`` those that may have been carried out without an answer, ``settled`` those with a known result.
    ``ready_by_ns`` is the deadline for devices. ``sent`` is the requested binding, and ``internal_errors`` counts
    such answers to it in a row. ``is_together``: it is requested only when enough of the pod's gang are ready.
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
    internal_errors: int = 0
    is_together: bool = False


class FailedBinding(msgspec.Struct, frozen=True):
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


# What to do now, and the failure if the cycle came to nothing.
StepResult = tuple[list[Action], FailedBinding | None]


def claim_action(claim: ClaimBinding | DeviceReservation, pod: PodRecord) -> ClaimAction:
    """Return the action that binds or reserves a claim for a pod."""
    if isinstance(claim, ClaimBinding):
        return BindClaim(claim.claim, claim.uid, claim.volume, claim.node_name, pod.uid)
    return ReserveClaim(claim.claim, claim.uid, pod.key, pod.uid, claim.allocation, claim.made, claim.mappings)


def error_status(message: str) -> Status:
    """Return an error."""
    return Status(Code.ERROR, (message,))


class BindingPlugins:
    """The plugins of a profile from Reserve to PreBind; most have nothing to do for most pods."""

    def __init__(self, runner: Runner) -> None:
        profile = runner.profile
        plugins = (*profile.reserve, *profile.permit, *profile.pre_bind)
        self._names = tuple(dict.fromkeys(plugin.name for plugin in plugins))
        # Whether the first Bind plugin is the default one.
        self.binds_plainly = bool(profile.bind) and type(profile.bind[0]) is DefaultBinder
        self._concern_all = not all(vars(type(plugin)).get("needs_state") for plugin in plugins)

    def concern(self, state: CycleState) -> bool:
        """Return whether any plugin has something to do for a pod; if none has, it can be bound at once."""
        return self._concern_all or state.has_any(self._names)


PluginT = TypeVar("PluginT", bound=Plugin)
AnswerT = TypeVar("AnswerT")
Method = Callable[[CycleState, PodRecord, str], AnswerT]


def _answers(
    cycle: BindingCycle, point: str, plugins: Iterable[PluginT], method: Callable[[PluginT], Method[AnswerT]]
) -> Iterator[tuple[PluginT, AnswerT]]:
    """Call the plugins of an extension point one after another; yield each with its answer."""
    # One context manager serves all plugins, for speed.
    calling = Calling("", point, cycle.queued.record)
    for plugin in plugins:
        calling.plugin = plugin.name
        with calling:
            answer = method(plugin)(cycle.state, cycle.queued.record, cycle.node_name)
        yield plugin, answer


def reserve(cycle: BindingCycle) -> Status:
    """Run Reserve; return the first status that is not success."""
    for plugin, status in _answers(cycle, "Reserve", cycle.runner.profile.reserve, lambda plugin: plugin.reserve):
        if not status.is_success:
            return status.by(plugin.name)
    return SUCCESS


def permit(cycle: BindingCycle, now: int) -> Status | dict[str, int]:
    """Run Permit; return a status, or the deadline of each plugin that makes the pod wait."""
    deadlines_ns: dict[str, int] = {}
    for plugin, answer in _answers(cycle, "Permit", cycle.runner.profile.permit, lambda plugin: plugin.permit):
        result = answer if isinstance(answer, PermitResult) else PermitResult(answer)
        if result.status.code is Code.WAIT:
            deadlines_ns[plugin.name] = now + result.timeout_ns
        elif not result.status.is_success:
            return result.status.by(plugin.name)
    return deadlines_ns or SUCCESS


def pre_bind(cycle: BindingCycle) -> Status | Sequence[ClaimBinding | DeviceReservation]:
    """Run PreBind; return the claims to bind or reserve, or the first failure."""
    wanted: list[ClaimBinding | DeviceReservation] = []
    for plugin, answer in _answers(cycle, "PreBind", cycle.runner.profile.pre_bind, lambda plugin: plugin.pre_bind):
        if not isinstance(answer, Status):
            wanted += answer
        elif not answer.is_success and not answer.is_skip:
            return answer.by(plugin.name)
    return wanted


def prepared(cycle: BindingCycle, now: int) -> Status:
    """Return success, WAIT, or why the results of PreBind will not be ready.

    The first plugin that waits sets the time limit, and fails the pod after it.
    """
    for plugin, wait in _answers(cycle, "PreBind", cycle.runner.preparing, lambda plugin: plugin.prepared):
        if wait.status.code is Code.WAIT:
            if cycle.ready_by_ns is None:
                cycle.ready_by_ns = now + wait.timeout_ns
            if now < cycle.ready_by_ns:
                return wait.status
            ((_, status),) = _answers(cycle, "PreBind", (plugin,), lambda late: late.give_up)
            return status
        if not wait.status.is_success:
            return wait.status.by(plugin.name)
    return SUCCESS


def bind(cycle: BindingCycle) -> Status:
    """Run Bind; return the status of the first plugin that does not skip the pod."""
    for plugin, status in _answers(cycle, "Bind", cycle.runner.profile.bind, lambda plugin: plugin.bind):
        if not status.is_skip:
            return status if status.is_success else status.by(plugin.name)
    return Status(Code.ERROR, ("no Bind plugin took the pod",))


def post_bind(cycle: BindingCycle) -> list[Action]:
    """Record the binding and run PostBind; a plugin that fails changes nothing."""
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


def unreserve(cycle: BindingCycle) -> list[Action]:
    """Run Unreserve in reverse order; a plugin that fails does not stop the others."""
    pod = cycle.queued.record
    records: list[Action] = []
    for plugin in reversed(cycle.runner.profile.reserve):
        try:
            with Calling(plugin.name, "Unreserve", pod):
                plugin.unreserve(cycle.state, pod, cycle.node_name)
        except PluginError as error:
            records.append(Record(pod.key, pod.uid, "Warning", "FailedUnreserve", str(error), cycle.node_name))
    return records
