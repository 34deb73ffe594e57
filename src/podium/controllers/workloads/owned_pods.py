"""The pods of each workload, and their order of deletion.

A pod belongs to the workload that its controller reference names by uid. Unlike upstream, controllers neither adopt nor
release pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, cmp_to_key

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.selectors import parse_int64
from podium.api.times import time_of
from podium.controllers.workloads.workload import OwnedChange, condition_of
from podium.store.verbs.eviction import is_ready

_SECOND = 10**9


@dataclass(frozen=True)
class OwnedPod:
    """A pod with the wire form of its status, which has times, restarts and exit codes."""

    pod: Pod
    status: Raw

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @cached_property
    def is_active(self) -> bool:
        """Return whether it has neither ended nor been deleted (IsPodActive)."""
        return not self.pod.is_terminal and not self.pod.is_terminating

    @cached_property
    def is_ready(self) -> bool:
        """Return whether its condition Ready is True."""
        return is_ready(self.pod)

    @property
    def created_ns(self) -> int:
        """Return when it was created, in whole seconds; 0 if unknown."""
        return time_of(self.pod.metadata.creation_timestamp) or 0

    def condition_since_ns(self, type_: str) -> int:
        """Return since when the condition has its status; 0 if unknown."""
        return time_of(condition_of(self.status.get("conditions", ()), type_).get("lastTransitionTime")) or 0

    def available_ns(self, min_ready_seconds: int) -> int | None:
        """Return when it becomes available (ready for some seconds); None while it is not ready (IsPodAvailable)."""
        if not self.is_ready:
            return None
        return self.condition_since_ns("Ready") + min_ready_seconds * _SECOND if min_ready_seconds else 0


@dataclass(slots=True)
class OwnerPods:
    """The pods of one owner by uid: all, the active ones, and the active ones that are ready."""

    all: dict[str, OwnedPod] = field(default_factory=dict)
    active: dict[str, OwnedPod] = field(default_factory=dict)
    ready: dict[str, OwnedPod] = field(default_factory=dict)

    def put(self, owned: OwnedPod) -> None:
        uid = owned.uid
        self.all[uid] = owned
        for group, belongs in ((self.active, owned.is_active), (self.ready, owned.is_active and owned.is_ready)):
            if belongs:
                group[uid] = owned
            else:
                group.pop(uid, None)

    def remove(self, uid: str) -> None:
        for group in (self.all, self.active, self.ready):
            group.pop(uid, None)


OwnedPodChange = OwnedChange[OwnedPod]


def has_stopped(change: OwnedPodChange) -> bool:
    """Return whether the pod was active and is no longer."""
    return change.before is not None and change.before.is_active and (change.is_gone or not change.now.is_active)


_NO_PODS = OwnerPods()


class OwnedPods:
    """Pods by the uid of their controller, if that is of one of the kinds."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds
        self._by_owner: dict[str, OwnerPods] = {}
        # By the pod's key, its uid and its owner's.
        self._places: dict[str, tuple[str, str]] = {}

    def concern(self, pod: Pod) -> bool:
        """Return whether the pod, or a known one with its key, has an owner of these kinds."""
        if pod.metadata.owner_references:
            owner = pod.metadata.controller
            if owner is not None and owner.kind in self._kinds:
                return True
        return bool(self._places) and pod.key in self._places

    def see(self, pod: Pod, raw: Raw) -> list[OwnedPodChange]:
        """Take in a pod; return the changes, also of a pod that it replaces."""
        owner = pod.metadata.controller
        owner_uid = owner.uid if owner is not None and owner.kind in self._kinds else ""
        place = pod.metadata.uid, owner_uid
        changes = self.lose(pod) if self._places.get(pod.key, place) != place else []
        if owner_uid:
            pods = self._by_owner.setdefault(owner_uid, OwnerPods())
            owned = OwnedPod(pod, raw.get("status", {}))
            changes.append(OwnedChange(owner_uid, pods.all.get(owned.uid), owned))
            pods.put(owned)
            self._places[pod.key] = place
        return changes

    def lose(self, pod: Pod) -> list[OwnedPodChange]:
        """Forget the pod with that key; return the change."""
        if pod.key not in self._places:
            return []
        uid, owner_uid = self._places.pop(pod.key)
        pods = self._by_owner[owner_uid]
        known = pods.all[uid]
        pods.remove(uid)
        if not pods.all:
            del self._by_owner[owner_uid]
        return [OwnedChange(owner_uid, known, known, is_gone=True)]

    def of(self, owner_uid: str) -> OwnerPods:
        return self._by_owner.get(owner_uid, _NO_PODS)

    def named(self, key: str) -> OwnedPod | None:
        place = self._places.get(key)
        return None if place is None else self._by_owner[place[1]].all[place[0]]


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: pods with a lower cost are deleted first."""

_Ranked = tuple[tuple[bool, int, bool, int, int], OwnedPod]

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Iterable[OwnedPod], count: int, related: Iterable[OwnedPod], now: int) -> list[OwnedPod]:
    """Return the ``count`` pods to delete, in order.

    The order is: pods without a node, by phase, not ready, by deletion cost, by the number of ``related`` active pods
    on their node, ready for a shorter time, more restarts, younger, lower uid. Times are compared by the powers of two
    of their nanoseconds; the uid decides between different times with equal powers. So three pods may each precede the
    next; the lowest uid then comes first.
    """
    neighbours = Counter(pod.pod.spec.node_name for pod in related)

    def rank(pod: OwnedPod) -> tuple[bool, int, bool, int, int]:
        node_name = pod.pod.spec.node_name
        phase = _PHASES.get(pod.pod.status.phase, 0)
        return bool(node_name), phase, pod.is_ready, _cost(pod), -neighbours[node_name]

    def compare(one: _Ranked, other: _Ranked) -> int:
        if one[0] != other[0]:
            return -1 if one[0] < other[0] else 1
        return _compare_alike(one[1], other[1], now)

    ranked = [(rank(pod), pod) for pod in sorted(pods, key=lambda pod: pod.uid)]
    return [pod for _, pod in sorted(ranked, key=cmp_to_key(compare))[:count]]


def _compare_alike(one: OwnedPod, other: OwnedPod, now: int) -> int:
    """Compare two pods of equal rank by their history."""
    found = 0
    if one.is_ready and other.is_ready:
        found = _compare_times(one, other, now, one.condition_since_ns("Ready"), other.condition_since_ns("Ready"))
    found = found or _restarts(other) - _restarts(one)
    found = found or _compare_times(one, other, now, one.created_ns, other.created_ns)
    return found or _order(one.uid, other.uid)


def _compare_times(one: OwnedPod, other: OwnedPod, now: int, since: int, other_since: int) -> int:
    """Compare times: unknown first, then the later; 0 if equal."""
    if since == other_since:
        return 0
    if not since or not other_since:
        return -1 if not since else 1
    return _magnitude(now - since) - _magnitude(now - other_since) or _order(one.uid, other.uid)


def _order(one: str, other: str) -> int:
    return (one > other) - (one < other)


def _cost(pod: OwnedPod) -> int:
    """Return the annotation's value; 0 if there is none or it is no number."""
    cost = parse_int64(pod.pod.metadata.annotations.get(DELETION_COST, "0"))
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _restarts(pod: OwnedPod) -> int:
    """Return the largest restart count of its containers."""
    counts = (status.get("restartCount", 0) for status in pod.status.get("containerStatuses", ()))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _magnitude(age_ns: int) -> int:
    return age_ns.bit_length() if age_ns > 0 else 0
