"""Preemption on all nodes at once against preemption node by node, over random clusters."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.decide.placement import full_outcome, place
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import cluster_of, plain_runner
from tests.fuzzing import Effort, efforts, usual
from tests.generators import Objects, Traits, clusters
from tests.twins.victims import Preemption, Trial, best_nodes

MONOTONE = Traits(heavy_target=True, ports=True, budgets=True, nominated=True)
TRAITS = {
    "resources": Traits(heavy_target=True, terminating=True),
    "budgets": Traits(heavy_target=True, budgets=True),
    "nominated pods": Traits(heavy_target=True, nominated=True, terminating=True),
    "ports": Traits(ports=True, nominated=True),
    "affinity": Traits(affinity=True, nominated=True),
    "spread": Traits(spread=True, nominated=True),
    "all together": Traits(
        heavy_target=True, affinity=True, spread=True, ports=True, budgets=True, nominated=True, tolerations=True
    ),
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan for the target, the nodes that were tried, and the plugins that had nothing to say."""

    plan: PreemptionPlan
    tried: list[str]
    skipped: frozenset[str]


def planned(cluster: Cluster, runner: Runner, target: Pod) -> Planned | None:
    """Return the plan for a pod that fits nowhere; None for one that does, or may not preempt."""
    record = cluster.read(target)
    placement = place(runner, record, nominated_first=False)
    if placement.row is not None:
        return None
    (plugin,) = (one for one in runner.profile.post_filter if isinstance(one, DefaultPreemption))
    # So that few nodes are parted by the filters that reach beyond them, too.
    plugin._trials.worth_parting = 0
    outcome = full_outcome(cluster, placement)
    plan = plugin.plan(placement.state, record, runner, outcome, detailed=True)
    if not plan.eligible:
        return None
    tried = [cluster.nodes.name(int(row)) for row in outcome.resolvable()]
    return Planned(plan, tried, placement.state.skip_filter)


def trials_of(plan: PreemptionPlan) -> dict[str, Trial]:
    found = {
        name: Trial(tuple(victim.key for victim in one.victims), one.budget_violations)
        for name, one in plan.candidates.items()
    }
    return found | {name: Trial(refused=(status.code.value, status.reasons)) for name, status in plan.rejected.items()}


@pytest.mark.upstream(27, 28, 31)
@pytest.mark.parametrize("theme", TRAITS)
@efforts(40)
def test_trying_all_nodes_at_once_finds_what_trying_each_alone_finds(theme: str, effort: Effort) -> None:
    """Kubernetes' TestDryRunPreemption, TestSelectBestCandidate and TestFilterVictimsWithPDBViolation (27, 28, 31)."""

    @effort
    @given(clusters(TRAITS[theme], most_nodes=3, most_pods=9))
    def check(objects: Objects) -> None:
        cluster = cluster_of(*objects.surroundings)
        found = planned(cluster, plain_runner(cluster), objects.target)
        event("no preemption" if found is None else f"{len(found.plan.candidates)} candidates")
        if found is None:
            return
        one_by_one = Preemption(objects.surroundings, objects.target, found.skipped)

        expected = {name: one_by_one.on(name) for name in found.tried}

        assert trials_of(found.plan) == expected
        assert list(found.plan.selected) == best_nodes(expected, objects.pods)
        assert found.plan.chosen is None or found.plan.chosen.node_name in found.plan.selected

    check()


@settings(max_examples=usual(60))
@given(clusters(MONOTONE, most_nodes=3, most_pods=9))
def test_no_victim_can_be_spared_alone(objects: Objects) -> None:
    """Invariant E3, for filters that a further pod can only make refuse."""
    cluster = cluster_of(*objects.surroundings)
    found = planned(cluster, plain_runner(cluster), objects.target)
    if found is None:
        return
    one_by_one = Preemption(objects.surroundings, objects.target, found.skipped)
    for name, candidate in found.plan.candidates.items():
        victims = {victim.uid for victim in candidate.victims}

        assert one_by_one.fits(name, victims).is_success
        assert not any(one_by_one.fits(name, victims - {uid}).is_success for uid in victims)
