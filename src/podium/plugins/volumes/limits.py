"""NodeVolumeLimits: a node attaches at most as many volumes of a CSI driver as its CSINode allows.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. A volume is attached to a node if a pod there mounts it
or a VolumeAttachment says so. Of in-tree volumes only EBS and Compute Engine disks are read and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from podium.api import node, resource_requests, storage
from podium.api.pod import Volume
from podium.api.versions.gates import Gate
from podium.api.versions.release import Behavior
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import NamespaceLabels, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext, Scope
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.volumes.claims import claim_not_found, concerns_own_claim, pod_claims

_REFUSAL = unschedulable("node(s) exceed max volume count")
_LIMIT_PREFIX, _LONGEST_NAME = "attachable-volumes-csi-", 63
_UNLIMITED = np.iinfo(np.int64).max
_EBS, _GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
# The CSI drivers that replace in-tree provisioners; "" if upstream does not count them.
_MIGRATED_TO = {
    "kubernetes.io/aws-ebs": _EBS,
    "kubernetes.io/gce-pd": _GCE,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/azure-file": "",
    "kubernetes.io/vsphere-volume": "",
}
_ZONE_LABELS = (node.ZONE_LABEL, "failure-domain.beta.kubernetes.io/zone")


class Attachment(Struct, frozen=True):
    """A volume of a driver, identified by its handle."""

    driver: str
    handle: str


class MountsAtLeast(Struct, frozen=True):
    """Pods with at least so many volumes that may have to be attached."""

    volumes: int
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return _attachable(pod_class) >= self.volumes


class NodeVolumeLimits:
    """Counts the distinct volumes of each limited driver that a node's pods mount."""

    name = "NodeVolumeLimits"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        self._cluster = context.cluster
        self._storage = context.cluster.storage
        self._reads_nodes = not context.cluster.release.has(Behavior.NODE_LIMITS_IGNORED)
        self._requires_drivers = context.cluster.release.enabled(Gate.VOLUME_LIMIT_SCALING)
        self._known: WeakKeyDictionary[PodClass, frozenset[Attachment]] = WeakKeyDictionary()
        self._limits: dict[str, Int64s] = {}
        self._attachment_counts: Int64s = np.zeros(0, dtype=np.int64)
        self._attachment_counts_of = (-1, -1)
        self._known_of = -1
        self._limits_of = (-1, -1)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SKIP if self.never_filters(pod.pod_class) else SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        return not _attachable(pod_class)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Reject nodes that would have to attach too many volumes; attached volumes can be mounted again."""
        missing = next(
            (pod_claim.name for pod_claim in pod_claims(pod, self._storage) if pod_claim.claim is None), None
        )
        if missing is not None:
            reason = f"looking up PVC {pod.namespace}/{missing}: {claim_not_found(missing)}"
            return Verdicts.where(np.ones(len(view), dtype=np.bool_), unresolvable(reason))
        wanted = self._attachments(pod)
        drivers = sorted({attachment.driver for attachment in wanted})
        refused = np.zeros(len(view), dtype=np.int64)
        lacking = [self._without_driver(driver, view) for driver in drivers] if self._requires_drivers else []
        for code, without in enumerate(lacking, 1):
            refused[without & (refused == 0)] = code
        for driver in drivers:
            limits = view.take(self._driver_limits(driver))
            new = frozenset(attachment for attachment in wanted if attachment.driver == driver)
            for position in np.flatnonzero(self._may_exceed(view, limits, len(new)) & (refused == 0)):
                on_node = (each for other in view.pods(int(position)) for each in self._attachments(other))
                mounted = frozenset(attachment for attachment in on_node if attachment.driver == driver)
                # As upstream, a new volume with an attachment but no pod counts twice.
                count = len(mounted | self._attached(view, int(position), driver)) + len(new - mounted)
                if not new <= mounted and count > limits[position]:
                    refused[position] = len(lacking) + 1
        missing_drivers = (unschedulable(f"{driver} CSI driver is not installed on the node") for driver in drivers)
        return Verdicts.choose(refused, (SUCCESS, *(missing_drivers if lacking else ()), _REFUSAL))

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(EventResource.CSI_NODE, ActionType.ADD),
            EventToRegister(
                EventResource.CSI_NODE, ActionType.UPDATE, None if self._requires_drivers else _raises_a_limit
            ),
            EventToRegister(
                EventResource.ASSIGNED_POD, ActionType.DELETE, lambda _, event: _attachable(event.old.pod_class) > 0
            ),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, concerns_own_claim),
            EventToRegister(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _frees_an_attachment),
            *([EventToRegister(EventResource.CSI_DRIVER, ActionType.UPDATE)] if self._requires_drivers else ()),
        )

    def _without_driver(self, driver: str, view: View) -> Bools:
        """Return ``[n]`` the nodes that must not get pods, since a required driver is not installed there."""
        required = self._storage.csi_drivers.get(driver)
        if required is None or not required.spec.prevent_pod_scheduling_if_missing:
            return np.zeros(len(view), dtype=np.bool_)
        installed = [
            self._cluster.nodes.row_of.get(csi_node.metadata.name, -1)
            for csi_node in self._storage.csi_nodes.values()
            if any(found.name == driver for found in csi_node.spec.drivers)
        ]
        without: Bools = np.isin(view.rows, installed, invert=True)
        return without

    def _may_exceed(self, view: View, limits: Int64s, new: int) -> Bools:
        """Return ``[n]`` where the limit would be exceeded if all volumes there were distinct ones of the driver."""
        limited: Bools = limits != _UNLIMITED
        if not limited.any():
            return limited
        # The number of VolumeAttachments by row.
        nodes = self._cluster.nodes
        current = (self._storage.attachment_generation, nodes.node_changes.position)
        if self._attachment_counts_of != current:
            self._attachment_counts = np.zeros(nodes.capacity, dtype=np.int64)
            for name, attachments in self._storage.attached_to.items():
                if (row := nodes.row_of.get(name)) is not None:
                    self._attachment_counts[row] = len(attachments)
            self._attachment_counts_of = current
        mounted = view.take(self._attachment_counts).copy()
        volumes = 1
        while (pods := view.count(MountsAtLeast(volumes))).any():
            mounted += pods
            volumes += 1
        limited &= mounted + new > limits
        return limited

    def _attached(self, view: View, position: int, driver: str) -> frozenset[Attachment]:
        """Return the driver's volumes in VolumeAttachments of the node at a position."""
        name = self._cluster.nodes.name(int(view.rows[position]))
        volumes = (
            self._storage.volumes.get(attachment.spec.source.persistent_volume_name)
            for attachment in self._storage.attached_to.get(name, {}).values()
            if attachment.spec.attacher == driver
        )
        return frozenset(
            Attachment(driver, volume.spec.csi.volume_handle)
            for volume in volumes
            if volume is not None and volume.spec.csi is not None
        )

    def _attachments(self, pod: PodRecord) -> frozenset[Attachment]:
        """Return the volumes that the pod mounts and a driver attaches, from a cache."""
        if self._known_of != self._storage.generation:
            self._known.clear()
            self._known_of = self._storage.generation
        known = self._known.get(pod.pod_class)
        if known is None:
            claims = (pod_claim.claim for pod_claim in pod_claims(pod, self._storage) if pod_claim.claim is not None)
            found = [*map(_inline, pod.spec.volumes), *map(self._of_claim, claims)]
            known = self._known[pod.pod_class] = frozenset(attachment for attachment in found if attachment is not None)
        return known

    def _of_claim(self, claim: storage.PersistentVolumeClaim) -> Attachment | None:
        """Return the attachment of a claim: its volume, or the one that its class will provision."""
        if (volume := self._storage.volumes.get(claim.spec.volume_name)) is not None:
            return _of_volume(volume)
        storage_class = self._storage.classes.get(claim.class_name)
        if storage_class is None:
            return None
        driver = _MIGRATED_TO.get(storage_class.provisioner, storage_class.provisioner)
        return Attachment(driver, f"claim:{claim.key}") if driver else None

    def _driver_limits(self, driver: str) -> Int64s:
        """Return ``[rows]`` the driver's volume limits, `_UNLIMITED` without one."""
        nodes = self._cluster.nodes
        current = (self._storage.generation, nodes.node_changes.position)
        if self._limits_of != current:
            self._limits.clear()
            self._limits_of = current
        limits = self._limits.get(driver)
        if limits is None:
            limits = self._limits[driver] = np.full(nodes.capacity, _UNLIMITED, dtype=np.int64)
            # The resource by which a node stated a driver's limit before 1.32 (GetCSIAttachLimitKey).
            resource = f"{_LIMIT_PREFIX}{driver}"
            if len(resource) >= _LONGEST_NAME:
                digest = sha1(driver.encode(), usedforsecurity=False).hexdigest()
                resource = f"{_LIMIT_PREFIX}{driver[:23]}{digest[:16]}"
            for place in nodes.row_of.values() if self._reads_nodes else ():
                limits[place] = resource_requests.node_allocatable(nodes.node(place).status).get(resource, _UNLIMITED)
            for csi_node in self._storage.csi_nodes.values():
                if (row := nodes.row_of.get(csi_node.metadata.name)) is not None:
                    limits[row] = _limits_of(csi_node).get(driver, limits[row])
        return limits


def _attachable(pod_class: PodClass) -> int:
    """Return the number of a class's volumes that may have to be attached: claims and migrated disks."""
    return len(pod_class.claims) + sum(_inline(volume) is not None for volume in pod_class.spec.volumes)


def _inline(volume: Volume) -> Attachment | None:
    """Return the attachment of a disk in the pod's spec, by its CSI driver."""
    if volume.aws_elastic_block_store is not None:
        return _ebs(volume.aws_elastic_block_store.volume_id)
    if volume.gce_persistent_disk is not None:
        return _gce(volume.gce_persistent_disk.pd_name, "")
    return None


def _of_volume(volume: storage.PersistentVolume) -> Attachment | None:
    spec = volume.spec
    if spec.csi is not None:
        return Attachment(spec.csi.driver, spec.csi.volume_handle) if spec.csi.volume_handle else None
    if spec.aws_elastic_block_store is not None:
        return _ebs(spec.aws_elastic_block_store.volume_id)
    if spec.gce_persistent_disk is not None:
        labels = volume.metadata.labels
        return _gce(spec.gce_persistent_disk.pd_name, next((labels[key] for key in _ZONE_LABELS if key in labels), ""))
    return None


def _ebs(volume_id: str) -> Attachment:
    """Return an EBS volume from its id, or `aws://zone/id`."""
    return Attachment(_EBS, volume_id.rpartition("/")[2])


def _gce(name: str, zone: str) -> Attachment:
    """Return a Compute Engine disk, whose name is unique in its zone."""
    return Attachment(_GCE, f"{zone}/{name}")


def _limits_of(csi_node: node.CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _raises_a_limit(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether a driver's limit is new, higher, or gone."""
    before, after = _limits_of(event.old), _limits_of(event.new)
    return any(after[driver] > before.get(driver, 0) for driver in after) or bool(before.keys() - after.keys())


def _frees_an_attachment(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether the pod mounts a claim, or a disk of the attachment's driver."""
    attacher = event.old.spec.attacher
    return any(
        volume.persistent_volume_claim is not None
        or ((disk := _inline(volume)) is not None and disk.driver == attacher)
        for volume in pod.spec.volumes
    )
