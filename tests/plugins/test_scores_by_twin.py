"""Every Score in array form against its reference implementation, over random clusters and feasible nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.meta import Kubernetes
from podium.api.versions.release import Release
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.handle import CycleState
from tests.builders import HOSTNAME, ZONE, cluster_of, plain_runner, pod, replica_set, service, spread_over
from tests.fuzzing import Effort, efforts, usual
from tests.generators import GPU, RELEASES, Objects, Traits, clusters
from tests.twins import scores as twins
from tests.twins.plain import PlainCluster
from tests.twins.scores import SCORES, Score, Scores

CLUSTERS = {
    "TaintToleration": clusters(Traits(tolerations=True)),
    "NodeAffinity": clusters(Traits(node_affinity=True)),
    "NodeResourcesFit": clusters(Traits()),
    "NodeResourcesBalancedAllocation": clusters(Traits()),
    "ImageLocality": clusters(Traits(images=True)),
    "NodePreferAvoidPods": clusters(Traits(avoid_lists=True)),
    "InterPodAffinity": clusters(Traits(affinity=True, preferences=True, terminating=True), least_pods=4, most_pods=12),
    "PodTopologySpread": clusters(Traits(soft_spread=True, terminating=True), most_nodes=6, least_pods=4, most_pods=12)
    | clusters(
        Traits(soft_spread=True, node_affinity=True, tolerations=True), most_nodes=6, least_pods=4, most_pods=12
    ),
}
SHAPE = ((10, 0), (40, 10), (80, 3))


def scores(
    cluster: Cluster, record: PodRecord, plugin: str, feasible: list[str], args: dict[str, Any] | None = None
) -> Scores | None:
    """Return what one plugin alone gives each feasible node, None where it says nothing; weights are 1."""
    runner, state = plain_runner(cluster, plugin, args=args), CycleState()
    rows = np.array(sorted(cluster.nodes.row_of[name] for name in feasible), dtype=np.int64)
    view = View(cluster, rows)
    runner.scoring.prepare(state, record, view)
    found = {each.plugin: each.weighted for each in runner.scoring.rated(state, record, view)}
    if plugin not in found:
        return None
    return {cluster.nodes.name(int(row)): int(score) for row, score in zip(rows, found[plugin], strict=True)}


def some_nodes(data: st.DataObject, objects: Objects) -> list[str]:
    names = [node.metadata.name for node in objects.nodes]
    return sorted(data.draw(st.sets(st.sampled_from(names), min_size=1)))


@pytest.mark.parametrize("plugin", SCORES)
@efforts(40)
def test_a_score_gives_each_node_what_its_twin_gives(plugin: str, effort: Effort) -> None:
    @effort
    @given(CLUSTERS[plugin], RELEASES, st.data())
    def check(objects: Objects, release: Release, data: st.DataObject) -> None:
        feasible = some_nodes(data, objects)
        cluster = cluster_of(*objects.surroundings, release=release)

        found = scores(cluster, cluster.read(objects.target), plugin, feasible)

        assert found == SCORES[plugin](PlainCluster.of(objects.all, release), objects.target, feasible)

    check()


WEIGHTS = {"cpu": 3, "memory": 1, GPU: 5, "example.com/unknown": 1}
STRATEGIES: dict[str, Score] = {
    "LeastAllocated": twins.resources_by(twins.least_allocated, WEIGHTS),
    "MostAllocated": twins.resources_by(twins.most_allocated, WEIGHTS),
    "RequestedToCapacityRatio": twins.resources_by(twins.on_a_line(SHAPE), WEIGHTS, only_positive=True),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@efforts(30)
def test_each_scoring_strategy_gives_what_its_twin_gives(strategy: str, effort: Effort) -> None:
    written: dict[str, Any] = {
        "type": strategy,
        "resources": [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()],
    }
    if strategy == "RequestedToCapacityRatio":
        shape = [{"utilization": use, "score": score} for use, score in SHAPE]
        written["requestedToCapacityRatio"] = {"shape": shape}

    @effort
    @given(clusters(Traits()), st.data())
    def check(objects: Objects, data: st.DataObject) -> None:
        feasible = some_nodes(data, objects)
        cluster = cluster_of(*objects.surroundings)

        found = scores(
            cluster, cluster.read(objects.target), "NodeResourcesFit", feasible, {"scoringStrategy": written}
        )

        assert found == STRATEGIES[strategy](PlainCluster.of(objects.all), objects.target, feasible)

    check()


@settings(max_examples=usual(60))
@given(clusters(Traits(terminating=True)), st.sampled_from(("", "ReplicaSet/owner", "ReplicaSet/gone")), st.data())
def test_pods_of_a_group_are_spread_by_the_systems_constraints(
    objects: Objects, owner: str, data: st.DataObject
) -> None:
    """Services and the owner say who belongs together; hosts and zones count, and either label will do."""
    target = pod("target", labels=objects.target.metadata.labels, owner=owner)
    groups: list[Kubernetes] = [service("a", app="a"), service("x", tier="x"), replica_set("owner", "app in (a,b)")]
    wanted = [
        f"{key}={value}" for key, value in (("app", "a"), ("tier", "x")) if target.metadata.labels.get(key) == value
    ]
    wanted += ["app in (a,b)"] if owner == "ReplicaSet/owner" else []
    constraints = [
        spread_over(HOSTNAME, ",".join(wanted), 3, soft=True),
        spread_over(ZONE, ",".join(wanted), 5, soft=True),
    ]
    feasible = some_nodes(data, objects)
    cluster, plain = cluster_of(*objects.surroundings, *groups), PlainCluster.of(objects.surroundings)

    found = scores(cluster, cluster.read(target), "PodTopologySpread", feasible)

    expected = twins.spread_scores(plain, target, constraints, list(plain.nodes), feasible) if wanted else None
    assert found == expected


@settings(max_examples=usual(60))
@given(clusters(), st.data())
def test_totals_are_the_sums_of_all_weighted_scores(objects: Objects, data: st.DataObject) -> None:
    cluster = cluster_of(*objects.surroundings)
    runner, state, record = plain_runner(cluster), CycleState(), cluster.read(objects.target)
    rows = sorted(cluster.nodes.row_of[name] for name in some_nodes(data, objects))
    view = View(cluster, np.array(rows, dtype=np.int64))
    runner.scoring.prepare(state, record, view)

    totals = runner.scoring.totals(state, record, view)

    by_plugin = {each.plugin: each.weighted for each in runner.scoring.rated(state, record, view)}
    assert totals.tolist() == [sum(int(one[n]) for one in by_plugin.values()) for n in range(len(rows))]
    for plugin, found in by_plugin.items():
        assert 0 <= found.min() <= found.max() <= 100 * runner.profile.weights[plugin]
