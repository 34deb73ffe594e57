"""Pods that may be victims of a preemptor, and what disruption budgets allow of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s, Lists, lexsort, offsets, runs
from podium.cluster.budgets import Budget
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import PreemptionRanking

VictimFilter = Callable[[PodRecord, Int64s], Bools]
"""``(preemptor, slots)``: returns ``[slots]``, which of the pods the preemptor may disrupt."""


def both_allow(first: VictimFilter | None, second: VictimFilter) -> VictimFilter:
    """Return a filter that allows the victims that both filters allow; None allows all."""
    if first is None:
        return second
    return lambda pod, slots: first(pod, slots) & second(pod, slots)


NOT_IN_POOL = -1


@dataclass(frozen=True, slots=True, eq=False)
class VictimPool:
    """The pods that a preemptor may disrupt on any node, the most important first: their slots and rows.

    They are ordered by falling priority, then as `PreemptionRanking` has it; equals on different nodes by node name.
    ``index_of`` is ``[slots]``: a pod's place here, `NOT_IN_POOL` for others.
    """

    slots: Int64s
    rows: Int64s
    priority: Int64s
    index_of: Int64s

    def __len__(self) -> int:
        return len(self.slots)


def victim_pool(
    cluster: Cluster, ranking: PreemptionRanking, pod: PodRecord, may_disrupt: VictimFilter | None
) -> VictimPool:
    """Return the pods of lower priority that ``pod`` may disrupt."""
    ranking.refresh()
    rows, places = np.nonzero(ranking.priorities < pod.priority)
    slots = ranking.slots[rows, places].astype(np.int64)
    if may_disrupt is not None and len(slots):
        allowed = may_disrupt(pod, slots)
        rows, places, slots = rows[allowed], places[allowed], slots[allowed]
    table, node_ranks = cluster.pods, cluster.nodes.name_order().ranks
    priority = table.priority[slots]
    on_nodes = node_ranks[rows] * ranking.slots.shape[1] + places
    order = lexsort(-priority, *ranking.qos_ranks(slots), table.start_ns[slots], on_nodes)
    slots = slots[order]
    index_of = np.full(table.count, NOT_IN_POOL, dtype=np.int64)
    index_of[slots] = np.arange(len(slots))
    return VictimPool(slots, rows[order].astype(np.int64), priority[order], index_of)


@dataclass(frozen=True, slots=True, eq=False)
class BudgetPairs:
    """Each pod with each budget that counts it: ``places`` among the pods, ascending, and ``numbers`` of ``budgets``.

    ``covered`` is whether the budget also protects the pod, and ``anew`` whether it has not accounted for the pod's
    disruption already.
    """

    budgets: Sequence[Budget]
    places: Int64s
    numbers: Int64s
    covered: Bools
    anew: Bools

    @classmethod
    def of(cls, cluster: Cluster, slots: Int64s) -> BudgetPairs:
        """Return the pairs of some pods."""
        classes = cluster.pods.pod_class[slots].astype(np.int64)
        some = np.flatnonzero(np.bincount(classes)).tolist() if len(cluster.budgets) else []
        budgets: dict[str, Budget] = {}
        number_of: dict[str, int] = {}
        # By class, how many budgets it has in the two lists that follow.
        counts = np.zeros(max(some, default=int(classes.max(initial=0))) + 1, dtype=np.int64)
        over, covers = list[int](), list[bool]()
        for class_id in some:
            pod_class = cluster.classes[class_id]
            found = list(cluster.budgets.over(pod_class))
            budgets.update((budget.key, budget) for budget in found)
            over += [number_of.setdefault(budget.key, len(number_of)) for budget in found]
            covers += [budget.covers(pod_class) for budget in found]
            counts[class_id] = len(found)
        starts, entries = Lists(offsets(counts), np.array(over, dtype=np.int64)).places_of(classes)
        places, numbers = np.repeat(np.arange(len(slots)), np.diff(starts)), np.array(over, dtype=np.int64)[entries]
        listed = list(budgets.values())
        anew = np.ones(len(places), dtype=np.bool_)
        has_disrupted = np.array([bool(budget.disrupted) for budget in listed], dtype=np.bool_)
        for index in np.flatnonzero(has_disrupted[numbers]).tolist():
            pod = cluster.pods.record(slots.item(places[index]))
            anew[index] = pod.name not in listed[numbers[index]].disrupted
        return cls(listed, places, numbers, np.array(covers, dtype=np.bool_)[entries], anew)


def beyond_budgets(cluster: Cluster, sets: Lists, leaving: Sequence[PodRecord] = ()) -> Bools:
    """Return ``[slots]``: the pods of sets (of slots) whose disruption would take more of a budget than is left.

    Each set is judged by itself. Each pod in order takes one from every budget that covers it, unless the budget
    already counts it as disrupted. A healthy pod also takes a token of the budget's rate. ``leaving`` are pods whose
    disruption has begun and is not counted yet: they take first.
    """
    violating = np.zeros(len(sets.entries), dtype=np.bool_)
    pairs = BudgetPairs.of(cluster, sets.entries)
    if not pairs.budgets:
        return violating

    def mark(taking: Bools, left: Sequence[int]) -> None:
        """Mark the pods for which nothing is left of a budget when those before them in their set have taken one."""
        places, numbers = pairs.places[taking], pairs.numbers[taking]
        # Pods are in the order of their sets, so that those of one budget and set are neighbors after a stable sort.
        order = np.argsort(numbers, kind="stable")
        places, numbers = places[order], numbers[order]
        starts = runs(numbers, sets.owners[places])
        taken = np.arange(1, len(places) + 1) - np.repeat(starts[:-1], np.diff(starts))
        violating[places[taken > np.array(left, dtype=np.int64)[numbers]]] = True

    budgets = pairs.budgets
    covering = [sum(budget.covers(pod.pod_class) for pod in leaving) for budget in budgets]
    mark(
        pairs.anew & pairs.covered,
        [budget.disruptions_allowed - count for budget, count in zip(budgets, covering, strict=True)],
    )
    has_rate = np.array([budget.tokens is not None for budget in budgets])
    if has_rate.any():
        counts = [sum(pod.is_healthy and budget.counts(pod.pod_class) for pod in leaving) for budget in budgets]
        healthy = cluster.pods.healthy[sets.entries[pairs.places]]
        left = [(budget.tokens or 0) - count for budget, count in zip(budgets, counts, strict=True)]
        mark(pairs.anew & healthy & has_rate[pairs.numbers], left)
    return violating


def budgeted(cluster: Cluster, slots: Int64s) -> Bools:
    """Return ``[slots]``: the pods whose disruption counts for the caps of components: healthy ones with a budget."""
    found: Bools = np.zeros(len(slots), dtype=np.bool_)
    found[BudgetPairs.of(cluster, slots).places] = True
    found &= cluster.pods.healthy[slots]
    return found
