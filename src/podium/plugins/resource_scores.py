"""How full a node would be with the pod on it, and what each scoring strategy makes of that.

Source: pkg/scheduler/framework/plugins/noderesources (resource_allocation.go, least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.nodes import CPU, FIRST_RESOURCES, MEMORY, NodeColumns
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.errors import PluginError
from podium.framework.plugin import MAX_NODE_SCORE, ScoreRow

_MAX_UTILIZATION = 100
_MAX_SHAPE_SCORE = 10


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource that counts in the score, with its weight."""

    name: str
    weight: int = 1


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score (0 to 10) of a utilization (0 to 100); scores between points lie on a line."""

    utilization: int
    score: int


class RequestedToCapacityRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The points of the function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which nodes NodeResourcesFit likes: the emptiest, the fullest, or as a function says."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What nodes have of some resources, and what is taken without and with the pod: ``[resources, n]`` each.

    ``weights`` is ``[resources, 1]``.
    """

    weights: Int64s
    allocatable: Int64s
    before: Int64s
    after: Int64s


RowUsage = tuple[list[memoryview], list[memoryview], int, int, int]
"""Of a resource: what nodes have and what is taken there, both by resource and row; its place, its weight, and how much
of it the class wants."""


class ResourceWatch:
    """Resources that count in a score, looked up once for each pod class.

    ``with_defaults`` counts cpu and memory of containers that request none, and then, as kube-scheduler v1.36 does, not
    the pod's own pod-level requests. A resource other than cpu, memory and ephemeral storage counts only for pods that
    request it.
    """

    def __init__(self, resources: Sequence[ResourceSpec], *, with_defaults: bool) -> None:
        self._resources = tuple(resources)
        self._with_defaults = with_defaults

    def usage(self, view: View, pod: PodRecord) -> Usage:
        """The use of the resources over the rows of a view."""
        watched = self._watched(view.cluster.nodes, pod.pod_class)
        indices, weights, wanted = watched.indices, watched.weights, watched.wanted
        before = view.requested(indices)
        if self._with_defaults:
            defaulted = indices <= MEMORY
            before[defaulted] = view.nonzero_requested(indices[defaulted])
        return Usage(weights, view.allocatable(indices), before, before + wanted)

    def by_row(self, nodes: NodeColumns, pod_class: PodClass) -> tuple[RowUsage, ...]:
        """The resources, for whoever looks at the nodes one by one; right for as long as the class lives."""
        entries, watched = nodes.entries, self._watched(nodes, pod_class)
        defaulted = entries.nonzero_requested if self._with_defaults else entries.requested
        return tuple(
            (entries.allocatable, defaulted if index <= MEMORY else entries.requested, index, weight, wanted)
            for index, weight, wanted in zip(
                watched.indices.tolist(), watched.weights[:, 0].tolist(), watched.wanted[:, 0].tolist(), strict=True
            )
        )

    def _watched(self, nodes: NodeColumns, pod_class: PodClass) -> _Watched:
        known: _Watched | None = pod_class.memo.get(self)
        if known is None or known.resources != len(nodes.resources):
            known = pod_class.memo[self] = self._compile(nodes, pod_class)
        return known

    def _compile(self, nodes: NodeColumns, pod_class: PodClass) -> _Watched:
        requests, own = pod_class.requests, pod_class.nonzero_of_containers
        found = [(nodes.resource_index.get(spec.name, -1), spec.weight) for spec in self._resources]
        found = [(i, weight) for i, weight in found if 0 <= i < len(FIRST_RESOURCES) or i in requests]
        wanted = [own[i] if self._with_defaults and i in (CPU, MEMORY) else requests.get(i, 0) for i, _ in found]
        indices = np.array([index for index, _ in found], dtype=np.int64)
        weights = np.array([weight for _, weight in found], dtype=np.int64)
        return _Watched(len(nodes.resources), indices, weights[:, None], np.array(wanted, dtype=np.int64)[:, None])


@dataclass(frozen=True, slots=True)
class _Watched:
    """What is watched for a class, when there were so many ``resources``.

    Indices of the resources (``[n]``), their weights, and what the class wants of them (``[n, 1]``).
    """

    resources: int
    indices: Int64s
    weights: Int64s
    wanted: Int64s


def score_by_strategy(strategy: ScoringStrategy, used: Usage) -> Int64s:
    """``[n]`` scores 0..100: the weighted mean over the resources that a node has at all."""
    capacity = np.maximum(used.allocatable, 1)
    after = np.minimum(used.after, capacity)
    counts = used.allocatable > 0
    if strategy.type == "RequestedToCapacityRatio":
        utilization = np.where(used.after > capacity, _MAX_UTILIZATION, after * _MAX_UTILIZATION // capacity)
        scores = np.array(_shape_scores(strategy), dtype=np.int64)[utilization]
        counts &= scores > 0
    elif strategy.type == "LeastAllocated":
        scores = (capacity - after) * MAX_NODE_SCORE // capacity
    else:
        scores = after * MAX_NODE_SCORE // capacity
    # Where all nodes have all of them, one divisor is all nodes'.
    weights = used.weights if counts.all() else counts * used.weights
    total = (scores * weights).sum(axis=0)
    weight = np.maximum(weights.sum(axis=0), 1)
    if strategy.type == "RequestedToCapacityRatio":
        rounded: Int64s = np.floor(total / weight + 0.5).astype(np.int64)
        return rounded
    result: Int64s = total // weight
    return result


def row_score_by_strategy(strategy: ScoringStrategy, each: Sequence[RowUsage]) -> ScoreRow:
    """As `score_by_strategy` for one node, as a function."""
    if strategy.type == "LeastAllocated":
        return _least_allocated_row(each)
    is_most = strategy.type == "MostAllocated"
    shape = () if is_most else _shape_scores(strategy)

    def score_row(_: PodRecord, row: int) -> int:
        total = weights = 0
        for offered, requested, index, weight, wanted in each:
            allocatable = offered[index][row]
            if allocatable <= 0:
                continue
            after = min(requested[index][row] + wanted, allocatable)
            if is_most:
                score = after * MAX_NODE_SCORE // allocatable
            else:
                score = shape[after * _MAX_UTILIZATION // allocatable]
                if not score:
                    continue
            total += weight * score
            weights += weight
        return math.floor(total / max(weights, 1) + 0.5) if shape else total // max(weights, 1)

    return score_row


def _least_allocated_row(each: Sequence[RowUsage]) -> ScoreRow:
    """The same by the strategy that nearly all have."""

    def score_row(_: PodRecord, row: int) -> int:
        total = weights = 0
        for offered, requested, index, weight, wanted in each:
            allocatable = offered[index][row]
            if allocatable > 0:
                left = allocatable - requested[index][row] - wanted
                if left > 0:
                    total += weight * (left * MAX_NODE_SCORE // allocatable)
                weights += weight
        return total // weights if weights else 0

    return score_row


def check_strategy(strategy: ScoringStrategy, plugin: str) -> None:
    """Refuse what upstream's validation refuses; raises PluginError with the field at fault."""
    check_resources(strategy.resources, plugin, "scoringStrategy.resources")
    if strategy.type != "RequestedToCapacityRatio":
        return
    shape = strategy.requested_to_capacity_ratio.shape if strategy.requested_to_capacity_ratio else ()
    where = f"{plugin}: scoringStrategy.requestedToCapacityRatio.shape"
    if not shape:
        raise PluginError(f"{where}: at least one point is needed")
    if any(not 0 <= point.utilization <= _MAX_UTILIZATION for point in shape):
        raise PluginError(f"{where}: utilization must be within 0 and {_MAX_UTILIZATION}")
    if any(not 0 <= point.score <= _MAX_SHAPE_SCORE for point in shape):
        raise PluginError(f"{where}: score must be within 0 and {_MAX_SHAPE_SCORE}")
    if any(a.utilization >= b.utilization for a, b in pairwise(shape)):
        raise PluginError(f"{where}: utilization must rise from point to point")


def check_resources(resources: Sequence[ResourceSpec], plugin: str, path: str) -> None:
    """Refuse weights outside 1..100 and resources named twice."""
    for spec in resources:
        if not 1 <= spec.weight <= MAX_NODE_SCORE:
            raise PluginError(f"{plugin}: {path}: weight of {spec.name} is {spec.weight}; it must be within 1 and 100")
    if len({spec.name for spec in resources}) < len(resources):
        raise PluginError(f"{plugin}: {path}: a resource is named twice")


@lru_cache(maxsize=64)
def _shape_scores(strategy: ScoringStrategy) -> tuple[int, ...]:
    """The score of each whole utilization, scaled to 0..100; division truncates toward zero as in Go."""
    shape = strategy.requested_to_capacity_ratio.shape if strategy.requested_to_capacity_ratio else ()
    scale = MAX_NODE_SCORE // _MAX_SHAPE_SCORE
    points = [(point.utilization, point.score * scale) for point in shape]
    table = []
    for utilization in range(_MAX_UTILIZATION + 1):
        score = points[-1][1]
        for index, (at, value) in enumerate(points):
            if utilization <= at:
                score = value if index == 0 else _between(points[index - 1], (at, value), utilization)
                break
        table.append(score)
    return tuple(table)


def _between(left: tuple[int, int], right: tuple[int, int], utilization: int) -> int:
    rise = (right[1] - left[1]) * (utilization - left[0])
    run = right[0] - left[0]
    return left[1] + (abs(rise) // run if rise >= 0 else -(abs(rise) // run))
