"""Which pods a workload gives up first.

Source: pkg/controller/controller_utils.go (ActivePodsWithRanks, with LogarithmicScaleDown).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key

from podium.api.requirement import parse_int64
from podium.machines.workloads.owned_pods import OwnedPod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: of those that a workload may give up, the cheaper go first."""

_Ranked = tuple[tuple[bool, int, bool, int, int], OwnedPod]

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Iterable[OwnedPod], count: int, related: Iterable[OwnedPod], now: int) -> list[OwnedPod]:
    """The ``count`` pods to delete, in order.

    First those without a node, then by phase, those not ready, the cheaper, those that share a node with more
    ``related`` active pods, those ready for a shorter time, restarted more often, and younger; of the rest the lower
    uid goes first. Times count by the powers of two of their nanoseconds, and the uid decides at once between times
    that differ and share one. So three pods may each go before the next; where they do, it begins with the lowest uid.
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
    """Which of two pods that nothing but their own lives tells apart goes first: negative for the first."""
    found = 0
    if one.is_ready and other.is_ready:
        found = _compare_times(one, other, now, one.condition_since_ns("Ready"), other.condition_since_ns("Ready"))
    found = found or _restarts(other) - _restarts(one)
    found = found or _compare_times(one, other, now, one.created_ns, other.created_ns)
    return found or _order(one.uid, other.uid)


def _compare_times(one: OwnedPod, other: OwnedPod, now: int, since: int, other_since: int) -> int:
    """The later goes first, before it one whose time is not known; 0 where both are the same time."""
    if since == other_since:
        return 0
    if not since or not other_since:
        return -1 if not since else 1
    return _magnitude(now - since) - _magnitude(now - other_since) or _order(one.uid, other.uid)


def _order(one: str, other: str) -> int:
    return (one > other) - (one < other)


def _cost(pod: OwnedPod) -> int:
    """What the annotation says; 0 where it says nothing, or no number."""
    cost = parse_int64(pod.pod.metadata.annotations.get(DELETION_COST, "0"))
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _restarts(pod: OwnedPod) -> int:
    """The most restarts of any of its containers."""
    counts = (status.get("restartCount", 0) for status in pod.status.get("containerStatuses", ()))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _magnitude(age_ns: int) -> int:
    return age_ns.bit_length() if age_ns > 0 else 0
