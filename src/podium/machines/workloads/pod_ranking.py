"""Which pods a workload gives up first.

Source: pkg/controller/controller_utils.go (ActivePodsWithRanks, with LogarithmicScaleDown).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podium.api.requirement import parse_int64
from podium.machines.workloads.owned_pods import OwnedPod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: of those that a workload may give up, the cheaper go first."""

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Iterable[OwnedPod], count: int, related: Iterable[OwnedPod], now: int) -> list[OwnedPod]:
    """The ``count`` pods to delete, in order.

    First those without a node, then by phase, those not ready, the cheaper, those that share a node with more
    ``related`` active pods, those ready for a shorter time, restarted more often, and younger. Times count by the
    powers of two of their nanoseconds; of the rest the lower uid goes first.
    """
    neighbours = Counter(one.pod.spec.node_name for one in related)

    def rank(one: OwnedPod) -> tuple[bool, int, bool, int, int, int, int, int, str]:
        node_name = one.pod.spec.node_name
        return (
            bool(node_name),
            _PHASES.get(one.pod.status.phase, 0),
            one.is_ready,
            _cost(one),
            -neighbours[node_name],
            _magnitude(now - one.condition_since_ns("Ready")) if one.is_ready else 0,
            -_restarts(one),
            _magnitude(now - one.created_ns),
            one.uid,
        )

    return sorted(pods, key=rank)[:count]


def _cost(one: OwnedPod) -> int:
    """What the annotation says; 0 where it says nothing, or no number."""
    cost = parse_int64(one.pod.metadata.annotations.get(DELETION_COST, "0"))
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _restarts(one: OwnedPod) -> int:
    """The most restarts of any of its containers."""
    counts = (status.get("restartCount", 0) for status in one.status.get("containerStatuses", ()))
    return max((count for count in counts if isinstance(count, int)), default=0)


def _magnitude(age_ns: int) -> int:
    return age_ns.bit_length() if age_ns > 0 else 0
