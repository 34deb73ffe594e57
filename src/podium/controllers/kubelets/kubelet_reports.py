"""The reports of kubelets about pods and nodes.

Source: pkg/kubelet (status, eviction, preemption, nodestatus/setters.go).
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from podium.api.meta import Raw, objects_at, value_at
from podium.api.node import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, READY, Node
from podium.api.pod import PodCondition
from podium.api.resource_requests import DEFERRED, RESIZE_PENDING
from podium.api.times import format_time, time_of
from podium.api.use import CRASH_LOOP, OUT_OF_MEMORY
from podium.controllers.actions import DeleteObject, Record, ReportStatus
from podium.controllers.kubelets.pod_run import PodRun
from podium.controllers.kubelets.references import StartObstacle
from podium.decide.kubelet import Refusal

KUBELET = "kubelet"
Statuses = tuple[Raw, ...]
"""The statuses of containers."""

_OBSERVED, _EPHEMERAL = "observedGeneration", "ephemeralContainerStatuses"
# The conditions that kubelets report (pkg/kubelet/types/pod_status.go).
_REPORTED = frozenset((READY, "PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled"))

_READY = PodCondition(type=READY, status="True")
_NOT_READY = PodCondition(type=READY, status="False", reason="ContainersNotReady")
GATES_NOT_READY = "ReadinessGatesNotReady"
_COMPLETED = PodCondition(type=READY, status="False", reason="PodCompleted")
_POD_FAILED = PodCondition(type=READY, status="False", reason="PodFailed")


def started(run: PodRun, now: int) -> ReportStatus:
    """Report that the containers run; after a restart also how they ended before."""
    ready = _READY if run.is_ready else _NOT_READY
    is_first = run.last_exit is None
    statuses = () if is_first and run.addresses is None else _running(run, now)
    return _report(run, "Running", ready, start_ns=run.active_ns if is_first else None, statuses=statuses)


def blocked(run: PodRun, obstacle: StartObstacle) -> ReportStatus:
    """Report that the containers do not start because an object is missing."""
    statuses = container_statuses(run, {"waiting": obstacle.waiting}, run.last_exit)
    phase = "Pending" if run.last_exit is None else "Running"
    return _report(run, phase, _NOT_READY, start_ns=run.active_ns, statuses=statuses)


def ready(run: PodRun) -> ReportStatus:
    """Report that the containers are ready."""
    is_reported = run.started_ns is not None and (run.restarts or run.addresses)
    return _report(run, "Running", _READY, statuses=_running(run, run.started_ns or 0) if is_reported else ())


def readiness(run: PodRun) -> PodCondition:
    """Return the condition Ready of a pod with ready containers (pkg/kubelet/status/generate.go).

    Readiness gates count if everything is reported: in a simulation, no controller sets their conditions.
    """
    problems = []
    for gate in objects_at(run.raw, "spec", "readinessGates") if run.addresses is not None else ():
        type_ = gate["conditionType"]
        condition = run.pod.status.condition(type_)
        if condition is None:
            problems.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif condition.status != "True":
            problems.append(f'the status of pod readiness gate "{type_}" is not "True", but {condition.status}')
    if not problems:
        return _READY
    return PodCondition(type=READY, status="False", reason=GATES_NOT_READY, message=", ".join(problems))


def backing_off(run: PodRun, wait_ns: int) -> ReportStatus:
    """Report that the containers have failed and wait for a restart."""
    message = f"back-off {wait_ns // 10**9}s restarting failed containers of pod {run.pod.key}"
    waiting = {"waiting": {"reason": CRASH_LOOP, "message": message}}
    return _report(run, "Running", _NOT_READY, statuses=container_statuses(run, waiting, run.last_exit))


def stops(run: PodRun) -> list[Record]:
    """Return the events about stopped containers (pkg/kubelet/kuberuntime, killContainer)."""
    names = [container.name for container in run.pod.spec.containers]
    return [Record(run.pod.key, run.uid, "Normal", "Killing", f"Stopping container {name}") for name in names]


def succeeded(run: PodRun, now: int) -> ReportStatus:
    """Report that the containers have exited with success."""
    return _report(run, "Succeeded", _COMPLETED, statuses=_ended(run, COMPLETED, now))


def failed(run: PodRun, exit_: Raw) -> ReportStatus:
    """Report that the containers have failed and are not restarted."""
    ended = exit_["terminated"]
    message = f"containers ended with code {ended['exitCode']} ({ended['reason']})"
    return _report(run, "Failed", _POD_FAILED, message=message, statuses=container_statuses(run, exit_))


def resized(run: PodRun) -> ReportStatus:
    """Report that containers and pod have the resources that they want; the resize is not pending any more."""
    conditions = _READY if run.is_ready else _NOT_READY, PodCondition(type=RESIZE_PENDING, status="")
    statuses = _running(run, run.started_ns or 0)
    return _report(run, "Running", *conditions, start_ns=run.active_ns, statuses=statuses)


def deferred_resize(run: PodRun, refusal: Refusal) -> ReportStatus:
    """Report that a resize waits for room on the node."""
    condition = PodCondition(type=RESIZE_PENDING, status="True", reason=DEFERRED, message=refusal.message)
    return ReportStatus("Pod", run.pod.key, run.uid, KUBELET, (condition,), _of_spec(run, "Running"))


def killed(run: PodRun) -> ReportStatus:
    """Report that the containers were killed by the pod's deletion."""
    return _report(run, "Failed", _POD_FAILED, statuses=_ended(run, KILLED))


def rejected(run: PodRun, reason: str, message: str, *, is_disruption: bool = False) -> ReportStatus:
    """Report that the node does not run the pod, or ends it: for a critical pod, or because of memory pressure."""
    conditions, why = [PodCondition(type=READY, status="False", reason=reason)], "TerminationByKubelet"
    if is_disruption:
        conditions.append(PodCondition(type="DisruptionTarget", status="True", reason=why, message=message))
    return _report(run, "Failed", *conditions, reason=reason, message=message, statuses=_ended(run, KILLED))


def exceeded(run: PodRun) -> tuple[ReportStatus, Record]:
    """Return the report and the event about a pod that was active for longer than its activeDeadlineSeconds."""
    reason, message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
    report = _report(run, "Failed", _POD_FAILED, reason=reason, message=message, statuses=_ended(run, KILLED))
    return report, Record(run.pod.key, run.uid, "Normal", reason, message)


def observed(run: PodRun, now: int) -> ReportStatus:
    """Report that the kubelet acts on the pod's current spec, and has started the ephemeral containers that are new.

    The conditions stay as they are.
    """
    status, fields = run.pod.status, _of_spec(run, run.pod.status.phase)
    conditions = tuple(condition for condition in status.conditions if condition.type in _REPORTED)
    known = objects_at(run.raw, "status", _EPHEMERAL)
    names = {each["name"] for each in known}
    added = [each for each in objects_at(run.raw, "spec", "ephemeralContainers") if each["name"] not in names]
    if added:
        state = {"running": {"startedAt": format_time(now)}}
        fields[_EPHEMERAL] = [*known, *(_status(run.uid, each, state, is_ready=False) for each in added)]
    return ReportStatus("Pod", run.pod.key, run.uid, KUBELET, conditions, fields)


def _of_spec(run: PodRun, phase: str) -> Raw:
    """Return the phase, and the generation of the specification that a report is about if it is reported."""
    return {"phase": phase} | ({} if run.observed is None else {_OBSERVED: run.pod.metadata.generation})


def node_conditions(*, is_short: bool) -> tuple[PodCondition, ...]:
    """Return the conditions of a healthy node; ``is_short``: it has memory pressure."""
    return (
        memory_pressure(is_short=is_short),
        PodCondition(type=DISK_PRESSURE, status="False", reason="KubeletHasNoDiskPressure"),
        PodCondition(type=PID_PRESSURE, status="False", reason="KubeletHasSufficientPID"),
        PodCondition(type=READY, status="True", reason="KubeletReady", message="kubelet is posting ready status"),
    )


def memory_pressure(*, is_short: bool) -> PodCondition:
    """Return the condition MemoryPressure."""
    status, reason = ("True", "KubeletHasInsufficientMemory") if is_short else ("False", "KubeletHasSufficientMemory")
    return PodCondition(type=MEMORY_PRESSURE, status=status, reason=reason)


def of_node(node: Node, condition: PodCondition | None = None, fields: Raw | None = None) -> ReportStatus:
    """Report a condition of the node, or at its registration the fields that its status lacks."""
    meta, message = node.metadata, "registered" if condition is None else f"{condition.type} is {condition.status}"
    conditions = () if condition is None else (condition,)
    return ReportStatus("Node", meta.name, meta.uid, KUBELET, conditions, fields or {}, message)


def reported(action: ReportStatus | DeleteObject) -> str:
    """Return the type of the condition in a report about a node, "" for the registration."""
    if not isinstance(action, ReportStatus):
        raise TypeError(f"{action} is no report")
    return action.conditions[0].type if action.conditions else ""


def _running(run: PodRun, started_ns: int) -> Statuses:
    state = {"running": {"startedAt": format_time(started_ns)}}
    return container_statuses(run, state, run.last_exit, is_ready=run.is_ready)


def _ended(run: PodRun, exit_: Raw, now: int | None = None) -> Statuses:
    """Return the statuses of ended containers, if they are reported for this pod; most are not."""
    is_reported = run.restarts or (run.addresses is not None and run.started_ns is not None)
    return container_statuses(run, terminated(exit_, now)) if is_reported else ()


def _report(
    run: PodRun, phase: str, *conditions: PodCondition, start_ns: int | None = None, statuses: Statuses = (), **why: str
) -> ReportStatus:
    """Return the report about a pod; ``why`` has its reason and message, if there are any."""
    fields: Raw = {**_of_spec(run, phase), **{name: text for name, text in why.items() if text}}
    if start_ns is not None:
        fields["startTime"] = format_time(start_ns)
    if run.addresses is not None:
        # The other conditions of a pod follow from its phase and ContainersReady, which is the first given one.
        ready, completed = conditions[0], "PodCompleted" if phase == "Succeeded" else ""
        conditions = (
            PodCondition(type="PodReadyToStartContainers", status="True" if phase == "Running" else "False"),
            PodCondition(type="Initialized", status="True", reason=completed),
            readiness(run) if ready is _READY else ready,
            *(msgspec.structs.replace(ready, type="ContainersReady"), *conditions[1:]),
            PodCondition(type="PodScheduled", status="True"),
        )
        # Without a start, only the host's addresses are known.
        pod_ip, host_ip = run.addresses
        if host_ip:
            fields |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
        if pod_ip and run.started_ns is not None:
            fields |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    if run.allocated is not None and run.allocated.get("resources"):
        fields |= _resources(run.allocated)
    is_complete = run.addresses is not None or run.allocated is not None
    if is_complete and start_ns is not None and run.started_ns is not None and run.pod.spec.init_containers:
        fields["initContainerStatuses"] = init_containers(run, start_ns)
    if statuses:
        fields["containerStatuses"] = list(statuses)
    return ReportStatus("Pod", run.pod.key, run.uid, KUBELET, conditions, fields)


def init_containers(run: PodRun, started_ns: int) -> list[Raw]:
    """Return the statuses of init containers, which have ended when the others start."""
    time = format_time(started_ns)
    ended = {"terminated": {**COMPLETED, "startedAt": time, "finishedAt": time}}
    statuses = []
    for container in (run.allocated or run.raw["spec"]).get("initContainers", ()):
        state = {"running": {"startedAt": time}} if container.get("restartPolicy") == "Always" else ended
        status = _status(run.uid, container, state, is_ready=True)
        statuses.append(status | ({} if run.allocated is None else _resources(container)))
    return statuses


def _status(uid: str, container: Raw, state: Raw, *, is_ready: bool) -> Raw:
    """Return the status of an init container or an ephemeral one."""
    name, image = container["name"], container.get("image", "")
    identity = {"name": name, "image": image, "imageID": image, "containerID": _container_id(uid, name, 0)}
    return {**identity, "ready": is_ready, "restartCount": 0, "started": "running" in state, "state": state}


def _container_id(uid: str, name: str, restarts: int) -> str:
    return f"podium://{blake2b(f'{uid}/{name}/{restarts}'.encode(), digest_size=32).hexdigest()}"


# How containers exit; `LOST` is for those whose machine stopped.
CRASHED: Raw = {"exitCode": 1, "reason": "Error"}
OUT_OF_MEMORY_KILLED: Raw = {"exitCode": 137, "reason": OUT_OF_MEMORY}
COMPLETED: Raw = {"exitCode": 0, "reason": "Completed"}
KILLED: Raw = {"exitCode": 137, "reason": "Error"}
LOST: Raw = {"exitCode": 255, "reason": "Unknown"}


def read_restarts(raw: Raw) -> tuple[int, int | None]:
    """Return how often a pod's containers were restarted, and when last: None while they do not run.

    A status that cannot be read has no restarts.
    """
    listed = objects_at(raw, "status", "containerStatuses")
    counts = (status.get("restartCount") for status in listed)
    count = max((count for count in counts if isinstance(count, int)), default=0)
    # Nearly all containers never restarted, and for them there is nothing else to read.
    if count <= 0:
        return 0, None
    running = (state for status in listed if (state := value_at(status, "state", "running")))
    started = [time_of(value_at(state, "startedAt")) for state in running]
    times = [time for time in started if time is not None]
    return (0, None) if len(times) < len(started) else (count, max(times, default=None))


def terminated(exit_: Raw, now: int | None = None) -> Raw:
    """Return the state of ended containers, with the time if known."""
    return {"terminated": exit_ if now is None else {**exit_, "finishedAt": format_time(now)}}


def container_statuses(run: PodRun, state: Raw, last_state: Raw | None = None, *, is_ready: bool = False) -> Statuses:
    """Return the statuses of all containers, with other known fields of the pod's wire form.

    If everything is reported, they have ids, and whether each container has started.
    """
    last = {} if last_state is None else {"lastState": last_state}
    known = {str(status.get("name")): status for status in objects_at(run.raw, "status", "containerStatuses")}
    statuses: list[Raw] = []
    for index, container in enumerate(run.pod.spec.containers):
        name, before = container.name, {"image": container.image, "imageID": "", **known.get(container.name, {})}
        status = {**before, "name": name, "ready": is_ready, "restartCount": run.restarts, "state": state, **last}
        if run.addresses is not None:
            status["imageID"] = status["imageID"] or status["image"]
            status["containerID"] = _container_id(run.uid, name, run.restarts)
            status["started"] = "running" in state
        if run.allocated is not None:
            status |= _resources(run.allocated["containers"][index])
        statuses.append(status)
    return tuple(statuses)


def _resources(allocated: Raw) -> Raw:
    """Return the fields of a status for the resources that the kubelet has given to a container or pod."""
    resources = allocated.get("resources") or {}
    requests = resources.get("requests")
    return {"resources": resources} | ({"allocatedResources": requests} if requests else {})
