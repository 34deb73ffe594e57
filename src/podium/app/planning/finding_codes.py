"""What a plan can find that somebody may want to hear of: the codes that `--fail-on` takes."""

from __future__ import annotations

from collections.abc import Mapping

FINDING_CODES: Mapping[str, str] = {
    "preempt": "pods are preempted",
    "evict": "pods are evicted: by a drain, the autoscaler, the rescheduler, for a taint or under pressure",
    "unschedulable": "pods wait for a node at the end",
    "budget": "a disruption budget refuses an eviction, or has fewer healthy pods than it wants",
    "short": "a workload has for some time fewer ready pods than it wants",
    "not-ready": "a workload has at the end fewer ready pods than it wants",
    "blocked": "a drain does not come to its end",
    "timeout": "a drain's time is up",
    "refused": "a drain, or the making of a pod or another object, is refused",
}
"""What a finding can be about, as `--fail-on` names it, in the order in which findings are told."""
