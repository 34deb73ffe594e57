"""VolumeRestrictions: conflicting disks, and ReadWriteOncePod claims with one pod.

Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from podium.api.node import REGION_LABEL, ZONE_LABEL
from podium.api.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk
from podium.api.selectors import NodeTerm, Requirement
from podium.api.storage import PersistentVolume
from podium.api.versions.release import Behavior
from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate, uses_claim
from podium.cluster.pod_classes import Disk, NamespaceLabels, PodClass, disk_key, disks_in
from podium.cluster.pods import PodRecord
from podium.cluster.selector_index import RequiredKeys
from podium.cluster.storage import Storage
from podium.cluster.view import View, matching_term
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import ANYWHERE, CycleState, Reach
from podium.framework.plugin import PluginContext, Scope, StatelessPlugin
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.volumes.claims import READ_WRITE_ONCE_POD, PodClaim, claim_not_found, concerns_own_claim, pod_claims

_DISK_TAKEN = unschedulable("node(s) had no available disk")
_CLAIM_USED = unschedulable(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
_CLAIM_TAKEN = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class HoldsDisk(Struct, frozen=True):
    """Pods whose disks conflict with one of these."""

    disks: tuple[Disk, ...]
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return any(_conflict(disk, held) for held in disks_of(pod_class) for disk in self.disks)

    @property
    def required_keys(self) -> RequiredKeys:
        return [[disk_key(disk) for disk in self.disks]]


class ExclusiveClaims(Struct, frozen=True):
    """A pod's ReadWriteOncePod claims: how many are mounted in the cluster, and the pods that mount each."""

    in_use: int
    users: dict[str, Predicate]


class VolumeRestrictions:
    """Checks for conflicting disks on each node, and for users of exclusive claims in the cluster.

    As upstream, a claim in use counts once, however many pods wrongly share it, but every pod that leaves a what-if
    view reduces the count.
    """

    name = "VolumeRestrictions"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        is_named = context.cluster.release.has(Behavior.CLAIM_IN_USE_NAMED)
        self._claim_taken = _CLAIM_TAKEN if is_named else _CLAIM_USED

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without disks whose exclusive claims are unused."""
        exclusive: dict[str, None] = {}
        for pod_claim in pod_claims(pod, cluster.storage):
            if pod_claim.is_ephemeral:
                continue
            if pod_claim.claim is None:
                return unresolvable(claim_not_found(pod_claim.name))
            if READ_WRITE_ONCE_POD in pod_claim.claim.spec.access_modes:
                exclusive[pod_claim.name] = None
        in_use = sum(f"{pod.namespace}/{name}" in cluster.claim_users for name in exclusive)
        if not in_use and not disks_of(pod.pod_class):
            return SKIP
        state[self.name] = ExclusiveClaims(in_use, {name: uses_claim(pod.namespace, name) for name in exclusive})
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        return not pod_class.claims and not disks_of(pod_class)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        exclusive: ExclusiveClaims = state[self.name]
        in_use = np.full(len(view), exclusive.in_use, dtype=np.int64)
        for users in exclusive.users.values():
            if (change := view.change(users)) is not None:
                in_use += change
            for positions, _, sign in view.elsewhere(users):
                in_use += sign * np.bincount(positions, minlength=len(view))
            for rows in view.everywhere(users):
                in_use += len(rows) - (rows[:, None] == view.rows).sum(axis=0)
        codes = np.where(in_use > 0, 2, 0)
        if disks := disks_of(pod.pod_class):
            codes[view.count(HoldsDisk(disks)) > 0] = 1
        return Verdicts.choose(codes, (SUCCESS, _DISK_TAKEN, self._claim_taken))

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Return the pods that mount the pod's exclusive claims, anywhere."""
        exclusive: ExclusiveClaims = state[self.name]
        return [Reach(users, ANYWHERE, "SomeGone", f"claim {name}") for name, users in exclusive.users.items()]

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_volume),
            EventToRegister(EventResource.NODE, ActionType.ADD),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, concerns_own_claim),
        )


def disks_of(pod_class: PodClass) -> tuple[Disk, ...]:
    """Return the disks that pods of the class mount without a claim, from a cache."""
    known: tuple[Disk, ...] | None = pod_class.memo.get("VolumeRestrictions.disks")
    if known is None:
        known = pod_class.memo["VolumeRestrictions.disks"] = disks_in(pod_class.spec.volumes)
    return known


def _conflict(wanted: Disk, held: Disk) -> bool:
    """Return whether two pods of a node cannot both use the disk; they can if both only read it, except for EBS."""
    if isinstance(wanted, AWSElasticBlockStore) and isinstance(held, AWSElasticBlockStore):
        return wanted.volume_id == held.volume_id
    if isinstance(wanted, GCEPersistentDisk) and isinstance(held, GCEPersistentDisk):
        same = wanted.pd_name == held.pd_name
    elif isinstance(wanted, ISCSI) and isinstance(held, ISCSI):
        same = wanted.iqn == held.iqn
    elif isinstance(wanted, RBD) and isinstance(held, RBD):
        same = (wanted.pool, wanted.image) == (held.pool, held.image) and not set(wanted.monitors).isdisjoint(
            held.monitors
        )
    else:
        return False
    return same and not (wanted.read_only and held.read_only)


def _frees_a_volume(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether a pod of the same namespace released a conflicting disk or claim, as upstream."""
    gone: PodRecord = event.old
    if gone.namespace != pod.namespace:
        return False
    wanted, held = pod.pod_class, gone.pod_class
    return not set(wanted.claims).isdisjoint(held.claims) or any(
        _conflict(disk, other) for disk in disks_of(wanted) for other in disks_of(held)
    )


_REFUSAL = unresolvable("node(s) had no available volume zone")
# The topology labels in upstream's order, each with the label that replaces it on nodes without it.
_STAND_IN = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    ZONE_LABEL: ZONE_LABEL,
    REGION_LABEL: REGION_LABEL,
}


class VolumeZone(StatelessPlugin):
    """Compares the topology labels of bound volumes and nodes; a node without any accepts every volume."""

    name = "VolumeZone"
    scope = Scope.CLUSTER

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods whose volumes have no topology labels; reject unbound claims that VolumeBinding does not bind."""
        needed: list[Requirement] = []
        for pod_claim in pod_claims(pod, cluster.storage):
            if pod_claim.is_ephemeral:
                continue
            volume = _bound_volume(pod_claim, cluster.storage)
            if isinstance(volume, Status):
                return volume
            needed += [] if volume is None else _topology(volume)
        if not needed:
            return SKIP
        state[self.name] = needed
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        return not pod_class.claims

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        labelled = np.zeros(len(view), dtype=np.bool_)
        for key in _STAND_IN:
            labelled |= view.codes(key) != 0
        matching = np.ones(len(view), dtype=np.bool_)
        for requirement in state[self.name]:
            matching &= _holds(view, requirement)
        return Verdicts.where(labelled & ~matching, _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(EventResource.STORAGE_CLASS, ActionType.ADD, lambda pod, event: event.new.binds_late),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            EventToRegister(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE, concerns_own_claim
            ),
            EventToRegister(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE, _moves),
        )


def _bound_volume(pod_claim: PodClaim, storage: Storage) -> PersistentVolume | Status | None:
    """Return a claim's volume, None for a claim that may still be bound, or why the pod cannot run."""
    if pod_claim.claim is None:
        return unresolvable(claim_not_found(pod_claim.name))
    if volume_name := pod_claim.claim.spec.volume_name:
        return storage.volumes.get(volume_name) or unresolvable(f'persistentvolume "{volume_name}" not found')
    class_name = pod_claim.claim.class_name
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    return None if storage_class.binds_late else unresolvable("PersistentVolume had no name")


def _topology(volume: PersistentVolume) -> list[Requirement]:
    """Return the node labels that a volume's labels require; a label with an empty part requires nothing."""
    found = []
    for key in _STAND_IN:
        parts = volume.metadata.labels.get(key, "").split("__")
        if all(parts):
            found.append(Requirement(key, "In", tuple(parts)))
    return found


def _holds(view: View, requirement: Requirement) -> Bools:
    """Return ``[n]`` where the label, or its replacement on nodes without it, has one of the values."""
    stand_in = Requirement(_STAND_IN[requirement.key], "In", requirement.values)
    holds = matching_term(view, NodeTerm((stand_in,)))
    holds &= view.codes(requirement.key) == 0
    return holds | matching_term(view, NodeTerm((requirement,)))


def _moves(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.old is None or _topology(event.old) != _topology(event.new)
