"""What a decision about a pod comes to, and why: every node's verdict, the scores, and what preemption would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from podium.app.explaining.devices import device_findings
from podium.app.explaining.explanation import Explanation, OutcomeName
from podium.app.explaining.gang import beside_those_before, decide_gang
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import Placement, full_outcome, left_out, place, tried_first
from podium.decide.preempting.deferred import Deferred
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.errors import PluginError
from podium.framework.extenders import EXTENDER
from podium.framework.runner import Runner
from podium.framework.status import Status
from podium.plugins.default_preemption import DefaultPreemption


def explain_decision(runner: Runner, pod: PodRecord) -> Explanation:
    """Decide about a pending pod, and keep everything that led to the decision."""
    gate = runner.pre_enqueue(pod)
    if not gate.is_success:
        return Explanation(pod.key, "gated", "", None, {}, {}, {}, (), None, pod, runner, gate)
    try:
        return _attempted(runner, pod)
    except PluginError as error:
        return Explanation(pod.key, "error", "", None, {}, {}, {}, (), None, pod, runner, error=str(error))


def explain_with_group(runner: Runner, pod: PodRecord) -> Explanation:
    """Decide about a pending pod together with the pods of its group, where its profile places them together."""
    if not runner.pre_enqueue(pod).is_success:
        return explain_decision(runner, pod)
    try:
        gang = decide_gang(runner, pod)
    except PluginError as error:
        return Explanation(pod.key, "error", "", None, {}, {}, {}, (), None, pod, runner, error=str(error))
    if gang is None:
        return explain_decision(runner, pod)
    before = partial(beside_those_before, runner, gang, pod)
    with before():
        alone = explain_decision(runner, pod)
    node = gang.node_of(pod.uid)
    outcome: OutcomeName = "unschedulable"
    if node:
        outcome = "schedulable" if gang.is_enough else "preempts"
    if alone.outcome == "error":
        outcome = "error"
    told = replace(alone, outcome=outcome, node=node, plan=None, gang=gang, as_decided=before)
    # What nodes are worth to a pod says nothing where it does not go by that.
    is_by_scores = outcome == "schedulable" and not gang.placement.is_arranged
    return told if is_by_scores else replace(told, scores={}, totals={}, best=())


def _attempted(runner: Runner, pod: PodRecord) -> Explanation:
    """What an attempt at the pod would come to. Raises PluginError where a plugin fails."""
    cluster = runner.cluster
    placement = place(runner, pod, nominated_first=False)
    nodes, rejection = _verdicts(cluster, placement)
    scores, totals, best = _ratings(runner, placement)
    names, row_of = cluster.nodes, cluster.nodes.row_of
    devices = device_findings(runner, placement)
    if placement.error:
        failed = placement.error
        return Explanation(pod.key, "error", "", None, nodes, {}, {}, (), None, pod, runner, error=failed)
    if best:
        tried = (row_of.get(name) for name in tried_first(cluster, pod))
        row = next((row for row in tried if row is not None and row in placement.feasible), placement.row)
        if row is None:
            raise AssertionError(f"no node chosen for {pod.key} though {best} fit")
        taken = names.name(row)
        return Explanation(
            pod.key, "schedulable", taken, None, nodes, scores, totals, best, None, pod, runner, devices=devices
        )
    plan = _preemption(runner, placement) if len(cluster.nodes) else None
    outcome: OutcomeName = "unschedulable"
    if plan is not None and plan.chosen is not None:
        outcome = "preempts"
    elif plan is not None and not plan.eligible:
        outcome = "not-eligible"
    node = plan.chosen.node_name if plan and plan.chosen else ""
    return Explanation(pod.key, outcome, node, rejection, nodes, {}, {}, (), plan, pod, runner, devices=devices)


def _verdicts(cluster: Cluster, placement: Placement) -> tuple[Mapping[str, Status], Status | None]:
    """Each node's status by name, and the PreFilter's rejection if there was one."""
    if not placement.pre_filter.status.is_success:
        return {}, placement.pre_filter.status
    names, outcome, rest = cluster.nodes.names_by_row(), placement.outcome, left_out(placement.pre_filter)

    def build() -> dict[str, Status]:
        refused = dict(zip(placement.rows.tolist(), outcome.refused.tolist(), strict=True))
        decoded = {value: outcome.status_of(value) for value, _ in [*outcome.tally(), (0, 0)]}
        by_name = sorted((name, row) for row, name in enumerate(names) if name)
        return {name: decoded[refused[row]] if row in refused else rest for name, row in by_name}

    return Deferred(build), None


def _ratings(
    runner: Runner, placement: Placement
) -> tuple[Mapping[str, dict[str, int]], Mapping[str, int], tuple[str, ...]]:
    """Weighted scores by node and plugin, totals by node, and the best nodes; empty where no node fits."""
    if not len(placement.feasible):
        return {}, {}, ()
    view = View(runner.cluster, placement.feasible)
    if placement.totals is None:
        try:
            runner.scoring.prepare(placement.state, placement.pod, view)
        except PluginError:
            # The only node that fits is taken without being rated, whoever could not have rated it.
            (row,) = placement.feasible.tolist()
            return {}, {}, (runner.cluster.nodes.name(row),)
    by_plugin = dict(sorted(runner.scoring.scores(placement.state, placement.pod, view).items()))
    totals = np.zeros(len(view), dtype=np.int64) + sum(by_plugin.values())
    if placement.totals is not None and not np.array_equal(placement.totals, totals):
        # Extenders were asked once, for the placement.
        by_plugin[EXTENDER] = placement.totals - totals
        totals = placement.totals
    all_names = runner.cluster.nodes.names_by_row()
    names = [all_names[row] for row in placement.feasible.tolist()]

    def scores() -> dict[str, dict[str, int]]:
        columns = [values.tolist() for values in by_plugin.values()]
        rows = zip(*columns, strict=True) if columns else [()] * len(names)
        return {name: dict(zip(by_plugin, values, strict=True)) for name, values in zip(names, rows, strict=True)}

    best = sorted(names[position] for position in np.flatnonzero(totals == totals.max()).tolist())
    return Deferred(scores), Deferred(lambda: dict(zip(names, totals.tolist(), strict=True))), tuple(best)


def _preemption(runner: Runner, placement: Placement) -> PreemptionPlan | None:
    """What DefaultPreemption would do; None where the profile does not have it."""
    plugin = next((p for p in runner.profile.post_filter if isinstance(p, DefaultPreemption)), None)
    if plugin is None:
        return None
    outcome = full_outcome(runner.cluster, placement)
    return plugin.plan(placement.state, placement.pod, runner, outcome, detailed=True)
