"""VolumeRestrictions: a disk that bears one user has one, and a ReadWriteOncePod claim has one pod.

Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.api.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk
from podium.cluster.affinity_term import NamespaceLabels
from podium.cluster.cluster import Cluster
from podium.cluster.marks import Needs
from podium.cluster.matchers import UsesClaim
from podium.cluster.pod_class import Disk, PodClass, disk_mark, disks_in
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.reach import ANYWHERE, Reach
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from podium.framework.verdicts import Verdicts
from podium.plugins.volumes.pod_claims import READ_WRITE_ONCE_POD, claim_not_found, concerns_own_claim, pod_claims

_DISK_TAKEN = unschedulable("node(s) had no available disk")
_CLAIM_TAKEN = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@dataclass(frozen=True, slots=True)
class HoldsDisk:
    """Pods whose own disks conflict with one of these."""

    disks: tuple[Disk, ...]
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return any(_conflict(disk, held) for held in disks_of(pod_class) for disk in self.disks)

    @property
    def needs(self) -> Needs:
        return [[disk_mark(disk) for disk in self.disks]]


@dataclass(frozen=True, slots=True)
class ExclusiveClaims:
    """The ReadWriteOncePod claims of a pod: how many of them are mounted in the cluster, and who mounts each."""

    in_use: int
    users: tuple[UsesClaim, ...]


class VolumeRestrictions:
    """Looks for conflicting disks on each node, and for users of exclusive claims in the whole cluster.

    As upstream has it, each claim in use counts once, however many pods wrongly share it, and in a world every pod that
    leaves takes one from the count.
    """

    name = "VolumeRestrictions"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without disks whose exclusive claims nobody uses."""
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
        state[self.name] = ExclusiveClaims(in_use, tuple(UsesClaim(pod.namespace, name) for name in exclusive))
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those with neither claims nor disks."""
        return not pod_class.claims and not disks_of(pod_class)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes with a conflicting disk, and all nodes while some pod uses an exclusive claim."""
        exclusive: ExclusiveClaims = state[self.name]
        in_use = np.full(len(view), exclusive.in_use, dtype=np.int64)
        for users in exclusive.users:
            change = view.change(users)
            if change is not None:
                in_use += change
            for positions, _, sign in view.elsewhere(users):
                in_use += sign * np.bincount(positions, minlength=len(view))
            for rows in view.everywhere(users):
                in_use += len(rows) - (rows[:, None] == view.rows).sum(axis=0)
        codes = np.where(in_use > 0, 2, 0)
        disks = disks_of(pod.pod_class)
        if disks:
            codes[view.count(HoldsDisk(disks)) > 0] = 1
        return Verdicts.choose(codes, (SUCCESS, _DISK_TAKEN, _CLAIM_TAKEN))

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Whoever mounts an exclusive claim of the pod's, anywhere."""
        exclusive: ExclusiveClaims = state[self.name]
        return [Reach(users, ANYWHERE, "SomeGone", f"claim {users.name}") for users in exclusive.users]

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A pod that holds a disk or a claim may go, a node come, a claim that was missing be made."""
        return (
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_volume),
            EventToRegister(EventResource.NODE, ActionType.ADD),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, concerns_own_claim),
        )


def disks_of(pod_class: PodClass) -> tuple[Disk, ...]:
    """The disks that pods of the class name themselves, without a claim."""
    known: tuple[Disk, ...] | None = pod_class.memo.get("VolumeRestrictions.disks")
    if known is None:
        known = pod_class.memo["VolumeRestrictions.disks"] = disks_in(pod_class.spec.volumes)
    return known


def _conflict(wanted: Disk, held: Disk) -> bool:
    """Whether two pods of a node cannot have both: the same disk, unless each only reads it (never for EBS)."""
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
    """A pod of the same namespace had a conflicting disk or one of the claims; upstream looks no further."""
    gone: PodRecord = event.old
    if gone.namespace != pod.namespace:
        return False
    wanted, held = pod.pod_class, gone.pod_class
    return not set(wanted.claims).isdisjoint(held.claims) or any(
        _conflict(disk, other) for disk in disks_of(wanted) for other in disks_of(held)
    )
