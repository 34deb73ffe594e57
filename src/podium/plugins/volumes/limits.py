"""NodeVolumeLimits: a node attaches at most as many volumes of a CSI driver as its CSINode says.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. VolumeAttachments are not read: a volume counts as
attached where a pod mounts it. Of in-tree volumes only those of EBS and Compute Engine are read, hence counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from podium.api.node import CSINode
from podium.api.pod import Volume
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.cluster.affinity_term import NamespaceLabels
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from podium.framework.verdicts import Verdicts
from podium.plugins.volumes.pod_claims import claim_not_found, concerns_own_claim, pod_claims

_REFUSAL = unschedulable("node(s) exceed max volume count")
_UNLIMITED = np.iinfo(np.int64).max
_EBS, _GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
# In-tree provisioners by the CSI driver that does their work today; "" where upstream does not count them.
_MIGRATED_TO = {
    "kubernetes.io/aws-ebs": _EBS,
    "kubernetes.io/gce-pd": _GCE,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/azure-file": "",
    "kubernetes.io/vsphere-volume": "",
}
_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A volume of a driver. Two volumes with one handle are the same."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class MountsAtLeast:
    """Pods with at least so many volumes that may have to be attached."""

    volumes: int
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return _attachable(pod_class) >= self.volumes


class NodeVolumeLimits:
    """Counts the distinct volumes of each limited driver that the pods of a node mount."""

    name = "NodeVolumeLimits"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        self._cluster = context.cluster
        self._storage = context.cluster.storage
        self._known: WeakKeyDictionary[PodClass, frozenset[Attachment]] = WeakKeyDictionary()
        self._limits: dict[str, Int64s] = {}
        self._known_of = -1
        self._limits_of = (-1, -1)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods that mount nothing which may have to be attached."""
        return SKIP if self.never_filters(pod.pod_class) else SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those that mount nothing which may have to be attached."""
        return not _attachable(pod_class)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes that would have to attach too many volumes; attached ones can be mounted again."""
        missing = next(
            (pod_claim.name for pod_claim in pod_claims(pod, self._storage) if pod_claim.claim is None), None
        )
        if missing is not None:
            reason = f"looking up PVC {pod.namespace}/{missing}: {claim_not_found(missing)}"
            return Verdicts.where(np.ones(len(view), dtype=np.bool_), unresolvable(reason))
        wanted = self._attachments(pod)
        refused = np.zeros(len(view), dtype=np.bool_)
        for driver in sorted({attachment.driver for attachment in wanted}):
            limits = view.take(self._driver_limits(driver))
            new = frozenset(attachment for attachment in wanted if attachment.driver == driver)
            for position in np.flatnonzero(self._may_exceed(view, limits, len(new)) & ~refused):
                attached = self._attached(view, int(position), driver)
                refused[position] = not new <= attached and len(attached | new) > limits[position]
        return Verdicts.where(refused, _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node's limits may become known or rise, a pod with volumes go, a claim that was missing be made."""
        return (
            EventToRegister(EventResource.CSI_NODE, ActionType.ADD),
            EventToRegister(EventResource.CSI_NODE, ActionType.UPDATE, _raises_a_limit),
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, _detaches),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, concerns_own_claim),
        )

    def _may_exceed(self, view: View, limits: Int64s, new: int) -> Bools:
        """``[n]``: where the limit may be exceeded, were every volume that is mounted a different one of the driver."""
        limited: Bools = limits != _UNLIMITED
        if not limited.any():
            return limited
        mounted = np.zeros(len(view), dtype=np.int64)
        volumes = 1
        while (pods := view.count(MountsAtLeast(volumes))).any():
            mounted += pods
            volumes += 1
        limited &= mounted + new > limits
        return limited

    def _attached(self, view: View, position: int, driver: str) -> frozenset[Attachment]:
        """The driver's volumes that the pods at a position mount."""
        attached = (attachment for pod in view.pods(position) for attachment in self._attachments(pod))
        return frozenset(attachment for attachment in attached if attachment.driver == driver)

    def _attachments(self, pod: PodRecord) -> frozenset[Attachment]:
        """The volumes that the pod mounts and some driver attaches, remembered until a storage object changes."""
        if self._known_of != self._storage.generation:
            self._known.clear()
            self._known_of = self._storage.generation
        known = self._known.get(pod.pod_class)
        if known is None:
            claims = (pod_claim.claim for pod_claim in pod_claims(pod, self._storage) if pod_claim.claim is not None)
            found = [*map(_inline, pod.spec.volumes), *map(self._of_claim, claims)]
            known = self._known[pod.pod_class] = frozenset(attachment for attachment in found if attachment is not None)
        return known

    def _of_claim(self, claim: PersistentVolumeClaim) -> Attachment | None:
        """What is attached for a claim: its volume, or the one that its class is going to make."""
        volume = self._storage.volumes.get(claim.spec.volume_name)
        if volume is not None:
            return _of_volume(volume)
        storage_class = self._storage.classes.get(claim.class_name)
        if storage_class is None:
            return None
        driver = _MIGRATED_TO.get(storage_class.provisioner, storage_class.provisioner)
        return Attachment(driver, f"claim:{claim.key}") if driver else None

    def _driver_limits(self, driver: str) -> Int64s:
        """``[rows]``: how many volumes of the driver each node attaches, `_UNLIMITED` where nothing is said."""
        nodes = self._cluster.nodes
        current = (self._storage.generation, nodes.node_changes.position)
        if self._limits_of != current:
            self._limits.clear()
            self._limits_of = current
        limits = self._limits.get(driver)
        if limits is None:
            limits = self._limits[driver] = np.full(nodes.capacity, _UNLIMITED, dtype=np.int64)
            for csi_node in self._storage.csi_nodes.values():
                row = nodes.row_of.get(csi_node.metadata.name)
                if row is not None:
                    limits[row] = _limits_of(csi_node).get(driver, _UNLIMITED)
        return limits


def _attachable(pod_class: PodClass) -> int:
    """How many volumes of the class may have to be attached: those with a claim, and migrated disks."""
    return len(pod_class.claims) + sum(_inline(volume) is not None for volume in pod_class.spec.volumes)


def _inline(volume: Volume) -> Attachment | None:
    """A disk that the pod names itself, as the CSI driver that it was migrated to knows it."""
    if volume.aws_elastic_block_store is not None:
        return _ebs(volume.aws_elastic_block_store.volume_id)
    if volume.gce_persistent_disk is not None:
        return _gce(volume.gce_persistent_disk.pd_name, "")
    return None


def _of_volume(volume: PersistentVolume) -> Attachment | None:
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
    """An EBS volume, by its id alone or as `aws://zone/id`."""
    return Attachment(_EBS, volume_id.rpartition("/")[2])


def _gce(name: str, zone: str) -> Attachment:
    """A disk of Compute Engine; its name tells it apart within a zone."""
    return Attachment(_GCE, f"{zone}/{name}")


def _limits_of(csi_node: CSINode) -> dict[str, int]:
    """The limits that a node states, by driver."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _raises_a_limit(pod: PodRecord, event: ClusterEvent) -> bool:
    """Some driver's limit is new, higher than before, or gone."""
    before, after = _limits_of(event.old), _limits_of(event.new)
    return any(after[driver] > before.get(driver, 0) for driver in after) or bool(before.keys() - after.keys())


def _detaches(pod: PodRecord, event: ClusterEvent) -> bool:
    return _attachable(event.old.pod_class) > 0
