"""What preemption would do for a pod that fits nowhere: a plan with all its alternatives.

Source: pkg/scheduler/framework/preemption/preemption.go; pkg/scheduler/framework/plugins/defaultpreemption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Bools, Int64s, stable_hash
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import Ranking
from podium.decide.ties import pick
from podium.decide.victims import PotentialVictims, Victims, choose_victims, with_budgets
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner
from podium.framework.status import Code, Status, unresolvable
from podium.framework.verdicts import Outcome

NEVER_PREEMPTS = ("Never", "PreemptNever", "NonPreemptiblePreemptNever")
NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
NOT_ELIGIBLE_POLICY = "not eligible due to preemptionPolicy=Never."
NOT_ELIGIBLE_TERMINATING = "not eligible due to a terminating pod on the nominated node."
# Shifts priorities, which may be negative, so that fewer victims always weigh less than more of them.
_PRIORITY_SHIFT = 2**31

CRITERIA = (
    "fewest budget violations",
    "lowest priority of the most important victim",
    "smallest sum of victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)

# Which of the lower-priority pods in some slots the preemptor may disrupt: ``[slots]``.
VictimFilter = Callable[[PodRecord, Int64s], Bools]


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """How candidates are looked for. ``minimum_candidates`` None examines every node (percentage, absolute otherwise).

    ``may_disrupt`` None lets every pod of lower priority be a victim.
    """

    minimum_candidates: tuple[int, int] | None = None
    may_disrupt: VictimFilter | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way out: the node, its victims (most important first), and how many of them violate a budget."""

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """What preemption found.

    ``reason`` says why the pod is not eligible. ``chosen`` is None where no candidate was found. ``selected`` names
    every node that the criteria leave tied with the chosen one, and ``criterion`` the last of `CRITERIA` that told
    nodes apart ("" with a single candidate, or none). ``candidates`` and ``rejected`` are by node name; they are
    filled in only where the plan was asked for in detail.
    """

    eligible: bool
    reason: str = ""
    chosen: Candidate | None = None
    selected: tuple[str, ...] = ()
    criterion: str = ""
    candidates: dict[str, Candidate] = field(default_factory=dict)
    rejected: dict[str, Status] = field(default_factory=dict)
    potential_nodes: int = 0


def ineligible_reason(cluster: Cluster, pod: PodRecord, nominated_status: Status | None) -> str:
    """Why ``pod`` may not preempt now; "" where it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is the filters' answer for the node that it is nominated to, None without such a node. A pod
    whose victims are still terminating there waits for them, unless the node cannot take it any more whatever
    happens.
    """
    if pod.preemption_policy in NEVER_PREEMPTS:
        return NOT_ELIGIBLE_POLICY
    row = cluster.nodes.row_of.get(pod.nominated_node_name)
    if row is None or nominated_status is None or nominated_status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    waiting = any(
        victim.terminating and victim.preempted and victim.priority < pod.priority for victim in cluster.pods_on(row)
    )
    return NOT_ELIGIBLE_TERMINATING if waiting else ""


def plan_preemption(
    runner: Runner,
    state: CycleState,
    pod: PodRecord,
    outcome: Outcome,
    ranking: Ranking,
    options: PreemptionOptions,
    *,
    detailed: bool = False,
) -> PreemptionPlan:
    """Plan preemption for an eligible pod; ``outcome`` is the filters' answer for every row of the cluster."""
    cluster = runner.cluster
    rows = resolvable_rows(outcome)
    if not len(rows):
        return PreemptionPlan(True)
    potential, without = _potential_victims(cluster, pod, rows, ranking, options.may_disrupt)
    victims = choose_victims(runner, state, pod, potential)
    counts = _count_victims(cluster, victims)
    if options.minimum_candidates is not None:
        counts = _limited(cluster, counts, options.minimum_candidates, len(rows), f"{options.seed}/{pod.uid}")
    tied, criterion = _best(counts)
    candidates, rejected = {}, {}
    if detailed:
        candidates = {cluster.nodes.name(int(r)): _candidate(cluster, victims, int(r)) for r in counts.rows}
        refused = np.flatnonzero(victims.outcome.refused)
        rejected = {cluster.nodes.name(int(potential.rows[i])): victims.outcome.status(int(i)) for i in refused}
        rejected |= {cluster.nodes.name(int(row)): NO_VICTIMS for row in without}
    if not len(tied):
        return PreemptionPlan(True, candidates=candidates, rejected=rejected, potential_nodes=len(rows))
    row = pick(cluster.nodes, tied, pod.uid, options.seed)
    return PreemptionPlan(
        eligible=True,
        chosen=_candidate(cluster, victims, row),
        selected=tuple(sorted(cluster.nodes.name(int(r)) for r in tied)),
        criterion=criterion,
        candidates=candidates,
        rejected=rejected,
        potential_nodes=len(rows),
    )


def resolvable_rows(outcome: Outcome) -> Int64s:
    """The rows whose refusal preemption might lift: Unschedulable, and not Unresolvable."""
    values, index = np.unique(outcome.refused, return_inverse=True)
    hopeful = [
        value not in (0, Outcome.ABSENT) and outcome.status_of(int(value)).code is Code.UNSCHEDULABLE
        for value in values
    ]
    return np.flatnonzero(np.array(hopeful, dtype=np.bool_)[index])


def _potential_victims(
    cluster: Cluster, pod: PodRecord, rows: Int64s, ranking: Ranking, may_disrupt: VictimFilter | None
) -> tuple[PotentialVictims, Int64s]:
    """The lower-priority pods on ``rows``, and the rows that have none."""
    ranking.refresh()
    places = ranking.priorities[rows] < pod.priority
    slots = ranking.slots[rows][places].astype(np.int64)
    owners = np.repeat(np.arange(len(rows)), places.sum(axis=1))
    if may_disrupt is not None and len(slots):
        allowed = may_disrupt(pod, slots)
        slots, owners = slots[allowed], owners[allowed]
    numbers = np.bincount(owners, minlength=len(rows))
    some = numbers > 0
    starts = np.concatenate([[0], np.cumsum(numbers[some])])
    return with_budgets(cluster, rows[some], starts, slots), rows[~some]


@dataclass(frozen=True, slots=True)
class _Counts:
    """Candidate rows, and for each the five criteria, smaller is better (``[criteria, rows]``)."""

    rows: Int64s
    criteria: Int64s


def _count_victims(cluster: Cluster, victims: Victims) -> _Counts:
    """Work out the criteria of every row where the preemptor fits."""
    potential, table = victims.potential, cluster.pods
    index = np.flatnonzero(victims.chosen)
    owners = potential.owners[index]
    firsts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if len(owners) else np.empty(0, dtype=np.int64)
    if not len(firsts):
        return _Counts(np.empty(0, dtype=np.int64), np.empty((len(CRITERIA), 0), dtype=np.int64))
    slots = potential.slots[index]
    priority = table.priority[slots]
    highest = priority[firsts]
    lengths = np.diff(np.r_[firsts, len(index)])
    most_important = priority == np.repeat(highest, lengths)
    start = np.where(most_important, table.start_ns[slots], np.iinfo(np.int64).max)
    criteria = np.array(
        [
            np.add.reduceat(potential.violating[index].astype(np.int64), firsts),
            highest,
            np.add.reduceat(priority + _PRIORITY_SHIFT, firsts),
            lengths,
            -np.minimum.reduceat(start, firsts),
        ]
    )
    return _Counts(potential.rows[owners[firsts]], criteria)


def _best(counts: _Counts) -> tuple[Int64s, str]:
    """The rows that the criteria leave, and the last criterion that told rows apart (pickOneNodeForPreemption)."""
    left, deciding = np.arange(len(counts.rows)), ""
    for name, values in zip(CRITERIA, counts.criteria, strict=True):
        if len(left) < 2:
            break
        best = left[values[left] == values[left].min()]
        if len(best) < len(left):
            left, deciding = best, name
    return counts.rows[left], deciding


def _limited(cluster: Cluster, counts: _Counts, minimum: tuple[int, int], nodes: int, salt: str) -> _Counts:
    """Leave as many candidates as upstream would have examined (DryRunPreemption, GetOffsetAndNumCandidates).

    From some node on, in order of names, until there are enough and one of them violates no budget.
    """
    percentage, absolute = minimum
    wanted = min(max(nodes * percentage // 100, absolute), nodes)
    names = [cluster.nodes.name(int(row)) for row in counts.rows]
    order = sorted(range(len(names)), key=names.__getitem__)
    if len(order) <= wanted:
        return counts
    offset = stable_hash(salt) % len(order)
    order = order[offset:] + order[:offset]
    kept = wanted
    while kept < len(order) and all(counts.criteria[0, i] for i in order[:kept]):
        kept += 1
    chosen = np.array(sorted(order[:kept]), dtype=np.int64)
    return _Counts(counts.rows[chosen], counts.criteria[:, chosen])


def _candidate(cluster: Cluster, victims: Victims, row: int) -> Candidate:
    potential = victims.potential
    position = int(np.searchsorted(potential.rows, row))
    where = slice(int(potential.starts[position]), int(potential.starts[position + 1]))
    chosen = victims.chosen[where]
    return Candidate(
        node_name=cluster.nodes.name(row),
        victims=tuple(cluster.pods.record(int(slot)) for slot in potential.slots[where][chosen]),
        budget_violations=int(potential.violating[where][chosen].sum()),
    )
