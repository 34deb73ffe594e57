"""Workloads that have fewer pods than they want, because pods were refused."""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.workloads import DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.workloads.failed_creations import FAILED_CREATE
from podium.machines.workloads.workload import label_of
from podium.sim.history import History
from podium.sim.limits import pods_wanted
from podium.store.store import Store
from podium.store.stored import Stored

_KINDS = (DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet)
_FORBIDDEN = " is forbidden: "


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A workload, as in `ReplicaSet default/web`, how many pods it wants and has, and why it does not get more."""

    workload: str
    wants: int
    has: int
    reason: str


def shortfalls(store: Store, history: History) -> list[Shortfall]:
    """The workloads that are short of pods at the end and were refused some, by name."""
    reasons = {event.by: event.message for event in history.events if event.reason == FAILED_CREATE}
    if not reasons:
        return []
    found = []
    for stored in (found for kind in _KINDS for found in store.objects(kind.__name__)):
        label = label_of(stored.object)
        wants, has = _counts(stored)
        if label in reasons and has < wants:
            found.append(Shortfall(label, wants, has, _why(reasons[label])))
    return sorted(found, key=lambda shortfall: shortfall.workload)


def _counts(stored: Stored) -> tuple[int, int]:
    """How many pods a workload wants, and how many there are."""
    status = stored.raw.get("status", {})
    if isinstance(stored.object, DaemonSet):
        return status.get("desiredNumberScheduled", 0), status.get("currentNumberScheduled", 0)
    if isinstance(stored.object, Job):
        left = pods_wanted(stored.object) - (status.get("succeeded", 0) if stored.object.spec.completions else 0)
        return max(0, left), status.get("active", 0)
    return pods_wanted(stored.object), status.get("replicas", 0)


def _why(message: str) -> str:
    """The reason in a message, without what nobody has to be told twice: that a pod of a made-up name is refused."""
    before, found, reason = message.partition(_FORBIDDEN)
    return reason if found else before
