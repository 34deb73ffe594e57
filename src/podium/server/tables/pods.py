"""How pods and templates of pods are shown (printPod, printPodTemplate)."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.server.tables.cells import (
    NONE,
    age,
    condition,
    containers,
    entries,
    human_duration,
    labels,
    name,
    number,
    text,
    time_at,
    value,
)
from podium.server.tables.column import AGE, CONTAINERS, IMAGES, NAME, Cells, Column, Printer

_COLUMNS = (
    NAME,
    Column("Ready", "How many of the pod's containers are ready to serve."),
    Column("Status", "What the pod's containers are doing, taken together."),
    Column("Restarts", "How often containers of the pod were started again, and when last."),
    AGE,
    Column("IP", "The address of the pod.", priority=1),
    Column("Node", "The node that the pod is bound to.", priority=1),
    Column("Nominated Node", "The node on which room is being made for the pod.", priority=1),
    Column("Readiness Gates", "How many of the pod's readiness gates are open.", priority=1),
)
_TEMPLATE_COLUMNS = (NAME, CONTAINERS, IMAGES, Column("Pod Labels", "The labels of the template."))
_TERMINAL = ("Succeeded", "Failed")
_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Restarts:
    """How often containers were started again, and when the last of them ended before that."""

    def __init__(self) -> None:
        self.count = 0
        self.last: int | None = None

    def add(self, status: Raw) -> None:
        self.count += number(status, "restartCount")
        ended = time_at(status, "lastState", "terminated", "finishedAt")
        if ended is not None and (self.last is None or self.last < ended):
            self.last = ended

    def shown(self, now: int) -> str:
        if not self.count or self.last is None:
            return str(self.count)
        return f"{self.count} ({human_duration(now - self.last)} ago)"


def _pod(raw: Raw, now: int) -> Cells:
    summary = _Summary(raw)
    return (
        name(raw),
        f"{summary.ready}/{summary.total}",
        summary.status,
        summary.restarts.shown(now),
        age(raw, now),
        next((text(ip, "ip") for ip in entries(raw, "status", "podIPs")), "") or NONE,
        text(raw, "spec", "nodeName", default=NONE),
        text(raw, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(raw),
    )


class _Summary:
    """What a pod's containers are doing, as one word, with how many are ready and how often they were restarted."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self.ready = 0
        self.restarts = _Restarts()
        phase = text(raw, "status", "phase")
        self.status = text(raw, "status", "reason", default=phase)
        if any(
            one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
            for one in entries(raw, "status", "conditions")
        ):
            self.status = "SchedulingGated"
        sidecars = {
            text(one, "name") for one in entries(raw, "spec", "initContainers") if one.get("restartPolicy") == "Always"
        }
        self.total = len(entries(raw, "spec", "containers")) + len(sidecars)
        if not self._initializes(sidecars) or condition(raw, "Initialized") == "True":
            self._look_at_containers(sidecars)
        if value(raw, "metadata", "deletionTimestamp"):
            if text(raw, "status", "reason") == "NodeLost":
                self.status = "Unknown"
            elif phase not in _TERMINAL:
                self.status = "Terminating"

    def _initializes(self, sidecars: set[str]) -> bool:
        """Whether an init container has yet to end well; takes in those up to it."""
        for index, status in enumerate(entries(self._raw, "status", "initContainerStatuses")):
            self.restarts.add(status)
            terminated = value(status, "state", "terminated")
            if isinstance(terminated, dict) and number(terminated, "exitCode") == 0:
                continue
            if text(status, "name") in sidecars and status.get("started") is True:
                self.ready += status.get("ready") is True
                continue
            self.status = f"Init:{self._init_reason(status, index)}"
            return True
        return False

    def _init_reason(self, status: Raw, index: int) -> str:
        terminated = value(status, "state", "terminated")
        if isinstance(terminated, dict):
            return text(terminated, "reason") or _exit(terminated)
        waiting = text(status, "state", "waiting", "reason")
        if waiting and waiting != "PodInitializing":
            return waiting
        return f"{index}/{len(entries(self._raw, 'spec', 'initContainers'))}"

    def _look_at_containers(self, sidecars: set[str]) -> None:
        """Take in the containers; the first that does something else than run decides the word."""
        self.restarts = _Restarts()
        for status in entries(self._raw, "status", "initContainerStatuses"):
            if text(status, "name") in sidecars:
                self.restarts.add(status)
        is_running = False
        for status in reversed(entries(self._raw, "status", "containerStatuses")):
            self.restarts.add(status)
            reason = _reason(status)
            if reason:
                self.status = reason
            elif status.get("ready") is True and value(status, "state", "running") is not None:
                is_running = True
                self.ready += 1
        if self.status == "Completed" and is_running:
            self.status = "Running" if condition(self._raw, "Ready") == "True" else "NotReady"


def _reason(status: Raw) -> str:
    """Why a container does not run; "" for one that does."""
    waiting = text(status, "state", "waiting", "reason")
    terminated = value(status, "state", "terminated")
    if waiting or not isinstance(terminated, dict):
        return waiting
    return text(terminated, "reason") or _exit(terminated)


def _exit(terminated: Raw) -> str:
    signal = number(terminated, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{number(terminated, 'exitCode')}"


def _readiness_gates(raw: Raw) -> str:
    gates = entries(raw, "spec", "readinessGates")
    if not gates:
        return NONE
    is_open = [condition(raw, text(gate, "conditionType")) == "True" for gate in gates]
    return f"{sum(is_open)}/{len(gates)}"


def _conditions(raw: Raw) -> list[Raw]:
    phase = text(raw, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _template(raw: Raw, now: int) -> Cells:
    template: Any = value(raw, "template")
    return (name(raw), *containers(value(template, "spec")), labels(value(template, "metadata", "labels")))


PRINTERS = {
    ("", "Pod"): Printer(_COLUMNS, _pod, _conditions),
    ("", "PodTemplate"): Printer(_TEMPLATE_COLUMNS, _template),
}
