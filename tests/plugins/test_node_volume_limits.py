"""Rules of NodeVolumeLimits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import CSINode
from podium.api.pod import AWSElasticBlockStore, GCEPersistentDisk, Pod, Volume
from podium.api.storage import CSIDriver, CSIDriverSpec, CSIPersistentVolumeSource, PersistentVolume, StorageClass
from podium.api.versions.release import read_version
from podium.cluster.cluster import Cluster
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.verdicts import SKIP, Status, unresolvable, unschedulable
from podium.plugins.volumes.limits import NodeVolumeLimits
from tests import builders
from tests.plugins.volume_objects import (
    LATE,
    attachment,
    claim,
    cluster_of,
    context,
    csi_node,
    ephemeral,
    mounts,
    node,
    pod,
    refused,
    refused_without,
    turned_down,
    volume,
)

DRIVER = LATE.provisioner
TOO_MANY = unschedulable("node(s) exceed max volume count")


def plugin_for(cluster: Cluster) -> NodeVolumeLimits:
    return NodeVolumeLimits(context(cluster))


def csi(name: str, driver: str = DRIVER) -> PersistentVolume:
    return volume(name, csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name))


def answers(limit: int | None, incoming: Pod, *objects: Kubernetes, driver: str = DRIVER) -> dict[str, Status]:
    """Return the refusals of a node n1 with a limit."""
    cluster = cluster_of(node("n1"), csi_node("n1", {driver: limit}), LATE, *objects)
    return refused(plugin_for(cluster), cluster, incoming)


def claims(*names: str) -> list[Kubernetes]:
    """Claims that are bound to CSI volumes of their names."""
    return [item for name in names for item in (claim(name, volume=name), csi(name))]


def test_a_pod_without_volumes_to_attach_is_skipped() -> None:
    cluster = cluster_of(node("n1"))
    assert turned_down(plugin_for(cluster), cluster, pod("incoming")) == SKIP


def test_volumes_of_pods_on_the_node_and_of_the_pod_stay_within_the_limit() -> None:
    storage = claims("a", "b", "c")
    running = pod("running", mounts("a"), node_name="n1")
    assert answers(2, pod("incoming", mounts("b")), running, *storage) == {}
    assert answers(2, pod("incoming", mounts("b", "c")), running, *storage) == {"n1": TOO_MANY}


def test_a_volume_that_is_attached_already_is_not_counted_again() -> None:
    running = pod("running", mounts("a"), node_name="n1")
    assert answers(1, pod("incoming", mounts("a")), running, *claims("a")) == {}
    assert answers(1, pod("incoming", mounts("a", "b")), running, *claims("a", "b")) == {"n1": TOO_MANY}


def test_all_volumes_of_a_pod_on_the_node_count() -> None:
    running = pod("running", mounts("a", "b"), node_name="n1")
    assert answers(2, pod("incoming", mounts("c")), running, *claims("a", "b", "c")) == {"n1": TOO_MANY}


def test_a_volume_counts_that_an_attachment_names_and_no_pod_mounts() -> None:
    storage = [*claims("a", "b"), csi("gone")]
    running = pod("running", mounts("a"), node_name="n1")
    left = attachment("left", "n1", "gone")
    assert answers(3, pod("incoming", mounts("b")), running, left, *storage) == {}
    assert answers(2, pod("incoming", mounts("b")), running, left, *storage) == {"n1": TOO_MANY}


def test_a_volume_that_a_pod_mounts_and_an_attachment_names_counts_once() -> None:
    running = pod("running", mounts("a"), node_name="n1")
    found = [running, attachment("a", "n1", "a"), attachment("again", "n1", "a"), *claims("a", "b")]
    assert answers(2, pod("incoming", mounts("b")), *found) == {}
    assert answers(1, pod("incoming", mounts("b")), *found) == {"n1": TOO_MANY}
    assert answers(1, pod("incoming", mounts("a")), *found) == {}


def test_a_new_volume_that_only_an_attachment_names_counts_twice_as_it_does_upstream() -> None:
    found = [attachment("a", "n1", "a"), *claims("a")]
    assert answers(2, pod("incoming", mounts("a")), *found) == {}
    assert answers(1, pod("incoming", mounts("a")), *found) == {"n1": TOO_MANY}


def test_attachments_of_other_drivers_nodes_and_unknown_volumes_do_not_count() -> None:
    in_tree = volume("in-tree", aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1"))
    others = [
        attachment("a", "n1", "gone", attacher="other.example.com"),
        attachment("b", "n2", "gone"),
        attachment("c", "n1", "unheard-of"),
        attachment("d", "n1", "in-tree"),
        attachment("e", "n1", ""),
    ]
    assert answers(1, pod("incoming", mounts("a")), *claims("a"), csi("gone"), in_tree, *others) == {}


def test_attachments_are_followed_as_they_come_move_and_go() -> None:
    cluster = cluster_of(node("n1"), csi_node("n1", {DRIVER: 1}), LATE, *claims("a"), csi("gone"))
    plugin, incoming = plugin_for(cluster), pod("incoming", mounts("a"))
    assert refused(plugin, cluster, incoming) == {}
    cluster.storage.put(attachment("left", "n1", "gone"))
    assert refused(plugin, cluster, incoming) == {"n1": TOO_MANY}
    cluster.storage.put(attachment("left", "n2", "gone"))
    assert refused(plugin, cluster, incoming) == {}
    cluster.storage.put(attachment("left", "n1", "gone"))
    cluster.storage.remove(attachment("left", "n1", "gone"))
    assert refused(plugin, cluster, incoming) == {}
    assert cluster.storage.attached_to == {}


def test_two_claims_of_one_volume_are_one_attachment() -> None:
    storage = [claim("a", volume="v"), claim("b", volume="v"), csi("v")]
    assert answers(1, pod("incoming", mounts("a", "b")), *storage) == {}


def test_a_full_node_still_takes_what_is_attached_to_it() -> None:
    running = pod("running", mounts("a", "b"), node_name="n1")
    assert answers(1, pod("incoming", mounts("a")), running, *claims("a", "b")) == {}


def test_only_volumes_of_the_limited_driver_count() -> None:
    other = [claim("x", volume="x"), csi("x", "other.example.com")]
    running = pod("running", mounts("x"), node_name="n1")
    assert answers(1, pod("incoming", mounts("a")), running, *claims("a"), *other) == {}
    assert answers(0, pod("incoming", mounts("x")), *other) == {}


def test_a_driver_without_a_limit_attaches_any_number() -> None:
    assert answers(None, pod("incoming", mounts("a", "b")), *claims("a", "b")) == {}


def test_a_node_whose_drivers_are_unknown_attaches_any_number() -> None:
    cluster = cluster_of(node("n1"), *claims("a"))
    assert refused(plugin_for(cluster), cluster, pod("incoming", mounts("a"))) == {}


def test_an_unbound_claim_counts_for_the_driver_of_its_class() -> None:
    assert answers(0, pod("incoming", mounts("a")), claim("a")) == {"n1": TOO_MANY}
    assert answers(0, pod("incoming", mounts("a")), claim("a", "unheard-of")) == {}
    assert answers(0, pod("incoming", mounts("a")), claim("a", None)) == {}


def test_a_claim_whose_volume_is_unknown_counts_for_the_driver_of_its_class() -> None:
    assert answers(0, pod("incoming", mounts("a")), claim("a", volume="unheard-of")) == {"n1": TOO_MANY}


def test_claims_of_ephemeral_volumes_count() -> None:
    storage = [claim("incoming-scratch"), claim("running-scratch")]
    running = pod("running", [ephemeral("scratch")], node_name="n1")
    assert answers(2, pod("incoming", [ephemeral("scratch")]), running, *storage) == {}
    assert answers(1, pod("incoming", [ephemeral("scratch")]), running, *storage) == {"n1": TOO_MANY}


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
        ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
        ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
        ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ],
)
def test_a_class_of_an_in_tree_provisioner_counts_for_the_csi_driver_that_replaced_it(
    provisioner: str, driver: str
) -> None:
    old = StorageClass(metadata=ObjectMeta(name="old"), provisioner=provisioner)
    assert answers(0, pod("incoming", mounts("a")), claim("a", "old"), old, driver=driver) == {"n1": TOO_MANY}


def test_a_disk_named_by_a_pod_is_the_one_that_a_volume_names() -> None:
    inline = Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1"))
    in_tree = volume("v", aws_elastic_block_store=AWSElasticBlockStore(volume_id="aws://us-east-1a/vol-1"))
    storage = [claim("a", volume="v"), in_tree]
    running = pod("running", [inline], node_name="n1")
    assert answers(1, pod("incoming", mounts("a")), running, *storage, driver="ebs.csi.aws.com") == {}
    assert answers(0, pod("incoming", [inline]), driver="ebs.csi.aws.com") == {"n1": TOO_MANY}


@pytest.mark.parametrize(
    ("east", "west"),
    [
        ({"topology.kubernetes.io/zone": "east"}, {"topology.kubernetes.io/zone": "west"}),
        ({"failure-domain.beta.kubernetes.io/zone": "east"}, {"failure-domain.beta.kubernetes.io/zone": "west"}),
        ({"topology.kubernetes.io/zone": "east"}, {}),
    ],
)
def test_disks_of_one_name_in_two_zones_are_two(east: dict[str, str], west: dict[str, str]) -> None:
    disks = [
        volume(name, labels=labels, gce_persistent_disk=GCEPersistentDisk(pd_name="d"))
        for name, labels in {"a": east, "b": west}.items()
    ]
    bound = [claim(name, volume=name) for name in ("a", "b")]
    driver = "pd.csi.storage.gke.io"
    assert answers(1, pod("incoming", mounts("a", "b")), *bound, *disks, driver=driver) == {"n1": TOO_MANY}


def test_a_claim_that_is_missing_keeps_the_pod_off_every_node() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    reason = 'looking up PVC shop/none: persistentvolumeclaim "none" not found'
    status = unresolvable(reason)
    assert refused(plugin_for(cluster), cluster, pod("incoming", mounts("none"))) == {"n1": status, "n2": status}


def test_volume_limits_follow_the_storage_objects() -> None:
    cluster = cluster_of(node("n1"), csi_node("n1", {DRIVER: 1}), LATE, *claims("a", "b"))
    cluster.add_pod(cluster.read(pod("running", mounts("a"), node_name="n1")))
    plugin, incoming = plugin_for(cluster), pod("incoming", mounts("b"))
    assert refused(plugin, cluster, incoming) == {"n1": TOO_MANY}
    cluster.storage.put(csi_node("n1", {DRIVER: 2}))
    assert refused(plugin, cluster, incoming) == {}
    cluster.storage.put(csi_node("n1", {DRIVER: 1}))
    cluster.storage.put(csi("a", "other.example.com"))
    assert refused(plugin, cluster, incoming) == {}


def wakes(incoming: Pod, event: ClusterEvent) -> bool:
    cluster = cluster_of(node("n1"))
    record = cluster.read(incoming)
    return any(each.wakes(record, event) for each in plugin_for(cluster).events_to_register())


def limit_changed(before: CSINode, after: CSINode) -> bool:
    return wakes(pod("incoming"), ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE_OTHER, old=before, new=after))


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_limit_rises_or_goes() -> None:
    one, two = csi_node("n1", {DRIVER: 1}), csi_node("n1", {DRIVER: 2})
    assert limit_changed(one, two)
    assert limit_changed(one, csi_node("n1", {DRIVER: None}))
    assert not limit_changed(two, one)
    assert not limit_changed(one, one)
    assert wakes(pod("incoming"), ClusterEvent(EventResource.CSI_NODE, ActionType.ADD, new=one))


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_pod_with_volumes_goes() -> None:
    cluster = cluster_of()
    with_volumes, without = cluster.read(pod("gone", mounts("a"))), cluster.read(pod("gone"))
    assert wakes(pod("incoming"), ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=with_volumes))
    assert not wakes(pod("incoming"), ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=without))


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_its_claim_comes() -> None:
    incoming = pod("incoming", [*mounts("a"), ephemeral("scratch")])
    for name, awaited in (("a", True), ("incoming-scratch", True), ("b", False)):
        event = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, new=claim(name))
        assert wakes(incoming, event) == awaited


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_an_attachment_goes_that_may_be_in_its_way() -> None:
    event = ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, old=attachment("a", "n1", "v"))
    of_ebs = ClusterEvent(
        EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, old=attachment("a", "n1", "v", "ebs.csi.aws.com")
    )
    inline = pod("incoming", [Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1"))])
    assert wakes(pod("incoming", mounts("a")), event)
    assert not wakes(inline, event)
    assert wakes(inline, of_ebs)
    assert not wakes(pod("incoming", [ephemeral("scratch")]), event)


# Claim -> (driver, handle): claims a and b share a volume, c has a driver without limit, d is not bound.
ATTACHED = {"a": (DRIVER, "v"), "b": (DRIVER, "v"), "c": ("other", "w"), "d": (DRIVER, "d"), "e": (DRIVER, "e")}
STORAGE = [
    LATE,
    claim("a", volume="v"),
    claim("b", volume="v"),
    csi("v"),
    claim("c", volume="w"),
    csi("w", "other"),
    claim("d"),
    *claims("e"),
]


def by_hand(incoming: list[str], running: list[list[str]], named: list[str], limit: int | None) -> bool:
    """Return whether one node refuses, with the claims of each pod on it and the volumes that attachments name."""
    attached = {ATTACHED[name] for names in running for name in names}
    new = {ATTACHED[name] for name in incoming} - attached
    new_of_driver = [volume for volume in new if volume[0] == DRIVER]
    attached |= {(DRIVER if volume != "w" else "other", volume) for volume in named}
    attached_of_driver = [volume for volume in attached if volume[0] == DRIVER]
    return limit is not None and bool(new_of_driver) and len(attached_of_driver) + len(new_of_driver) > limit


MOUNTED = st.lists(st.sampled_from(sorted(ATTACHED)), max_size=3, unique=True)


@given(
    running=st.lists(st.tuples(st.sampled_from(["n1", "n2"]), MOUNTED), max_size=5),
    incoming=MOUNTED,
    gone=st.sets(st.sampled_from([f"p{index}" for index in range(5)])),
    limits=st.tuples(*[st.none() | st.integers(0, 3)] * 2),
    named=st.sets(st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from(["v", "w", "e", "left"]))),
)
def test_all_worlds_at_once_are_as_one_after_another(
    running: list[tuple[str, list[str]]],
    incoming: list[str],
    gone: set[str],
    limits: tuple[int | None, int | None],
    named: set[tuple[str, str]],
) -> None:
    limit_of = dict(zip(("n1", "n2"), limits, strict=True))
    placed = [pod(f"p{index}", mounts(*names), node_name=name) for index, (name, names) in enumerate(running)]
    csi_nodes = [csi_node(name, {DRIVER: limit}) for name, limit in limit_of.items()]
    attachments = [
        attachment(f"{name}-{of_volume}", name, of_volume, "other" if of_volume == "w" else DRIVER)
        for name, of_volume in sorted(named)
    ]
    cluster = cluster_of(node("n1"), node("n2"), *csi_nodes, *STORAGE, csi("left"), *attachments, *placed)
    staying = {
        name: [names for index, (at, names) in enumerate(running) if at == name and f"p{index}" not in gone]
        for name in limit_of
    }

    def names_at(node_name: str) -> list[str]:
        return [of_volume for name, of_volume in named if name == node_name]

    expected = {name for name in limit_of if by_hand(incoming, staying[name], names_at(name), limit_of[name])}
    found = refused_without(plugin_for(cluster), cluster, pod("incoming", mounts(*incoming)), gone)
    assert found == dict.fromkeys(expected, TOO_MANY)


@pytest.mark.parametrize(
    ("version", "requires", "refuses"), [("1.36", True, False), ("1.37", True, True), ("1.37", False, False)]
)
def test_a_node_without_a_required_driver_gets_no_pod_in_1_37(version: str, requires: bool, refuses: bool) -> None:
    """By reading: kube-scheduler 1.37, VolumeLimitScaling."""
    driver = CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(prevent_pod_scheduling_if_missing=requires))
    nodes = [node("n1"), node("n2"), csi_node("n1", {DRIVER: None})]
    cluster = cluster_of(*nodes, LATE, driver, *claims("a"), release=read_version(version))
    missing = unschedulable(f"{DRIVER} CSI driver is not installed on the node")

    assert refused(plugin_for(cluster), cluster, pod("incoming", mounts("a"))) == ({"n2": missing} if refuses else {})


@pytest.mark.parametrize(("version", "refuses"), [("1.31", True), ("1.32", False)])
def test_a_limit_that_only_the_node_states_counts_up_to_1_31(version: str, refuses: bool) -> None:
    stated: Mapping[str, Any] = {f"attachable-volumes-csi-{DRIVER}": 1}
    limited = builders.node("n1", **stated)
    running = pod("running", mounts("a"), node_name="n1")
    cluster = cluster_of(limited, LATE, running, *claims("a", "b"), release=read_version(version))

    assert refused(plugin_for(cluster), cluster, pod("incoming", mounts("b"))) == ({"n1": TOO_MANY} if refuses else {})
