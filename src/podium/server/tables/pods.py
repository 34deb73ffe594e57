"""Rows of pods and of Events, both core/v1 and events.k8s.io/v1 (printPod, printEvent)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.nested import objects_at, value_at
from podium.server.tables.cells import (
    NONE,
    UNKNOWN,
    Cells,
    age,
    condition,
    human_duration,
    name,
    number,
    since,
    text,
    time_at,
)
from podium.store.version_conversion import to_core

_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


class _Restarts:
    """The number of container restarts, and the time of the last one."""

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


def pod_row(raw: Raw, now: int) -> Cells:
    """Return the cells of a pod."""
    summary = _Summary(raw)
    return (
        name(raw),
        f"{summary.ready}/{summary.total}",
        summary.status,
        summary.restarts.shown(now),
        age(raw, now),
        next((text(ip, "ip") for ip in objects_at(raw, "status", "podIPs")), "") or NONE,
        text(raw, "spec", "nodeName", default=NONE),
        text(raw, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(raw),
    )


class _Summary:
    """The summary of a pod's containers: a status word, the number that are ready, and the restarts."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self.ready = 0
        self.restarts = _Restarts()
        phase = text(raw, "status", "phase")
        self.status = text(raw, "status", "reason", default=phase)
        if any(
            one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
            for one in objects_at(raw, "status", "conditions")
        ):
            self.status = "SchedulingGated"
        sidecars = {
            text(one, "name")
            for one in objects_at(raw, "spec", "initContainers")
            if one.get("restartPolicy") == "Always"
        }
        self.total = len(objects_at(raw, "spec", "containers")) + len(sidecars)
        if not self._initializes(sidecars) or condition(raw, "Initialized") == "True":
            self._look_at_containers(sidecars)
        if value_at(raw, "metadata", "deletionTimestamp"):
            if text(raw, "status", "reason") == "NodeLost":
                self.status = "Unknown"
            elif phase not in _COMPLETED:
                self.status = "Terminating"

    def _initializes(self, sidecars: set[str]) -> bool:
        """Return whether an init container has not completed yet; count the ones up to it."""
        for index, status in enumerate(objects_at(self._raw, "status", "initContainerStatuses")):
            self.restarts.add(status)
            terminated = value_at(status, "state", "terminated")
            if isinstance(terminated, dict) and number(terminated, "exitCode") == 0:
                continue
            if text(status, "name") in sidecars and status.get("started") is True:
                self.ready += status.get("ready") is True
                continue
            reason = _reason(status)
            if not reason or reason == "PodInitializing":
                reason = f"{index}/{len(objects_at(self._raw, 'spec', 'initContainers'))}"
            self.status = f"Init:{reason}"
            return True
        return False

    def _look_at_containers(self, sidecars: set[str]) -> None:
        """Count the containers; the first one that does not run determines the status word."""
        self.restarts = _Restarts()
        for status in objects_at(self._raw, "status", "initContainerStatuses"):
            if text(status, "name") in sidecars:
                self.restarts.add(status)
        is_running = False
        for status in reversed(objects_at(self._raw, "status", "containerStatuses")):
            self.restarts.add(status)
            reason = _reason(status)
            if reason:
                self.status = reason
            elif status.get("ready") is True and value_at(status, "state", "running") is not None:
                is_running = True
                self.ready += 1
        if self.status == "Completed" and is_running:
            self.status = "Running" if condition(self._raw, "Ready") == "True" else "NotReady"


def _reason(status: Raw) -> str:
    """Return why a container does not run; "" for one that runs."""
    waiting = text(status, "state", "waiting", "reason")
    terminated = value_at(status, "state", "terminated")
    if waiting or not isinstance(terminated, dict):
        return waiting
    signal = number(terminated, "signal")
    ended = f"Signal:{signal}" if signal else f"ExitCode:{number(terminated, 'exitCode')}"
    return text(terminated, "reason") or ended


def _readiness_gates(raw: Raw) -> str:
    gates = objects_at(raw, "spec", "readinessGates")
    if not gates:
        return NONE
    is_open = [condition(raw, text(gate, "conditionType")) == "True" for gate in gates]
    return f"{sum(is_open)}/{len(gates)}"


def completion(raw: Raw) -> list[Raw]:
    """Return the conditions of a pod's row: kubectl can hide completed pods."""
    phase = text(raw, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def event_row(raw: Raw, now: int) -> Cells:
    """Return the cells of an Event."""
    raw = to_core(raw)
    first = since(raw, now, "firstTimestamp")
    if first == UNKNOWN:
        first = since(raw, now, "eventTime")
    last = since(raw, now, "lastTimestamp")
    count = number(raw, "count") or 1
    if isinstance(value_at(raw, "series"), dict):
        last = since(raw, now, "series", "lastObservedTime")
        count = number(raw, "series", "count")
    elif last == UNKNOWN:
        last = first
    return (
        last,
        text(raw, "type"),
        text(raw, "reason"),
        "/".join(filter(None, (text(raw, "involvedObject", "kind").lower(), text(raw, "involvedObject", "name")))),
        text(raw, "involvedObject", "fieldPath"),
        _source(raw),
        text(raw, "message").strip(),
        first,
        count,
        name(raw),
    )


def _source(raw: Raw) -> str:
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return f"{component}, {instance}" if instance else component
