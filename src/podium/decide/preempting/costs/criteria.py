"""By what sets of victims may be compared: one number for each set and criterion, smaller is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from podium.api.times import format_time
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.decide.lost_work import lost_work_ns
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.victims import budgets_over

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

Floats = npt.NDArray[np.float64]

_MILLION = 1_000_000
_THOUSAND = 1_000
# More than any rate has tokens.
_NO_RATE = 1 << 40
_GUARANTEED = 1 << 32


@dataclass(frozen=True, slots=True)
class Criterion:
    """``words`` say of the best set why it is that, and ``heading`` stands above a column.

    ``shown`` makes what people read, in ``unit``, of a number of `values`; None stands for nothing to tell.
    """

    name: CriterionName
    words: str
    heading: str
    values: Callable[[VictimSets], Int64s]
    unit: str = ""
    shown: Callable[[int], int | float | str | None] = int


def _violations(sets: VictimSets) -> Int64s:
    return sets.violations


def _rates_left(sets: VictimSets) -> Int64s:
    """The fewest tokens that would be left of a budget's rate, with the sign turned."""
    left = np.full(len(sets), _NO_RATE, dtype=np.int64)
    healthy, owners = sets.cluster.pods.healthy[sets.slots], sets.owners
    for budget, counted, _ in budgets_over(sets.cluster, sets.slots):
        if budget.tokens is not None:
            taken = np.bincount(owners[counted & healthy], minlength=len(sets))
            left = np.where(taken > 0, np.minimum(left, budget.tokens - taken), left)
    return -left


def _highest_priority(sets: VictimSets) -> Int64s:
    return sets.largest(sets.cluster.pods.priority[sets.slots])


def _sum_of_priorities(sets: VictimSets) -> Int64s:
    return sets.sums(sets.cluster.pods.priority[sets.slots])


def _quality_of_service(sets: VictimSets) -> Int64s:
    """One Guaranteed pod weighs more than any number of Burstable ones, and these more than BestEffort ones."""
    weights = {"Guaranteed": _GUARANTEED, "Burstable": 1, "BestEffort": 0}
    return sets.sums(sets.of_pods(lambda pod: weights[pod.pod_class.qos]))


def _victims(sets: VictimSets) -> Int64s:
    return np.diff(sets.starts)


def _work_lost(sets: VictimSets) -> Int64s:
    """Milliseconds of work lost, each times the largest share of its node that the pod requests."""
    cluster = sets.cluster
    lost = sets.of_pods(lambda pod: work_lost_ns(pod, cluster.now)) // _MILLION
    return sets.sums((lost * _shares_of_nodes(sets)).astype(np.int64))


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


def _shares_of_nodes(sets: VictimSets) -> Floats:
    """``[victims]``: the largest part that each requests of what its node has of any one resource."""
    cluster = sets.cluster
    classes, rows = cluster.pods.pod_class[sets.slots], cluster.pods.row[sets.slots]
    requests = cluster.classes.requests[:, classes]
    has = cluster.nodes.allocatable[: len(requests), np.where(rows == NO_ROW, 0, rows)]
    parts = np.divide(requests, has, out=np.zeros(requests.shape), where=(has > 0) & (rows != NO_ROW))
    shares: Floats = np.minimum(parts.max(axis=0, initial=0.0), 1.0)
    return shares


def _without_place(sets: VictimSets) -> Int64s:
    """Victims that come again, and whose replacement no node but the one that they leave could take as things are."""
    places: dict[int, Int64s] = {}

    def is_without(pod: PodRecord) -> int:
        if pod.controller is None:
            return 0
        rows = places.get(pod.pod_class.id)
        if rows is None:
            rows = places[pod.pod_class.id] = sets.handle.feasible_rows(pod)
        return int(not len(rows) or (len(rows) == 1 and rows[0] == pod.row))

    return sets.sums(sets.of_pods(is_without))


def _grace_period(sets: VictimSets) -> Int64s:
    return sets.largest(sets.of_pods(lambda pod: pod.spec.termination_grace_period_seconds))


def _owner_share(sets: VictimSets) -> Int64s:
    """The largest part that any one owner loses of its placed pods, in millionths."""
    owners, numbers = sets.owners.tolist(), _pods_of_owners(sets.cluster)
    uids = [sets.cluster.pods.record(slot).owner_uid for slot in sets.slots.tolist()]
    taken = Counter(zip(owners, uids, strict=True))
    parts = np.array(
        [_MILLION * taken[owner, uid] // numbers[uid] for owner, uid in zip(owners, uids, strict=True)], dtype=np.int64
    )
    return sets.largest(parts)


def _pods_of_owners(cluster: Cluster) -> Counter[str]:
    return Counter(record.owner_uid for record in cluster.pods.records if record is not None and record.row != NO_ROW)


def _namespace_share(sets: VictimSets) -> Int64s:
    """The smallest dominant share of the cluster that a victim's namespace has, in millionths, with the sign turned."""
    cluster = sets.cluster
    shares = _shares_of_namespaces(cluster)
    return -sets.smallest(sets.of_pods(lambda pod: shares.get(pod.namespace, 0)))


def _shares_of_namespaces(cluster: Cluster) -> dict[str, int]:
    """The largest part that the placed pods of each namespace request of any resource of all nodes together."""
    pods, nodes, classes = cluster.pods, cluster.nodes, cluster.classes
    placed = pods.pod_class[: pods.count][pods.row[: pods.count] != NO_ROW]
    numbers = np.bincount(placed, minlength=classes.requests.shape[1])
    total = (nodes.allocatable[:, : nodes.count] * nodes.present[: nodes.count]).sum(axis=1)[: len(classes.requests)]
    requested: dict[str, Int64s] = {}
    for class_id in np.flatnonzero(numbers).tolist():
        amounts = classes.requests[:, class_id] * numbers[class_id]
        namespace = classes[class_id].namespace
        requested[namespace] = requested[namespace] + amounts if namespace in requested else amounts
    parts = {
        name: np.divide(amounts, total, out=np.zeros(len(total)), where=total > 0).max(initial=0.0)
        for name, amounts in requested.items()
    }
    return {name: int(part * _MILLION) for name, part in parts.items()}


def _latest_start(sets: VictimSets) -> Int64s:
    """The earliest start among the most important victims, with the sign turned."""
    pods = sets.cluster.pods
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
    Criterion("BudgetViolations", "fewest budget violations", "violations", _violations),
    Criterion("RatesLeft", "most that is left of budgets' rates", "rate left", _rates_left, "tokens", _tokens),
    Criterion("HighestPriority", "lowest priority of the most important victim", "priority", _highest_priority),
    Criterion("SumOfPriorities", "smallest sum of victims' priorities", "priorities", _sum_of_priorities),
    Criterion(
        "QualityOfService",
        "fewest victims of a high quality of service",
        "QoS",
        _quality_of_service,
        shown=lambda value: f"{value // _GUARANTEED} Guaranteed, {value % _GUARANTEED} Burstable",
    ),
    Criterion("Victims", "fewest victims", "victims", _victims),
    Criterion("WorkLost", "least work lost", "work lost", _work_lost, "node-seconds", lambda value: value / _THOUSAND),
    Criterion("ReplacementsWithoutPlace", "fewest replacements without a place", "no place", _without_place),
    Criterion("GracePeriod", "shortest grace period", "grace", _grace_period, "s"),
    Criterion("OwnerShare", "smallest part of an owner's pods", "of owner", _owner_share, "%", _percent),
    Criterion(
        "NamespaceShare", "largest share of the victims' namespaces", "namespace has", _namespace_share, "%", _percent
    ),
    Criterion("LatestStart", "latest start of the most important victims", "started", _latest_start, shown=_time),
)
CRITERIA: Mapping[CriterionName, Criterion] = {criterion.name: criterion for criterion in _ALL}
"""All that may be named, by name."""

if tuple(CRITERIA) != get_args(CriterionName):
    raise AssertionError("a criterion has no name, or a name no criterion")
