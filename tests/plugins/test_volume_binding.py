"""Rules of VolumeBinding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference
from podium.api.node import CSINode
from podium.api.pod import Pod
from podium.api.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from podium.api.storage import (
    ClaimReference,
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from podium.api.versions.release import read_version
from podium.cluster.cluster import Cluster
from podium.cluster.view import View
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding
from podium.framework.verdicts import SKIP, Status, unresolvable
from podium.plugins.registry import IN_TREE
from podium.plugins.volumes.binding import VolumeBinding
from tests.plugins.volume_objects import (
    LATE,
    NAMESPACE,
    NOW,
    STATIC,
    ZONE,
    affinity,
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

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")
EAST, WEST = node("east", zone="a"), node("west", zone="b")
SELECTED = "volume.kubernetes.io/selected-node"


def answers(incoming: Pod, *storage: Kubernetes) -> dict[str, tuple[str, ...]]:
    """Return the reasons of the nodes east (zone a) and west (zone b) that refuse; all refusals are beyond
    preemption.
    """
    cluster = cluster_of(EAST, WEST, LATE, STATIC, NOW, *storage)
    found = refused(VolumeBinding(context(cluster)), cluster, incoming)
    assert all(status == unresolvable(*status.reasons) for status in found.values())
    return {name: status.reasons for name, status in found.items()}


def before_nodes(incoming: Pod, *storage: Kubernetes) -> Status:
    cluster = cluster_of(EAST, LATE, STATIC, NOW, *storage)
    return turned_down(VolumeBinding(context(cluster)), cluster, incoming)


def changed(item: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(item, **fields)


def marked_for_deletion(item: Any) -> Any:
    return changed(item, metadata=changed(item.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def test_a_pod_without_claims_is_skipped() -> None:
    assert before_nodes(pod("incoming")) == SKIP


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        (
            [changed(claim("c", volume="v"), status=PersistentVolumeClaimStatus(phase="Lost"))],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        ([marked_for_deletion(claim("c"))], 'persistentvolumeclaim "c" is being deleted'),
    ],
)
def test_an_unusable_claim_turns_the_pod_down(storage: list[Kubernetes], reason: str) -> None:
    assert before_nodes(pod("incoming", mounts("c")), *storage) == unresolvable(reason)


def owned_by(uid: str) -> PersistentVolumeClaim:
    made = claim("incoming-scratch")
    owner = OwnerReference(kind="Pod", name="incoming", uid=uid, controller=True)
    return msgspec.structs.replace(made, metadata=changed(made.metadata, owner_references=(owner,)))


def test_an_ephemeral_volumes_claim_must_be_made_for_this_very_pod() -> None:
    incoming = pod("incoming", [ephemeral("scratch")])
    not_made = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "incoming-scratch"'
    foreign = "PVC shop/incoming-scratch was not created for pod shop/incoming (pod is not owner)"
    assert before_nodes(incoming) == unresolvable(not_made)
    assert before_nodes(incoming, claim("incoming-scratch")) == unresolvable(foreign)
    assert before_nodes(incoming, owned_by("another")) == unresolvable(foreign)
    assert before_nodes(incoming, owned_by(incoming.metadata.uid)).is_success


@pytest.mark.parametrize(
    "unbound",
    [
        claim("c", "now"),
        claim("c", None),
        claim("c", "unheard-of"),
        changed(claim("c", volume="v"), metadata=ObjectMeta(name="c", namespace=NAMESPACE)),
    ],
)
def test_a_claim_that_should_be_bound_by_now_turns_the_pod_down(unbound: PersistentVolumeClaim) -> None:
    assert before_nodes(pod("incoming", mounts("c")), unbound, volume("v")) == UNBOUND


def test_a_pod_goes_where_its_volume_can_be_reached() -> None:
    storage = [claim("c", volume="v"), volume("v", zones=("a",))]
    assert answers(pod("incoming", mounts("c")), *storage) == {"west": (AFFINITY,)}


def test_a_volume_without_affinity_can_be_reached_from_everywhere() -> None:
    assert answers(pod("incoming", mounts("c")), claim("c", volume="v"), volume("v")) == {}


def test_a_claim_bound_to_an_unknown_volume_keeps_the_pod_off_every_node() -> None:
    assert answers(pod("incoming", mounts("c")), claim("c", volume="v")) == {"east": (GONE,), "west": (GONE,)}


def test_the_first_bound_claim_that_fails_on_a_node_says_why() -> None:
    storage = [claim("c", volume="v"), volume("v", zones=("a",)), claim("d", volume="unknown")]
    assert answers(pod("incoming", mounts("c", "d")), *storage) == {"east": (GONE,), "west": (AFFINITY,)}


def test_bound_and_unbound_claims_are_both_answered_for() -> None:
    storage = [claim("c", volume="v"), volume("v", zones=("a",)), claim("d", "static")]
    found = answers(pod("incoming", mounts("c", "d")), *storage)
    assert found == {"east": (NO_VOLUME,), "west": (AFFINITY, NO_VOLUME)}


def test_a_volumes_affinity_is_compared_with_labels_alone() -> None:
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("east",))
    in_a = NodeSelectorRequirement(key=ZONE, operator="In", values=("a",))
    for conditions, expected in (((), {}), ((in_a,), {"west": (AFFINITY,)})):
        term = NodeSelectorTerm(match_expressions=conditions, match_fields=(by_name,))
        admitted = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
        storage = [claim("c", volume="v"), volume("v", node_affinity=admitted)]
        assert answers(pod("incoming", mounts("c")), *storage) == expected


def test_an_unbound_claim_needs_a_volume_that_the_node_reaches() -> None:
    storage = [claim("c", "static"), volume("v", "static", zones=("a",))]
    assert answers(pod("incoming", mounts("c")), *storage) == {"west": (NO_VOLUME,)}


FITTING = volume("v", "static", size="2Gi", labels={"disk": "ssd"})


@pytest.mark.parametrize(
    "unfit",
    [
        volume("v", "late", size="2Gi", labels={"disk": "ssd"}),
        volume("v", "static", size="1Gi", labels={"disk": "ssd"}),
        volume("v", "static", size="2Gi"),
        volume("v", "static", size="2Gi", labels={"disk": "ssd"}, access_modes=("ReadOnlyMany",)),
        volume("v", "static", size="2Gi", labels={"disk": "ssd"}, volume_mode="Block"),
        volume("v", "static", size="2Gi", labels={"disk": "ssd"}, volume_attributes_class_name="fast"),
        volume("v", "static", size="2Gi", labels={"disk": "ssd"}, claim_ref=ClaimReference(namespace="shop", name="d")),
        changed(FITTING, status=PersistentVolumeStatus(phase="Released")),
        marked_for_deletion(FITTING),
    ],
)
def test_a_volume_must_be_free_and_be_all_that_the_claim_asks_for(unfit: PersistentVolume) -> None:
    wanted = claim("c", "static", size="2Gi", selector=LabelSelector(match_labels={"disk": "ssd"}))
    assert answers(pod("incoming", mounts("c")), wanted, FITTING) == {}
    assert answers(pod("incoming", mounts("c")), wanted, unfit) == {"east": (NO_VOLUME,), "west": (NO_VOLUME,)}


def test_a_volume_kept_for_a_claim_is_the_only_one_that_will_do() -> None:
    kept = volume("kept", "static", zones=("a",), claim_ref=ClaimReference(namespace=NAMESPACE, name="c"))
    storage = [claim("c", "static"), kept, volume("free", "static", zones=("b",))]
    assert answers(pod("incoming", mounts("c")), *storage) == {"west": (NO_VOLUME,)}


def test_a_volume_kept_for_a_namesake_with_another_uid_is_not_for_the_claim() -> None:
    owner = ClaimReference(namespace=NAMESPACE, name="c", uid="uid-of-an-older-c")
    storage = [claim("c", "static"), volume("kept", "static", claim_ref=owner)]
    assert answers(pod("incoming", mounts("c")), *storage) == {"east": (NO_VOLUME,), "west": (NO_VOLUME,)}


def test_one_volume_does_not_serve_two_claims() -> None:
    storage = [claim("c", "static"), claim("d", "static"), volume("v", "static"), volume("w", "static", zones=("a",))]
    assert answers(pod("incoming", mounts("c", "d")), *storage) == {"west": (NO_VOLUME,)}


def test_a_volume_goes_to_one_claim_on_some_nodes_and_to_another_on_others() -> None:
    volumes = [volume("u", "static", zones=("a",)), volume("v", "static"), volume("x", "static", zones=("b",))]
    claims = [claim(name, "static") for name in "cde"]
    assert answers(pod("incoming", mounts("c", "d")), *claims, *volumes) == {}
    found = answers(pod("incoming", mounts("c", "d", "e")), *claims, *volumes)
    assert found == {"east": (NO_VOLUME,), "west": (NO_VOLUME,)}


def test_a_claim_that_a_pod_mounts_twice_needs_one_volume() -> None:
    assert answers(pod("incoming", mounts("c", "c")), claim("c", "static"), volume("v", "static")) == {}


def allowing(*zones: str) -> StorageClass:
    label = TopologySelectorLabelRequirement(key=ZONE, values=zones)
    terms = (TopologySelectorTerm(match_label_expressions=(label,)),)
    return msgspec.structs.replace(LATE, allowed_topologies=terms)


def test_a_class_with_a_provisioner_makes_volumes_where_its_topologies_allow() -> None:
    assert answers(pod("incoming", mounts("c")), claim("c")) == {}
    assert answers(pod("incoming", mounts("c")), claim("c"), allowing("a")) == {"west": (NO_VOLUME,)}
    assert answers(pod("incoming", mounts("c")), claim("c"), allowing("x", "b")) == {"east": (NO_VOLUME,)}


def test_a_topology_without_conditions_allows_no_node() -> None:
    nowhere = changed(LATE, allowed_topologies=(TopologySelectorTerm(),))
    assert answers(pod("incoming", mounts("c")), claim("c"), nowhere) == {"east": (NO_VOLUME,), "west": (NO_VOLUME,)}


def test_existing_volumes_are_bound_and_missing_ones_are_provisioned() -> None:
    storage = [claim("c"), claim("d"), allowing("a"), volume("v", zones=("b",)), volume("w", zones=("b",))]
    assert answers(pod("incoming", mounts("c", "d")), *storage) == {}


def capacity(name: str, amount: str | None, zone: str | None, maximum: str | None = None) -> CSIStorageCapacity:
    topology = None if zone is None else LabelSelector(match_labels={ZONE: zone} if zone else {})
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        storage_class_name="late",
        capacity=amount,
        maximum_volume_size=maximum,
        node_topology=topology,
    )


REPORTING = CSIDriver(metadata=ObjectMeta(name=LATE.provisioner), spec=CSIDriverSpec(storage_capacity=True))
BOTH_FULL = {"east": (NO_SPACE,), "west": (NO_SPACE,)}


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ([], BOTH_FULL),
        ([capacity("a", "2Gi", "a")], {"west": (NO_SPACE,)}),
        ([capacity("a", "2Gi", "a"), capacity("b", "2Gi", "b")], {}),
        ([capacity("all", "2Gi", "")], {}),
        ([capacity("none", "2Gi", None)], BOTH_FULL),
        ([capacity("small", "1Gi", "")], BOTH_FULL),
        ([capacity("scattered", "9Gi", "", maximum="1Gi")], BOTH_FULL),
        ([capacity("unsaid", None, "")], BOTH_FULL),
        ([changed(capacity("other", "2Gi", ""), storage_class_name="other")], BOTH_FULL),
    ],
)
def test_a_driver_that_reports_capacity_must_have_room_for_the_claim(
    capacities: Sequence[CSIStorageCapacity], expected: dict[str, tuple[str, ...]]
) -> None:
    incoming, wanted = pod("incoming", mounts("c")), claim("c", size="2Gi")
    assert answers(incoming, wanted, REPORTING, *capacities) == expected


def test_capacity_is_not_asked_of_a_driver_that_does_not_report_it_or_for_a_claim_without_a_size() -> None:
    incoming = pod("incoming", mounts("c"))
    assert answers(incoming, claim("c"), changed(REPORTING, spec=CSIDriverSpec())) == {}
    assert answers(incoming, claim("c", size=None), REPORTING) == {}


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ([claim("c"), REPORTING, capacity("a", "4Gi", "a"), capacity("b", "2Gi", "b")], [75, 50]),
        # Two claims of a class request storage of one capacity.
        ([claim("c"), claim("d"), REPORTING, capacity("a", "4Gi", "a"), capacity("b", "2Gi", "b")], [50, 0]),
        # Existing volumes count alone on nodes that have some, and provisioning on the others.
        ([claim("c"), REPORTING, volume("v", size="3Gi", zones=("a",)), capacity("b", "2Gi", "b")], [67, 50]),
        # A driver that does not report capacity, and claims that are bound.
        ([claim("c")], [0, 0]),
        ([claim("c", volume="v"), volume("v", zones=("a",))], None),
    ],
)
def test_nodes_with_free_storage_are_preferred_in_1_37(
    storage: Sequence[Kubernetes], expected: list[int] | None
) -> None:
    """By reading: kube-scheduler 1.37, StorageCapacityScoring."""
    cluster = cluster_of(EAST, WEST, LATE, *storage, release=read_version("1.37"))
    plugin: Any = IN_TREE["VolumeBinding"](context(cluster))
    incoming = cluster.read(pod("incoming", mounts(*(item.metadata.name for item in storage if _is_claim(item)))))
    state, view = CycleState(), View(cluster)
    assert plugin.pre_filter(state, incoming, cluster).is_success
    if plugin.pre_score(state, incoming, view).is_skip:
        assert expected is None
    else:
        assert plugin.score_rows(state, incoming, view).tolist() == expected


def test_storage_is_not_scored_before_1_37() -> None:
    plugin = IN_TREE["VolumeBinding"](context(cluster_of(EAST)))
    assert not hasattr(plugin, "score_rows")


def _is_claim(item: Kubernetes) -> bool:
    return isinstance(item, PersistentVolumeClaim)


def test_a_capacity_of_nodes_with_several_labels_is_for_those_with_all_of_them() -> None:
    topology = LabelSelector(match_labels={ZONE: "a", "disk": "ssd"})
    reported = changed(capacity("c", "2Gi", "a"), node_topology=topology)
    cluster = cluster_of(EAST, node("east-2", zone="a", disk="ssd"), LATE, REPORTING, claim("c"), reported)
    found = refused(VolumeBinding(context(cluster)), cluster, pod("incoming", mounts("c")))
    assert found == {"east": unresolvable(NO_SPACE)}


def test_the_first_claim_for_which_no_volume_can_be_made_says_why() -> None:
    storage = [claim("c", size="2Gi"), claim("d", "static", size="3Gi"), REPORTING]
    assert answers(pod("incoming", mounts("c", "d")), *storage) == BOTH_FULL


def test_a_started_provisioning_fixes_the_node() -> None:
    incoming, begun = pod("incoming", mounts("c")), claim("c", annotations={SELECTED: "west"})
    assert answers(incoming, begun, volume("v")) == {"east": (NO_VOLUME,)}
    assert answers(incoming, begun, REPORTING) == {"east": (NO_VOLUME,), "west": (NO_SPACE,)}


class Attempt:
    """One attempt at a pod, past Filter."""

    def __init__(self, plugin: VolumeBinding, cluster: Cluster, incoming: Pod) -> None:
        self.plugin = plugin
        self.record = cluster.read(incoming)
        self.state = CycleState()
        plugin.pre_filter(self.state, self.record, cluster)

    def reserve(self, node_name: str) -> Status:
        return self.plugin.reserve(self.state, self.record, node_name)

    def unreserve(self, node_name: str) -> None:
        self.plugin.unreserve(self.state, self.record, node_name)

    def bindings(self, node_name: str) -> list[ClaimBinding]:
        return list(self.plugin.pre_bind(self.state, self.record, node_name))


def chosen(storage: Sequence[Kubernetes], *names: str) -> list[ClaimBinding]:
    """Return what is to be done for a pod with claims of some names on the node east."""
    cluster = cluster_of(EAST, WEST, LATE, STATIC, *storage)
    attempt = Attempt(VolumeBinding(context(cluster)), cluster, pod("incoming", mounts(*names)))
    assert attempt.reserve("east").is_success
    return attempt.bindings("east")


def binding(name: str, volume_name: str = "") -> ClaimBinding:
    return ClaimBinding(f"{NAMESPACE}/{name}", f"uid-{name}", volume_name, "east", timeout_ns=600 * 10**9)


def test_the_smallest_volume_is_bound_and_of_equals_the_first_by_name() -> None:
    volumes = [volume("big", size="3Gi"), volume("b", size="2Gi"), volume("a", size="2Gi"), volume("far", zones=("b",))]
    assert chosen([claim("c"), *volumes], "c") == [binding("c", "a")]


def test_the_smallest_claim_chooses_first() -> None:
    storage = [claim("large", size="2Gi"), claim("small", size="1Gi"), volume("v", size="2Gi"), volume("w", size="3Gi")]
    assert chosen(storage, "large", "small") == [binding("small", "v"), binding("large", "w")]


def test_volumes_are_bound_before_others_are_made() -> None:
    storage = [claim("begun", annotations={SELECTED: "east"}), claim("c", size="5Gi"), claim("d"), volume("v")]
    assert chosen(storage, "begun", "c", "d") == [binding("d", "v"), binding("begun"), binding("c")]


def test_nothing_is_to_be_done_for_bound_claims_and_pods_without_claims() -> None:
    assert chosen([claim("c", volume="v"), volume("v")], "c") == []
    assert chosen([]) == []


def static_cluster() -> tuple[Cluster, VolumeBinding, Attempt, Attempt]:
    """Two pods that each want a volume of a class which has one."""
    storage = [STATIC, claim("c", "static"), claim("d", "static"), volume("v", "static")]
    cluster = cluster_of(EAST, WEST, *storage)
    plugin = VolumeBinding(context(cluster))
    first, second = (Attempt(plugin, cluster, pod(name, mounts(name))) for name in "cd")
    return cluster, plugin, first, second


def test_a_reserved_volume_is_not_available_to_other_pods() -> None:
    cluster, plugin, first, _ = static_cluster()
    assert first.reserve("east").is_success
    second = refused(plugin, cluster, pod("d", mounts("d")))
    assert second == {name: unresolvable(NO_VOLUME) for name in ("east", "west")}


def test_a_volume_is_free_again_after_unreserve() -> None:
    cluster, plugin, first, _ = static_cluster()
    first.reserve("east")
    first.unreserve("east")
    first.unreserve("east")
    assert first.bindings("east") == []
    assert refused(plugin, cluster, pod("d", mounts("d"))) == {}


def test_a_reservation_lasts_until_the_api_contradicts_it() -> None:
    cluster, plugin, first, _ = static_cluster()
    first.reserve("east")
    cluster.storage.put(volume("v", "static"))
    assert refused(plugin, cluster, pod("d", mounts("d"))) != {}
    cluster.storage.put(volume("v", "static", labels={"changed": "since"}))
    assert refused(plugin, cluster, pod("d", mounts("d"))) == {}


def test_a_node_that_no_longer_will_do_is_refused_at_reserve() -> None:
    cluster, plugin, first, _ = static_cluster()
    first.reserve("east")
    third = Attempt(plugin, cluster, pod("third", mounts("d")))
    assert third.reserve("east") == unresolvable(NO_VOLUME)


def test_pods_that_share_a_claim_go_where_its_volume_is_being_made() -> None:
    cluster = cluster_of(EAST, WEST, LATE, claim("c"))
    plugin = VolumeBinding(context(cluster))
    Attempt(plugin, cluster, pod("first", mounts("c"))).reserve("west")
    assert refused(plugin, cluster, pod("second", mounts("c"))) == {"east": unresolvable(NO_VOLUME)}


@pytest.mark.parametrize(
    ("args", "seconds"), [({}, 600), ({"bindTimeoutSeconds": 5}, 5), ({"bindTimeoutSeconds": 0}, 0)]
)
def test_a_binding_times_out_after_ten_minutes_by_default(args: dict[str, int], seconds: int) -> None:
    cluster = cluster_of(EAST, LATE, claim("c"))
    attempt = Attempt(VolumeBinding(context(cluster, **args)), cluster, pod("incoming", mounts("c")))
    attempt.reserve("east")

    assert [one.timeout_ns for one in attempt.bindings("east")] == [seconds * 10**9]


def test_a_shape_that_rises_is_accepted() -> None:
    points = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    VolumeBinding(context(cluster_of(), shape=points))


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"bindTimeoutSecond": 5}, "bindTimeoutSecond"),
        ({"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ({"bindTimeoutSeconds": "5s"}, "bindTimeoutSeconds"),
        ({"shape": [{"utilization": 101}]}, "utilization"),
        ({"shape": [{"score": 11}]}, "score"),
        ({"shape": [{"utilization": 5}, {"utilization": 5}]}, "shape"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_by_name(args: dict[str, Any], names: str) -> None:
    with pytest.raises(InputError, match=names) as refusal:
        VolumeBinding(context(cluster_of(), **args))
    assert "VolumeBinding" in str(refusal.value)


def wakes(resource: EventResource, new: object, old: object = None) -> bool:
    cluster = cluster_of(EAST)
    record = cluster.read(pod("incoming", [*mounts("c"), ephemeral("scratch")]))
    action = ActionType.ADD if old is None else ActionType.UPDATE_OTHER
    event = ClusterEvent(resource, action, old=old, new=new)
    return any(each.wakes(record, event) for each in VolumeBinding(context(cluster)).events_to_register())


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_volume_or_a_claim_of_its_own_comes_or_changes() -> None:
    assert wakes(EventResource.PERSISTENT_VOLUME, volume("v"))
    assert wakes(EventResource.PERSISTENT_VOLUME, volume("v"), volume("v"))
    for name, own in (("c", True), ("incoming-scratch", True), ("d", False)):
        assert wakes(EventResource.PERSISTENT_VOLUME_CLAIM, claim(name)) == own
        assert wakes(EventResource.PERSISTENT_VOLUME_CLAIM, claim(name), claim(name)) == own


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_class_comes_or_allows_other_topologies() -> None:
    assert wakes(EventResource.STORAGE_CLASS, LATE)
    assert wakes(EventResource.STORAGE_CLASS, allowing("a"), LATE)
    assert not wakes(EventResource.STORAGE_CLASS, LATE, LATE)


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_capacity_is_reported_grows_or_is_no_longer_reported() -> None:
    small, large = capacity("a", "1Gi", "a"), capacity("a", "2Gi", "a")
    assert wakes(EventResource.CSI_STORAGE_CAPACITY, small)
    assert wakes(EventResource.CSI_STORAGE_CAPACITY, large, small)
    assert wakes(EventResource.CSI_STORAGE_CAPACITY, small, capacity("a", None, "a"))
    assert not wakes(EventResource.CSI_STORAGE_CAPACITY, small, large)
    assert not wakes(EventResource.CSI_STORAGE_CAPACITY, capacity("a", None, "a"), small)
    silent = changed(REPORTING, spec=CSIDriverSpec())
    assert wakes(EventResource.CSI_DRIVER, silent, REPORTING)
    assert not wakes(EventResource.CSI_DRIVER, REPORTING, silent)


@pytest.mark.upstream(32)
def test_a_pod_is_tried_again_when_a_nodes_drivers_become_known_or_plugins_migrate() -> None:
    plain = CSINode(metadata=ObjectMeta(name="east"))
    notes = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    migrated = CSINode(metadata=ObjectMeta(name="east", annotations=notes))
    assert wakes(EventResource.CSI_NODE, plain)
    assert wakes(EventResource.CSI_NODE, migrated, plain)
    assert not wakes(EventResource.CSI_NODE, plain, plain)


def admits(item: PersistentVolume, zone: str) -> bool:
    admitted = item.spec.node_affinity
    if admitted is None or admitted.required is None:
        return True
    ((condition,),) = (term.match_expressions for term in admitted.required.node_selector_terms)
    return (zone in condition.values) == (condition.operator == "In")


def gib(item: PersistentVolume | PersistentVolumeClaim) -> int:
    amounts = item.spec.capacity if isinstance(item, PersistentVolume) else item.spec.resources.requests
    return int(str(amounts["storage"]).removesuffix("Gi"))


def choose(wanted: PersistentVolumeClaim, volumes: list[PersistentVolume], taken: set[str], zone: str) -> str | None:
    """Return the name of the volume that serves a claim in a zone."""
    usable = [
        item
        for item in volumes
        if item.spec.storage_class_name == wanted.spec.storage_class_name and gib(item) >= gib(wanted)
    ]
    kept = [item for item in usable if item.spec.claim_ref and item.spec.claim_ref.name == wanted.metadata.name]
    free = [item for item in usable if item.spec.claim_ref is None]
    reached = [item for item in kept or free if admits(item, zone) and item.metadata.name not in taken]
    return min(reached, key=gib).metadata.name if reached else None


def by_hand(claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], zone: str) -> tuple[str, ...]:
    """Why the node of a zone refuses; class late makes volumes in zone a, where the driver has room for 2Gi."""
    of_name = {item.metadata.name: item for item in volumes}
    reasons: list[str] = []
    unmatched: list[PersistentVolumeClaim] = []
    taken: set[str] = set()
    bound = [one for one in claims if one.spec.volume_name]
    failed = [
        one for one in bound if one.spec.volume_name not in of_name or not admits(of_name[one.spec.volume_name], zone)
    ]
    gone = bool(failed) and failed[0].spec.volume_name not in of_name
    if failed and not gone:
        reasons.append(AFFINITY)
    for one in sorted((one for one in claims if not one.spec.volume_name), key=gib):
        found = choose(one, volumes, taken, zone)
        if found is None:
            unmatched.append(one)
        else:
            taken.add(found)
    for one in unmatched:
        if one.spec.storage_class_name == "static" or zone != "a":
            reasons.append(NO_VOLUME)
            break
        if gib(one) > 2:
            reasons.append(NO_SPACE)
            break
    return (*reasons, GONE) if gone else tuple(reasons)


CLASSES = st.sampled_from(["late", "static"])
SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])
AFFINITIES = st.none() | st.builds(
    lambda operator, zones: affinity(NodeSelectorRequirement(key=ZONE, operator=operator, values=tuple(zones))),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True),
)
OWNERS = st.none() | st.builds(ClaimReference, namespace=st.just(NAMESPACE), name=st.sampled_from(["c0", "c1"]))
VOLUMES = st.lists(st.tuples(CLASSES, SIZES, AFFINITIES, OWNERS), max_size=5)
CLAIMS = st.lists(st.tuples(CLASSES, SIZES, st.sampled_from(["", "", "", "v0", "v9"])), min_size=1, max_size=4)


@given(described_volumes=VOLUMES, described_claims=CLAIMS)
def test_all_nodes_at_once_are_as_one_after_another(
    described_volumes: list[Any], described_claims: list[tuple[str, str, str]]
) -> None:
    volumes = [
        volume(f"v{index}", of_class, size=size, node_affinity=admitted, claim_ref=owner)
        for index, (of_class, size, admitted, owner) in enumerate(described_volumes)
    ]
    claims = [
        claim(f"c{index}", of_class, size=size, volume=bound_to)
        for index, (of_class, size, bound_to) in enumerate(described_claims)
    ]
    nodes = [node(zone, zone=zone) for zone in "abc"]
    storage: list[Kubernetes] = [allowing("a"), STATIC, REPORTING, capacity("room", "2Gi", "a"), *volumes, *claims]
    cluster = cluster_of(*nodes, *storage)
    incoming = pod("incoming", mounts(*(one.metadata.name for one in claims)))
    expected = {zone: by_hand(claims, volumes, zone) for zone in "abc"}
    found = refused(VolumeBinding(context(cluster)), cluster, incoming)
    assert {name: status.reasons for name, status in found.items()} == {
        zone: reasons for zone, reasons in expected.items() if reasons
    }
