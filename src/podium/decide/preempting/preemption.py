"""The preemption plan for a pod that fits nowhere, with all alternatives.

Source: pkg/scheduler/framework/preemption/preemption.go (also callExtenders and pickOneNodeForPreemption);
pkg/scheduler/framework/plugins/defaultpreemption; pkg/scheduler/extender.go (ProcessPreemption, convertToVictims).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.cluster.arrays import Int64s, offsets
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.cap import CappedTable, capped_trials, is_capped, within_cap
from podium.decide.placement import limited_candidates, lot, pick, recorded_row
from podium.decide.preempting import criteria, eligibility, preemption_plan
from podium.decide.preempting.reprieve import Preemptor, TrialTable, explained, tally
from podium.decide.preempting.trials import MOST_EQUALS, Trials
from podium.framework.extenders import Extender, ExtenderError, VictimIds, Victims
from podium.framework.verdicts import Outcome, Status

if TYPE_CHECKING:
    from podium.decide.preempting.fair_shares import FairTrials
    from podium.decide.preempting.wide.wide_search import WideTrials

_SUM, _NUMBER = criteria.CRITERIA["SumOfPriorities"].words, criteria.CRITERIA["Victims"].words

NO_CANDIDATE = "preemption: no candidate node for preemption"
"""The message if extenders leave no candidate."""


class PreemptionOptions(msgspec.Struct, frozen=True):
    """The settings of the search for victims.

    ``minimum_candidates`` (percentage, absolute) limits the candidates; None examines every node. ``may_disrupt`` None
    lets every pod of lower priority be a victim. ``cost`` None compares victims as kube-scheduler does. ``wide`` looks
    for victims that may be on other nodes, or depend on one another, for pods that its settings concern. With
    ``requires_budgets`` no victims are more than budgets allow. With ``ignores_budgets`` budgets do not protect pods of
    the preemptor's own priority either.
    """

    minimum_candidates: tuple[int, int] | None = None
    may_disrupt: eligibility.VictimFilter | None = None
    seed: int = 0
    cost: criteria.VictimCost | None = None
    wide: WideTrials | None = None
    requires_budgets: bool = False
    ignores_budgets: bool = False


def plan_preemption(
    preemptor: Preemptor, outcome: Outcome, trials: Trials, options: PreemptionOptions, detailed: bool = False
) -> preemption_plan.PreemptionPlan:
    """Plan preemption for an eligible pod; ``outcome`` is the filters' answer for every row of the cluster.

    If any candidate may be chosen and no details are asked for, the best one is taken from the cached order;
    otherwise all candidates are examined.
    """
    if options.wide is not None and options.wide.concern(preemptor):
        return _plan_widely(preemptor, outcome, options.wide, options, detailed=detailed)
    cluster, may_disrupt = preemptor.handle.cluster, _may_disrupt(preemptor, options)
    if may_disrupt is None and options.cost is None and not detailed and _is_best_chosen(preemptor, options):
        plan = trials.best(preemptor, outcome, lot(preemptor.pod.uid, options.seed))
        if plan is not None:
            return plan
    rows = outcome.resolvable()
    if not len(rows):
        return preemption_plan.without_candidates(len(cluster.nodes), [])
    table = trials.on(preemptor, rows, may_disrupt, options.cost)
    if options.requires_budgets and not len(table.candidates):
        # Other pods of a node may suffice than those that budgets allow to go first.
        from podium.decide.preempting.wide.wide_search import WideSettings, WideTrials  # noqa: PLC0415 - few need it

        wide = WideTrials(cluster, trials, WideSettings())
        return _plan_widely(preemptor, outcome, wide, options, detailed=detailed)
    others = partial(trials.on, preemptor, rows, cost=options.cost)
    return _planned(preemptor, outcome, capped_trials(cluster, table, others, may_disrupt), options, detailed)


def _plan_widely(
    preemptor: Preemptor, outcome: Outcome, wide: WideTrials, options: PreemptionOptions, *, detailed: bool
) -> preemption_plan.PreemptionPlan:
    """Plan preemption with victims on all nodes at once."""
    cluster, rows = preemptor.handle.cluster, outcome.resolvable()
    if not len(rows):
        return preemption_plan.without_candidates(len(cluster.nodes), [])
    may_disrupt, effort = options.may_disrupt, list[preemption_plan.SearchEffort]()
    if options.requires_budgets:
        may_disrupt = eligibility.alone_within_budgets(cluster, may_disrupt)
    is_detailed = detailed or not _is_best_chosen(preemptor, options)

    def trials(allowed: eligibility.VictimFilter | None) -> TrialTable:
        costs = criteria.SetCosts(preemptor.handle, options.cost, requires_budgets=options.requires_budgets)
        table, search = wide.on(preemptor, rows, allowed, costs, detailed=is_detailed)
        effort.append(search)
        return table

    capped = capped_trials(cluster, trials(may_disrupt), trials, may_disrupt)
    plan = _planned(preemptor, outcome, capped, options, detailed)
    chosen = plan.chosen
    if chosen is not None:
        row = cluster.nodes.row_of[chosen.node_name]
        chosen = replace(chosen, reasons=wide.reasons(preemptor, row, chosen.victims))
    return replace(plan, chosen=chosen, search=effort[-1])


def _is_best_chosen(preemptor: Preemptor, options: PreemptionOptions) -> bool:
    """Return whether the best candidate is chosen; a minimum of candidates, caps and extenders may prevent that."""
    is_free = options.minimum_candidates is None and not is_capped(preemptor.handle.cluster)
    return is_free and not _preempting(preemptor)


def plan_exchange(
    preemptor: Preemptor, outcome: Outcome, trials: FairTrials, options: PreemptionOptions, *, detailed: bool = False
) -> preemption_plan.PreemptionPlan | None:
    """Plan to preempt pods of equal priority too; None if that is unfair, useless or not needed."""
    rows = outcome.resolvable()
    if not len(rows):
        return None
    may_disrupt = _may_disrupt(preemptor, options)
    table = trials.on(preemptor, rows, may_disrupt, options.cost, ignores_budgets=options.ignores_budgets)
    if table is None or not len(table.candidates):
        return None
    capped = within_cap(preemptor.handle.cluster, table)
    return replace(_planned(preemptor, outcome, capped, options, detailed), is_exchange=True)


def held_back_by_budgets(
    preemptor: Preemptor, outcome: Outcome, trials: Trials, exchanges: FairTrials | None, options: PreemptionOptions
) -> eligibility.BudgetBlock | None:
    """Return the budgets without which a pod could preempt that has no candidate; None if they make no difference.

    ``exchanges`` is None if pods of equal priority may not be taken.
    """
    cluster = preemptor.handle.cluster
    if not len(cluster.budgets):
        return None
    plan, beyond = None, replace(options, requires_budgets=False, ignores_budgets=True)
    if options.requires_budgets:
        plan = plan_preemption(preemptor, outcome, trials, beyond)
    if (plan is None or plan.chosen is None) and exchanges is not None:
        plan = plan_exchange(preemptor, outcome, exchanges, beyond)
    chosen = None if plan is None else plan.chosen
    return None if chosen is None else eligibility.held_back(cluster, chosen.node_name, chosen.victims)


def _may_disrupt(preemptor: Preemptor, options: PreemptionOptions) -> eligibility.VictimFilter | None:
    """Return the filter of victims for trials of each node alone."""
    if not options.requires_budgets:
        return options.may_disrupt
    return eligibility.within_budgets(preemptor.handle.cluster, options.may_disrupt)


def _planned(
    preemptor: Preemptor, outcome: Outcome, capped: CappedTable, options: PreemptionOptions, detailed: bool
) -> preemption_plan.PreemptionPlan:
    """Return the plan for a table of trials; ``outcome`` is that of all rows."""
    pod, cluster, cost = preemptor.pod, preemptor.handle.cluster, options.cost
    nodes, table, put_off = cluster.nodes, capped.table, capped.put_off
    if options.minimum_candidates is not None:
        start, first = lot(pod.uid, options.seed), recorded_row(cluster, pod)
        table = limited_candidates(nodes, table, outcome, options.minimum_candidates, start, first)
    plan = preemption_plan.PreemptionPlan(True)
    if detailed:
        candidates, rejected = _details(cluster, capped, table)
        plan = replace(plan, candidates=candidates, rejected=rejected)
    columns: tuple[criteria.CostColumn, ...] = () if cost is None else cost.criteria
    if columns and table.is_stated and table.criteria_names[0] == criteria.AFFINITY_KEPT:
        columns = (criteria.AFFINITY, *columns)
    extenders = _preempting(preemptor) if len(table.candidates) else ()
    if extenders:
        try:
            table = _ask_extenders(preemptor, extenders, table, cost)
        except ExtenderError as unanswered:
            return replace(plan, error=str(unanswered))
    tied, criterion = _cheapest(table)
    if extenders and not len(tied):
        return replace(plan, message=NO_CANDIDATE, keeps_nomination=True)
    if not len(tied) and put_off is not None:
        return replace(plan, message=f"preemption: {put_off}", put_off=put_off)
    if not len(tied):
        nothing = preemption_plan.without_candidates(len(nodes), tally(Counter(table.refused.tolist()), table.decoders))
        return replace(plan, message=nothing.message, error=nothing.error)
    equals = table.rows[tied]
    # The nominated node goes first: its victims may already be leaving, for a scheduler that has since ended.
    wanted = (nodes.row_of.get(pod.nominated_node_name), recorded_row(cluster, pod))
    own = next((row for row in wanted if row is not None and row in equals), None)
    row = pick(nodes, equals, pod.uid, options.seed) if own is None else own
    if detailed:
        plan = replace(plan, selected=tuple(sorted(map(nodes.name, equals.tolist()))), criterion=criterion)
    return replace(
        plan,
        chosen=plan.candidates.get(nodes.name(row))
        or _candidate(table, int(np.searchsorted(table.rows, row)), nodes.names, cluster.pods.records),
        criteria=columns,
        choice=preemption_plan.CandidateChoice(
            len(table.candidates), tuple(map(nodes.name, equals[:MOST_EQUALS].tolist())), criterion
        ),
    )


def _preempting(preemptor: Preemptor) -> Sequence[Extender]:
    """Return the extenders that take part in preemption for the pod."""
    extenders = preemptor.handle.extenders_of(preemptor.pod)
    return () if extenders is None else extenders.preempting(preemptor.pod)


def _candidate(
    table: TrialTable, position: int, names: Sequence[str], records: Sequence[PodRecord | None]
) -> preemption_plan.PreemptionCandidate:
    victims = tuple(record for slot in table.victims(position) if (record := records[slot]) is not None)
    violations, cost = table.budget_violations.item(position), tuple(table.criteria[:, position].tolist())
    return preemption_plan.PreemptionCandidate(names[table.rows.item(position)], victims, violations, cost)


def _details(
    cluster: Cluster, capped: CappedTable, table: TrialTable
) -> tuple[Mapping[str, preemption_plan.PreemptionCandidate], Mapping[str, Status]]:
    """Return every candidate, and every node that was tried and is none, by name."""
    names, records = list(cluster.nodes.names), cluster.pods.records
    found = (_candidate(table, position, names, records) for position in table.candidates.tolist())
    candidates = {candidate.node_name: candidate for candidate in found}
    rows, refused = table.rows[table.failures].tolist(), table.refused[table.failures].tolist()
    statuses = {value: explained(value, table.decoders) for value in set(refused)}
    rejected = {names[row]: statuses[value] for row, value in zip(rows, refused, strict=True)}
    return candidates, rejected | capped.held_back(names)


def _cheapest(table: TrialTable) -> tuple[Int64s, str]:
    """Return the best positions, and the last criterion that made a difference (pickOneNodeForPreemption)."""
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
    """Return the name to report for the criterion that separated the best candidates from others.

    The sum of priorities is shifted so that it is smaller wherever there are fewer victims.
    """
    if table.is_stated or criterion != _SUM:
        return criterion
    numbers = table.criteria[table.criteria_names.index(_NUMBER)]
    return _NUMBER if numbers[best].max() < numbers[others].min() else criterion


def _ask_extenders(
    preemptor: Preemptor, extenders: Sequence[Extender], table: TrialTable, cost: criteria.VictimCost | None
) -> TrialTable:
    """Let one extender after the other choose among a table's candidates, and change their victims.

    Victims are pods of the node that ``pod`` may preempt: less important ones, or as important as the most important
    victim that was proposed there; or pods of other nodes that were proposed. Raises ExtenderError if one that is not
    ignorable gives no such answer.
    """
    pod, cluster, counted = preemptor.pod, preemptor.handle.cluster, cost or criteria.UPSTREAM_COST
    victims: dict[str, Victims] = {}
    for position in table.candidates.tolist():
        pods = tuple(map(cluster.pods.record, table.victims(position)))
        victims[cluster.nodes.name(int(table.rows[position]))] = Victims(pods, int(table.budget_violations[position]))
    for extender in extenders:
        if not victims:
            break
        try:
            victims = _agreed(cluster, extender, pod, victims)
        except ExtenderError:
            if not extender.is_ignorable:
                raise
    agreed = sorted(((cluster.nodes.row_of[name], found) for name, found in victims.items()), key=lambda each: each[0])
    on_rows = {row: [victim.slot for victim in found.pods] for row, found in agreed}
    lists = list(on_rows.values())
    violations = np.array([found.budget_violations for _, found in agreed], dtype=np.int64)
    slots = np.array([slot for some in lists for slot in some], dtype=np.int64)
    return TrialTable(
        np.array(list(on_rows), dtype=np.int64),
        np.zeros(len(agreed), dtype=np.int64),
        counted.columns(criteria.VictimSets(offsets(list(map(len, lists))), slots, preemptor.facts, violations)),
        on_rows,
        table.decoders,
        criteria_names=counted.words,
        violations=violations,
        is_stated=cost is not None,
    )


def _agreed(cluster: Cluster, extender: Extender, pod: PodRecord, victims: Mapping[str, Victims]) -> dict[str, Victims]:
    """Return the candidates that an extender leaves; an ignorable one drops a node by naming no victims for it."""
    agreed: dict[str, Victims] = {}
    for name, answer in sorted(extender.preempt(pod, victims).items()):
        if name not in victims:
            raise ExtenderError(f"extender {extender.name} names node {name}, which is not a candidate for preemption")
        if answer.uids:
            agreed[name] = _agreed_victims(cluster, extender, pod, name, victims[name], answer)
        elif not extender.is_ignorable:
            raise ExtenderError(f"expected at least one victim pod on node {name!r}")
    return agreed


def _agreed_victims(
    cluster: Cluster, extender: Extender, pod: PodRecord, name: str, proposed: Victims, answer: VictimIds
) -> Victims:
    most = max(pod.priority - 1, proposed.pods[0].priority)
    there = {other.uid: other for other in (*proposed.pods, *cluster.pods_on(cluster.nodes.row_of[name]))}
    for uid in answer.uids:
        victim = there.get(uid)
        if victim is None:
            problem = f"claims to preempt pod (UID: {uid}) on node {name}, but the pod is not found on that node"
            raise ExtenderError(f"extender {extender.name} {problem}")
        if victim.priority > most or not victim.is_preemptible:
            problem = f"claims to preempt pod {victim.key} on node {name}, which pod {pod.key} may not preempt"
            raise ExtenderError(f"extender {extender.name} {problem}")
    pods = sorted((there[uid] for uid in set(answer.uids)), key=lambda one: (-one.priority, one.start_ns, one.uid))
    return Victims(tuple(pods), max(0, answer.budget_violations))
