"""The calls of a profile's plugins from Reserve to PostBind.

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.controllers.actions import Action, Record
from podium.controllers.scheduling.binding_stages import BindingCycle
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding, DeviceReservation, PermitResult
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Calling, Code, PluginError, Status
from podium.plugins.registry import DefaultBinder


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


# One context manager serves all plugins of an extension point, for speed.


def reserve(cycle: BindingCycle) -> Status:
    """Run Reserve; return the first status that is not success."""
    pod, state, node_name = cycle.queued.record, cycle.state, cycle.node_name
    calling = Calling("", "Reserve", pod)
    for plugin in cycle.runner.profile.reserve:
        calling.plugin = plugin.name
        with calling:
            status = plugin.reserve(state, pod, node_name)
        if not status.is_success:
            return status.by(plugin.name)
    return SUCCESS


def permit(cycle: BindingCycle, now: int) -> Status | dict[str, int]:
    """Run Permit; return a status, or the deadline of each plugin that makes the pod wait."""
    pod, state, node_name = cycle.queued.record, cycle.state, cycle.node_name
    deadlines_ns: dict[str, int] = {}
    calling = Calling("", "Permit", pod)
    for plugin in cycle.runner.profile.permit:
        calling.plugin = plugin.name
        with calling:
            answer = plugin.permit(state, pod, node_name)
        result = answer if isinstance(answer, PermitResult) else PermitResult(answer)
        if result.status.code is Code.WAIT:
            deadlines_ns[plugin.name] = now + result.timeout_ns
        elif not result.status.is_success:
            return result.status.by(plugin.name)
    return deadlines_ns or SUCCESS


def pre_bind(cycle: BindingCycle) -> Status | Sequence[ClaimBinding | DeviceReservation]:
    """Run PreBind; return the claims to bind or reserve, or the first failure."""
    pod, state, node_name = cycle.queued.record, cycle.state, cycle.node_name
    wanted: list[ClaimBinding | DeviceReservation] = []
    calling = Calling("", "PreBind", pod)
    for plugin in cycle.runner.profile.pre_bind:
        calling.plugin = plugin.name
        with calling:
            answer = plugin.pre_bind(state, pod, node_name)
        if not isinstance(answer, Status):
            wanted += answer
        elif not answer.is_success and not answer.is_skip:
            return answer.by(plugin.name)
    return wanted


def prepared(cycle: BindingCycle, now: int) -> Status:
    """Return success, WAIT, or why the results of PreBind will not be ready.

    The first plugin that waits sets the time limit, and fails the pod after it.
    """
    pod, state, node_name = cycle.queued.record, cycle.state, cycle.node_name
    calling = Calling("", "PreBind", pod)
    for plugin in cycle.runner.preparing:
        calling.plugin = plugin.name
        with calling:
            wait = plugin.prepared(state, pod, node_name)
        if wait.status.code is Code.WAIT:
            if cycle.ready_by_ns is None:
                cycle.ready_by_ns = now + wait.timeout_ns
            if now < cycle.ready_by_ns:
                return wait.status
            return plugin.give_up(state, pod, node_name)
        if not wait.status.is_success:
            return wait.status.by(plugin.name)
    return SUCCESS


def bind(cycle: BindingCycle) -> Status:
    """Run Bind; return the status of the first plugin that does not skip the pod."""
    pod, state, node_name = cycle.queued.record, cycle.state, cycle.node_name
    calling = Calling("", "Bind", pod)
    for plugin in cycle.runner.profile.bind:
        calling.plugin = plugin.name
        with calling:
            status = plugin.bind(state, pod, node_name)
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
