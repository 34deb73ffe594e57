"""How long pods have waited, in a few figures."""

from __future__ import annotations

from typing import Any

from podium.sim.sim_event import seconds


def spread(times: list[int]) -> dict[str, Any]:
    """Count, mean, and percentiles by nearest rank, in seconds; `times` are sorted nanoseconds, at least one."""
    count = len(times)
    return {
        "count": count,
        "mean": seconds(round(sum(times) / count)),
        "p50": seconds(_percentile(times, 50)),
        "p95": seconds(_percentile(times, 95)),
        "max": seconds(times[-1]),
    }


def _percentile(times: list[int], percent: int) -> int:
    return times[-(-len(times) * percent // 100) - 1]
