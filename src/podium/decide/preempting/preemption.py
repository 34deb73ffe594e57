"""What preemption would do for a pod that fits nowhere: a plan with all its alternatives.

Source: pkg/scheduler/framework/preemption/preemption.go; pkg/scheduler/framework/plugins/defaultpreemption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.decide.cap import CappedTable, is_capped, within_cap, without_budgets
from podium.decide.preempting.choosing import best_by_criteria, cheapest, columns_of, limited, with_stated_cost
from podium.decide.preempting.costs.protection import alone_within_budgets, within_budgets
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.deferred import Deferred
from podium.decide.preempting.extended import NO_CANDIDATE, ask_extenders
from podium.decide.preempting.fair_trials import FairTrials
from podium.decide.preempting.preemption_plan import Candidate, Choice, PreemptionPlan
from podium.decide.preempting.trial_table import TrialTable
from podium.decide.preempting.trials import MOST_EQUALS, BestTrial, Trials, VictimFilter
from podium.decide.preempting.wide.wide_settings import Wanted, WideSettings
from podium.decide.preempting.wide.wide_trials import WideTrials
from podium.decide.ties import lot, pick
from podium.framework.cycle_state import CycleState
from podium.framework.extenders import Extender, ExtenderError
from podium.framework.handle import Handle
from podium.framework.status import Code, Status
from podium.framework.verdicts import Outcome

_ERROR = Code.ERROR


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
        table = limited(nodes, table, options.minimum_candidates, len(table.rows), f"{options.seed}/{pod.uid}")
    if detailed and options.cost is not None and not table.is_stated:
        table = with_stated_cost(runner, table, options.cost)
    columns = () if options.cost is None else columns_of(table, options.cost)
    candidates, rejected = _details(runner, capped, table) if detailed else ({}, {})
    extenders = _preempting(runner, pod) if len(table.candidates) else ()
    if extenders:
        try:
            table = ask_extenders(runner.cluster, extenders, pod, table)
        except ExtenderError as unanswered:
            return PreemptionPlan(True, candidates=candidates, rejected=rejected, error=str(unanswered))
    if options.cost is None or table.is_stated:
        tied, criterion = best_by_criteria(table)
    else:
        tied, criterion = cheapest(runner, table, options.cost)
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


def _preempting(runner: Handle, pod: PodRecord) -> Sequence[Extender]:
    """The extenders that want to be asked about the pod's victims."""
    extenders = runner.extenders_of(pod)
    return () if extenders is None else extenders.preempting(pod)


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
    texts = list(dict.fromkeys([status.message for status, _ in tally if status.code is _ERROR]))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _message(nodes: int, tally: Sequence[tuple[Status, int]]) -> str:
    """What preemption has to say when it found nothing, as kube-scheduler words it: each reason with its nodes."""
    reasons: dict[str, int] = {}
    rest = nodes
    for status, number in tally:
        rest -= number
        for reason in dict.fromkeys(status.reasons):
            reasons[reason] = reasons.get(reason, 0) + number
    counts = [f"{number} {reason}" for reason, number in reasons.items()]
    if rest > 0:
        counts.append(f"{rest} Preemption is not helpful for scheduling")
    return f"preemption: 0/{nodes} nodes are available: {', '.join(sorted(counts))}"
