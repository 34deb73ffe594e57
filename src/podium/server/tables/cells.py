"""Helpers for table cells, and the rows of pods and Events.

The objects of some kinds are stored without validation, so nothing here relies on their structure. Source:
pkg/printers/internalversion/printers.go, apimachinery (pkg/util/duration, pkg/labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api import errors, selectors, times
from podium.api.meta import Raw, list_at, objects_at, value_at
from podium.store.stored import condition_of
from podium.store.version_conversion import to_core

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

Cells = Sequence[Any]
Cell = Callable[[Raw, int], Any]
"""A function that returns the cell of an object at a time."""


def text(raw: Any, *path: str, default: str = "") -> str:
    """Return the value at a path as text, or `default`."""
    found = value_at(raw, *path)
    return default if found is None or found == "" else shown(found)


def shown(found: Any) -> str:
    """Return a single value as kubectl shows it."""
    return str(found).lower() if isinstance(found, bool) else str(found)


def number(raw: Any, *path: str) -> int:
    """Return the integer at a path, or 0."""
    found = value_at(raw, *path)
    return found if type(found) is int else 0


def texts(raw: Any, *path: str) -> list[str]:
    """Return the strings in the list at a path."""
    return [entry for entry in list_at(raw, *path) if isinstance(entry, str)]


def count(raw: Any, *path: str) -> int:
    """Return the number of entries of the list or object at a path."""
    found = value_at(raw, *path)
    return len(found) if isinstance(found, list | dict) else 0


def name(raw: Raw) -> str:
    """Return the object's name."""
    return text(raw, "metadata", "name")


def age(raw: Raw, now: int) -> str:
    """Return the time since the object's creation."""
    return since(raw, now, "metadata", "creationTimestamp")


def since(raw: Any, now: int, *path: str) -> str:
    """Return the time since the timestamp at a path."""
    time = times.time_of(value_at(raw, *path))
    return UNKNOWN if time is None else times.human_duration(now - time)


def labels(found: Any) -> str:
    """Return labels, or a selector that is a map, in text form (labels.FormatLabels)."""
    if not isinstance(found, dict) or not found:
        return NONE
    return ",".join(f"{key}={shown(entry)}" for key, entry in sorted(found.items()))


def label_selector(found: Any) -> str:
    """Return a LabelSelector in text form (meta/v1 FormatLabelSelector)."""
    if found is None:
        return NONE
    try:
        return str(selectors.compile_label_selector(msgspec.convert(found, selectors.LabelSelector))) or NONE
    except (errors.InputError, msgspec.ValidationError):
        return "<error>"


def condition(raw: Raw, type_: str) -> str:
    """Return the status of a condition; "" if there is none of that type."""
    return text(condition_of(objects_at(raw, "status", "conditions"), type_), "status")


def access_modes(found: Iterable[str]) -> str:
    """Return the abbreviated access modes of a volume (GetAccessModesAsString)."""
    given = set(found)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in given)


def some(found: list[str]) -> str:
    """Return the first three entries, and the number of further ones."""
    listed = ",".join(found[:3])
    return f"{listed} + {len(found) - 3} more..." if len(found) > 3 else listed


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column (meta/v1 TableColumnDefinition) and its cells; a priority above 0 limits it to `-o wide`."""

    name: str
    description: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0

    def to_dict(self) -> Raw:
        return {name: getattr(self, name) for name in ("name", "type", "format", "description", "priority")}


@dataclass(frozen=True, slots=True)
class Printer:
    """The table printer of a kind: its columns, or for related cells a function that makes whole rows (`row`).

    `conditions` are those of the row: kubectl can hide completed rows.
    """

    columns: tuple[TableColumn, ...]
    row: Callable[[Raw, int], Cells] | None = None
    conditions: Callable[[Raw], list[Raw]] = lambda raw: []

    def cells(self, raw: Raw, now: int) -> Cells:
        return [column.cell(raw, now) for column in self.columns] if self.row is None else self.row(raw, now)


NAME = TableColumn(
    "Name", "The name of the object, unique for its kind and namespace.", lambda raw, _: name(raw), format="name"
)
AGE = TableColumn("Age", "The time since the object was created.", age)


# Rows of pods and of Events, both core/v1 and events.k8s.io/v1 (printPod, printEvent)

_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_row(raw: Raw, now: int) -> Cells:
    """Return the cells of a pod."""
    summary, gates = _Summary(raw), objects_at(raw, "spec", "readinessGates")
    count = sum(number(status, "restartCount") for status in summary.restarts)
    ended = (value_at(status, "lastState", "terminated", "finishedAt") for status in summary.restarts)
    last = max((time for time in map(times.time_of, ended) if time is not None), default=None)
    are_open = [condition(raw, text(gate, "conditionType")) == "True" for gate in gates]
    return (
        name(raw),
        f"{summary.ready}/{summary.total}",
        summary.status,
        str(count) if not count or last is None else f"{count} ({times.human_duration(now - last)} ago)",
        age(raw, now),
        next((text(ip, "ip") for ip in objects_at(raw, "status", "podIPs")), "") or NONE,
        text(raw, "spec", "nodeName", default=NONE),
        text(raw, "status", "nominatedNodeName", default=NONE),
        f"{sum(are_open)}/{len(gates)}" if gates else NONE,
    )


class _Summary:
    """The summary of a pod: a status word, the number of ready containers, and those that count for restarts."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self.ready = 0
        self.restarts: list[Raw] = []
        phase = text(raw, "status", "phase")
        self.status = text(raw, "status", "reason", default=phase)
        scheduled = condition_of(objects_at(raw, "status", "conditions"), "PodScheduled")
        if scheduled.get("reason") == "SchedulingGated":
            self.status = "SchedulingGated"
        initial = objects_at(raw, "spec", "initContainers")
        sidecars = {text(one, "name") for one in initial if one.get("restartPolicy") == "Always"}
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
            self.restarts.append(status)
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
        self.restarts.clear()
        for status in objects_at(self._raw, "status", "initContainerStatuses"):
            if text(status, "name") in sidecars:
                self.restarts.append(status)
        is_running = False
        for status in reversed(objects_at(self._raw, "status", "containerStatuses")):
            self.restarts.append(status)
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
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return (
        last,
        text(raw, "type"),
        text(raw, "reason"),
        "/".join(filter(None, (text(raw, "involvedObject", "kind").lower(), text(raw, "involvedObject", "name")))),
        text(raw, "involvedObject", "fieldPath"),
        f"{component}, {instance}" if instance else component,
        text(raw, "message").strip(),
        first,
        count,
        name(raw),
    )
