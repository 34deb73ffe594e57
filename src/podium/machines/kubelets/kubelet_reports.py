"""What kubelets report of their pods and nodes.

Source: pkg/kubelet (status, eviction, preemption, nodestatus/setters.go).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, READY
from podium.api.pod import PodCondition
from podium.api.times import format_time
from podium.decide.kubelet_admission import Refusal
from podium.machines.actions import DeleteObject, Record, ReportStatus
from podium.machines.kubelets.container_statuses import (
    COMPLETED,
    KILLED,
    container_statuses,
    running,
    terminated,
    waiting,
)
from podium.machines.kubelets.full_reports import address_fields, all_conditions, init_containers, told_containers
from podium.machines.kubelets.host import PodAddresses
from podium.machines.kubelets.pod_run import PodRun

KUBELET = "kubelet"

_READY = PodCondition(type=READY, status="True")
_NOT_READY = PodCondition(type=READY, status="False", reason="ContainersNotReady")
_COMPLETED = PodCondition(type=READY, status="False", reason="PodCompleted")
_PREEMPTED = "Preempted in order to admit critical pod"


def started(run: PodRun, now: int) -> ReportStatus:
    """Its containers run; of those that were started again, how they ended before."""
    ready = _READY if run.is_ready else _NOT_READY
    if run.last_exit is None:
        statuses = _running(run, now) if run.addresses is not None else ()
        return _report(run, "Running", ready, start_time_ns=now, statuses=statuses)
    return _report(run, "Running", ready, statuses=_running(run, now))


def ready(run: PodRun) -> ReportStatus:
    """Its containers are ready."""
    if run.started_ns is None or not (run.restarts or run.addresses):
        return _report(run, "Running", _READY)
    return _report(run, "Running", _READY, statuses=_running(run, run.started_ns))


def backing_off(run: PodRun, wait_ns: int) -> ReportStatus:
    """Its containers have failed, and are started again after a while."""
    statuses = container_statuses(run.pod, run.raw, run.restarts, waiting(run.pod, wait_ns), run.last_exit)
    return _report(run, "Running", _NOT_READY, statuses=statuses)


def stops(run: PodRun) -> list[Record]:
    """What people are told of containers that are stopped (pkg/kubelet/kuberuntime, killContainer)."""
    names = [container.name for container in run.pod.spec.containers]
    return [Record(run.pod.key, run.uid, "Normal", "Killing", f"Stopping container {name}") for name in names]


def succeeded(run: PodRun, now: int) -> ReportStatus:
    """Its containers have exited with success."""
    # The most frequent end: a state that is not told is not made.
    statuses = container_statuses(run.pod, run.raw, run.restarts, terminated(COMPLETED, now)) if _are_told(run) else ()
    return _report(run, "Succeeded", _COMPLETED, statuses=statuses)


def failed(run: PodRun, exit_: Raw) -> ReportStatus:
    """Its containers have ended with failure, and are not started again."""
    ended = exit_["terminated"]
    message = f"containers ended with code {ended['exitCode']} ({ended['reason']})"
    not_ready = PodCondition(type=READY, status="False", reason="PodFailed")
    statuses = container_statuses(run.pod, run.raw, run.restarts, exit_)
    return _report(run, "Failed", not_ready, message=message, statuses=statuses)


def killed(run: PodRun) -> ReportStatus:
    """Its containers were killed because it was deleted."""
    not_ready = PodCondition(type=READY, status="False", reason="PodFailed")
    return _report(run, "Failed", not_ready, statuses=_restarted(run, terminated(KILLED)))


def rejected(run: PodRun, refusal: Refusal) -> ReportStatus:
    """The node does not take it."""
    return _failed(run, refusal.reason, refusal.message)


def preempted(run: PodRun) -> ReportStatus:
    """It makes room for a critical pod."""
    return _failed(run, "Preempting", _PREEMPTED, _disruption(_PREEMPTED))


def evicted(run: PodRun, message: str) -> ReportStatus:
    """Its node is short of memory."""
    return _failed(run, "Evicted", message, _disruption(message))


def node_conditions(*, is_short: bool) -> tuple[PodCondition, ...]:
    """What a kubelet that is well says of its node; ``is_short``: memory is."""
    return (
        memory_pressure(is_short=is_short),
        PodCondition(type=DISK_PRESSURE, status="False", reason="KubeletHasNoDiskPressure"),
        PodCondition(type=PID_PRESSURE, status="False", reason="KubeletHasSufficientPID"),
        PodCondition(type=READY, status="True", reason="KubeletReady", message="kubelet is posting ready status"),
    )


def memory_pressure(*, is_short: bool) -> PodCondition:
    """Whether the node is short of memory."""
    if is_short:
        return PodCondition(type=MEMORY_PRESSURE, status="True", reason="KubeletHasInsufficientMemory")
    return PodCondition(type=MEMORY_PRESSURE, status="False", reason="KubeletHasSufficientMemory")


def of_node(node: Node, condition: PodCondition) -> ReportStatus:
    """The kubelet says one thing about its node."""
    message = f"{condition.type} is {condition.status}"
    return ReportStatus("Node", node.metadata.name, node.metadata.uid, KUBELET, (condition,), message=message)


def registered(node: Node, fields: Raw) -> ReportStatus:
    """The kubelet says of its node what nobody has said."""
    return ReportStatus("Node", node.metadata.name, node.metadata.uid, KUBELET, fields=fields, message="registered")


def reported(action: ReportStatus | DeleteObject) -> str:
    """What a report about a node is about: the type of its condition, "" for all that nobody has said."""
    if not isinstance(action, ReportStatus):
        raise TypeError(f"{action} is no report")
    return action.conditions[0].type if action.conditions else ""


def _failed(run: PodRun, reason: str, message: str, *conditions: PodCondition) -> ReportStatus:
    not_ready = PodCondition(type=READY, status="False", reason=reason)
    statuses = _restarted(run, terminated(KILLED))
    return _report(run, "Failed", not_ready, *conditions, reason=reason, message=message, statuses=statuses)


def _disruption(message: str) -> PodCondition:
    return PodCondition(type="DisruptionTarget", status="True", reason="TerminationByKubelet", message=message)


def _running(run: PodRun, started_ns: int) -> tuple[Raw, ...]:
    state = running(started_ns)
    return container_statuses(run.pod, run.raw, run.restarts, state, run.last_exit, is_ready=run.is_ready)


def _restarted(run: PodRun, state: Raw) -> tuple[Raw, ...]:
    """The statuses of containers that were started again; of others nothing is said, unless all is."""
    return container_statuses(run.pod, run.raw, run.restarts, state) if _are_told(run) else ()


def _are_told(run: PodRun) -> bool:
    return bool(run.restarts) or (run.addresses is not None and run.started_ns is not None)


def _report(
    run: PodRun,
    phase: str,
    *conditions: PodCondition,
    reason: str = "",
    message: str = "",
    start_time_ns: int | None = None,
    statuses: tuple[Raw, ...] = (),
) -> ReportStatus:
    fields: Raw = {"phase": phase}
    if reason:
        fields["reason"] = reason
    if message:
        fields["message"] = message
    if start_time_ns is not None:
        fields["startTime"] = format_time(start_time_ns)
    if statuses:
        fields["containerStatuses"] = list(statuses)
    if run.addresses is not None:
        conditions = all_conditions(phase, conditions)
        fields |= _further(run, run.addresses, statuses, start_time_ns)
    return ReportStatus("Pod", run.pod.key, run.uid, KUBELET, conditions, fields)


def _further(run: PodRun, addresses: PodAddresses, statuses: tuple[Raw, ...], start_time_ns: int | None) -> Raw:
    """What is reported where all is."""
    fields = address_fields(addresses, is_placed=run.started_ns is not None)
    if statuses:
        fields["containerStatuses"] = told_containers(run, statuses)
    if start_time_ns is not None and run.pod.spec.init_containers:
        fields["initContainerStatuses"] = init_containers(run, start_time_ns)
    return fields
