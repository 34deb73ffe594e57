"""Criteria by which sets of victims are compared: one number for each set and criterion, smaller is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np

from podium.api.times import SECOND, format_duration, format_time
from podium.cluster.arrays import Bools, Int64s, Lists, distinct_values, offsets
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.decide.evictions import lost_work_ns
from podium.decide.preempting.eligibility import BudgetPairs, beyond_budgets
from podium.framework.handle import Handle

PodNumbers = Callable[["VictimFacts", Int64s], Int64s]
"""Returns ``[slots]``: a number for each of the pods in some slots."""


class VictimFacts:
    """Facts about pods that criteria need, each computed once, while the cluster does not change."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.cluster: Cluster = handle.cluster
        self._known: dict[PodNumbers, tuple[Int64s, Bools]] = {}
        self._places: dict[tuple[int, int], Int64s] = {}

    def of(self, numbers: PodNumbers, slots: Int64s) -> Int64s:
        """Return ``[slots]``: numbers of pods; they are cached."""
        known = self._known.get(numbers)
        if known is None:
            size = self.cluster.pods.count
            known = self._known[numbers] = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        values, is_known = known
        missing = slots[~is_known[slots]]
        if len(missing):
            missing = distinct_values(missing, len(values))
            values[missing] = numbers(self, missing)
            is_known[missing] = True
        found: Int64s = values[slots]
        return found

    def of_records(self, value: Callable[[PodRecord], int], slots: Int64s) -> Int64s:
        """Return ``[slots]``: a number for each, computed from the pod's record."""
        records = map(self.cluster.pods.record, slots.tolist())
        return np.fromiter(map(value, records), dtype=np.int64, count=len(slots))

    def has_other_place(self, pod: PodRecord) -> bool:
        """Return whether another node than its own is feasible for a pod like this one now."""
        key = pod.pod_class.id, pod.priority
        rows = self._places.get(key)
        if rows is None:
            rows = self._places[key] = self.handle.feasible_rows(pod)
        return len(rows) > 1 or (len(rows) == 1 and int(rows[0]) != pod.row)

    @cached_property
    def being_disrupted(self) -> frozenset[str]:
        """The workloads of victims whose deletion has begun, and may not be visible in the API yet."""
        placed, victims = self.cluster.placed, self.cluster.nominations.victims()
        return frozenset(placed[uid].workload for _, uids in victims for uid in uids if uid in placed)

    @cached_property
    def owners(self) -> tuple[dict[str, int], Int64s]:
        """A number for each owner of placed pods, by uid; and how many placed pods each has."""
        pods = self.cluster.pods.records
        counts = Counter(record.owner_uid for record in pods if record is not None and record.row != NO_ROW)
        return {uid: number for number, uid in enumerate(counts)}, np.array(list(counts.values()), dtype=np.int64)

    @cached_property
    def shares_of_namespaces(self) -> dict[str, float]:
        """The dominant share of each namespace: the largest part of any resource that its placed pods request."""
        pods, nodes, classes = self.cluster.pods, self.cluster.nodes, self.cluster.classes
        placed = pods.pod_class[: pods.count][pods.row[: pods.count] != NO_ROW]
        numbers = np.bincount(placed, minlength=classes.requests.shape[1])
        has = nodes.allocatable[:, : nodes.count] * nodes.present[: nodes.count]
        total = has.sum(axis=1)[: len(classes.requests)]
        requested: dict[str, Int64s] = {}
        for class_id in np.flatnonzero(numbers).tolist():
            amounts = classes.requests[:, class_id] * numbers[class_id]
            namespace = classes[class_id].namespace
            requested[namespace] = requested[namespace] + amounts if namespace in requested else amounts
        return {
            name: float(np.divide(amounts, total, out=np.zeros(len(total)), where=total > 0).max(initial=0.0))
            for name, amounts in requested.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class VictimSets(Lists):
    """Sets of victims by slot, none of them empty; victims may be on several nodes.

    ``violations`` is ``[sets]``: how many disruptions of each exceed budgets.
    """

    facts: VictimFacts
    violations: Int64s

    def of_pods(self, numbers: PodNumbers) -> Int64s:
        """Return ``[victims]``: a number for each."""
        return self.facts.of(numbers, self.entries)

    def smallest(self, values: Int64s) -> Int64s:
        """Return ``[sets]``: the smallest of the numbers of ``[victims]``."""
        return -self.largest(-values)

    def only(self, sets: Int64s) -> VictimSets:
        """Return some of the sets, in the order given."""
        starts, places = self.places_of(sets)
        return VictimSets(starts, self.entries[places], self.facts, self.violations[sets])


CriterionName = Literal[
    "BudgetViolations",
    "RatesLeft",
    "HighestPriority",
    "SumOfPriorities",
    "QualityOfService",
    "Victims",
    "WorkLost",
    "ReplacementsWithoutPlace",
    "GracePeriod",
    "OwnerShare",
    "NamespaceShare",
    "LatestStart",
    "DisruptedLately",
]

Growth = Literal["Always", "UnlessNegative", "BesideHighestPriority"]
"""When a criterion never decreases with a further victim: always; if no victim's number is negative; or if
`HighestPriority` comes before it and is equal for both sets."""

_MILLION = 1_000_000
_THOUSAND = 1_000
# More milliseconds than since any disruption that counts.
_NEVER = 1 << 50
# More than any rate has tokens.
_NO_RATE = 1 << 40
_GUARANTEED = 1 << 32
# One Guaranteed pod weighs more than any number of Burstable ones, and these more than BestEffort ones.
_QOS_WEIGHTS = {"Guaranteed": _GUARANTEED, "Burstable": 1, "BestEffort": 0}
_LOWEST = int(np.iinfo(np.int64).min)

PRIORITY_SHIFT = 2**31
"""Shifts priorities, which may be negative, so that fewer victims always weigh less than more of them."""


Shown = Callable[[int], int | float | str | None]


@dataclass(frozen=True, slots=True)
class CostColumn:
    """A column of candidates: ``words`` name the criterion, ``heading`` is the column's title.

    ``shown`` converts a number to what users read, in ``unit``; None for nothing.
    """

    name: str
    words: str
    heading: str
    unit: str = ""
    shown: Shown = int


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion(CostColumn):
    """A criterion with its ``values`` for sets.

    If it ``adds``, they are sums over the victims; otherwise at least the largest.

    ``floor`` is a lower bound, and ``growth`` says when a set with one victim more has no smaller value.
    """

    values: Callable[[VictimSets], Int64s]
    adds: bool = False
    floor: int = 0
    growth: Growth = "Always"


AFFINITY_KEPT = "keeping pods that it requires nearby"
AFFINITY = CostColumn("AffinityKept", AFFINITY_KEPT, "partner", shown=lambda value: "goes" if value else "stays")
"""The criterion before all others if a preemptor keeps its affinity partners."""


def _rates_left(sets: VictimSets) -> Int64s:
    """Return the fewest tokens left of any budget's rate, negated."""
    left = np.full(len(sets), _NO_RATE, dtype=np.int64)
    cluster = sets.facts.cluster
    pairs = BudgetPairs.of(cluster, sets.entries)
    taking = pairs.unaccounted & cluster.pods.healthy[sets.entries[pairs.places]]
    for number, budget in enumerate(pairs.budgets):
        if budget.tokens is not None:
            taken = np.bincount(sets.owners[pairs.places[taking & (pairs.numbers == number)]], minlength=len(sets))
            left = np.where(taken > 0, np.minimum(left, budget.tokens - taken), left)
    return -left


def _per_pod(value: Callable[[VictimFacts, PodRecord], int]) -> PodNumbers:
    return lambda facts, slots: facts.of_records(partial(value, facts), slots)


def _sum(name: str, words: str, heading: str, numbers: PodNumbers, unit: str = "", shown: Shown = int) -> Criterion:
    """Return a criterion that adds numbers of the victims."""
    return Criterion(name, words, heading, unit, shown, values=lambda sets: sets.sums(sets.of_pods(numbers)), adds=True)


def _most(name: str, words: str, heading: str, numbers: PodNumbers, unit: str = "", shown: Shown = int) -> Criterion:
    """Return a criterion that takes the largest number of the victims."""

    def values(sets: VictimSets) -> Int64s:
        return sets.largest(sets.of_pods(numbers))

    return Criterion(name, words, heading, unit, shown, values=values, floor=_LOWEST)


def _priorities(sets: VictimSets) -> Int64s:
    priorities: Int64s = sets.facts.cluster.pods.priority[sets.entries]
    return priorities


def _works_lost(facts: VictimFacts, slots: Int64s) -> Int64s:
    """Return milliseconds of work lost, each times the largest share of its node that the pod requests.

    A pod loses all work since its start, or what its annotations say; invalid annotations do not count.
    """
    cluster = facts.cluster

    def work_lost_ns(pod: PodRecord) -> int:
        with suppress(ValueError):
            if (stated_ns := lost_work_ns(pod, cluster.now)) is not None:
                return stated_ns
        return 0 if pod.start_ns == NOT_STARTED_NS else max(0, cluster.now - pod.start_ns)

    lost = facts.of_records(work_lost_ns, slots) // _MILLION
    classes, rows = cluster.pods.pod_class[slots], cluster.pods.row[slots]
    requests = cluster.classes.requests[:, classes]
    has = cluster.nodes.allocatable[: len(requests), np.where(rows == NO_ROW, 0, rows)]
    parts = np.divide(requests, has, out=np.zeros(requests.shape), where=(has > 0) & (rows != NO_ROW))
    shares = np.minimum(parts.max(axis=0, initial=0.0), 1.0)
    found: Int64s = (lost * shares).astype(np.int64)
    return found


_number_of_owner = _per_pod(lambda facts, pod: facts.owners[0][pod.owner_uid])


def _owner_share(sets: VictimSets) -> Int64s:
    """Return the largest part of its placed pods that any owner loses, in millionths."""
    _, placed = sets.facts.owners
    keys = sets.owners * len(placed) + sets.of_pods(_number_of_owner)
    found, places, taken = np.unique(keys, return_inverse=True, return_counts=True)
    parts: Int64s = _MILLION * taken // placed[found % max(1, len(placed))]
    return sets.largest(parts[places.reshape(-1)])


def _since_disruption(facts: VictimFacts, pod: PodRecord) -> int:
    """Return the milliseconds since the pod's workload was disrupted last, negated."""
    disrupted, now = facts.cluster.disrupted, facts.cluster.now
    if pod.workload in facts.being_disrupted:
        return 0
    last_ns = disrupted.last_ns(pod.workload, now, disrupted.span_ns)
    return -_NEVER if last_ns is None else -(max(0, now - last_ns) // _MILLION)


def _latest_start(sets: VictimSets) -> Int64s:
    """Return the earliest start among the most important victims, negated."""
    pods = sets.facts.cluster.pods
    priority = pods.priority[sets.entries]
    most_important = priority == sets.largest(priority)[sets.owners]
    return -sets.smallest(np.where(most_important, pods.start_ns[sets.entries], NOT_STARTED_NS))


def _percent(millionths: int) -> float:
    return abs(millionths) / (_MILLION // 100)


def _tokens(negated: int) -> int | None:
    return None if negated == -_NO_RATE else -negated


_ALL = (
    Criterion("BudgetViolations", "fewest budget violations", "violations", values=lambda sets: sets.violations),
    Criterion(
        "RatesLeft",
        "most that is left of budgets' rates",
        "rate left",
        "tokens",
        _tokens,
        values=_rates_left,
        floor=_LOWEST,
    ),
    Criterion(
        "HighestPriority",
        "lowest priority of the most important victim",
        "priority",
        values=lambda sets: sets.largest(_priorities(sets)),
        floor=_LOWEST,
    ),
    Criterion(
        "SumOfPriorities",
        "smallest sum of victims' priorities",
        "priorities",
        values=lambda sets: sets.sums(_priorities(sets)),
        adds=True,
        growth="UnlessNegative",
    ),
    _sum(
        "QualityOfService",
        "fewest victims of a high quality of service",
        "QoS",
        _per_pod(lambda _, pod: _QOS_WEIGHTS[pod.pod_class.qos]),
        shown=lambda value: f"{value // _GUARANTEED} Guaranteed, {value % _GUARANTEED} Burstable",
    ),
    Criterion("Victims", "fewest victims", "victims", values=lambda sets: sets.lengths, adds=True),
    _sum("WorkLost", "least work lost", "work lost", _works_lost, "node-seconds", lambda value: value / _THOUSAND),
    _sum(
        "ReplacementsWithoutPlace",
        "fewest replacements without a place",
        "no place",
        _per_pod(lambda facts, pod: pod.controller is not None and not facts.has_other_place(pod)),
    ),
    _most(
        "GracePeriod",
        "shortest grace period",
        "grace",
        _per_pod(lambda _, pod: pod.spec.termination_grace_period_seconds),
        "s",
    ),
    Criterion("OwnerShare", "smallest part of an owner's pods", "of owner", "%", _percent, values=_owner_share),
    _most(
        "NamespaceShare",
        "largest share of the victims' namespaces",
        "namespace has",
        _per_pod(lambda facts, pod: -int(facts.shares_of_namespaces.get(pod.namespace, 0) * _MILLION)),
        "%",
        _percent,
    ),
    Criterion(
        "LatestStart",
        "latest start of the most important victims",
        "started",
        shown=lambda ns: None if ns == -NOT_STARTED_NS else format_time(-ns),
        values=_latest_start,
        floor=_LOWEST,
        growth="BesideHighestPriority",
    ),
    _most(
        "DisruptedLately",
        "longest time since their workloads were disrupted",
        "disrupted",
        _per_pod(_since_disruption),
        shown=lambda ms: None if ms == -_NEVER else f"{format_duration(-ms // _THOUSAND * SECOND)} ago",
    ),
)
CRITERIA: Mapping[str, Criterion] = {criterion.name: criterion for criterion in _ALL}
"""All criteria that may be named, by name."""

UPSTREAM = (
    CRITERIA["BudgetViolations"],
    CRITERIA["HighestPriority"],
    replace(
        CRITERIA["SumOfPriorities"], values=lambda sets: sets.sums(_priorities(sets) + PRIORITY_SHIFT), growth="Always"
    ),
    CRITERIA["Victims"],
    CRITERIA["LatestStart"],
)
"""kube-scheduler's criteria in order; fewer victims always weigh less than more in the sum of their priorities."""

if tuple(CRITERIA) != get_args(CriterionName):
    raise AssertionError("a criterion has no name, or a name no criterion")


_HIGHEST_PRIORITY = CRITERIA["HighestPriority"]


class VictimCost:
    """Criteria in order; a later one counts if all earlier ones are equal."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self.criteria = tuple(criteria)

    @classmethod
    def of_names(cls, names: Sequence[CriterionName]) -> VictimCost:
        """Return the cost by criteria of these names. Raises ValueError for a repeated name, or none."""
        if not names or len(set(names)) < len(names):
            raise ValueError("it must name at least one criterion, and none of them twice")
        return cls([CRITERIA[name] for name in names])

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the criteria, as users read them."""
        return tuple(criterion.words for criterion in self.criteria)

    def columns(self, sets: VictimSets) -> Int64s:
        """Return ``[criteria, sets]``: the costs of sets."""
        return np.stack([criterion.values(sets) for criterion in self.criteria])

    def reprieve_order(self, sets: VictimSets, groups: Int64s) -> Int64s:
        """Return sets of one pod each in the order of reprieve: by group, the dearest first, then as they come.

        ``groups`` is ``[sets]``, ascending.
        """
        order: Int64s = np.lexsort((*-self.columns(sets)[::-1], groups))
        return order

    def bounding(self, *, has_negative: bool) -> int:
        """Return the number of first criteria that never decrease with a further victim.

        ``has_negative``: whether there are victims of negative priority.
        """
        for place, criterion in enumerate(self.criteria):
            if criterion.growth != "Always" and (criterion.growth != "UnlessNegative" or has_negative):
                return place
        return len(self.criteria)

    def grows(self, *, has_negative: bool) -> bool:
        """Return whether a set with one victim more never costs less."""
        first = self.bounding(has_negative=has_negative)
        if first == len(self.criteria):
            return True
        is_last_start = self.criteria[first].growth == "BesideHighestPriority"
        if not is_last_start or _HIGHEST_PRIORITY not in self.criteria[:first]:
            return False
        return VictimCost(self.criteria[first + 1 :]).grows(has_negative=has_negative)


UPSTREAM_COST = VictimCost(UPSTREAM)
"""The cost as kube-scheduler compares victims."""


def cost_of(victims: Sequence[PodRecord], budget_violations: int) -> tuple[int, ...]:
    """Return the values of `UPSTREAM` for one list of victims, the most important first."""
    highest = victims[0].priority
    latest = max(-victim.start_ns for victim in victims if victim.priority == highest)
    shifted = sum(victim.priority + PRIORITY_SHIFT for victim in victims)
    return budget_violations, highest, shifted, len(victims), latest


# The values of these do not grow with another victim that is no dearer than the dearest.
_LARGEST = frozenset(("HighestPriority", "GracePeriod", "NamespaceShare"))


class SetCosts:
    """The costs of sets of victims on any nodes, by kube-scheduler's criteria or ``stated`` ones.

    If budgets are required (``requires_budgets``), sets with violations are no candidates.
    """

    def __init__(self, handle: Handle, stated: VictimCost | None, *, requires_budgets: bool = False) -> None:
        self.handle = handle
        self.stated = stated
        self.cost = UPSTREAM_COST if stated is None else stated
        self.requires_budgets = requires_budgets

    @property
    def are_largest(self) -> Bools:
        """``[criteria]``: which are the largest of the victims' numbers, so that another as large costs nothing."""
        return np.array([criterion.name in _LARGEST for criterion in self.cost.criteria], dtype=np.bool_)

    @property
    def are_sums(self) -> Bools:
        """``[criteria]``: which are sums of the victims' numbers."""
        return np.array([criterion.adds for criterion in self.cost.criteria], dtype=np.bool_)

    def violations(self, sets: Lists) -> Int64s:
        """Return ``[sets]``: how many pods (slots) of each set would take more of a budget than is left."""
        if not len(self.handle.cluster.budgets):
            return np.zeros(len(sets), dtype=np.int64)
        return sets.sums(beyond_budgets(self.handle.cluster, sets))

    def of_pods(self, sets: Sequence[Sequence[PodRecord]]) -> tuple[Int64s, Int64s]:
        """Return ``[criteria, sets]`` costs and ``[sets]`` violations of sets, none empty, in the present cluster.

        The most important pod of each set comes first.
        """
        if not sets:
            return np.zeros((len(self.cost.criteria), 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
        slots = np.array([pod.slot for victims in sets for pod in victims], dtype=np.int64)
        victims = Lists(offsets(list(map(len, sets))), slots)
        violations = self.violations(victims)
        found = VictimSets(victims.starts, slots, VictimFacts(self.handle), violations)
        return self.cost.columns(found), violations
