"""Scores by requested resources: the scoring strategies of NodeResourcesFit, and NodeResourcesBalancedAllocation.

Source: pkg/scheduler/framework/plugins/noderesources (resource_allocation.go, least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go, balanced_allocation.go).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from podium.api.versions.release import Behavior, Release
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.nodes import CPU, FIRST_RESOURCES, MEMORY, NodeColumns
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope, ScoreRow
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, PluginError, Status

_MAX_UTILIZATION = 100
_MAX_SHAPE_SCORE = 10


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scored resource and its weight."""

    name: str
    weight: int = 1


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score (0 to 10) of a utilization (0 to 100), with linear interpolation between points."""

    utilization: int
    score: int


class RequestedToCapacityRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which nodes NodeResourcesFit prefers: the emptiest, the fullest, or by a function."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class ResourceUsage(msgspec.Struct, frozen=True):
    """Allocatable and requested amounts without and with the pod, ``[resources, n]``; weights ``[resources, 1]``."""

    weights: Int64s
    allocatable: Int64s
    before: Int64s
    after: Int64s


RowUsage = tuple[memoryview, memoryview, int, int]
"""For one resource: allocatable and requested amounts by row, its weight, and the class's request."""


class ResourceWatch:
    """Scored resources, looked up once for each pod class.

    ``with_defaults`` uses default amounts for containers that request no cpu or memory and, as kube-scheduler v1.36
    does, ignores pod-level requests then. Other resources than cpu, memory and ephemeral storage count only for pods
    that request them.
    """

    def __init__(self, resources: Sequence[ResourceSpec], *, with_defaults: bool) -> None:
        self._resources = tuple(resources)
        self._with_defaults = with_defaults

    def usage(self, view: View, pod: PodRecord) -> ResourceUsage:
        """Return the usage on the rows of a view."""
        watched = self._watched(view.cluster.nodes, pod.pod_class)
        indices, weights, wanted = watched.indices, watched.weights, watched.wanted
        before = view.requested(indices)
        if self._with_defaults:
            defaulted = indices <= MEMORY
            before[defaulted] = view.nonzero_requested(indices[defaulted])
        return ResourceUsage(weights, view.allocatable(indices), before, before + wanted)

    def by_row(self, nodes: NodeColumns, pod_class: PodClass) -> tuple[RowUsage, ...]:
        """Return the usage for single rows; valid as long as the class, and the arrays that the entries show."""
        entries, watched = nodes.entries, self._watched(nodes, pod_class)
        defaulted = entries.nonzero_requested if self._with_defaults else entries.requested
        return tuple(
            (entries.allocatable[index], (defaulted if index <= MEMORY else entries.requested)[index], weight, wanted)
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


class _Watched(msgspec.Struct, frozen=True):
    """The scored resources of a class when there were so many ``resources``: ``[n]`` indices, the others ``[n, 1]``."""

    resources: int
    indices: Int64s
    weights: Int64s
    wanted: Int64s


def score_by_strategy(strategy: ScoringStrategy, used: ResourceUsage) -> Int64s:
    """Return ``[n]`` scores from 0 to 100: the weighted mean over the resources that a node has."""
    capacity = np.maximum(used.allocatable, 1)
    after = np.minimum(used.after, capacity)
    counts = used.allocatable > 0
    if strategy.type == "RequestedToCapacityRatio":
        utilization = np.where(used.after > capacity, _MAX_UTILIZATION, after * _MAX_UTILIZATION // capacity)
        scores = np.array(_ratio_scores(strategy), dtype=np.int64)[utilization]
        counts &= scores > 0
    elif strategy.type == "LeastAllocated":
        scores = (capacity - after) * MAX_NODE_SCORE // capacity
    else:
        scores = after * MAX_NODE_SCORE // capacity
    # If all nodes have all resources, the divisor is the same for all.
    weights = used.weights if counts.all() else counts * used.weights
    total = (scores * weights).sum(axis=0)
    weight = np.maximum(weights.sum(axis=0), 1)
    if strategy.type == "RequestedToCapacityRatio":
        rounded: Int64s = np.floor(total / weight + 0.5).astype(np.int64)
        return rounded
    result: Int64s = total // weight
    return result


def row_score_by_strategy(strategy: ScoringStrategy, each: Sequence[RowUsage]) -> ScoreRow:
    """Return `score_by_strategy` for one node, as a function."""
    is_least = strategy.type == "LeastAllocated"
    shape = _ratio_scores(strategy) if strategy.type == "RequestedToCapacityRatio" else ()

    def score_row(_: PodRecord, row: int) -> int:
        total = weights = 0
        for offered, requested, weight, wanted in each:
            allocatable = offered[row]
            if allocatable > 0:
                after = requested[row] + wanted
                free = allocatable - after if after < allocatable else 0
                total += weight * ((free if is_least else allocatable - free) * MAX_NODE_SCORE // allocatable)
                weights += weight
        return total // weights if weights else 0

    def score_by_shape(_: PodRecord, row: int) -> int:
        total = weights = 0
        for offered, requested, weight, wanted in each:
            allocatable = offered[row]
            utilization = min(requested[row] + wanted, allocatable) * _MAX_UTILIZATION
            score = shape[utilization // allocatable] if allocatable > 0 else 0
            total += weight * score
            weights += weight * (score > 0)
        return math.floor(total / max(weights, 1) + 0.5)

    return score_by_shape if shape else score_row


def check_strategy(strategy: ScoringStrategy, plugin: str, release: Release) -> None:
    """Raise PluginError with the field for settings that upstream's validation refuses."""
    check_resources(strategy.resources, plugin, "scoringStrategy.resources")
    if strategy.type != "RequestedToCapacityRatio":
        if strategy.requested_to_capacity_ratio is not None and release.has(Behavior.CAPACITY_RATIO_CHECKED):
            where = f"{plugin}: scoringStrategy.requestedToCapacityRatio"
            raise PluginError(f"{where}: Forbidden: must be nil when type is not RequestedToCapacityRatio")
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
    """Raise PluginError for weights outside 1..100 and duplicate resources."""
    for spec in resources:
        if not 1 <= spec.weight <= MAX_NODE_SCORE:
            raise PluginError(f"{plugin}: {path}: weight of {spec.name} is {spec.weight}; it must be within 1 and 100")
    if len({spec.name for spec in resources}) < len(resources):
        raise PluginError(f"{plugin}: {path}: a resource is named twice")


def _ratio_scores(strategy: ScoringStrategy) -> tuple[int, ...]:
    shape = strategy.requested_to_capacity_ratio.shape if strategy.requested_to_capacity_ratio else ()
    return shape_scores(tuple((point.utilization, point.score) for point in shape))


@lru_cache(maxsize=64)
def shape_scores(shape: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Return the score of each integer utilization, scaled to 0..100; division truncates as in Go.

    The points of a shape are a utilization and its score from 0 to 10 each.
    """
    scale = MAX_NODE_SCORE // _MAX_SHAPE_SCORE
    points = [(utilization, score * scale) for utilization, score in shape]
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


Fractions = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments: the resources to balance; their weights must be 1."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class NodeResourcesBalancedAllocation:
    """Compares how balanced the requested resources are with and without the pod; before 1.36 with it only.

    ``rates_gain`` says which.
    """

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self._resources = read_arguments(context.args, NodeResourcesBalancedAllocationArgs, self.name).resources
        check_resources(self._resources, self.name, "resources")
        self._cluster = cluster = context.cluster
        self.rates_gain = cluster.release.has(Behavior.BALANCE_GAIN_SCORED)
        self._scores_without_requests = not cluster.release.has(Behavior.BALANCE_NEEDS_REQUESTS)
        self._watch = ResourceWatch(self._resources, with_defaults=False)

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        return SKIP if self.never_scores(pod.pod_class) else SUCCESS

    def never_scores(self, pod_class: PodClass) -> bool:
        index_of = self._cluster.nodes.resource_index
        has_requests = any(pod_class.requests.get(index_of.get(spec.name, -1), 0) for spec in self._resources)
        return not has_requests and not self._scores_without_requests

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Score 50 if the pod changes nothing, more if it improves the balance, less if it worsens it."""
        used = self._watch.usage(view, pod)
        exists, capacity = used.allocatable > 0, np.maximum(used.allocatable, 1)
        after = _evenness(used.after, capacity, exists)
        if not self.rates_gain:
            return after
        gain = after - _evenness(used.before, capacity, exists)
        return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + gain) // 2

    def row_score(self, pod_class: PodClass) -> ScoreRow:
        each, rates_gain = self._watch.by_row(self._cluster.nodes, pod_class), self.rates_gain

        def score(_: PodRecord, row: int) -> int:
            before: list[float] = []
            after: list[float] = []
            for offered, requested, _weight, wanted in each:
                allocatable = offered[row]
                if allocatable > 0:
                    taken = requested[row]
                    before.append(taken / allocatable if taken < allocatable else 1.0)
                    taken += wanted
                    after.append(taken / allocatable if taken < allocatable else 1.0)
            evenness = _evenness_of(after)
            if not rates_gain:
                return evenness
            return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + evenness - _evenness_of(before)) // 2

        if len(each) != 2:
            return score
        # Most profiles rate the two default resources, and most nodes have both.
        (first, first_taken, _, first_wanted), (second, second_taken, _, second_wanted) = each

        def score_two(pod: PodRecord, row: int) -> int:
            one, two, one_taken, two_taken = first[row], second[row], first_taken[row], second_taken[row]
            one_after, two_after = one_taken + first_wanted, two_taken + second_wanted
            if one_after > one or two_after > two or not (one and two):
                return score(pod, row)
            evenness = int((1 - abs((one_after / one - two_after / two) / 2)) * MAX_NODE_SCORE)
            if not rates_gain:
                return evenness
            gain = evenness - int((1 - abs((one_taken / one - two_taken / two) / 2)) * MAX_NODE_SCORE)
            return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + gain) // 2

        return score_two


def _evenness_of(fractions: list[float]) -> int:
    """Return 100 minus the standard deviation in percent; of two fractions it is half their distance."""
    if len(fractions) < 2:
        return MAX_NODE_SCORE
    if len(fractions) == 2:
        return int((1 - abs((fractions[0] - fractions[1]) / 2)) * MAX_NODE_SCORE)
    mean = sum(fractions) / len(fractions)
    deviation = math.sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _evenness(taken: Int64s, capacity: Int64s, exists: Bools) -> Int64s:
    """Return ``[n]`` 100 minus the standard deviation of the resources' used fractions, in percent."""
    fractions = np.minimum(taken / capacity, 1.0)
    return ((1 - _deviation(fractions, exists)) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(fractions: Fractions, exists: Bools) -> Fractions:
    """Return ``[n]`` the standard deviation over existing resources; of two it is half their distance."""
    if len(fractions) == 2:
        distance: Fractions = np.abs((fractions[0] - fractions[1]) / 2)
        return np.where(exists[0] & exists[1], distance, 0.0)
    count = exists.sum(axis=0)
    fractions = np.where(exists, fractions, 0.0)
    highest = np.max(np.where(exists, fractions, 0.0), axis=0, initial=0.0)
    lowest = np.min(np.where(exists, fractions, 1.0), axis=0, initial=1.0)
    mean = fractions.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(exists, (fractions - mean) ** 2, 0.0).sum(axis=0)
    many = np.sqrt(squares / np.maximum(count, 1))
    return np.select([count == 2, count > 2], [(highest - lowest) / 2, many], 0.0)
