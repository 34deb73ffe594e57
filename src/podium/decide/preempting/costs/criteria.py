"""By what sets of victims may be compared: one number for each set and criterion, smaller is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from podium.api.times import format_time
from podium.cluster.arrays import Int64s
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.decide.lost_work import lost_work_ns
from podium.decide.preempting.costs.facts import Facts, PodNumbers
from podium.decide.preempting.costs.upstream import PRIORITY_SHIFT
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.trial_table import AFFINITY_KEPT
from podium.decide.preempting.victims import budgets_over, not_yet_disrupted

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
]

Growth = Literal["Always", "UnlessNegative", "BesideHighestPriority"]
"""When what a criterion says of a set grows, or stays, with each further victim: always; where no victim's number is
negative; or where `HighestPriority` comes before it and says the same of both."""

_MILLION = 1_000_000
_THOUSAND = 1_000
# More than any rate has tokens.
_NO_RATE = 1 << 40
_GUARANTEED = 1 << 32
_LOWEST = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Column:
    """What is told of candidates: ``words`` say of the best why it is that, and ``heading`` stands above a column.

    ``shown`` makes what people read, in ``unit``, of a number; None stands for nothing to tell.
    """

    name: str
    words: str
    heading: str
    unit: str = ""
    shown: Callable[[int], int | float | str | None] = int


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion(Column):
    """``values`` are what it says of sets. It ``adds`` up what it says of each victim alone, or is no less than that.

    ``floor`` is the least that it says, and ``growth`` when it says no less of a set with one victim more.
    """

    values: Callable[[VictimSets], Int64s]
    adds: bool = False
    floor: int = 0
    growth: Growth = "Always"


AFFINITY = Column("AffinityKept", AFFINITY_KEPT, "partner", shown=lambda value: "goes" if value else "stays")
"""What comes before all criteria where a preemptor keeps whom it requires to be near."""


def _violations(sets: VictimSets) -> Int64s:
    return sets.violations


def _rates_left(sets: VictimSets) -> Int64s:
    """The fewest tokens that would be left of a budget's rate, with the sign turned."""
    left = np.full(len(sets), _NO_RATE, dtype=np.int64)
    cluster = sets.facts.cluster
    healthy, owners = cluster.pods.healthy[sets.slots], sets.owners
    for budget, counted, _ in budgets_over(cluster, sets.slots):
        if budget.tokens is not None:
            anew = not_yet_disrupted(cluster, sets.slots, counted, budget) & healthy
            taken = np.bincount(owners[anew], minlength=len(sets))
            left = np.where(taken > 0, np.minimum(left, budget.tokens - taken), left)
    return -left


def _sum_of(numbers: PodNumbers) -> Callable[[VictimSets], Int64s]:
    return lambda sets: sets.sums(sets.of_pods(numbers))


def _largest_of(numbers: PodNumbers) -> Callable[[VictimSets], Int64s]:
    return lambda sets: sets.largest(sets.of_pods(numbers))


def _priorities(sets: VictimSets) -> Int64s:
    priorities: Int64s = sets.facts.cluster.pods.priority[sets.slots]
    return priorities


def _qualities_of_service(facts: Facts, slots: Int64s) -> Int64s:
    """One Guaranteed pod weighs more than any number of Burstable ones, and these more than BestEffort ones."""
    weights = {"Guaranteed": _GUARANTEED, "Burstable": 1, "BestEffort": 0}
    return facts.of_records(lambda pod: weights[pod.pod_class.qos], slots)


def _victims(sets: VictimSets) -> Int64s:
    return np.diff(sets.starts)


def _works_lost(facts: Facts, slots: Int64s) -> Int64s:
    """Milliseconds of work lost, each times the largest share of its node that the pod requests."""
    cluster = facts.cluster
    lost = facts.of_records(lambda pod: work_lost_ns(pod, cluster.now), slots) // _MILLION
    classes, rows = cluster.pods.pod_class[slots], cluster.pods.row[slots]
    requests = cluster.classes.requests[:, classes]
    has = cluster.nodes.allocatable[: len(requests), np.where(rows == NO_ROW, 0, rows)]
    parts = np.divide(requests, has, out=np.zeros(requests.shape), where=(has > 0) & (rows != NO_ROW))
    shares = np.minimum(parts.max(axis=0, initial=0.0), 1.0)
    found: Int64s = (lost * shares).astype(np.int64)
    return found


def work_lost_ns(pod: PodRecord, now: int) -> int:
    """How much work, in time, is lost with a pod: all since its start, or what it says that it has not saved.

    An annotation that cannot be read says nothing.
    """
    ran_ns = 0 if pod.start_ns == NOT_STARTED_NS else max(0, now - pod.start_ns)
    try:
        said_ns = lost_work_ns(pod, now)
    except ValueError:
        said_ns = None
    return ran_ns if said_ns is None else said_ns


def _without_place(facts: Facts, slots: Int64s) -> Int64s:
    """1 for those that come again, and whose replacement no node but the one that they leave could take as it is."""
    return facts.of_records(lambda pod: int(pod.controller is not None and not facts.has_other_place(pod)), slots)


def _grace_periods(facts: Facts, slots: Int64s) -> Int64s:
    return facts.of_records(lambda pod: pod.spec.termination_grace_period_seconds, slots)


def _numbers_of_owners(facts: Facts, slots: Int64s) -> Int64s:
    numbers, _ = facts.owners
    return facts.of_records(lambda pod: numbers[pod.owner_uid], slots)


def _owner_share(sets: VictimSets) -> Int64s:
    """The largest part that any one owner loses of its placed pods, in millionths."""
    _, placed = sets.facts.owners
    keys = sets.owners * len(placed) + sets.of_pods(_numbers_of_owners)
    found, places, taken = np.unique(keys, return_inverse=True, return_counts=True)
    parts: Int64s = _MILLION * taken // placed[found % max(1, len(placed))]
    return sets.largest(parts[places.reshape(-1)])


def _namespace_shares(facts: Facts, slots: Int64s) -> Int64s:
    """The dominant share of the cluster that each pod's namespace has, in millionths, with the sign turned."""
    shares = facts.shares_of_namespaces
    return -facts.of_records(lambda pod: int(shares.get(pod.namespace, 0) * _MILLION), slots)


def _latest_start(sets: VictimSets) -> Int64s:
    """The earliest start among the most important victims, with the sign turned."""
    pods = sets.facts.cluster.pods
    priority = pods.priority[sets.slots]
    most_important = priority == sets.largest(priority)[sets.owners]
    return -sets.smallest(np.where(most_important, pods.start_ns[sets.slots], NOT_STARTED_NS))


def _percent(millionths: int) -> float:
    return abs(millionths) / (_MILLION // 100)


def _tokens(negated: int) -> int | None:
    return None if negated == -_NO_RATE else -negated


def _time(negated_ns: int) -> str | None:
    return None if negated_ns == -NOT_STARTED_NS else format_time(-negated_ns)


_ALL = (
    Criterion("BudgetViolations", "fewest budget violations", "violations", values=_violations),
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
    Criterion(
        "QualityOfService",
        "fewest victims of a high quality of service",
        "QoS",
        shown=lambda value: f"{value // _GUARANTEED} Guaranteed, {value % _GUARANTEED} Burstable",
        values=_sum_of(_qualities_of_service),
        adds=True,
    ),
    Criterion("Victims", "fewest victims", "victims", values=_victims, adds=True),
    Criterion(
        "WorkLost",
        "least work lost",
        "work lost",
        "node-seconds",
        lambda value: value / _THOUSAND,
        values=_sum_of(_works_lost),
        adds=True,
    ),
    Criterion(
        "ReplacementsWithoutPlace",
        "fewest replacements without a place",
        "no place",
        values=_sum_of(_without_place),
        adds=True,
    ),
    Criterion("GracePeriod", "shortest grace period", "grace", "s", values=_largest_of(_grace_periods), floor=_LOWEST),
    Criterion("OwnerShare", "smallest part of an owner's pods", "of owner", "%", _percent, values=_owner_share),
    Criterion(
        "NamespaceShare",
        "largest share of the victims' namespaces",
        "namespace has",
        "%",
        _percent,
        values=_largest_of(_namespace_shares),
        floor=_LOWEST,
    ),
    Criterion(
        "LatestStart",
        "latest start of the most important victims",
        "started",
        shown=_time,
        values=_latest_start,
        floor=_LOWEST,
        growth="BesideHighestPriority",
    ),
)
CRITERIA: Mapping[str, Criterion] = {criterion.name: criterion for criterion in _ALL}
"""All that may be named, by name."""

UPSTREAM = (
    CRITERIA["BudgetViolations"],
    CRITERIA["HighestPriority"],
    Criterion(
        "SumOfPriorities",
        CRITERIA["SumOfPriorities"].words,
        "priorities",
        values=lambda sets: sets.sums(_priorities(sets) + PRIORITY_SHIFT),
        adds=True,
    ),
    CRITERIA["Victims"],
    CRITERIA["LatestStart"],
)
"""kube-scheduler's, in its order; fewer victims always weigh less than more of them in the sum of their priorities."""

if tuple(CRITERIA) != get_args(CriterionName):
    raise AssertionError("a criterion has no name, or a name no criterion")
