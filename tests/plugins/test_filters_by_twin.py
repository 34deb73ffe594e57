"""Every Filter in array form against its reference implementation, over random clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.api.versions.release import Release
from podium.cluster.cluster import Cluster
from podium.framework.handle import CycleState
from tests.builders import cluster_of, node_term, plain_runner
from tests.fuzzing import Effort, efforts, usual
from tests.generators import GPU, RELEASES, Objects, Traits, clusters
from tests.twins import filters as twins
from tests.twins.filters import FILTERS
from tests.twins.plain import UNRESOLVABLE, PlainCluster, Verdict


def crowded(traits: Traits) -> st.SearchStrategy[Objects]:
    return clusters(traits, most_nodes=5, least_pods=4, most_pods=12)


CLUSTERS = {
    "NodeUnschedulable": clusters(Traits(tolerations=True)),
    "TaintToleration": clusters(Traits(tolerations=True)),
    "NodePorts": clusters(Traits(ports=True)),
    "NodeResourcesFit": clusters(Traits()),
    "PodTopologySpread": crowded(Traits(spread=True, terminating=True))
    | crowded(Traits(spread=True, tolerations=True))
    | crowded(Traits(spread=True, node_affinity=True)),
    "InterPodAffinity": crowded(Traits(affinity=True, terminating=True)),
}


def verdicts(cluster: Cluster, target: Pod, plugin: str, args: dict[str, Any] | None = None) -> dict[str, Verdict]:
    """Return what one plugin alone says about each node."""
    runner, state, record = plain_runner(cluster, plugin, args=args), CycleState(), cluster.read(target)
    before = runner.pre_filter(state, record)
    names = cluster.nodes.row_of
    if not before.status.is_success:
        return dict.fromkeys(names, Verdict(before.status.code.value, before.status.reasons))
    outcome = runner.filter(state, record)
    statuses = {name: outcome.status(row) for name, row in names.items()}
    found = {name: Verdict(status.code.value, status.reasons) for name, status in statuses.items()}
    if before.rows is not None:
        left_out = set(names.values()) - set(before.rows.tolist())
        found |= {name: Verdict(UNRESOLVABLE, ("left out",)) for name, row in names.items() if row in left_out}
    return found


@pytest.mark.parametrize("plugin", CLUSTERS)
@efforts(50)
def test_a_filter_says_of_each_node_what_its_twin_says(plugin: str, effort: Effort) -> None:
    @effort
    @given(CLUSTERS[plugin], RELEASES)
    def check(objects: Objects, release: Release) -> None:
        plain = PlainCluster.of(objects.all, release)

        found = verdicts(cluster_of(*objects.surroundings, release=release), objects.target, plugin)

        assert found == {name: FILTERS[plugin](plain, objects.target, name) for name in plain.nodes}

    check()


@settings(max_examples=usual(20))
@given(clusters(), st.sampled_from(("node-0", "node-1", "elsewhere", "")))
def test_node_name_lets_a_pod_go_only_where_it_says(objects: Objects, wanted: str) -> None:
    target = replace(objects.target, spec=replace(objects.target.spec, node_name=wanted))
    plain = PlainCluster.of(objects.surroundings)

    found = verdicts(cluster_of(*objects.surroundings), target, "NodeName")

    assert found == {name: twins.node_name(plain, target, name) for name in plain.nodes}


@settings(max_examples=usual(80))
@given(clusters(Traits(node_affinity=True)), st.sampled_from((None, "rack=r0", "disk")))
def test_node_affinity_accepts_the_nodes_that_its_twin_accepts(objects: Objects, added: str | None) -> None:
    """By name it may leave nodes out before they are looked at, and then gives other reasons."""
    term = None if added is None else node_term(added)
    args: dict[str, Any] = {}
    if added is not None:
        expressions = [{"key": "rack", "operator": "In", "values": ["r0"]}]
        if added == "disk":
            expressions = [{"key": "disk", "operator": "Exists"}]
        required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        args["addedAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    plain = PlainCluster.of(objects.all)

    found = verdicts(cluster_of(*objects.surroundings), objects.target, "NodeAffinity", args)

    for name, verdict in found.items():
        own = twins.node_affinity(plain, objects.target, name)
        expected = own
        if term is not None and not twins.term_matches(term, plain.nodes[name]):
            expected = Verdict(UNRESOLVABLE, (twins.ADDED,))
        assert verdict.status == expected.status
        if verdict.reasons and verdict.reasons[0] not in ("left out", "pod affinity terms conflict"):
            assert verdict.reasons == expected.reasons


IGNORED: list[dict[str, list[str]]] = [{"ignoredResources": [GPU]}, {"ignoredResourceGroups": ["example.com"]}]


@settings(max_examples=usual(40))
@given(clusters(Traits()), st.sampled_from(IGNORED))
def test_ignored_resources_are_never_lacking(objects: Objects, args: dict[str, list[str]]) -> None:
    plain = PlainCluster.of(objects.all)
    requests = {key: amount for key, amount in _requests(objects.target).items() if key != GPU}
    modest = _requesting(objects.target, requests)

    found = verdicts(cluster_of(*objects.surroundings), objects.target, "NodeResourcesFit", args)

    assert found == {name: twins.node_resources_fit(plain, modest, name) for name in plain.nodes}


@settings(max_examples=usual(40))
@given(clusters(), st.data())
def test_a_view_of_some_rows_says_the_same_of_them_as_one_of_all(objects: Objects, data: st.DataObject) -> None:
    cluster = cluster_of(*objects.surroundings)
    runner, state, record = plain_runner(cluster), CycleState(), cluster.read(objects.target)
    if not runner.pre_filter(state, record).status.is_success:
        return
    everywhere = runner.filter(state, record)
    rows = sorted(data.draw(st.sets(st.sampled_from(sorted(cluster.nodes.row_of.values())), min_size=1)))

    somewhere = runner.filter(state, record, np.array(rows, dtype=np.int64))

    assert [somewhere.status(position) for position in range(len(rows))] == [everywhere.status(row) for row in rows]


def _requests(target: Pod) -> dict[str, Any]:
    return target.spec.containers[0].resources.requests


def _requesting(target: Pod, requests: dict[str, Any]) -> Pod:
    container = target.spec.containers[0]
    container = replace(container, resources=replace(container.resources, requests=requests))
    return replace(target, spec=replace(target.spec, containers=(container,)))
