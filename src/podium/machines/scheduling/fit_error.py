"""Why a pod fits nowhere, in one line, as kube-scheduler words it.

Source: pkg/scheduler/framework/types.go (FitError.Error).
"""

from __future__ import annotations

from podium.decide.placement import Placement, left_out


def fit_error(placement: Placement, node_count: int, post_filter_message: str) -> str:
    """`0/N nodes are available: ` and each reason with the number of nodes that gave it, then what PostFilter said."""
    message = f"0/{node_count} nodes are available"
    if not placement.pre_filter.status.is_success:
        reasons = placement.pre_filter.status.message
    else:
        counts: dict[str, int] = {}
        for refused, number in placement.outcome.tally():
            for reason in placement.outcome.status_of(refused).reasons:
                counts[reason] = counts.get(reason, 0) + number
        missing = node_count - placement.outcome.looked_at
        if missing > 0:
            reason = left_out(placement.pre_filter).message
            counts[reason] = counts.get(reason, 0) + missing
        reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
    message += f": {reasons}." if reasons else "."
    return f"{message} {post_filter_message}." if post_filter_message else message


def rejecting_plugins(placement: Placement) -> list[str]:
    """The plugins that turned the pod down on some node, or altogether."""
    status = placement.pre_filter.status
    if not status.is_success:
        return [status.plugin]
    named = (placement.outcome.status_of(refused).plugin for refused, _ in placement.outcome.tally())
    return [*placement.pre_filter.plugins, *dict.fromkeys(named)]
