"""Attempts to place a pod, with their full results: for pending pods, gangs, and placed pods if evicted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, ItemsView, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal, TypeVar

import numpy as np
from msgspec import Struct

from podium.api.policy import NEVER_PREEMPTS
from podium.app.console.cells import by_key
from podium.app.explaining.explanation import (
    NO_DEVICES,
    Claims,
    DeviceFindings,
    Explanation,
    OutcomeName,
    PlacedPodFacts,
    limited_search,
)
from podium.app.explaining.gang import beside_those_before, decide_gang
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.cluster.view import View
from podium.decide.placement import Placement, full_outcome, place, tried_first
from podium.decide.post_filter import ask_post_filters
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.extenders import EXTENDER
from podium.framework.plugin import PostFilterResult, is_own
from podium.framework.runner import Runner
from podium.framework.scoring import Rated
from podium.framework.verdicts import PluginError, Status
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources.plugin import DynamicResources

Value = TypeVar("Value")

MAX_ASKED = 200
"""The maximum number of kinds of pending pods that are tried against placed ones, the most important first."""


class LazyMapping(Mapping[str, Value]):
    """A mapping that is built when it is first read.

    ``build`` must capture what it reads when the decision is made, so that reading late gives the same answer.
    """

    def __init__(self, build: Callable[[], dict[str, Value]]) -> None:
        self._build = build

    def __getitem__(self, key: str) -> Value:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def items(self) -> ItemsView[str, Value]:
        """Return the items of the built dict; a mapping's own take several times as long."""
        return self._all.items()

    @cached_property
    def _all(self) -> dict[str, Value]:
        return self._build()


def explain_decision(runner: Runner, pod: PodRecord) -> Explanation:
    """Decide about a pending pod, and record everything that led to the decision."""
    gate = runner.pre_enqueue(pod)
    if not gate.is_success:
        return Explanation(pod.key, "gated", pod, runner, pre_enqueue=gate)
    try:
        return _attempt(runner, pod)
    except PluginError as error:
        return Explanation(pod.key, "error", pod, runner, error=str(error))


def explain_with_group(runner: Runner, pod: PodRecord) -> Explanation:
    """Decide about a pending pod together with its group, if its profile places them together."""
    try:
        gang = decide_gang(runner, pod) if runner.pre_enqueue(pod).is_success else None
    except PluginError as error:
        return Explanation(pod.key, "error", pod, runner, error=str(error))
    if gang is None:
        return explain_decision(runner, pod)
    before = partial(beside_those_before, runner, gang, pod)
    with before():
        alone = explain_decision(runner, pod)
    node = gang.node_of(pod.uid)
    outcome: OutcomeName = "schedulable" if gang.placement.is_enough else "preempts"
    if alone.outcome == "error":
        outcome = "error"
    elif not node:
        outcome = "unschedulable"
    decision = replace(alone, outcome=outcome, node=node, plan=None, gang=gang, as_decided=before)
    # The scores mean nothing for a pod whose node they do not determine.
    is_by_scores = outcome == "schedulable" and not gang.placement.is_arranged
    return decision if is_by_scores else replace(decision, scores={}, totals={}, best=())


def _attempt(runner: Runner, pod: PodRecord) -> Explanation:
    cluster = runner.cluster
    placement = place(runner, pod, nominated_first=False)
    is_rejected = not placement.pre_filter.status.is_success
    nodes = {} if is_rejected else _verdicts(cluster, placement)
    scores, totals, best = _scores(runner, placement)
    found = Explanation(pod.key, "unschedulable", pod, runner, nodes=nodes, devices=_devices(runner, placement))
    if placement.error:
        return replace(found, outcome="error", error=placement.error)
    if best:
        tried = (cluster.nodes.row_of.get(name) for name in tried_first(cluster, pod))
        row = next((row for row in tried if row is not None and row in placement.feasible), placement.row)
        if row is None:
            raise AssertionError(f"no node chosen for {pod.key} though {best} fit")
        node = cluster.nodes.name(row)
        search = None if node in tried_first(cluster, pod) else limited_search(runner, placement, len(best))
        chosen = replace(found, outcome="schedulable", node=node)
        return replace(chosen, scores=scores, totals=totals, best=best, search=search)
    plan, proposal = _preemption(runner, placement) if len(cluster.nodes) else (None, None)
    node = plan.chosen.node_name if plan and plan.chosen else ""
    default, early = _default_preemption(runner), ""
    if default is not None and plan is not None:
        # The node that the pod is bound to while its victims terminate.
        early = default.binds_early(plan, placement.state, pod, runner)
    if proposal is not None and proposal.status.is_success:
        node, early = proposal.binds_to or proposal.nominated_node or "", proposal.binds_to
    node = early or node
    outcome: OutcomeName = "preempts" if node else "unschedulable" if plan is None or plan.eligible else "not-eligible"
    rejection = placement.pre_filter.status if is_rejected else None
    found = replace(found, outcome=outcome, node=node, pre_filter=rejection, plan=plan)
    return replace(found, proposal=proposal, is_bound_early=bool(early))


def _verdicts(cluster: Cluster, placement: Placement) -> Mapping[str, Status]:
    """Return each node's status by name."""
    names, outcome, rest = list(cluster.nodes.names), placement.outcome, placement.pre_filter.left_out

    def build() -> dict[str, Status]:
        refused = dict(zip(placement.rows.tolist(), outcome.refused.tolist(), strict=True))
        decoded = {value: outcome.status_of(value) for value, _ in [*outcome.tally(), (0, 0)]}
        by_name = sorted((name, row) for row, name in enumerate(names) if name)
        return {name: decoded[refused[row]] if row in refused else rest for name, row in by_name}

    return LazyMapping(build)


def _scores(
    runner: Runner, placement: Placement
) -> tuple[Mapping[str, dict[str, int]], Mapping[str, int], tuple[str, ...]]:
    """Return the weighted scores by node and plugin, the totals by node, and the best nodes; empty if none fits."""
    if not len(placement.feasible):
        return {}, {}, ()
    all_names = list(runner.cluster.nodes.names)
    names = [all_names[row] for row in placement.feasible.tolist()]
    rated = rated_of(runner, placement)
    if rated is None:
        return {}, {}, tuple(names)
    by_plugin = {each.plugin: each.weighted for each in sorted(rated, key=lambda each: each.plugin)}
    totals = np.zeros(len(names), dtype=np.int64) + sum(by_plugin.values())
    if placement.totals is not None and not np.array_equal(placement.totals, totals):
        # Extenders were called once, for the placement.
        by_plugin[EXTENDER] = placement.totals - totals
        totals = placement.totals

    def scores() -> dict[str, dict[str, int]]:
        columns = [values.tolist() for values in by_plugin.values()]
        rows = zip(*columns, strict=True) if columns else [()] * len(names)
        return {name: dict(zip(by_plugin, values, strict=True)) for name, values in zip(names, rows, strict=True)}

    best = sorted(names[position] for position in np.flatnonzero(totals == totals.max()).tolist())
    return LazyMapping(scores), LazyMapping(lambda: dict(zip(names, totals.tolist(), strict=True))), tuple(best)


def rated_of(runner: Runner, placement: Placement) -> list[Rated] | None:
    """Return the scores of the feasible nodes by each plugin; None if a plugin fails.

    That can only be if one node is feasible, which is chosen without scores, so that the failure does not matter.
    """
    view = View(runner.cluster, placement.feasible)
    try:
        if placement.totals is None:
            runner.scoring.prepare(placement.state, placement.pod, view)
        return runner.scoring.rated(placement.state, placement.pod, view)
    except PluginError:
        return None


def _devices(runner: Runner, placement: Placement) -> DeviceFindings:
    """Return the findings of DynamicResources in an attempt; empty if the profile does not have it."""
    plugin = next((each for each in runner.profile.filter if isinstance(each, DynamicResources)), None)
    if plugin is None or placement.error or placement.state.get(plugin.name) is None:
        return NO_DEVICES
    names = list(runner.cluster.nodes.names)
    if len(placement.feasible):
        state, feasible = placement.state, sorted(names[row] for row in placement.feasible.tolist())
        found: Mapping[str, Claims] = LazyMapping(
            lambda: {name: claims for name in feasible if (claims := plugin.allocations(state, name))}
        )
        return DeviceFindings(claims=found)
    if not placement.pod.spec.resource_claims:
        return NO_DEVICES
    outcome = full_outcome(runner.cluster, placement)
    result = plugin.post_filter(placement.state, placement.pod, runner, runner.cluster, outcome)
    return DeviceFindings(post_filter=result.status, releases=tuple(release.claim for release in result.releases))


def _default_preemption(runner: Runner) -> DefaultPreemption | None:
    """Return the plugin whose plans are what it proposes; None if the profile has no such plugin."""
    plugins = runner.profile.post_filter
    return next((plugin for plugin in plugins if isinstance(plugin, DefaultPreemption) and plugin.plans), None)


def _preemption(runner: Runner, placement: Placement) -> tuple[PreemptionPlan | None, PostFilterResult | None]:
    """Return the plan of DefaultPreemption, and the results of all PostFilter plugins if some are not Podium's.

    None for a plan if the profile does not have DefaultPreemption, or a plugin before it ends the search. Raises
    PluginError if a plugin fails.
    """
    plugins, default = runner.profile.post_filter, _default_preemption(runner)
    proposal = None
    if not all(is_own(plugin) or plugin is default for plugin in plugins):
        proposal = ask_post_filters(runner, placement)
        if default is not None and all(answer.plugin != default.name for answer in proposal.answers):
            default = None
    if default is None:
        return None, proposal
    outcome = full_outcome(runner.cluster, placement)
    return default.plan(placement.state, placement.pod, runner, outcome, detailed=True), proposal


def explain_placed(
    runner: Runner, record: PodRecord, pending: Sequence[PodRecord], runners: Mapping[str, Runner]
) -> Explanation:
    """Explain why a pod is on its node, where it would go if evicted, and which pending pods could preempt it.

    The decision that placed it is unknown; this is what would be decided now without it.
    """

    def importance(pod: PodRecord) -> tuple[int, str]:
        return -pod.priority, pod.key

    targets = [] if record.is_mirror else [record]
    found, not_asked = potential_preemptors(targets, sorted(pending, key=importance), runners)
    preemptors = [(pod, each.effect == "preempts") for each in found for pod in each.pods]
    as_decided, node = partial(_without, runner.cluster, record), record.node_name
    with as_decided():
        then = explain_decision(runner, record.without_node(terminating=False))
        # Deferred values are computed while the cluster is as it was decided on.
        nodes, scores, totals = dict(then.nodes), dict(then.scores), dict(then.totals)
        devices = replace(then.devices, claims=dict(then.devices.claims))
    controller = record.controller
    covering = runner.cluster.budgets.covering([record.pod_class])
    rank = 1 if not totals and node in then.best else None
    if node in totals:
        rank = 1 + sum(total > totals[node] for total in totals.values())
    facts = PlacedPodFacts(
        then=then.outcome,
        then_node=then.node,
        by="kubelet" if record.is_mirror else "scheduler",
        since_ns=None if record.start_ns == NOT_STARTED_NS else record.start_ns,
        controller="" if controller is None else f"{controller.kind} {record.namespace}/{controller.name}",
        rank=rank,
        preemptors=tuple(sorted(preemptors, key=lambda each: importance(each[0]))),
        not_asked=not_asked,
        budgets=tuple(sorted((budget.key, budget.disruptions_allowed) for budget in covering)),
    )
    then = replace(then, nodes=nodes, scores=scores, totals=totals, devices=devices)
    return replace(then, outcome="placed", node=node, placed=facts, as_decided=as_decided)


def may_preempt(runners: Mapping[str, Runner], pod: PodRecord, priority: int) -> bool:
    """Return whether the pod may preempt pods of a priority: a lower one, or its own if its scheduler allows that."""
    if pod.preemption_policy in NEVER_PREEMPTS or pod.priority < priority:
        return False
    runner = runners.get(pod.scheduler_name) if pod.priority == priority else None
    plugins = () if runner is None else runner.profile.post_filter
    return pod.priority > priority or any(
        isinstance(plugin, DefaultPreemption) and plugin.takes_from_equals for plugin in plugins
    )


@contextmanager
def _without(cluster: Cluster, record: PodRecord) -> Iterator[None]:
    """Remove a pod inside the context."""
    cluster.remove_pod(record.uid)
    try:
        yield
    finally:
        cluster.add_pod(record)


Effect = Literal["preempts", "may-preempt", "preempts-others", "fits", "unschedulable"]
"""The effects of a pod on others: it preempts them now; it would on a node that is not the best; ..."""


def effect_on(decision: Explanation, uids: Collection[str]) -> Effect:
    """Return the effect of a decision's pod on the pods with these uids."""
    if any(victim.uid in uids for victim in decision.victims):
        return "preempts"
    plan = decision.plan
    if plan is None:
        return "fits" if decision.outcome == "schedulable" else "unschedulable"
    if any(victim.uid in uids for candidate in plan.candidates.values() for victim in candidate.victims):
        return "may-preempt"
    return "unschedulable" if plan.chosen is None else "preempts-others"


class PotentialPreemptor(Struct, frozen=True):
    """Pending pods of one kind, alone with the cluster as it is, and their effect on the pods in question."""

    pods: tuple[PodRecord, ...]
    effect: Effect
    victims: tuple[PodRecord, ...]


def _kind_of(pod: PodRecord) -> tuple[object, ...]:
    return pod.pod_class, pod.priority, pod.preemption_policy, pod.scheduler_name, pod.nominated_node_name


def potential_preemptors(
    targets: Sequence[PodRecord],
    pending: Iterable[PodRecord],
    runners: Mapping[str, Runner],
    kind_of: Callable[[PodRecord], Hashable] = _kind_of,
) -> tuple[list[PotentialPreemptor], int]:
    """Return the pending pods that preempt or may preempt some targets, and the number of pods that were not tried.

    The pending pods come in order of importance; of those of one kind the first is tried.
    """
    uids = {pod.uid for pod in targets if pod.is_preemptible}
    least = min((pod.priority for pod in targets if pod.uid in uids), default=None)
    above = [
        pod
        for pod in pending
        if least is not None and pod.scheduler_name in runners and not pod.gates and may_preempt(runners, pod, least)
    ]
    kinds = list(by_key((kind_of(pod), pod) for pod in above).values())
    found = []
    for pods in kinds[:MAX_ASKED]:
        decision = explain_decision(runners[pods[0].scheduler_name], pods[0])
        effect = effect_on(decision, uids)
        if effect in ("preempts", "may-preempt"):
            found.append(PotentialPreemptor(tuple(pods), effect, decision.victims))
    return found, sum(map(len, kinds[MAX_ASKED:]))
