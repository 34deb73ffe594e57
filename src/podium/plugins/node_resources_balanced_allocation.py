"""NodeResourcesBalancedAllocation: nodes on which the pod evens out the use of resources are liked better.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope, ScoreRow
from podium.framework.settings.arguments import read_arguments
from podium.framework.status import SKIP, SUCCESS, Status
from podium.plugins.resource_scores import DEFAULT_RESOURCES, ResourceSpec, ResourceWatch, check_resources

Fractions = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments: the resources to balance; their weights must be 1."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class NodeResourcesBalancedAllocation:
    """Compares how even the use of resources is with the pod and without it."""

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self._resources = read_arguments(context.args, NodeResourcesBalancedAllocationArgs, self.name).resources
        check_resources(self._resources, self.name, "resources")
        self._cluster = context.cluster
        self._watch = ResourceWatch(self._resources, with_defaults=False)
        self.rates_cpu_and_memory = self._resources == DEFAULT_RESOURCES

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods that request none of the resources: they cannot change the balance."""
        return SKIP if self.never_scores(pod.pod_class) else SUCCESS

    def never_scores(self, pod_class: PodClass) -> bool:
        """Those that request none of the resources."""
        index_of = self._cluster.nodes.resource_index
        return not any(pod_class.requests.get(index_of.get(spec.name, -1), 0) for spec in self._resources)

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """50 where the pod changes nothing, more where it evens the use out, less where it unbalances it."""
        used = self._watch.usage(view, pod)
        exists, capacity = used.allocatable > 0, np.maximum(used.allocatable, 1)
        gain = _evenness(used.after, capacity, exists) - _evenness(used.before, capacity, exists)
        return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + gain) // 2

    def row_score(self, pod_class: PodClass) -> ScoreRow:
        """The same for one row, as a function."""
        each = self._watch.by_row(self._cluster.nodes, pod_class)

        def score(_: PodRecord, row: int) -> int:
            before: list[float] = []
            after: list[float] = []
            for offered, requested, index, _weight, wanted in each:
                allocatable = offered[index][row]
                if allocatable > 0:
                    taken = requested[index][row]
                    before.append(float(taken) / allocatable if taken < allocatable else 1.0)
                    taken += wanted
                    after.append(float(taken) / allocatable if taken < allocatable else 1.0)
            gain = _evenness_of(after) - _evenness_of(before) if len(before) > 1 else 0
            return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + gain) // 2

        return score


def _evenness_of(fractions: list[float]) -> int:
    """0..100: 100 less the standard deviation, in percent, of two or more; of two it is half their distance."""
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _evenness(taken: Int64s, capacity: Int64s, exists: Bools) -> Int64s:
    """``[n]`` 0..100: 100 less the standard deviation, in percent, of the used fractions of the resources."""
    fractions = np.minimum(taken / capacity, 1.0)
    return ((1 - _deviation(fractions, exists)) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(fractions: Fractions, exists: Bools) -> Fractions:
    """``[n]``: the standard deviation over the resources that exist; of two it is half their distance."""
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
