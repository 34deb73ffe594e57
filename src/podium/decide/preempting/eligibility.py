"""The rules of preemption: eligible preemptors, eligible victims, and the disruptions that budgets allow.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (PodEligibleToPreemptOthers);
pkg/scheduler/framework/preemption/types.go for groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from podium.api.policy import NEVER_PREEMPTS
from podium.api.times import format_time
from podium.cluster.arrays import Bools, Int64s, Lists, lexsort, offsets, runs
from podium.cluster.budgets import Budget
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.cluster.ranking import PreemptionRanking
from podium.framework.pre_filters import LEFT_OUT
from podium.framework.verdicts import Code, Status

VictimFilter = Callable[[PodRecord, Int64s], Bools]
"""``(preemptor, slots)``: returns ``[slots]``, which of the pods the preemptor may disrupt."""


def both_allow(first: VictimFilter | None, second: VictimFilter) -> VictimFilter:
    """Return a filter that allows the victims that both filters allow; None allows all."""
    return second if first is None else lambda pod, slots: first(pod, slots) & second(pod, slots)


NOT_IN_POOL = -1


class VictimPool(msgspec.Struct, frozen=True, eq=False):
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


class BudgetPairs(msgspec.Struct, frozen=True, eq=False):
    """Each pod with each budget that counts it: ``places`` among the pods, ascending, and ``numbers`` of ``budgets``.

    ``covered``: the budget also protects the pod. ``unaccounted``: it has not yet accounted for the pod's disruption.
    """

    budgets: Sequence[Budget]
    places: Int64s
    numbers: Int64s
    covered: Bools
    unaccounted: Bools

    @classmethod
    def of(cls, cluster: Cluster, slots: Int64s) -> BudgetPairs:
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
        unaccounted = np.ones(len(places), dtype=np.bool_)
        has_disrupted = np.array([bool(budget.disrupted) for budget in listed], dtype=np.bool_)
        for index in np.flatnonzero(has_disrupted[numbers]).tolist():
            pod = cluster.pods.record(slots.item(places[index]))
            unaccounted[index] = pod.name not in listed[numbers[index]].disrupted
        return cls(listed, places, numbers, np.array(covers, dtype=np.bool_)[entries], unaccounted)


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
        pairs.unaccounted & pairs.covered,
        [budget.disruptions_allowed - count for budget, count in zip(budgets, covering, strict=True)],
    )
    has_rate = np.array([budget.tokens is not None for budget in budgets])
    if has_rate.any():
        counts = [sum(pod.is_healthy and budget.counts(pod.pod_class) for pod in leaving) for budget in budgets]
        healthy = cluster.pods.healthy[sets.entries[pairs.places]]
        left = [(budget.tokens or 0) - count for budget, count in zip(budgets, counts, strict=True)]
        mark(pairs.unaccounted & healthy & has_rate[pairs.numbers], left)
    return violating


def budgeted(cluster: Cluster, slots: Int64s) -> Bools:
    """Return ``[slots]``: the pods whose disruption counts for the caps of components: healthy ones with a budget."""
    found: Bools = np.zeros(len(slots), dtype=np.bool_)
    found[BudgetPairs.of(cluster, slots).places] = True
    found &= cluster.pods.healthy[slots]
    return found


NOT_ELIGIBLE_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_ELIGIBLE_TERMINATING_ELSEWHERE = "not eligible due to a terminating pod that keeps it off the nominated node."
NOT_ELIGIBLE_YET = (NOT_ELIGIBLE_TERMINATING, NOT_ELIGIBLE_TERMINATING_ELSEWHERE)
"""Why a pod may not preempt while it waits for its victims to end."""


def ineligible_reason(cluster: Cluster, pod: PodRecord, nominated_status: Status | None, evicts: bool = False) -> str:
    """Return why ``pod`` may not preempt now; "" if it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is the filters' answer for the node that it is nominated to, None without such a node. A pod
    waits for victims that are still terminating there, unless nothing can make the node feasible. With ``evicts`` such
    victims are not marked: all less important terminating pods count.
    """
    if pod.preemption_policy in NEVER_PREEMPTS:
        return f"not eligible due to preemptionPolicy={pod.preemption_policy}."
    if nominated_status is None:
        return ""
    is_waiting = waits_for_victims(cluster, pod, nominated_status, pod.priority - 1, evicts=evicts)
    return NOT_ELIGIBLE_TERMINATING if is_waiting else ""


def waits_for_victims(
    cluster: Cluster, pod: PodRecord, nominated_status: Status | None, most: int, *, evicts: bool = False
) -> bool:
    """Return whether preempted pods of at most priority ``most`` still terminate where ``pod`` is nominated.

    They count from the answer to their deletion on, before the API shows that they terminate. ``nominated_status`` and
    ``evicts`` are as for `ineligible_reason`.
    """
    row = cluster.nodes.row_of.get(pod.nominated_node_name)
    if row is None or not may_still_fit(nominated_status):
        return False
    is_victim = cluster.is_ending if evicts else cluster.is_ending_victim
    return any(other.priority <= most and is_victim(other) for other in cluster.pods_on(row))


def may_still_fit(nominated_status: Status | None) -> bool:
    """Return whether a pod may still fit the node that it is nominated to, by the filters' answer for that node.

    A node that a PreFilter left out without a reason counts as one without an answer.
    """
    if nominated_status is None:
        return False
    has_answer = nominated_status.plugin != LEFT_OUT or bool(nominated_status.reasons)
    return not has_answer or nominated_status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class WholeGroups:
    """The PodGroups whose pods are victims together or not at all (`disruptionMode` PodGroup), by key.

    Only groups with pods on nodes count, as of the time when this is created.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._classes: dict[str, list[int]] = {}
        groups = cluster.pod_groups.by_key
        for class_id in sorted(cluster.pods.of_class) if any(group.is_one_victim for group in groups.values()) else ():
            key = cluster.classes[class_id].pod_group
            if key in groups and groups[key].is_one_victim:
                self._classes.setdefault(key, []).append(class_id)
        self.key_of_class = {class_id: key for key, ids in self._classes.items() for class_id in ids}
        """The group with which the pods of a class (by id) are evicted; other classes are absent."""

    def __bool__(self) -> bool:
        return bool(self._classes)

    @property
    def keys(self) -> list[str]:
        """The groups' keys, ascending."""
        return sorted(self._classes)

    def slots_of(self, key: str) -> Int64s:
        return self._cluster.pods.slots_of(self._classes[key])

    def mates(self, key: str, priority: int, pool: VictimPool) -> list[int]:
        """Return the pods of a group, with `NOT_IN_POOL` among them if not all may be victims of a priority."""
        stated = self._cluster.pod_groups.by_key[key].spec.priority
        if stated is not None and stated >= priority:
            return [NOT_IN_POOL]
        mates: list[int] = np.sort(pool.index_of[self.slots_of(key)]).tolist()
        return mates


def below_their_groups(cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
    """Extend a filter: a pod is no victim if its group states a priority that is as high as the preemptor's.

    Source: pkg/scheduler/framework/preemption/types.go (NewPodVictim): a victim has its group's priority. Here it keeps
    its own if that is higher.
    """
    if not cluster.pod_groups.state_priorities():
        return further

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        class_ids, places = np.unique(cluster.pods.pod_class[slots], return_inverse=True)
        stated = (cluster.pod_groups.stated_priority(cluster.classes[int(each)].pod_group) for each in class_ids)
        below = np.array([each is None or each < pod.priority for each in stated], dtype=np.bool_)
        found: Bools = below[places]
        return found

    return both_allow(further, allowed)


def excluding(cluster: Cluster, uids: Collection[str], further: VictimFilter | None) -> VictimFilter:
    """Extend a filter: some pods (uids) are no victims."""

    def allowed(_pod: PodRecord, slots: Int64s) -> Bools:
        found = (cluster.pods.record(slot).uid not in uids for slot in slots.tolist())
        return np.fromiter(found, dtype=np.bool_, count=len(slots))

    return both_allow(further, allowed)


class VictimProtection(msgspec.Struct, frozen=True):
    """Protects pods that have run for less than ``minimum_running_ns`` (None: no time) from preemption.

    If budgets are ``required``, no victims are more than their budgets allow.
    """

    minimum_running_ns: int | None = None
    required: bool = False

    def on(self, cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
        """Extend a filter: pods that have not run long enough are no victims."""
        if self.minimum_running_ns is None:
            return further
        return both_allow(further, partial(self._have_run_enough, cluster))

    def next_ns(self, cluster: Cluster, pod: PodRecord) -> int | None:
        """Return when the next pod of lower priority will have run long enough; None if there is none.

        Pods that have not started are not considered; their start is an event of its own.
        """
        if self.minimum_running_ns is None:
            return None
        pods = cluster.pods
        slots = np.flatnonzero((pods.row[: pods.count] != NO_ROW) & (pods.priority[: pods.count] < pod.priority))
        slots = slots[~self._have_run_enough(cluster, pod, slots) & (pods.start_ns[slots] != NOT_STARTED_NS)]
        return int(pods.start_ns[slots].min()) + self.minimum_running_ns if len(slots) else None

    def _have_run_enough(self, cluster: Cluster, _pod: PodRecord, slots: Int64s) -> Bools:
        """Return ``[slots]``: the pods that started neither too recently nor not yet."""
        found: Bools = cluster.pods.start_ns[slots] <= cluster.now - (self.minimum_running_ns or 0)
        return found


def within_budgets(cluster: Cluster, further: VictimFilter | None) -> VictimFilter:
    """Extend a filter: at most as many pods of a node are victims as budgets allow, the least important first."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        # The pods of one node are neighbors, the most important first.
        backwards = slots[found][::-1]
        found[found] = ~beyond_budgets(cluster, Lists(runs(cluster.pods.row[backwards]), backwards))[::-1]
        return found

    return allowed


def alone_within_budgets(cluster: Cluster, further: VictimFilter | None) -> VictimFilter:
    """Extend a filter: a pod is no victim if its budgets do not even allow its own disruption alone."""
    return both_allow(further, lambda _pod, slots: ~beyond_budgets(cluster, Lists(np.arange(len(slots) + 1), slots)))


class BudgetBlock(msgspec.Struct, frozen=True):
    """The budgets (keys) that alone prevent preemption, and what preemption would do without them.

    ``node_name`` is "" for a gang. ``next_ns`` is when the next token of one of their rates comes back, None if none is
    missing.
    """

    budgets: tuple[str, ...]
    node_name: str
    victims: tuple[PodRecord, ...]
    next_ns: int | None = None

    def to_dict(self) -> dict[str, Any]:
        found = {"budgets": list(self.budgets), "node": self.node_name, "victims": [each.key for each in self.victims]}
        return found if self.next_ns is None else {**found, "nextToken": format_time(self.next_ns)}

    def __str__(self) -> str:
        noun, verb = ("budget", "allows") if len(self.budgets) == 1 else ("budgets", "allow")
        return f"{noun} {', '.join(self.budgets)} {verb} too few disruptions"


def held_back(cluster: Cluster, node_name: str, victims: Sequence[PodRecord]) -> BudgetBlock:
    """Return the budgets that do not allow the disruption of all of ``victims``.

    If each of them allows it, and disruptions begun elsewhere are the reason, return those that cover the victims.
    """
    budgets = {budget.key: budget for victim in victims for budget in cluster.budgets.over(victim.pod_class)}
    covering, exceeded = sorted(budgets), list[str]()
    for key in covering:
        budget = budgets[key]
        counted = [
            victim for victim in victims if budget.counts(victim.pod_class) and victim.name not in budget.disrupted
        ]
        is_exceeded = sum(budget.covers(victim.pod_class) for victim in counted) > budget.disruptions_allowed
        if budget.tokens is not None:
            is_exceeded |= sum(victim.is_healthy for victim in counted) > budget.tokens
        if is_exceeded:
            exceeded.append(key)
    keys = tuple(exceeded or covering)
    return BudgetBlock(keys, node_name, tuple(victims), cluster.budgets.next_token_ns(keys))
