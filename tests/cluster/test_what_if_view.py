"""What-if views: for each row, the cluster in which only that row's pods differ."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.selectors import compile_label_selector
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import InNamespace, Predicate, SelectedByTerms, carries_anti_affinity, holds_host_port
from podium.cluster.pod_classes import HostPort, compile_term
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from tests.builders import ZONE, cluster_of, node, pod, selector, term
from tests.fuzzing import usual
from tests.generators import KEYS, LABELS, Objects, Traits, clusters, terms

WEB = SelectedByTerms((compile_term(term("app=web"), "default"),))


def rows(*numbers: int) -> Int64s:
    return np.array(numbers, dtype=np.int64)


def slots(cluster: Cluster, *names: str) -> Int64s:
    by_name = {one.name: one.slot for one in cluster.placed.values()}
    return np.array([by_name[name] for name in names], dtype=np.int64)


def three_nodes() -> Cluster:
    nodes = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b")]
    webs = [pod(f"web-{name}", on=name, cpu=1, labels={"app": "web"}) for name in ("a1", "a2", "b1")]
    return cluster_of(*nodes, *webs, pod("db", on="a1", cpu=2))


def test_a_pod_that_leaves_its_world_leaves_no_other() -> None:
    cluster = three_nodes()
    worlds = WhatIfView(cluster, rows(0, 1, 2))

    worlds.remove(rows(0), slots(cluster, "web-a1"))

    assert worlds.requested(0).tolist() == [2000, 1000, 1000]
    assert worlds.pod_count().tolist() == [1, 1, 1]
    assert worlds.count(WEB).tolist() == [0, 1, 1]
    # In the world of a1 its zone has one pod left; the world of a2 still has both.
    assert worlds.domain_count(WEB, ZONE).tolist() == [1, 2, 1]
    assert worlds.labelled_count(WEB, ZONE).tolist() == [2, 3, 3]
    assert [one.name for one in worlds.pods(0)] == ["db"]


def test_a_pod_given_back_makes_its_world_what_it_was() -> None:
    cluster = three_nodes()
    worlds = WhatIfView(cluster, rows(0, 2))
    gone = slots(cluster, "web-a1", "db", "web-b1")
    worlds.remove(rows(0, 0, 1), gone)
    worlds.add(rows(0, 1), slots(cluster, "web-a1", "web-b1"))

    assert worlds.requested(0).tolist() == [1000, 1000]
    assert worlds.count(WEB).tolist() == [1, 1]
    assert [(sign, one.name) for sign, one in worlds.history(0)] == [(-1, "web-a1"), (-1, "db"), (1, "web-a1")]


def test_worlds_at_some_positions_go_their_own_way() -> None:
    cluster = three_nodes()
    worlds = WhatIfView(cluster, rows(0, 1, 2))
    worlds.remove(rows(1), slots(cluster, "web-a2"))

    trial = worlds.at(rows(1, 2))
    trial.remove(rows(1), slots(cluster, "web-b1"))

    assert trial.count(WEB).tolist() == [0, 0]
    assert worlds.count(WEB).tolist() == [1, 0, 1]
    assert trial.pod_count().tolist() == [0, 0]
    assert worlds.pod_count().tolist() == [2, 0, 1]


def test_a_nominated_pod_joins_one_world() -> None:
    cluster = three_nodes()
    worlds = WhatIfView(cluster, rows(0, 1))

    worlds.join(rows(1), [cluster.read(pod("w", cpu=3, labels={"app": "web"}))])

    assert worlds.requested(0).tolist() == [3000, 4000]
    assert worlds.domain_count(WEB, ZONE).tolist() == [2, 3]
    assert [one.name for one in worlds.pods(1)] == ["web-a2", "w"]
    assert cluster.pods_on(1) == [one for one in worlds.pods(1) if one.name != "w"]


def test_a_pod_that_joins_everywhere_counts_for_no_domain_where_its_node_is_in_none() -> None:
    cluster = cluster_of(node("n"), node("m", zone="a"))
    worlds = WhatIfView(cluster, rows(0, 1))

    worlds.join_everywhere([cluster.read(pod("w", labels={"app": "web"}))], rows(0))

    assert worlds.labelled_count(WEB, ZONE).tolist() == [0, 0]
    assert worlds.domain_count(WEB, ZONE).tolist() == [0, 0]


def test_the_last_change_decides_the_holder_of_a_port() -> None:
    """kube-scheduler keeps ports as a set: one entry, taken away by the first holder that leaves."""
    port = holds_host_port(HostPort("0.0.0.0", "TCP", 80))
    cluster = cluster_of(node("n"), pod("q", on="n", ports=[80]), pod("r", on="n", ports=[80]))
    worlds = WhatIfView(cluster, rows(0))
    assert worlds.is_held(port).tolist() == [True]

    worlds.remove(rows(0), slots(cluster, "q"))
    assert worlds.is_held(port).tolist() == [False]
    assert worlds.count(port).tolist() == [1]
    worlds.add(rows(0), slots(cluster, "q"))
    assert worlds.is_held(port).tolist() == [True]


def test_terminating_pods_that_leave_are_taken_off_a_count_that_never_had_them() -> None:
    """kube-scheduler does the same with the pods of topology spread constraints."""
    living = InNamespace("default", compile_label_selector(selector("app=web")))
    cluster = cluster_of(node("n", zone="a"), pod("q", on="n", labels={"app": "web"}, terminating=True))
    worlds = WhatIfView(cluster, rows(0))
    worlds.remove(rows(0), slots(cluster, "q"))

    assert View(cluster).count(living).tolist() == [0]
    assert worlds.count(living).tolist() == [-1]
    assert worlds.change(living).tolist() == worlds.change(WEB).tolist() == [-1]


@settings(max_examples=usual(60))
@given(clusters(Traits(affinity=True, ports=True, terminating=True), most_pods=9), terms(), st.data())
def test_each_world_is_the_cluster_without_the_pods_that_left_it(
    objects: Objects, counted: object, data: st.DataObject
) -> None:
    """This holds for any question, and at any time of the first question."""
    cluster = cluster_of(*objects.surroundings)
    names = sorted(cluster.nodes.row_of, key=cluster.nodes.row_of.__getitem__)
    worlds = WhatIfView(cluster, rows(*(cluster.nodes.row_of[name] for name in names)))
    term = compile_term(counted, "default")  # type: ignore[arg-type]
    predicates: list[Predicate] = [SelectedByTerms((term,)), carries_anti_affinity(term)]
    asked_before = data.draw(st.booleans())
    if asked_before:
        _ = [worlds.count(one) for one in predicates]
    leaving = {name: _some(cluster.pods_on(row), data) for name, row in cluster.nodes.row_of.items()}
    pairs = [(position, one.slot) for position, name in enumerate(names) for one in leaving[name]]
    worlds.remove(rows(*(position for position, _ in pairs)), rows(*(slot for _, slot in pairs)))

    for position, name in enumerate(names):
        gone = {one.uid for one in leaving[name]}
        alone = cluster_of(*objects.without(gone))
        row = alone.nodes.row_of[name]
        view = View(alone, rows(row))
        assert worlds.pod_count()[position] == alone.nodes.pod_count[row]
        for index, resource in enumerate(cluster.nodes.resources):
            there = alone.nodes.resource_index.get(resource)
            expected = 0 if there is None else int(alone.nodes.requested[there, row])
            assert worlds.requested(index)[position] == expected
        for predicate in predicates:
            assert worlds.count(predicate)[position] == view.count(predicate)[0]
            for key in KEYS:
                assert worlds.domain_count(predicate, key)[position] == view.domain_count(predicate, key)[0]
                assert worlds.labelled_count(predicate, key)[position] == view.labelled_count(predicate, key)[0]


@settings(max_examples=usual(60))
@given(clusters(Traits(affinity=True), most_pods=9), terms(), st.data())
def test_each_world_is_the_cluster_with_the_pods_that_joined_all(
    objects: Objects, counted: object, data: st.DataObject
) -> None:
    """Nodes that lack a label are in none of its domains."""
    cluster = cluster_of(*objects.surroundings)
    names = sorted(cluster.nodes.row_of, key=cluster.nodes.row_of.__getitem__)
    on = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    labels = [data.draw(st.sampled_from(LABELS)) for _ in on]
    called = [f"joining-{index}" for index in range(len(on))]
    joining = [pod(name, labels=worn) for name, worn in zip(called, labels, strict=True)]
    placed = [pod(name, labels=worn, on=place) for name, worn, place in zip(called, labels, on, strict=True)]
    worlds = WhatIfView(cluster, rows(*(cluster.nodes.row_of[name] for name in names)))
    joined = rows(*(cluster.nodes.row_of[name] for name in on))
    worlds.join_everywhere([cluster.read(each) for each in joining], joined)

    view = View(cluster_of(*objects.surroundings, *placed))
    predicate = SelectedByTerms((compile_term(counted, "default"),))  # type: ignore[arg-type]
    assert worlds.pod_count().tolist() == view.pod_count().tolist()
    assert worlds.count(predicate).tolist() == view.count(predicate).tolist()
    for key in KEYS:
        assert worlds.domain_count(predicate, key).tolist() == view.domain_count(predicate, key).tolist()
        assert worlds.labelled_count(predicate, key).tolist() == view.labelled_count(predicate, key).tolist()


def _some(pods: list[PodRecord], data: st.DataObject) -> list[PodRecord]:
    return [one for one in pods if data.draw(st.booleans())]


def test_pods_that_join_nodes_without_the_label_are_in_no_domain_of_any_world() -> None:
    cluster = cluster_of(node("n0", zone="za"), node("n1"))
    worlds = WhatIfView(cluster, rows(0, 1))
    worlds.join_everywhere([cluster.read(pod("web", labels={"app": "web"}))], rows(1))

    assert worlds.domain_count(WEB, ZONE).tolist() == [0, 0]
    assert worlds.labelled_count(WEB, ZONE).tolist() == [0, 0]
