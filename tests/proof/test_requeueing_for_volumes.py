"""The pods that a storage event requeues, in a whole scheduler: for pods that the volume plugins rejected.

The stories are those of Kubernetes' TestCoreResourceEnqueue, in objects of our own.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.meta import ObjectMeta
from podium.api.node import CSINode
from podium.api.pod import Pod
from podium.api.selectors import NodeSelectorRequirement, TopologySelectorLabelRequirement, TopologySelectorTerm
from podium.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSIPersistentVolumeSource,
    CSIStorageCapacity,
    PersistentVolume,
    StorageClass,
)
from tests.builders import node
from tests.builders import pod as plain_pod
from tests.plugins.volume_objects import (
    LATE,
    NAMESPACE,
    NOW,
    ZONE,
    affinity,
    attachment,
    claim,
    csi_node,
    mounts,
    volume,
)
from tests.proof.requeueing import Requeueing

pytestmark = pytest.mark.upstream(32)

DRIVER = "csi.example.com"
ALONE = ("ReadWriteOncePod",)
WEST, EAST = {ZONE: "west"}, {ZONE: "east"}
N1 = node("n1", labels=WEST)


def pod(name: str, *claims: str, on: str = "") -> Pod:
    """Return a pod that mounts claims."""
    return plain_pod(name, namespace=NAMESPACE, on=on, spec={"volumes": mounts(*claims)})


def reachable(name: str, value: str) -> PersistentVolume:
    """Return a volume that nodes reach whose label aaa has the value."""
    return volume(name, node_affinity=affinity(NodeSelectorRequirement(key="aaa", operator="In", values=(value,))))


def made_by(driver: str, name: str) -> PersistentVolume:
    return volume(name, csi=CSIPersistentVolumeSource(driver=driver, volume_handle=f"handle-{name}"))


def allowing(zone: str, **labels: str) -> StorageClass:
    """Return a class that binds late and makes volumes in one zone."""
    term = TopologySelectorTerm(match_label_expressions=(TopologySelectorLabelRequirement(key=ZONE, values=(zone,)),))
    return replace(LATE, metadata=ObjectMeta(name="late", labels=labels), allowed_topologies=(term,))


def driver_that(*, reports_capacity: bool) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(storage_capacity=reports_capacity))


def capacity(amount: str) -> CSIStorageCapacity:
    meta = ObjectMeta(name="capacity", namespace="kube-system")
    return CSIStorageCapacity(metadata=meta, storage_class_name="now", capacity=amount)


def bound(name: str, to: str, **more: Any) -> Any:
    return claim(name, None, volume=to, **more)


IN_USE = [N1, volume("v1", labels=WEST), bound("c1", "v1"), pod("q", "c1", on="n1")]

OF_ZONES = {
    "the volume of a claim comes": Requeueing(
        "VolumeZone",
        given=[*IN_USE, bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        seen=[volume("v2", labels=WEST)],
        woken="p1",
    ),
    "a volume moves to the zone": Requeueing(
        "VolumeZone",
        given=[*IN_USE, volume("v2", labels=EAST), bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        seen=[volume("v2", labels=WEST)],
        woken="p1",
    ),
    "a volume gets a label that is none of topology": Requeueing(
        "VolumeZone",
        given=[*IN_USE, volume("v2", labels=EAST), bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        seen=[volume("v2", labels={**EAST, "new": "label"})],
        woken="",
    ),
    "the claim of one of two pods comes": Requeueing(
        "VolumeZone",
        given=[*IN_USE, volume("v2", labels=EAST)],
        waiting=[pod("p1", "c2"), pod("p2", "c3")],
        seen=[bound("c2", "v2")],
        woken="p1",
    ),
    "the claim of one of two pods is bound": Requeueing(
        "VolumeZone",
        given=[*IN_USE, volume("v2", labels=EAST), claim("c2", None)],
        waiting=[pod("p1", "c2"), pod("p2", "c3")],
        seen=[bound("c2", "v2")],
        woken="p1",
    ),
    "a class comes that binds late": Requeueing(
        "VolumeZone",
        given=[*IN_USE, bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        seen=[LATE],
        woken="p1",
    ),
}

OF_RESTRICTIONS = {
    "the claim of one of two pods comes that is for one pod at a time": Requeueing(
        "VolumeRestrictions",
        given=[N1, volume("v1")],
        waiting=[pod("p1", "c1"), pod("p2", "c2")],
        seen=[bound("c1", "v1", access_modes=ALONE)],
        woken="p1",
    ),
    "the pod goes that has a claim for itself": Requeueing(
        "VolumeRestrictions",
        given=[N1, volume("v1"), bound("c1", "v1", access_modes=ALONE), pod("q", "c1", on="n1")],
        waiting=[pod("p1", "c1"), pod("p2", "c2")],
        gone=[pod("q", "c1", on="n1")],
        woken="p1",
    ),
}

ELSEWHERE = [node("n1", labels={"aaa": "bbb"}), reachable("v1", "ccc"), bound("c1", "v1")]
UNBOUND = [N1, volume("v1", ""), claim("c1", None), claim("c2", None)]
WAITS_FOR_NOW = [N1, NOW, claim("c1", "now")]
WITHOUT_CLASS = [N1, claim("c1", None)]

OF_BINDING = {
    "a node comes that reaches the volume": Requeueing(
        "VolumeBinding",
        given=ELSEWHERE,
        waiting=[pod("p1", "c1")],
        seen=[node("n2", labels={"aaa": "ccc"})],
        woken="p1",
    ),
    "a node gets the label by which it reaches the volume": Requeueing(
        "VolumeBinding",
        given=ELSEWHERE,
        waiting=[pod("p1", "c1")],
        seen=[node("n1", labels={"aaa": "ccc"})],
        woken="p1",
    ),
    "the volume is made anew": Requeueing(
        "VolumeBinding",
        given=ELSEWHERE,
        waiting=[pod("p1", "c1")],
        gone=[reachable("v1", "ccc")],
        seen=[reachable("v1", "bbb")],
        woken="p1",
    ),
    "the volume can be reached": Requeueing(
        "VolumeBinding",
        given=ELSEWHERE,
        waiting=[pod("p1", "c1")],
        seen=[reachable("v1", "bbb")],
        woken="p1",
    ),
    "the claim of one of two pods is made anew": Requeueing(
        "VolumeBinding",
        given=UNBOUND,
        waiting=[pod("p1", "c1"), pod("p2", "c2")],
        gone=[claim("c1", None)],
        seen=[bound("c1", "v1")],
        woken="p1",
    ),
    "the claim of one of two pods is bound": Requeueing(
        "VolumeBinding",
        given=UNBOUND,
        waiting=[pod("p1", "c1"), pod("p2", "c2")],
        seen=[bound("c1", "v1")],
        woken="p1",
    ),
    "the class comes": Requeueing(
        "VolumeBinding",
        given=[N1, claim("c1")],
        waiting=[pod("p1", "c1")],
        seen=[LATE],
        woken="p1",
    ),
    "the class allows another zone": Requeueing(
        "VolumeBinding",
        given=[N1, allowing("east"), claim("c1")],
        waiting=[pod("p1", "c1")],
        seen=[allowing("west")],
        woken="p1",
    ),
    "the class gets a label": Requeueing(
        "VolumeBinding",
        given=[N1, allowing("east"), claim("c1")],
        waiting=[pod("p1", "c1")],
        seen=[allowing("east", new="label")],
        woken="",
    ),
    "a node's drivers become known": Requeueing(
        "VolumeBinding",
        given=WITHOUT_CLASS,
        waiting=[pod("p1", "c1")],
        seen=[csi_node("n1", {})],
        woken="p1",
    ),
    "a node's volumes are migrated to a driver": Requeueing(
        "VolumeBinding",
        given=[*WAITS_FOR_NOW, csi_node("n1", {})],
        waiting=[pod("p1", "c1")],
        seen=[
            CSINode(
                metadata=ObjectMeta(
                    name="n1", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
                )
            )
        ],
        woken="p1",
    ),
    "a driver reports its capacity no more": Requeueing(
        "VolumeBinding",
        given=[*WITHOUT_CLASS, driver_that(reports_capacity=True)],
        waiting=[pod("p1", "c1")],
        seen=[driver_that(reports_capacity=False)],
        woken="p1",
    ),
    "a driver reports its capacity": Requeueing(
        "VolumeBinding",
        given=[*WITHOUT_CLASS, driver_that(reports_capacity=False)],
        waiting=[pod("p1", "c1")],
        seen=[driver_that(reports_capacity=True)],
        woken="",
    ),
    "capacity is reported": Requeueing(
        "VolumeBinding",
        given=WAITS_FOR_NOW,
        waiting=[pod("p1", "c1")],
        seen=[capacity("10Gi")],
        woken="p1",
    ),
    "capacity grows": Requeueing(
        "VolumeBinding",
        given=[*WAITS_FOR_NOW, capacity("10Gi")],
        waiting=[pod("p1", "c1")],
        seen=[capacity("20Gi")],
        woken="p1",
    ),
    "capacity shrinks": Requeueing(
        "VolumeBinding",
        given=[*WAITS_FOR_NOW, capacity("10Gi")],
        waiting=[pod("p1", "c1")],
        seen=[capacity("5Gi")],
        woken="",
    ),
}

ONE_AT_MOST = [N1, csi_node("n1", {DRIVER: 1}), made_by(DRIVER, "v1"), made_by(DRIVER, "v2"), bound("c1", "v1")]
ATTACHED = [*ONE_AT_MOST, pod("q", "c1", on="n1")]

OF_LIMITS = {
    "the drivers of a node become known": Requeueing(
        "NodeVolumeLimits",
        given=[N1, csi_node("n1", {DRIVER: 0}), made_by(DRIVER, "v1"), bound("c1", "v1")],
        waiting=[pod("p1", "c1")],
        seen=[csi_node("n2", {})],
        woken="p1",
    ),
    "a pod with a volume goes": Requeueing(
        "NodeVolumeLimits",
        given=[*ATTACHED, bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        gone=[pod("q", "c1", on="n1")],
        woken="p1",
    ),
    "an attachment without a pod goes": Requeueing(
        "NodeVolumeLimits",
        given=[*ONE_AT_MOST, attachment("left", "n1", "v1"), bound("c2", "v2")],
        waiting=[pod("p1", "c2")],
        gone=[attachment("left", "n1", "v1")],
        woken="p1",
    ),
    "the claim comes": Requeueing(
        "NodeVolumeLimits",
        given=ATTACHED,
        waiting=[pod("p1", "c2")],
        seen=[bound("c2", "v2")],
        woken="p1",
    ),
}

STORIES = {
    f"{theme}: {what}": story
    for theme, stories in (
        ("VolumeZone", OF_ZONES),
        ("VolumeRestrictions", OF_RESTRICTIONS),
        ("VolumeBinding", OF_BINDING),
        ("NodeVolumeLimits", OF_LIMITS),
    )
    for what, story in stories.items()
}


@pytest.mark.parametrize("what", STORIES)
def test_exactly_the_pods_are_tried_again_that_it_may_help(what: str) -> None:
    story = STORIES[what]

    assert story.awake() == set(story.woken.split())
