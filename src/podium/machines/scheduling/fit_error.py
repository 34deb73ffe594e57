"""Why a pod fits nowhere, in one line, as kube-scheduler words it.

Source: pkg/scheduler/framework/types.go (FitError.Error).
"""

from __future__ import annotations

from podium.decide.placement import Placement, left_out


def fit_error(placement: Placement, node_count: int, post_filter_message: str) -> str:
    """`0/N nodes are available: ` and each reason with the number of nodes that gave it, then what PostFilter said."""
    message = f"0/{node_count} nodes are available"
    status = placement.pre_filter.status
    reasons = ", ".join(reasons_of(placement, node_count)) if status.is_success else status.message
    message += f": {reasons}." if reasons else "."
    return f"{message} {post_filter_message}." if post_filter_message else message


def reasons_of(placement: Placement, node_count: int) -> list[str]:
    """Each reason of nodes that refused the pod, with the number of nodes that gave it, as in `3 Insufficient cpu`."""
    counts: dict[str, int] = {}
    for refusal, number in placement.outcome.refusals():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + number
    missing = node_count - placement.outcome.looked_at
    if missing > 0:
        reason = left_out(placement.pre_filter).message
        counts[reason] = counts.get(reason, 0) + missing
    return sorted(f"{number} {reason}" for reason, number in counts.items())
