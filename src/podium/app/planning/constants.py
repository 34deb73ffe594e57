"""Limits of plans, the codes of their findings, and names of node labels and taints."""

from __future__ import annotations

from collections.abc import Mapping

MAX_ADDED_NODES = 10_000
"""The maximum number of nodes that a plan adds."""

MAX_PLACED_PODS = 20_000
"""The maximum number of pods that are placed one after another to see how many fit."""

MAX_SAMPLES = 100
"""The maximum number of runs with different tie-breaks."""

CLUSTER_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
"""Prefixes of the taints that controllers set, which a new node does not have."""

FINDING_CODES: Mapping[str, str] = {
    "preempt": "pods are preempted",
    "evict": "pods are evicted: by a drain, the autoscaler, the rescheduler, for a taint or under pressure",
    "unschedulable": "pods wait for a node at the end",
    "budget": "a disruption budget refuses an eviction, or has fewer healthy pods than it wants",
    "short": "a workload has for some time fewer ready pods than it wants",
    "not-ready": "a workload has at the end fewer ready pods than it wants",
    "blocked": "a drain does not finish",
    "timeout": "a drain times out",
    "refused": "a drain, or the creation of a pod or another object, is refused",
}
"""The codes of findings for `--fail-on`, in the order of answers."""
