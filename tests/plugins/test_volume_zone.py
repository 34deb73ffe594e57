"""Rules of VolumeZone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import Node
from podium.api.storage import PersistentVolumeClaim
from podium.cluster.cluster import Cluster
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.verdicts import SKIP, Status, unresolvable
from podium.plugins.volumes.filters import VolumeZone
from tests.plugins.volume_objects import (
    LATE,
    NOW,
    claim,
    cluster_of,
    context,
    ephemeral,
    mounts,
    node,
    pod,
    refused,
    turned_down,
    volume,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = unresolvable("node(s) had no available volume zone")


def plugin_for(cluster: Cluster) -> VolumeZone:
    return VolumeZone(context(cluster))


def answers(of_volume: dict[str, str], *nodes: Node) -> dict[str, Status]:
    """Return the refusals to a pod that mounts a claim bound to a volume with some labels."""
    cluster = cluster_of(*nodes, claim("a", volume="v"), volume("v", labels=of_volume))
    return refused(plugin_for(cluster), cluster, pod("incoming", mounts("a")))


def turned_down_with(*storage: Kubernetes) -> Status:
    cluster = cluster_of(node("n1", zone="east"), *storage)
    return turned_down(plugin_for(cluster), cluster, pod("incoming", mounts("a")))


def test_a_pod_goes_where_its_volume_is() -> None:
    here, there = node("n1", **{ZONE: "east"}), node("n2", **{ZONE: "west"})
    assert answers({ZONE: "east"}, here, there) == {"n2": ELSEWHERE}


def test_a_volume_may_be_in_several_zones() -> None:
    nodes = [node(name, **{ZONE: name}) for name in ("east", "west", "north")]
    assert answers({ZONE: "east__west"}, *nodes) == {"north": ELSEWHERE}


def test_all_labels_of_a_volume_must_match() -> None:
    here, there = node("n1", **{ZONE: "a", REGION: "r1"}), node("n2", **{ZONE: "a", REGION: "r2"})
    assert answers({ZONE: "a", REGION: "r1"}, here, there) == {"n2": ELSEWHERE}


def test_a_node_without_any_topology_label_takes_every_volume() -> None:
    assert answers({ZONE: "east"}, node("n1", disk="ssd")) == {}


def test_a_node_with_another_topology_label_must_have_that_of_the_volume() -> None:
    assert answers({ZONE: "east"}, node("n1", **{REGION: "r1"})) == {"n1": ELSEWHERE}


def test_a_beta_label_of_a_volume_matches_the_nodes_label_of_today_where_it_lacks_the_old_one() -> None:
    assert answers({BETA_ZONE: "east"}, node("n1", **{ZONE: "east"})) == {}
    assert answers({BETA_ZONE: "east"}, node("n1", **{BETA_ZONE: "west", ZONE: "east"})) == {"n1": ELSEWHERE}
    assert answers({ZONE: "east"}, node("n1", **{BETA_ZONE: "east"})) == {"n1": ELSEWHERE}


def test_a_label_with_an_empty_part_says_nothing() -> None:
    assert answers({ZONE: "east__", REGION: "r1"}, node("n1", **{ZONE: "west", REGION: "r1"})) == {}


@pytest.mark.parametrize("labels", [{}, {"disk": "ssd"}, {ZONE: ""}])
def test_volumes_without_topology_labels_are_skipped(labels: dict[str, str]) -> None:
    assert turned_down_with(claim("a", volume="v"), volume("v", labels=labels)) == SKIP


def test_claims_that_wait_for_their_first_pod_are_left_to_volume_binding() -> None:
    assert turned_down_with(claim("a"), LATE) == SKIP


def test_claims_of_ephemeral_volumes_are_left_to_others() -> None:
    cluster = cluster_of(node("n1"))
    assert turned_down(plugin_for(cluster), cluster, pod("incoming", [ephemeral("scratch")])) == SKIP


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ([], 'persistentvolumeclaim "a" not found'),
        ([claim("a", volume="v")], 'persistentvolume "v" not found'),
        ([claim("a", None)], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("a")], 'storageclass.storage.k8s.io "late" not found'),
        ([claim("a", "now"), NOW], "PersistentVolume had no name"),
    ],
)
def test_a_claim_that_can_have_no_zone_turns_the_pod_down(storage: list[Kubernetes], reason: str) -> None:
    assert turned_down_with(*storage) == unresolvable(reason)


def test_the_class_in_the_old_annotation_goes_before_the_field() -> None:
    noted = claim("a", "now", annotations={"volume.beta.kubernetes.io/storage-class": "late"})
    assert turned_down_with(noted, LATE, NOW) == SKIP


def wakes(resource: EventResource, new: object, old: object = None) -> bool:
    cluster = cluster_of(node("n1"))
    record = cluster.read(pod("incoming", mounts("a")))
    action = ActionType.ADD if old is None else ActionType.UPDATE_OTHER
    event = ClusterEvent(resource, action, old=old, new=new)
    return any(each.wakes(record, event) for each in plugin_for(cluster).events_to_register())


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_volume_comes_or_moves() -> None:
    east, west = volume("v", labels={ZONE: "east"}), volume("v", labels={ZONE: "west"})
    assert wakes(EventResource.PERSISTENT_VOLUME, east)
    assert wakes(EventResource.PERSISTENT_VOLUME, east, west)
    assert not wakes(EventResource.PERSISTENT_VOLUME, east, volume("v", labels={ZONE: "east", "disk": "ssd"}))


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_its_claim_comes_or_changes() -> None:
    assert wakes(EventResource.PERSISTENT_VOLUME_CLAIM, claim("a"))
    assert wakes(EventResource.PERSISTENT_VOLUME_CLAIM, claim("a", volume="v"), claim("a"))
    assert not wakes(EventResource.PERSISTENT_VOLUME_CLAIM, claim("b"))
    foreign = PersistentVolumeClaim(metadata=ObjectMeta(name="a", namespace="other"))
    assert not wakes(EventResource.PERSISTENT_VOLUME_CLAIM, foreign)


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_class_comes_that_binds_late() -> None:
    assert wakes(EventResource.STORAGE_CLASS, LATE)
    assert not wakes(EventResource.STORAGE_CLASS, NOW)


VALUES = st.sampled_from(["", "a", "b"])
LABELS = st.dictionaries(st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]), VALUES)
PLACES = st.dictionaries(
    st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]),
    st.sampled_from(["a", "b", "a__b", "", "a__"]),
)


def by_hand(of_volumes: list[dict[str, str]], of_node: dict[str, str]) -> bool:
    """Return whether one node refuses."""
    if not of_node:
        return False
    today = {BETA_ZONE: ZONE, BETA_REGION: REGION}
    for labels in of_volumes:
        for key, text in labels.items():
            values = text.split("__")
            if "" not in values and of_node.get(key, of_node.get(today.get(key, key))) not in values:
                return True
    return False


@given(of_volumes=st.lists(PLACES, max_size=2), of_nodes=st.lists(LABELS, max_size=4))
def test_all_nodes_at_once_are_as_one_after_another(
    of_volumes: list[dict[str, str]], of_nodes: list[dict[str, str]]
) -> None:
    names = [f"c{index}" for index in range(len(of_volumes))]
    storage = [claim(name, volume=name) for name in names]
    volumes = [volume(name, labels=labels) for name, labels in zip(names, of_volumes, strict=True)]
    nodes = [node(f"n{index}", **labels) for index, labels in enumerate(of_nodes)]
    cluster = cluster_of(*nodes, *storage, *volumes)
    expected = {f"n{index}" for index, labels in enumerate(of_nodes) if by_hand(of_volumes, labels)}
    found = refused(plugin_for(cluster), cluster, pod("incoming", mounts(*names)))
    assert found == dict.fromkeys(expected, ELSEWHERE)
