"""How a controller writes the status of its workloads: when it has changed, and not twice for one version."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from podium.api.meta import Kubernetes, Raw
from podium.machines.actions import Action, ReplaceStatus
from podium.machines.workloads.workload import Workload


class StatusWrites:
    """The statuses that were written and have yet to be seen, by uid.

    Until a workload is seen at another version than the one that a status was written on, any further write would be
    refused, and none is made.
    """

    def __init__(self) -> None:
        self._written_on: dict[str, str] = {}

    def write(self, workload: Workload[Kubernetes], status: Raw) -> list[Action]:
        """What writes the status, if it differs from the one that the workload has."""
        if status == workload.status or self._written_on.get(workload.uid) == workload.version:
            return []
        self._written_on[workload.uid] = workload.version
        return [ReplaceStatus({**workload.raw, "status": status}, workload.label)]

    def forget(self, uid: str) -> None:
        """The write has failed, or the workload is gone."""
        self._written_on.pop(uid, None)


def status_with(old: Raw, fields: Raw, always: Collection[str] = ()) -> Raw:
    """The status with these fields; of them None, "", [], {} and 0 are left out, but for those ``always`` there."""
    kept = {name: value for name, value in old.items() if name not in fields}
    return kept | {name: value for name, value in fields.items() if name in always or _is_said(value)}


def _is_said(value: Any) -> bool:
    return value is not None and value not in (0, "", [], {})
