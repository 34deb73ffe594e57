"""Unused ids are released, and reused ids carry no old state."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, cast
from weakref import ref

import pytest

from podium.api.pod import Pod
from podium.api.selectors import parse_label_selector
from podium.cluster import matchers, nodes, pod_classes
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import InNamespace, SelectedByTerms, carries_anti_affinity
from podium.cluster.nodes import ValueCodes
from podium.cluster.pod_classes import compile_term
from tests.builders import HOSTNAME, ZONE, cluster_of, namespace, node, pod, term


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Disable the collector of reference cycles, as in simulations: no release may depend on it."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def no_class_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a class ends with its last pod."""
    monkeypatch.setattr(pod_classes, "KEPT_CLASSES", 0)


def place(cluster: Cluster, one: Pod) -> None:
    cluster.add_pod(cluster.read(one))


def in_default(match: str) -> InNamespace:
    return InNamespace("default", parse_label_selector(match))


def test_plain_classes_are_known_until_so_many_others_have_been_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_classes, "KEPT_CLASSES", 2)
    cluster = cluster_of(node("n"))
    first = ref(cluster.read(pod("a", cpu=1)).pod_class)
    carrying = ref(cluster.read(pod("b", apart=[term("app=a")])).pod_class)
    for number in (2, 1, 3):
        cluster.read(pod("c", cpu=number))
        assert first() is cluster.read(pod("d", cpu=1)).pod_class
    assert carrying() is None

    for number in (2, 3):
        cluster.read(pod("e", cpu=number))

    assert first() is None


@pytest.mark.usefixtures("no_class_is_kept")
def test_a_class_ends_with_the_last_record_of_its_pods() -> None:
    cluster = cluster_of(node("n"), pod("a", on="n", cpu=1), pod("b", on="n", cpu=1), pod("c", on="n", cpu=2))
    assert len(cluster.classes) == 2
    pending = cluster.read(pod("d", cpu=1))

    for uid in ("default/a", "default/b"):
        cluster.remove_pod(uid)
    cluster.read(pod("e", cpu=3))
    assert len(cluster.classes) == 3

    del pending
    cluster.read(pod("f", cpu=4))
    assert [one.requests for one in cluster.classes] == [{0: 2000}]


@pytest.mark.usefixtures("no_class_is_kept")
def test_the_id_of_a_class_that_ended_is_given_again_with_nothing_left_of_it() -> None:
    cluster = cluster_of(node("n", zone="a"), pod("old", on="n", cpu=1, labels={"app": "a"}, example_com__gpu=2))
    old = cluster.classes[0]
    predicate = in_default("app=a")
    assert cluster.matcher(predicate).count[0] == 1
    del old

    cluster.remove_pod("default/old")
    cluster.read(pod("nobody"))
    place(cluster, pod("new", on="n", labels={"app": "b"}))

    new = cluster.placed["default/new"].pod_class
    assert new.id == 0
    assert cluster.classes.requests[:, 0].tolist() == [0] * len(cluster.nodes.resources)
    assert cluster.matcher(predicate).count[0] == 0
    assert cluster.matcher(in_default("app=b")).count[0] == 1


def test_terms_go_with_the_last_class_that_carries_them() -> None:
    cluster = cluster_of(node("n", zone="a"))
    wanted = cluster.read(pod("wanted", labels={"app": "web"})).pod_class
    apart = term("app=web")
    carrying = [pod(name, on="n", labels={"app": name}, apart=[apart], likes=[(3, apart)]) for name in ("a", "b")]
    for one in carrying:
        place(cluster, one)
    assert list(cluster.carried.anti_affinity.selecting(wanted)) == [compile_term(apart, "default")]

    cluster.remove_pod("default/a")
    cluster.read(pod("x"))
    kinds = (cluster.carried.anti_affinity, cluster.carried.preferences)
    assert [len(kind.selecting(wanted)) for kind in kinds] == [1, 1]

    cluster.remove_pod("default/b")
    cluster.read(pod("x"))
    assert [len(kind.selecting(wanted)) for kind in kinds] == [0, 0]


def test_matchers_go_with_the_last_class_that_matches() -> None:
    cluster = cluster_of(node("n", zone="a"), pod("a", on="n", labels={"app": "a"}, apart=[term("app=a")]))
    carried = compile_term(term("app=a"), "default")
    for predicate in (in_default("app=a"), SelectedByTerms((carried,)), carries_anti_affinity(carried)):
        cluster.domain_counts(predicate, HOSTNAME)
    assert len(cluster.matchers) == 3

    cluster.remove_pod("default/a")
    cluster.read(pod("x"))

    assert len(cluster.matchers) == 0


def test_unused_matchers_are_dropped_when_others_are_added() -> None:
    cluster = cluster_of(node("n"), pod("a", on="n", labels={"app": "a"}))
    kept = in_default("app")
    for number in range(4 * matchers.AT_LEAST):
        assert cluster.matcher(kept).count[0] == 1
        assert cluster.matcher(in_default(f"app!=b{number}")).count[0] == 1

    assert len(cluster.matchers) <= 2 * matchers.AT_LEAST + 1


def test_unused_label_columns_are_dropped_unless_a_count_needs_them() -> None:
    cluster = cluster_of(node("n", zone="a", labels={"rack": "r"}), pod("a", on="n", labels={"app": "a"}))
    assert cluster.domain_counts(in_default("app"), ZONE).tolist() == [0, 1]
    pinned = cluster.nodes.labels(ZONE)
    rack = cluster.nodes.labels("rack")
    for number in range(4 * nodes.AT_LEAST):
        cluster.nodes.labels(f"key-{number}")

    assert cluster.nodes.labels(ZONE) is pinned
    assert cluster.nodes.labels("rack") is not rack
    assert cluster.nodes.labels("rack").values == [None, "r"]
    place(cluster, pod("b", on="n", labels={"app": "b"}))
    assert cluster.domain_counts(in_default("app"), ZONE).tolist() == [0, 2]


def test_codes_of_labels_and_taints_are_given_again() -> None:
    cluster = Cluster()
    for number in range(50):
        cluster.put(node("n", labels={"rack": f"r{number}"}, taints=[f"t{number}=x:NoSchedule"]))
        cluster.put(node(f"m{number}", labels={HOSTNAME: f"m{number}"}))
        assert cluster.nodes.labels("rack").codes[cluster.nodes.row_of["n"]] != 0
        assert cluster.nodes.labels(HOSTNAME).find(f"m{number}") != 0
        cluster.remove_node(f"m{number}")

    assert cluster.nodes.labels("rack").find("r49") != 0
    assert all(len(one) <= 3 for one in (cluster.nodes.labels("rack").values, cluster.nodes.taint_groups))
    assert len(cluster.nodes.labels(HOSTNAME).values) == 2


def test_a_code_represents_its_value_while_a_row_uses_it() -> None:
    codes: ValueCodes[str | None] = ValueCodes(None)
    first, second = codes.take("a"), codes.take("a")
    assert first == second != 0

    codes.give_back(first)
    assert codes.find("a") == first

    codes.give_back(second)
    assert (codes.find("a"), codes.values[first]) == (0, None)
    assert codes.take("b") == first


def test_a_placed_pod_counts_in_its_domains_after_label_changes() -> None:
    cluster = cluster_of(node("n", zone="a"), node("m", zone="b"), pod("a", on="n", labels={"app": "a"}))
    cluster.domain_counts(in_default("app"), ZONE)
    column = cluster.nodes.labels(ZONE)

    cluster.put(node("n", zone="c"))
    assert int(cluster.domain_counts(in_default("app"), ZONE)[column.find("c")]) == 1

    cluster.put(node("n"))
    assert cluster.domain_counts(in_default("app"), ZONE)[1:].sum() == 0

    cluster.put(node("n", zone="b"))
    cluster.remove_node("m")
    assert int(cluster.domain_counts(in_default("app"), ZONE)[column.find("b")]) == 1


def test_relabelling_a_namespace_affects_only_its_own_affinity_terms() -> None:
    wide = compile_term(term("app=a", in_namespaces="team=red"), "default")
    cluster = cluster_of(namespace("shop", team="blue"), node("n"))
    for name in ("shop", "default"):
        place(cluster, pod("a", namespace=name, on="n", labels={"app": "a"}))
    elsewhere = cluster.matcher(in_default("app=a"))
    asking = cluster.read(pod("asking", on="n", apart=[term("app=a", in_namespaces="team=red")]))
    assert cluster.matcher(SelectedByTerms((wide,))).count[0] == 0

    cluster.put(namespace("shop", team="red"))

    assert cluster.matcher(SelectedByTerms((wide,))).count[0] == 1
    assert cluster.matcher(in_default("app=a")) is elsewhere
    shop, default = (cluster.placed[f"{name}/a"].pod_class for name in ("shop", "default"))
    assert [len(cluster.carried.anti_affinity.selecting(one)) for one in (shop, default)] == [1, 0]
    assert asking.pod_class.required_anti_affinity == (wide,)


@pytest.mark.usefixtures("no_class_is_kept")
def test_places_of_resources_that_neither_node_nor_pod_names_are_given_again() -> None:
    cluster = cluster_of(node("n"))
    for number in range(20):
        four, some = ({f"example_com__gpu{number}": amount} for amount in (4, number))
        cluster.put(node("n", **cast(Any, four)))
        place(cluster, pod("p", on="n", cpu=1, **cast(Any, some)))
        gpu = cluster.nodes.resource_index[f"example.com/gpu{number}"]
        cluster.put(node("n"))
        assert (cluster.nodes.allocatable[gpu, 0], cluster.nodes.requested[gpu, 0]) == (0, number)
        cluster.remove_pod("default/p")
        assert cluster.nodes.requested[:, 0].tolist() == [0] * len(cluster.nodes.resources)
        cluster.read(pod("q"))

    assert len(cluster.nodes.resources) <= 5
