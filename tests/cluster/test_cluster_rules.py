"""Rules for adding nodes and pods to a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.pod import EphemeralVolumeSource, PersistentVolumeClaimVolumeSource, Pod, Volume
from podium.api.resource_requests import SUMMABLE_PODS
from podium.api.selectors import EVERYTHING, compile_label_selector
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import InNamespace
from podium.cluster.nodes import CPU
from podium.cluster.pods import NO_ROW
from tests.builders import ZONE, cluster_of, node, pod, replica_set, selector, service


def requested(cluster: Cluster, name: str) -> int:
    return int(cluster.nodes.requested[CPU, cluster.nodes.row_of[name]])


def replaced(cluster: Cluster, one: Pod) -> None:
    cluster.replace_pod(cluster.read(one))


@pytest.mark.upstream(45)
def test_pods_that_come_before_their_node_are_on_it_when_it_comes() -> None:
    cluster = cluster_of(pod("q", on="n", cpu=1), node("other"))
    assert cluster.placed["default/q"].row == NO_ROW

    cluster.put(node("n"))

    assert requested(cluster, "n") == 1000
    assert [one.name for one in cluster.pods_on(cluster.nodes.row_of["n"])] == ["q"]


@pytest.mark.upstream(45)
def test_pods_outlive_their_node_and_find_it_again() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n", cpu=1))

    cluster.remove_node("n")
    assert cluster.placed["default/q"].row == NO_ROW
    cluster.put(node("another"))
    assert requested(cluster, "another") == 0
    cluster.put(node("n"))
    assert requested(cluster, "n") == 1000


def test_a_pod_without_a_node_can_go_too() -> None:
    cluster = cluster_of(pod("q", on="gone", cpu=1), pod("r", on="gone", cpu=1))
    cluster.remove_pod("default/q")

    cluster.put(node("gone"))

    assert requested(cluster, "gone") == 1000


def test_the_row_of_a_node_that_left_is_used_again() -> None:
    cluster = cluster_of(node("a", labels={"disk": "ssd"}, taints=["gpu:NoSchedule"], cpu=9), node("b"))
    cluster.nodes.labels("disk")
    cluster.remove_node("a")

    row = cluster.put_node(node("c", cpu=2))

    nodes = cluster.nodes
    assert (row, nodes.count, len(nodes)) == (0, 2, 2)
    assert (nodes.name(row), int(nodes.allocatable[CPU, row])) == ("c", 2000)
    assert (int(nodes.labels("disk").codes[row]), nodes.taint_groups[nodes.taint_group[row]]) == (0, ())


def test_a_row_without_a_node_has_no_name() -> None:
    cluster = cluster_of(node("a"))
    cluster.remove_node("a")

    with pytest.raises(KeyError):
        cluster.nodes.name(0)
    with pytest.raises(KeyError):
        cluster.nodes.node(0)


def test_a_node_that_loses_a_resource_has_none_of_it() -> None:
    cluster = cluster_of(node("n", example_com__gpu=4))
    gpu = cluster.nodes.resource_index["example.com/gpu"]

    cluster.put(node("n"))

    assert int(cluster.nodes.allocatable[gpu, 0]) == 0


def test_a_node_cannot_be_dropped_from_the_columns_while_pods_are_on_it() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n"))

    with pytest.raises(ValueError, match="node n still has pods"):
        cluster.nodes.remove("n")


@pytest.mark.upstream(45)
def test_a_pod_is_placed_once() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n"))

    with pytest.raises(ValueError, match=r"pod default/q .* is placed already"):
        cluster.add_pod(cluster.read(pod("q", on="n")))
    cluster.remove_pod("default/q")
    with pytest.raises(KeyError):
        cluster.remove_pod("default/q")


@pytest.mark.upstream(45)
def test_a_newer_reading_takes_the_place_of_the_older() -> None:
    cluster = cluster_of(node("n"), node("m"), pod("q", on="n", cpu=1, started=1))

    replaced(cluster, pod("q", on="n", cpu=2))
    assert requested(cluster, "n") == 2000
    replaced(cluster, pod("q", on="m", cpu=2))
    assert (requested(cluster, "n"), requested(cluster, "m")) == (0, 2000)
    with pytest.raises(KeyError):
        replaced(cluster, pod("unknown", on="n"))


def test_a_newer_reading_counts_by_its_labels_and_not_among_the_living_once_it_terminates() -> None:
    webs = InNamespace("default", compile_label_selector(selector("app=web")))
    cluster = cluster_of(node("n"), pod("q", on="n", labels={"app": "web"}))

    def number() -> int:
        return int(cluster.matcher(webs).count[0])

    assert number() == 1
    replaced(cluster, pod("q", on="n", labels={"app": "web"}, terminating=True))
    assert number() == 0
    replaced(cluster, pod("q", on="n", labels={"app": "web"}))
    assert number() == 1
    replaced(cluster, pod("q", on="n", labels={"app": "db"}))
    assert number() == 0


def test_a_reading_that_changes_nothing_that_counts_leaves_the_row_alone() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n", cpu=1, started=1))
    before = cluster.nodes.changes.position

    replaced(cluster, pod("q", on="n", cpu=1, started=1, preempted=True))

    assert cluster.nodes.changes.position == before
    assert cluster.placed["default/q"].preempted
    assert cluster.pods_on(0) == [cluster.placed["default/q"]]


def test_a_pod_that_becomes_preemptible_or_starts_changes_its_row_for_preemption_alone() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n"))
    for one in (pod("q", on="n", policy="NonPreemptible"), pod("q", on="n", policy="NonPreemptible", started=3)):
        before = cluster.nodes.changes.position
        replaced(cluster, one)
        assert cluster.nodes.changes.entries_since(before) == [0]
        assert cluster.nodes.changes.visible_since(before) == []


def test_every_reading_changes_a_row_for_placement_too_where_plugins_may_look_at_anything() -> None:
    cluster = cluster_of(node("n"), pod("q", on="n"))
    cluster.notes_every_reading = True
    before = cluster.nodes.changes.position

    replaced(cluster, pod("q", on="n", started=3))

    assert cluster.nodes.changes.visible_since(before) == [0]


def test_claims_are_in_use_while_a_pod_on_a_node_mounts_them() -> None:
    claim = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="disk"))
    scratch = Volume(name="scratch", ephemeral=EphemeralVolumeSource())
    cluster = cluster_of(node("n"))
    for name in ("q", "r"):
        cluster.add_pod(cluster.read(pod(name, on="n", spec={"volumes": (claim, scratch)})))
    assert cluster.claim_users == {"default/disk": 2, "default/q-scratch": 1, "default/r-scratch": 1}

    cluster.remove_pod("default/q")
    cluster.remove_node("n")

    assert cluster.claim_users == {}


def test_columns_grow_with_nodes_pods_classes_and_resources() -> None:
    """Beyond what there is room for at first, while counts are kept."""
    cluster = cluster_of(node("n0", zone="a"))
    record = cluster.read(pod("web", on="n0", labels={"app": "web"}))
    cluster.add_pod(record)
    webs = InNamespace("default", compile_label_selector(selector("app=web")))
    assert cluster.domain_counts(webs, ZONE).tolist() == [0, 1]

    for number in range(1, 150):
        resource: dict[str, Any] = {f"example_com__r{number}": 1}
        cluster.put(node(f"n{number}", zone="ab"[number % 2], **resource))
    for number in range(600):
        labels = {"app": "web" if number % 3 == 0 else "db", "number": str(number)}
        cluster.add_pod(cluster.read(pod(f"q{number}", on=f"n{number % 150}", cpu="10m", labels=labels)))

    assert cluster.domain_counts(webs, ZONE).sum() == 201
    assert int(cluster.nodes.requested[CPU].sum()) == 6000
    assert int(cluster.matcher(webs).count.sum()) == 201
    assert (len(cluster.nodes), len(cluster.placed), len(cluster.classes)) == (150, 601, 601)
    assert cluster.nodes.name(149) == "n149"


def test_pods_that_differ_only_in_what_is_their_own_share_a_class() -> None:
    cluster = Cluster()
    one = cluster.read(pod("a", on="n", cpu=1, priority=1, gates=["g"], labels={"app": "web"}, started=1))

    same = cluster.read(pod("b", cpu=1, priority=2, policy="Never", labels={"app": "web"}))
    assert same.pod_class is one.pod_class
    for other in (
        pod("a", cpu=2, labels={"app": "web"}),
        pod("a", cpu=1, labels={"app": "db"}),
        pod("a", cpu=1, labels={"app": "web"}, namespace="shop"),
        pod("a", cpu=1, labels={"app": "web"}, owner="ReplicaSet/web"),
    ):
        assert cluster.read(other).pod_class is not one.pod_class


def test_pods_may_request_numbers_of_more_than_64_bits() -> None:
    cluster = cluster_of(node("n"))

    first, same, other = (cluster.read(pod(name, cpu=cpu)) for name, cpu in (("a", 2**64), ("b", 2**64), ("c", 2**65)))

    assert first.pod_class is same.pod_class
    assert first.pod_class is not other.pod_class
    # As all amounts, they count as 2**63 - 1 at most.
    assert first.pod_class.requests[CPU] == other.pod_class.requests[CPU]


def test_pods_with_differently_named_volumes_share_a_class_if_nothing_else_differs() -> None:
    cluster = Cluster()
    plain = pod("q")
    first, second, third = (
        replace(plain, spec=replace(plain.spec, volumes=volumes))
        for volumes in (
            (Volume(name="kube-api-access-1"),),
            (Volume(name="kube-api-access-2"),),
            (Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="a")),),
        )
    )

    shared = cluster.read(first).pod_class

    assert cluster.read(second).pod_class is shared
    assert cluster.read(third).pod_class is not shared


def test_services_and_owners_decide_which_pods_spread_together() -> None:
    """All that select the pod must select the others too."""
    cluster = cluster_of(service("a", app="web"), service("b", tier="x"), replica_set("web", "app in (web,db)"))

    def belong(mine: dict[str, str], other: dict[str, str]) -> bool:
        pod_class = cluster.read(pod("p", labels=mine, owner="ReplicaSet/web")).pod_class
        return cluster.groups.selector(pod_class).matches(other)

    web, front, db = {"app": "web"}, {"app": "web", "tier": "x"}, {"app": "db"}
    assert [belong(web, other) for other in (web, front, db)] == [True, True, False]
    assert [belong(front, other) for other in (web, front, db)] == [False, True, False]
    assert [belong(db, other) for other in (web, front, db)] == [True, True, True]
    cluster.remove(replica_set("web", ""))
    alone = cluster.read(pod("p", labels=db, owner="ReplicaSet/web")).pod_class
    assert cluster.groups.selector(alone) == EVERYTHING


def test_an_owner_of_the_same_kind_and_name_in_another_api_group_is_another() -> None:
    cluster = cluster_of(replica_set("web", "app=web"))
    owned = pod("p", labels={"app": "web"}, owner="ReplicaSet/web")
    (reference,) = owned.metadata.owner_references
    theirs = replace(reference, api_version="example.com/v1")
    foreign = replace(owned, metadata=replace(owned.metadata, owner_references=(theirs,)))

    assert cluster.groups.selector(cluster.read(owned).pod_class) != EVERYTHING
    assert cluster.groups.selector(cluster.read(foreign).pod_class) == EVERYTHING


def test_more_pods_than_entries_can_hold_the_sum_of_are_booked_all_the_same() -> None:
    cluster = cluster_of(node("n", cpu=4))
    row = cluster.nodes.row_of["n"]
    records = [cluster.read(pod(f"p{number}", on="n", cpu=1)) for number in range(SUMMABLE_PODS + 2)]
    for record in records:
        cluster.add_pod(record)

    assert cluster.nodes.requested[CPU, row] == 1_000 * len(records)
    assert cluster.nodes.pod_count[row] == cluster.nodes.entries.pod_count[row] == len(records)

    for record in records:
        cluster.remove_pod(record.uid)

    assert cluster.nodes.requested[CPU, row] == cluster.nodes.entries.requested[CPU][row] == 0
    assert not cluster.nodes.pod_count[row]
