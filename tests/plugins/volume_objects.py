"""Nodes, pods and storage for the tests of the volume plugins, and calls of such a plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import CSINode, CSINodeDriver, CSINodeSpec, Node, VolumeNodeResources
from podium.api.pod import EphemeralVolumeSource, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume
from podium.api.pod import ResourceRequirements as Resources
from podium.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
)
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.storage import StorageObject
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.verdicts import Status

NAMESPACE = "shop"
ZONE = "topology.kubernetes.io/zone"
LATE = StorageClass(
    metadata=ObjectMeta(name="late"), provisioner="csi.example.com", volume_binding_mode="WaitForFirstConsumer"
)
STATIC = StorageClass(
    metadata=ObjectMeta(name="static"),
    provisioner="kubernetes.io/no-provisioner",
    volume_binding_mode="WaitForFirstConsumer",
)
NOW = StorageClass(metadata=ObjectMeta(name="now"), provisioner="csi.example.com")


def node(name: str, **labels: str) -> Node:
    """Return a node; ``zone="a"`` stands for the zone label, other labels are as given."""
    found = {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return Node(metadata=ObjectMeta(name=name, labels=found))


def csi_node(name: str, limits: Mapping[str, int | None]) -> CSINode:
    """Return the drivers of a node with their limits."""
    drivers = tuple(
        CSINodeDriver(name=driver, allocatable=VolumeNodeResources(count=count)) for driver, count in limits.items()
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def attachment(name: str, node_name: str, of_volume: str, attacher: str = "csi.example.com") -> VolumeAttachment:
    """Return an attachment of a volume to a node."""
    source = VolumeAttachmentSource(persistent_volume_name=of_volume)
    spec = VolumeAttachmentSpec(attacher=attacher, node_name=node_name, source=source)
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec)


def claim(
    name: str,
    storage_class: str | None = "late",
    *,
    size: str | None = "1Gi",
    volume: str = "",
    annotations: Mapping[str, str] | None = None,
    access_modes: tuple[str, ...] = ("ReadWriteOnce",),
    **spec: Any,
) -> PersistentVolumeClaim:
    """Return a claim; one with a volume is bound to it."""
    notes = dict(annotations or {}) | ({"pv.kubernetes.io/bind-completed": "yes"} if volume else {})
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=f"uid-{name}", annotations=notes),
        spec=PersistentVolumeClaimSpec(
            storage_class_name=storage_class,
            volume_name=volume,
            access_modes=access_modes,
            resources=Resources(requests={} if size is None else {"storage": size}),
            **spec,
        ),
    )


def volume(
    name: str,
    storage_class: str = "late",
    *,
    size: str = "1Gi",
    zones: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    access_modes: tuple[str, ...] = ("ReadWriteOnce",),
    **spec: Any,
) -> PersistentVolume:
    """Return a volume; ``zones`` are those that its node affinity admits, none for all."""
    if zones:
        spec["node_affinity"] = affinity(NodeSelectorRequirement(key=ZONE, operator="In", values=zones))
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=dict(labels or {})),
        spec=PersistentVolumeSpec(
            capacity={"storage": size}, storage_class_name=storage_class, access_modes=access_modes, **spec
        ),
    )


def affinity(*conditions: NodeSelectorRequirement) -> VolumeNodeAffinity:
    """Return the node affinity of a volume with one term."""
    term = NodeSelectorTerm(match_expressions=conditions)
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))


def mounts(*claims: str) -> tuple[Volume, ...]:
    """Return the volumes of a pod that mounts claims."""
    return tuple(
        Volume(name=f"v{index}", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for index, name in enumerate(claims)
    )


def ephemeral(name: str) -> Volume:
    """Return a volume whose claim is made for the pod."""
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def pod(name: str, volumes: Sequence[Volume] = (), *, node_name: str = "", namespace: str = NAMESPACE) -> Pod:
    """Return a pod; pending without a node."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}"),
        spec=PodSpec(node_name=node_name, volumes=tuple(volumes)),
    )


def cluster_of(*objects: Kubernetes, release: Release = DEFAULT_RELEASE) -> Cluster:
    """Return a cluster with these nodes, storage objects, and pods, which must be on nodes."""
    cluster = Cluster(release)
    for item in objects:
        if isinstance(item, Node):
            cluster.put_node(item)
        elif isinstance(item, Pod):
            cluster.add_pod(cluster.read(item))
        else:
            assert isinstance(item, StorageObject)
            cluster.storage.put(item)
    return cluster


def context(cluster: Cluster, **args: Any) -> PluginContext:
    """Return what a plugin is made with."""
    return PluginContext(args, cluster)


def turned_down(plugin: Any, cluster: Cluster, incoming: Pod) -> Status:
    """Return what the plugin says of a pod before it looks at nodes."""
    status: Status = plugin.pre_filter(CycleState(), cluster.read(incoming), cluster)
    return status


def refused(plugin: Any, cluster: Cluster, incoming: Pod) -> dict[str, Status]:
    """Return the nodes that the plugin refuses to a pod, with its answers; the pod must get past PreFilter."""
    return refused_on(plugin, cluster, cluster.read(incoming), View(cluster))


def refused_without(plugin: Any, cluster: Cluster, incoming: Pod, gone: Iterable[str]) -> dict[str, Status]:
    """Return what `refused` returns, for each node without its own pods of these names."""
    names = set(gone)
    worlds = WhatIfView(cluster, np.arange(cluster.nodes.count, dtype=np.int64))
    leaving = sorted((record.row, record.slot) for record in cluster.placed.values() if record.name in names)
    positions, slots = np.array(leaving, dtype=np.int64).reshape(-1, 2).T
    worlds.remove(positions, slots)
    return refused_on(plugin, cluster, cluster.read(incoming), worlds)


def refused_on(plugin: Any, cluster: Cluster, record: PodRecord, view: View) -> dict[str, Status]:
    """Return the nodes of a view that the plugin refuses to a pod, with its answers."""
    state = CycleState()
    prepared: Status = plugin.pre_filter(state, record, cluster)
    if prepared.is_skip:
        return {}
    assert prepared.is_success, prepared
    verdicts = plugin.filter_rows(state, record, view)
    return {
        cluster.nodes.name(int(view.rows[position])): verdicts.status(int(verdicts.codes[position]))
        for position in np.flatnonzero(verdicts.codes)
    }
