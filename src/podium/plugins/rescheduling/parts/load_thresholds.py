"""Up to which share of its resources a node counts as under-used, and from which on as over-used.

Source: kubernetes-sigs/descheduler, pkg/framework/plugins/nodeutilization (LowNodeUtilization).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from podium.cluster.arrays import Bools
from podium.framework.rescheduling.policy import Float64s
from podium.framework.settings.arguments import Arguments
from podium.plugins.rescheduling.parts.node_loads import NodeLoads


def _defaults(percent: float) -> dict[str, float]:
    return {"cpu": percent, "memory": percent}


class LoadThresholds(Arguments, frozen=True, kw_only=True):
    """Shares in per cent, by resource: cpu, memory, extended resources, and ``pods``.

    ``thresholds``: a node above none of them is under-used. ``targetThresholds``: a node above any of them is
    over-used. With ``useDeviationThresholds`` they are how far below and above the share of the whole cluster that is.
    Both name the same resources. The names are those of descheduler's LowNodeUtilization.
    """

    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: _defaults(20))
    target_thresholds: dict[str, float] = msgspec.field(default_factory=lambda: _defaults(50))
    use_deviation_thresholds: bool = False

    def __post_init__(self) -> None:
        low, high = self.thresholds, self.target_thresholds
        if not low:
            raise ValueError("thresholds must name a resource at least")
        if low.keys() != high.keys():
            raise ValueError(
                f"thresholds and targetThresholds must name the same resources, not {_named(low)} and {_named(high)}"
            )
        for resource in low:
            if not (0 <= low[resource] <= 100 and 0 <= high[resource] <= 100):
                raise ValueError(f"thresholds of {resource} must be from 0 to 100 per cent")
            if low[resource] > high[resource] and not self.use_deviation_thresholds:
                raise ValueError(
                    f"thresholds of {resource} is {low[resource]:g}, and must not be above its targetThresholds, "
                    f"{high[resource]:g}"
                )


@dataclass(frozen=True, slots=True)
class Marks:
    """The low and the high mark of each resource, as shares: ``[resources]`` each."""

    low: Float64s
    high: Float64s

    def equals(self, other: Marks) -> bool:
        """Whether they are the same."""
        return np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)

    def underused(self, shares: Float64s) -> Bools:
        """`[rows]`: which nodes are above no low mark."""
        found: Bools = np.all(shares <= self.low[:, None], axis=0)
        return found


class MarkMaker:
    """Makes the marks of a cluster of the thresholds in the arguments."""

    def __init__(self, arguments: LoadThresholds) -> None:
        self.resources = tuple(sorted(arguments.thresholds))
        self._low = np.array([arguments.thresholds[name] for name in self.resources]) / 100
        self._high = np.array([arguments.target_thresholds[name] for name in self.resources]) / 100
        self._by_deviation = arguments.use_deviation_thresholds

    def marks(self, loads: NodeLoads, rows: Bools) -> Marks:
        """The marks for the nodes in some rows; by deviation they are about the share of those nodes together."""
        if not self._by_deviation:
            return Marks(self._low, self._high)
        have = np.maximum(loads.allocatable @ rows, 1)
        mean = (loads.amounts @ rows) / have
        return Marks(np.clip(mean - self._low, 0.0, 1.0), np.clip(mean + self._high, 0.0, 1.0))


def _named(thresholds: Mapping[str, float]) -> str:
    return ", ".join(sorted(thresholds)) or "none"
