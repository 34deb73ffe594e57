"""What preemption would do for a pod that fits nowhere: a plan with all its alternatives.

Source: pkg/scheduler/framework/preemption/preemption.go; pkg/scheduler/framework/plugins/defaultpreemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Int64s, stable_hash
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.decide.cap import CappedTable, PutOff, is_capped, within_cap, without_budgets
from podium.decide.preempting.costs.criteria import AFFINITY, Column
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.protection import alone_within_budgets, within_budgets
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.deferred import Deferred
from podium.decide.preempting.extended import NO_CANDIDATE, ask_extenders
from podium.decide.preempting.fair_trials import FairTrials
from podium.decide.preempting.trial_table import AFFINITY_KEPT, CRITERIA, TrialTable
from podium.decide.preempting.trials import MOST_EQUALS, BestTrial, Trials, VictimFilter
from podium.decide.preempting.wide.wide_search import Search
from podium.decide.preempting.wide.wide_settings import Wanted, WideSettings
from podium.decide.preempting.wide.wide_trials import WideTrials
from podium.decide.ties import lot, pick
from podium.framework.cycle_state import CycleState
from podium.framework.extenders import Extender, ExtenderError
from podium.framework.handle import Handle
from podium.framework.status import Code, Status
from podium.framework.verdicts import Outcome

_SUM = CRITERIA.index("smallest sum of victims' priorities")
_NUMBER = CRITERIA.index("fewest victims")

NOT_ELIGIBLE_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_ELIGIBLE_TERMINATING_ELSEWHERE = "not eligible due to a terminating pod that keeps it off the nominated node."
NOT_ELIGIBLE_YET = (NOT_ELIGIBLE_TERMINATING, NOT_ELIGIBLE_TERMINATING_ELSEWHERE)
"""Why a pod may not preempt that waits for its victims to end."""


class PreemptionOptions(msgspec.Struct, frozen=True):
    """How candidates are looked for. ``minimum_candidates`` None examines every node (percentage, absolute otherwise).

    ``may_disrupt`` None lets every pod of lower priority be a victim. ``cost`` None compares victims as kube-scheduler
    does. ``wide`` looks for victims that may be on other nodes, or depend on one another, for those pods whom its
    settings concern. With ``requires_budgets`` no victims are more than budgets allow.
    """

    minimum_candidates: tuple[int, int] | None = None
    may_disrupt: VictimFilter | None = None
    seed: int = 0
    cost: VictimCost | None = None
    wide: WideTrials | None = None
    requires_budgets: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way out: the node, its victims (most important first), and how many of them violate a budget.

    Victims may be on other nodes, where the configuration says so (see `podium.decide.preempting.wide`); ``reasons``
    then says, by their uids, why those have to go whom more than that node knows of, in the chosen way out. ``cost`` is
    what the criteria by which candidates are compared say of the victims, the smaller the better, filled in where
    candidates were compared in detail.
    """

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int
    cost: tuple[int, ...] = field(default=(), compare=False)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def elsewhere(self) -> tuple[PodRecord, ...]:
        """The victims on other nodes."""
        return tuple(victim for victim in self.victims if victim.node_name != self.node_name)


@dataclass(frozen=True, slots=True)
class Choice:
    """Among how many ``candidates`` one was chosen, and the first nodes among its ``equals``, itself included.

    It is known of every plan, whether or not details were asked for. ``criterion`` is the last that told nodes apart,
    "" where it was not looked for.
    """

    candidates: int = 0
    equals: tuple[str, ...] = ()
    criterion: str = ""


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """What preemption found.

    ``reason`` says why the pod is not eligible. ``chosen`` is None where no candidate was found. ``selected`` names
    every node that the criteria leave tied with the chosen one, and ``criterion`` the last of `CRITERIA` that told
    nodes apart ("" with a single candidate, or none; the number of victims where the sum of their priorities does so
    only because they are fewer). ``candidates`` and ``rejected`` are by node name. These four are filled in only where
    the plan was asked for in detail. ``is_exchange``: among the victims are pods of the
    preemptor's own priority, for the sake of fairer shares. ``put_off`` says that preemption would work, and which cap
    it has to wait for; ``error`` what failed while nodes were tried, where no candidate was found among the others, or
    an extender that did not answer. ``keeps_nomination``: extenders have left no candidate, which ends no nomination.
    ``criteria`` are those of a cost that is stated; () where kube-scheduler's hold.
    ``search`` says how victims were looked for that may be on other nodes, None where that was not done. ``choice``
    says what the chosen one was chosen from.
    """

    eligible: bool
    reason: str = ""
    chosen: Candidate | None = None
    selected: tuple[str, ...] = ()
    criterion: str = ""
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    rejected: Mapping[str, Status] = field(default_factory=dict)
    message: str = ""
    is_exchange: bool = False
    put_off: PutOff | None = None
    error: str = ""
    keeps_nomination: bool = False
    criteria: tuple[Column, ...] = ()
    search: Search | None = None
    choice: Choice = field(default_factory=Choice, compare=False)


def ineligible_reason(
    cluster: Cluster, pod: PodRecord, nominated_status: Status | None, *, evicts: bool = False
) -> str:
    """Why ``pod`` may not preempt now; "" where it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is the filters' answer for the node that it is nominated to, None without such a node. A pod
    whose victims are still terminating there waits for them, unless the node cannot take it any more whatever
    happens. With ``evicts`` these are not marked as victims: all that terminate and are less important count.
    """
    if pod.preemption_policy in NEVER_PREEMPTS:
        return f"not eligible due to preemptionPolicy={pod.preemption_policy}."
    is_waiting = waits_for_victims(cluster, pod, nominated_status, pod.priority - 1, evicts=evicts)
    return NOT_ELIGIBLE_TERMINATING if is_waiting else ""


def waits_for_victims(
    cluster: Cluster, pod: PodRecord, nominated_status: Status | None, most: int, *, evicts: bool = False
) -> bool:
    """Whether pods of at most that priority, which were preempted, are still terminating where ``pod`` is nominated.

    ``nominated_status`` and ``evicts`` as for `ineligible_reason`.
    """
    row = cluster.nodes.row_of.get(pod.nominated_node_name)
    if row is None or not is_hopeful(nominated_status):
        return False
    return any(pod.terminating and (pod.preempted or evicts) and pod.priority <= most for pod in cluster.pods_on(row))


def is_hopeful(nominated_status: Status | None) -> bool:
    """Whether a pod may yet fit the node that it is nominated to, by the filters' answer for that."""
    return nominated_status is not None and nominated_status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def plan_preemption(
    runner: Handle,
    state: CycleState,
    pod: PodRecord,
    outcome: Outcome,
    trials: Trials,
    options: PreemptionOptions,
    *,
    detailed: bool = False,
) -> PreemptionPlan:
    """Plan preemption for an eligible pod; ``outcome`` is the filters' answer for every row of the cluster.

    Where a candidate is all that is asked for, and any of them may be, the best is taken from those that are kept in
    order; otherwise all of them are looked at.
    """
    if options.wide is not None and options.wide.concern(runner, state, pod):
        return _plan_widely(runner, state, pod, outcome, options.wide, options, detailed=detailed)
    may_disrupt = _may_disrupt(runner, options)
    is_plain = options.minimum_candidates is None and may_disrupt is None and options.cost is None
    if is_plain and not is_capped(runner.cluster) and not detailed and not _preempting(runner, pod):
        best = trials.best(runner, state, pod, outcome, lot(pod.uid, options.seed))
        if best is not None:
            return _brief(runner.cluster, best)
    rows = outcome.resolvable()
    if not len(rows):
        return PreemptionPlan(True, message=_message(len(runner.cluster.nodes), []))
    table = trials.on(runner, state, pod, rows, may_disrupt, options.cost)
    if options.requires_budgets and not len(table.candidates):
        # Other pods of a node may be enough than those whom budgets let go first.
        wide = WideTrials(runner.cluster, trials, WideSettings())
        return _plan_widely(runner, state, pod, outcome, wide, options, detailed=detailed)
    capped = within_cap(runner.cluster, table)
    if capped.put_off is not None:
        # Where no victims may have a budget, others may do.
        sparing = trials.on(runner, state, pod, rows, without_budgets(runner.cluster, may_disrupt), options.cost)
        if len(sparing.candidates):
            capped = CappedTable(sparing)
    return _planned(runner, pod, capped, options, detailed)


def _plan_widely(
    runner: Handle,
    state: CycleState,
    pod: PodRecord,
    outcome: Outcome,
    wide: WideTrials,
    options: PreemptionOptions,
    *,
    detailed: bool,
) -> PreemptionPlan:
    """The plan where victims are looked for on all nodes at once."""
    rows = outcome.resolvable()
    if not len(rows):
        return PreemptionPlan(True, message=_message(len(runner.cluster.nodes), []))
    # Which candidates are enough, what caps allow and what extenders say may make another one than the best the choice.
    any_may_be = options.minimum_candidates is None and not is_capped(runner.cluster) and not _preempting(runner, pod)
    wanted = Wanted(options.may_disrupt, options.cost, options.requires_budgets, is_detailed=detailed or not any_may_be)
    if options.requires_budgets:
        wanted = replace(wanted, may_disrupt=alone_within_budgets(runner.cluster, options.may_disrupt))
    table, search = wide.on(runner, state, pod, rows, wanted)
    capped = within_cap(runner.cluster, table)
    if capped.put_off is not None:
        allowed = without_budgets(runner.cluster, wanted.may_disrupt)
        sparing, search = wide.on(runner, state, pod, rows, replace(wanted, may_disrupt=allowed))
        if len(sparing.candidates):
            capped = CappedTable(sparing)
    plan = _planned(runner, pod, capped, options, detailed)
    chosen = plan.chosen
    if chosen is not None:
        row = runner.cluster.nodes.row_of[chosen.node_name]
        chosen = replace(chosen, reasons=wide.reasons(runner, state, pod, row, chosen.victims))
    return replace(plan, chosen=chosen, search=search)


def plan_exchange(
    runner: Handle,
    state: CycleState,
    pod: PodRecord,
    outcome: Outcome,
    trials: FairTrials,
    options: PreemptionOptions,
    *,
    detailed: bool = False,
) -> PreemptionPlan | None:
    """Plan to take room from pods of equal priority too; None where that is unfair, useless or not needed."""
    rows = outcome.resolvable()
    table = trials.on(runner, state, pod, rows, _may_disrupt(runner, options)) if len(rows) else None
    if table is None or not len(table.candidates):
        return None
    return replace(_planned(runner, pod, within_cap(runner.cluster, table), options, detailed), is_exchange=True)


def _may_disrupt(runner: Handle, options: PreemptionOptions) -> VictimFilter | None:
    """Who may be a victim where each node is looked at by itself."""
    if not options.requires_budgets:
        return options.may_disrupt
    return within_budgets(runner.cluster, options.may_disrupt)


def _brief(cluster: Cluster, best: BestTrial) -> PreemptionPlan:
    """The plan that follows from the best trial."""
    if best.row is None:
        message = _message(len(cluster.nodes), best.tally)
        return PreemptionPlan(True, message=message, error=_errors(best.tally))
    victims = tuple(map(cluster.pods.record, best.victims))
    chosen = Candidate(cluster.nodes.name(best.row), victims, best.budget_violations)
    choice = Choice(best.candidates, tuple(map(cluster.nodes.names.__getitem__, best.equals)))
    return PreemptionPlan(True, chosen=chosen, choice=choice)


def _planned(
    runner: Handle, pod: PodRecord, capped: CappedTable, options: PreemptionOptions, detailed: bool
) -> PreemptionPlan:
    """The plan that follows from the trials."""
    nodes, table, put_off = runner.cluster.nodes, capped.table, capped.put_off
    if options.minimum_candidates is not None:
        table = _limited(nodes, table, options.minimum_candidates, len(table.rows), f"{options.seed}/{pod.uid}")
    if detailed and options.cost is not None and not table.is_stated:
        table = _stated(runner, table, options.cost)
    columns = () if options.cost is None else _columns(table, options.cost)
    candidates, rejected = _details(runner, capped, table) if detailed else ({}, {})
    extenders = _preempting(runner, pod) if len(table.candidates) else ()
    if extenders:
        try:
            table = ask_extenders(runner.cluster, extenders, pod, table)
        except ExtenderError as unanswered:
            return PreemptionPlan(True, candidates=candidates, rejected=rejected, error=str(unanswered))
    if options.cost is None or table.is_stated:
        tied, criterion = _best(table)
    else:
        tied, criterion = _cheapest(runner, table, options.cost)
    if extenders and not len(tied):
        return PreemptionPlan(
            True, message=NO_CANDIDATE, candidates=candidates, rejected=rejected, keeps_nomination=True
        )
    if not len(tied):
        tally = table.tally()
        message = f"preemption: {put_off}" if put_off is not None else _message(len(nodes), tally)
        error = _errors(tally) if put_off is None else ""
        return PreemptionPlan(
            True, message=message, candidates=candidates, rejected=rejected, put_off=put_off, error=error
        )
    row = pick(nodes, table.rows[tied], pod.uid, options.seed)
    return PreemptionPlan(
        eligible=True,
        chosen=candidates.get(nodes.name(row))
        or _candidate(runner.cluster, table, int(np.searchsorted(table.rows, row))),
        selected=_names(nodes, table.rows[tied]) if detailed else (),
        criterion=criterion if detailed else "",
        candidates=candidates,
        rejected=rejected,
        criteria=columns,
        choice=Choice(
            len(table.candidates), tuple(map(nodes.name, table.rows[tied[:MOST_EQUALS]].tolist())), criterion
        ),
    )


def _cheapest(runner: Handle, table: TrialTable, cost: VictimCost) -> tuple[Int64s, str]:
    """The positions that cost least, and the last criterion that told some apart."""
    tied, deciding = cost.cheapest(_victim_sets(runner, table))
    return table.candidates[tied], deciding


def _stated(runner: Handle, table: TrialTable, cost: VictimCost) -> TrialTable:
    """The trials with what their victims cost."""
    found = np.zeros((len(cost.criteria), len(table.rows)), dtype=np.int64)
    if len(table.candidates):
        found[:, table.candidates] = cost.columns(_victim_sets(runner, table))
    violations = table.budget_violations
    return replace(table, criteria=found, criteria_names=cost.words, violations=violations, is_stated=True)


def _columns(table: TrialTable, cost: VictimCost) -> tuple[Column, ...]:
    """What is told of candidates where their cost is stated."""
    keeps_partners = table.is_stated and table.criteria_names[0] == AFFINITY_KEPT
    return (AFFINITY, *cost.criteria) if keeps_partners else cost.criteria


def _victim_sets(runner: Handle, table: TrialTable) -> VictimSets:
    starts, slots = table.victim_slots(table.candidates)
    return VictimSets(Facts(runner), starts, slots, table.budget_violations[table.candidates])


def _preempting(runner: Handle, pod: PodRecord) -> Sequence[Extender]:
    """The extenders that want to be asked about the pod's victims."""
    extenders = runner.extenders_of(pod)
    return () if extenders is None else extenders.preempting(pod)


def _best(table: TrialTable) -> tuple[Int64s, str]:
    """The positions that the criteria leave, and the last criterion that told them apart (pickOneNodeForPreemption)."""
    left, deciding = table.candidates, ""
    for name, values in zip(table.criteria_names, table.criteria, strict=True):
        if len(left) < 2:
            break
        found = values[left]
        best = left[found == found.min()]
        if len(best) < len(left):
            others = np.setdiff1d(left, best, assume_unique=True)
            left, deciding = best, _effective(name, table, best, others)
    return left, deciding


def _effective(criterion: str, table: TrialTable, best: Int64s, others: Int64s) -> str:
    """What people call the criterion that told the best candidates from others.

    The sum of priorities is shifted so that it is smaller wherever there are fewer victims.
    """
    if table.is_stated or criterion != CRITERIA[_SUM]:
        return criterion
    numbers = table.criteria[table.criteria_names.index(CRITERIA[_NUMBER])]
    return CRITERIA[_NUMBER] if numbers[best].max() < numbers[others].min() else criterion


def _limited(nodes: NodeColumns, table: TrialTable, minimum: tuple[int, int], examined: int, salt: str) -> TrialTable:
    """Leave as many candidates as upstream would have found (DryRunPreemption, GetOffsetAndNumCandidates).

    From some node on, in order of names, until there are enough and one of them violates no budget.
    """
    percentage, absolute = minimum
    wanted = min(max(examined * percentage // 100, absolute), examined)
    order = sorted(table.candidates.tolist(), key=lambda position: nodes.name(int(table.rows[position])))
    if len(order) <= wanted:
        return table
    offset = stable_hash(salt) % len(order)
    order = order[offset:] + order[:offset]
    kept = wanted
    while kept < len(order) and all(table.budget_violations[position] for position in order[:kept]):
        kept += 1
    return table.only(np.array(sorted(order[:kept]), dtype=np.int64))


def _candidate(cluster: Cluster, table: TrialTable, position: int) -> Candidate:
    return Candidate(
        node_name=cluster.nodes.name(int(table.rows[position])),
        victims=tuple(cluster.pods.record(slot) for slot in table.victims(position)),
        budget_violations=int(table.budget_violations[position]),
        cost=tuple(table.criteria[:, position].tolist()),
    )


def _details(
    runner: Handle, capped: CappedTable, table: TrialTable
) -> tuple[Mapping[str, Candidate], Mapping[str, Status]]:
    """Every candidate, and every node that was tried and is none, by name."""
    cluster = runner.cluster
    names, records, table = cluster.nodes.names_by_row(), list(cluster.pods.records), table.frozen()

    def candidate(position: int) -> Candidate:
        victims = tuple(record for slot in table.victims(position) if (record := records[slot]) is not None)
        cost = tuple(table.criteria[:, position].tolist())
        return Candidate(names[int(table.rows[position])], victims, int(table.budget_violations[position]), cost)

    candidates = Deferred(lambda: {(found := candidate(i)).node_name: found for i in table.candidates.tolist()})
    held = capped.held_back(names)
    rejected = Deferred(lambda: {names[int(table.rows[i])]: table.status(i) for i in table.failures.tolist()} | held)
    return candidates, rejected


def _names(nodes: NodeColumns, rows: Int64s) -> tuple[str, ...]:
    names = nodes.names_by_row()
    return tuple(sorted(names[row] for row in rows.tolist()))


def _errors(tally: Sequence[tuple[Status, int]]) -> str:
    """What filters failed with on the nodes that were tried, each text once; "" where none did (NewAggregate)."""
    texts = list(dict.fromkeys(status.message for status, _ in tally if status.code is Code.ERROR))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _message(nodes: int, tally: Sequence[tuple[Status, int]]) -> str:
    """What preemption has to say when it found nothing, as kube-scheduler words it: each reason with its nodes."""
    reasons: Counter[str] = Counter()
    for status, number in tally:
        reasons.update(dict.fromkeys(status.reasons, number))
    rest = nodes - sum(number for _, number in tally)
    counts = [f"{number} {reason}" for reason, number in reasons.items()]
    if rest > 0:
        counts.append(f"{rest} Preemption is not helpful for scheduling")
    return f"preemption: 0/{nodes} nodes are available: {', '.join(sorted(counts))}"
