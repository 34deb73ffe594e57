"""Rules of VolumeRestrictions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, Pod, Volume
from podium.api.storage import PersistentVolumeClaim
from podium.cluster.cluster import Cluster
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.verdicts import SKIP, SUCCESS, Status, unresolvable, unschedulable
from podium.plugins.volumes.filters import VolumeRestrictions
from tests.plugins.volume_objects import (
    claim,
    cluster_of,
    context,
    ephemeral,
    mounts,
    node,
    pod,
    refused,
    refused_without,
    turned_down,
)

NO_DISK = unschedulable("node(s) had no available disk")
CLAIM_TAKEN = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NODES = (node("n1"), node("n2"))


def plugin_for(cluster: Cluster) -> VolumeRestrictions:
    return VolumeRestrictions(context(cluster))


def gce(name: str, *, read_only: bool = False) -> Volume:
    return Volume(gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=read_only))


def ebs(volume_id: str) -> Volume:
    return Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id=volume_id))


def iscsi(iqn: str, *, read_only: bool = False) -> Volume:
    return Volume(iscsi=ISCSI(iqn=iqn, read_only=read_only))


def rbd(image: str, *, monitors: tuple[str, ...] = ("m1",), read_only: bool = False) -> Volume:
    return Volume(rbd=RBD(monitors=monitors, image=image, read_only=read_only))


def exclusive(name: str) -> PersistentVolumeClaim:
    return claim(name, access_modes=("ReadWriteOncePod",))


def answers(incoming: Volume, running: Volume) -> dict[str, Status]:
    cluster = cluster_of(*NODES, pod("running", [running], node_name="n1"))
    return refused(plugin_for(cluster), cluster, pod("incoming", [incoming]))


@pytest.mark.parametrize("disk", [gce, iscsi, rbd])
def test_a_disk_is_shared_on_a_node_by_readers_alone(disk: Callable[..., Volume]) -> None:
    assert answers(disk("a", read_only=True), disk("a", read_only=True)) == {}
    assert answers(disk("a", read_only=True), disk("a")) == {"n1": NO_DISK}
    assert answers(disk("a"), disk("a", read_only=True)) == {"n1": NO_DISK}


def test_an_ebs_volume_is_never_shared() -> None:
    assert answers(ebs("a"), ebs("a")) == {"n1": NO_DISK}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (gce("a"), gce("b")),
        (ebs("a"), ebs("b")),
        (iscsi("a"), iscsi("b")),
        (rbd("a"), rbd("b")),
        (rbd("a", monitors=("m1",)), rbd("a", monitors=("m2",))),
        (gce("a"), ebs("a")),
    ],
)
def test_different_disks_do_not_conflict(one: Volume, other: Volume) -> None:
    assert answers(one, other) == {}


def test_images_are_the_same_with_one_monitor_in_common() -> None:
    assert answers(rbd("a", monitors=("m1", "m2")), rbd("a", monitors=("m2", "m3"))) == {"n1": NO_DISK}


def test_a_pod_without_disks_and_exclusive_claims_is_skipped() -> None:
    cluster = cluster_of(*NODES, claim("shared"), pod("running", mounts("shared"), node_name="n1"))
    assert turned_down(plugin_for(cluster), cluster, pod("incoming", mounts("shared"))) == SKIP


def test_an_exclusive_claim_in_use_keeps_the_pod_off_every_node() -> None:
    cluster = cluster_of(*NODES, exclusive("mine"), pod("running", mounts("mine"), node_name="n1"))
    assert refused(plugin_for(cluster), cluster, pod("incoming", mounts("mine"))) == {
        "n1": CLAIM_TAKEN,
        "n2": CLAIM_TAKEN,
    }


def test_an_exclusive_claim_is_free_once_its_pod_is_gone() -> None:
    cluster = cluster_of(*NODES, exclusive("mine"), pod("running", mounts("mine"), node_name="n1"))
    cluster.remove_pod("uid-shop-running")
    assert turned_down(plugin_for(cluster), cluster, pod("incoming", mounts("mine"))) == SKIP


def test_claims_of_one_name_in_other_namespaces_are_others() -> None:
    elsewhere = pod("running", mounts("mine"), node_name="n1", namespace="other")
    cluster = cluster_of(*NODES, exclusive("mine"), elsewhere)
    assert turned_down(plugin_for(cluster), cluster, pod("incoming", mounts("mine"))) == SKIP


@pytest.mark.upstream(15)
def test_only_the_world_without_its_user_has_an_exclusive_claim_free() -> None:
    cluster = cluster_of(*NODES, exclusive("mine"), pod("running", mounts("mine"), node_name="n1"))
    incoming = pod("incoming", mounts("mine"))
    assert refused_without(plugin_for(cluster), cluster, incoming, ["running"]) == {"n2": CLAIM_TAKEN}


def test_an_exclusive_claim_with_two_users_counts_once_as_upstream_counts() -> None:
    users = (pod(f"running-{name}", mounts("mine"), node_name=name) for name in ("n1", "n2"))
    cluster = cluster_of(*NODES, exclusive("mine"), *users)
    incoming = pod("incoming", mounts("mine"))
    assert refused_without(plugin_for(cluster), cluster, incoming, ["running-n1"]) == {"n2": CLAIM_TAKEN}


def test_a_claim_that_is_missing_turns_the_pod_down() -> None:
    cluster = cluster_of(*NODES)
    status = turned_down(plugin_for(cluster), cluster, pod("incoming", mounts("none")))
    assert status == unresolvable('persistentvolumeclaim "none" not found')


def test_claims_of_ephemeral_volumes_are_left_to_others() -> None:
    cluster = cluster_of(*NODES)
    assert turned_down(plugin_for(cluster), cluster, pod("incoming", [ephemeral("scratch")])) == SKIP


def test_a_disk_is_named_before_a_claim() -> None:
    running = pod("running", [*mounts("mine"), gce("a")], node_name="n1")
    cluster = cluster_of(*NODES, exclusive("mine"), running)
    incoming = pod("incoming", [*mounts("mine"), gce("a")])
    assert refused(plugin_for(cluster), cluster, incoming) == {"n1": NO_DISK, "n2": CLAIM_TAKEN}


def wakes(incoming: Pod, resource: EventResource, *, old: object = None, new: object = None) -> bool:
    cluster = cluster_of(*NODES)
    action = ActionType.DELETE if new is None else ActionType.ADD
    old = cluster.read(old) if isinstance(old, Pod) else old
    event = ClusterEvent(resource, action, old=old, new=new)
    record = cluster.read(incoming)
    return any(each.wakes(record, event) for each in plugin_for(cluster).events_to_register())


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_one_with_its_disk_or_claim_goes() -> None:
    incoming = pod("incoming", [*mounts("mine"), gce("a")])
    assert wakes(incoming, EventResource.ASSIGNED_POD, old=pod("gone", mounts("mine")))
    assert wakes(incoming, EventResource.ASSIGNED_POD, old=pod("gone", [gce("a")]))
    assert not wakes(incoming, EventResource.ASSIGNED_POD, old=pod("gone", [*mounts("other"), gce("b")]))
    assert not wakes(incoming, EventResource.ASSIGNED_POD, old=pod("gone", [gce("a")], namespace="other"))


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_its_claim_or_a_node_comes() -> None:
    incoming = pod("incoming", mounts("mine"))
    assert wakes(incoming, EventResource.PERSISTENT_VOLUME_CLAIM, new=claim("mine"))
    assert not wakes(incoming, EventResource.PERSISTENT_VOLUME_CLAIM, new=claim("other"))
    assert wakes(incoming, EventResource.NODE, new=node("n3"))


def conflicting(one: Volume, other: Volume) -> bool:
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        return one.aws_elastic_block_store == other.aws_elastic_block_store
    if one.gce_persistent_disk and other.gce_persistent_disk:
        mine, held = one.gce_persistent_disk, other.gce_persistent_disk
        return mine.pd_name == held.pd_name and not (mine.read_only and held.read_only)
    if one.rbd and other.rbd:
        shared = [monitor for monitor in one.rbd.monitors if monitor in other.rbd.monitors]
        return bool(shared) and one.rbd.image == other.rbd.image and not (one.rbd.read_only and other.rbd.read_only)
    return False


def claims_of(mounting: Pod) -> set[str]:
    claims = (one.persistent_volume_claim for one in mounting.spec.volumes)
    return {one.claim_name for one in claims if one is not None}


def by_hand(incoming: Pod, placed: list[Pod], gone: set[str], node_name: str) -> Status:
    """One node after another, one pod after another. All claims are exclusive."""
    wanted, mounted = claims_of(incoming), set().union(*map(claims_of, placed))
    in_use = len(wanted & mounted)
    for other in placed:
        if other.spec.node_name != node_name:
            continue
        if other.metadata.name in gone:
            in_use -= len(wanted & claims_of(other))
        elif any(conflicting(mine, held) for mine in incoming.spec.volumes for held in other.spec.volumes):
            return NO_DISK
    return CLAIM_TAKEN if in_use > 0 else SUCCESS


NAMES = st.sampled_from("ab")
VOLUMES = st.lists(
    st.one_of(
        st.builds(gce, NAMES, read_only=st.booleans()),
        st.builds(ebs, NAMES),
        st.builds(rbd, NAMES, monitors=st.sampled_from([("m1",), ("m2",), ("m1", "m2")]), read_only=st.booleans()),
        st.builds(lambda name: mounts(name)[0], NAMES),
    ),
    max_size=3,
)


@given(
    running=st.lists(st.tuples(st.sampled_from(["n1", "n2"]), VOLUMES), max_size=5),
    incoming=VOLUMES,
    gone=st.sets(st.sampled_from([f"p{index}" for index in range(5)])),
)
def test_all_worlds_at_once_are_as_one_after_another(
    running: list[tuple[str, list[Volume]]], incoming: list[Volume], gone: set[str]
) -> None:
    placed = [pod(f"p{index}", volumes, node_name=name) for index, (name, volumes) in enumerate(running)]
    cluster = cluster_of(*NODES, exclusive("a"), exclusive("b"), *placed)
    wanted = pod("incoming", incoming)
    expected = {name: by_hand(wanted, placed, gone, name) for name in ("n1", "n2")}
    found = refused_without(plugin_for(cluster), cluster, wanted, gone)
    assert found == {name: status for name, status in expected.items() if not status.is_success}
