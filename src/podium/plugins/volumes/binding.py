"""VolumeBinding: a pod goes where its bound volumes can be reached and its unbound claims can get volumes.

Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go). Three things differ: a claim that
a pod mounts twice gets one volume; the node affinity of in-tree volumes is read as written, not translated to the
topology of the CSI driver that they were migrated to; and when a driver stops reporting capacity, pods with claims are
tried again, where upstream looks for inline volumes of that driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta

from podium.api.node import CSINode
from podium.api.storage import PersistentVolumeClaim
from podium.api.volume_annotations import MIGRATED_PLUGINS
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.claims import ClaimBinding
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PermitResult, PluginContext, Scope
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable
from podium.framework.verdicts import Verdicts
from podium.plugins.volumes.matching import AssumedBindings, candidates
from podium.plugins.volumes.pod_claims import PodClaim, claim_not_found, concerns_own_claim, pod_claims
from podium.plugins.volumes.progress import BindingProgress, failed, is_bound
from podium.plugins.volumes.search import (
    AFFINITY,
    BOUND_VOLUME,
    SPACE,
    VOLUME_TO_BIND,
    VolumeSearch,
    WaitingClaim,
    volume_limit,
)

_READY = PermitResult(SUCCESS)
_UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_REASONS = {
    AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    VOLUME_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    SPACE: "node(s) did not have enough free storage",
    BOUND_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class ShapePoint(Arguments, frozen=True, kw_only=True):
    """The score of a utilization of storage."""

    utilization: Annotated[int, Meta(ge=0, le=100)] = 0
    score: Annotated[int, Meta(ge=0, le=10)] = 0


class VolumeBindingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: how long a pod's claims may take to be bound. ``shape`` is only checked: storage is not scored."""

    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
    shape: tuple[ShapePoint, ...] = ()

    def __post_init__(self) -> None:
        if any(left.utilization >= right.utilization for left, right in pairwise(self.shape)):
            raise ValueError("in shape, utilization must rise from point to point")


@dataclass(slots=True)
class _PodVolumes:
    """What an attempt found out about a pod's claims, and what is to be done about them on the node it chose."""

    bound: list[PersistentVolumeClaim]
    waiting: list[WaitingClaim]
    bindings: tuple[ClaimBinding, ...] = ()
    progress: BindingProgress | None = None


class VolumeBinding:
    """Finds volumes at Filter, keeps them for the pod at Reserve, and has them bound at PreBind.

    PreBind only asks for bindings; the pod is bound when the API shows that all its claims are.

    ``bind_timeout_ns`` is how long all of a pod's bindings may take.
    """

    name = "VolumeBinding"
    scope = Scope.CLUSTER
    needs_state = True

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, VolumeBindingArgs, self.name)
        self.bind_timeout_ns = args.bind_timeout_seconds * 10**9
        self._cluster = context.cluster
        self._storage = context.cluster.storage
        self._assumed = AssumedBindings(self._storage)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without claims; turn down those with a claim that is unusable, or not bound though it should be."""
        found: dict[str, PersistentVolumeClaim] = {}
        for pod_claim in pod_claims(pod, self._storage):
            if pod_claim.claim is None:
                return unresolvable(_missing(pod_claim))
            problem = _problem(pod, pod_claim, pod_claim.claim)
            if problem is not None:
                return unresolvable(problem)
            found[pod_claim.name] = pod_claim.claim
        if not found:
            return SKIP
        volumes = _PodVolumes([], [])
        for claim in found.values():
            if is_bound(claim):
                volumes.bound.append(claim)
            elif claim.spec.volume_name or not self._binds_late(claim):
                return _UNBOUND
            else:
                matching = candidates(claim, self._storage, self._assumed)
                volumes.waiting.append(WaitingClaim(claim, self._assumed.node_of(claim), matching))
        state[self.name] = volumes
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those without claims."""
        return not pod_class.claims

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes that do not reach a bound volume, or where some claim finds none."""
        return Verdicts(self._search(state[self.name], view).lacking, _refusal)

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Keep the volumes found on the node for the pod's claims, so that no other pod takes them meanwhile."""
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None:
            return SUCCESS
        rows = np.array([self._cluster.nodes.row_of[node_name]], dtype=np.int64)
        search = self._search(volumes, View(self._cluster, rows))
        lacking = int(search.lacking[0])
        if lacking:
            return _refusal(lacking)
        volumes.bindings = tuple(search.bindings(0, node_name))
        for binding in volumes.bindings:
            self._assumed.assume(binding)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        """Let go of what `reserve` kept."""
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is not None:
            for binding in volumes.bindings:
                self._assumed.forget(binding)
            volumes.bindings = ()

    def pre_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Sequence[ClaimBinding]:
        """The bindings to make; none where all claims are bound."""
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None or not volumes.bindings:
            return ()
        bindings = volumes.bindings
        volumes.progress = BindingProgress(self._cluster, bindings, node_name)
        return [replace(binding, timeout_ns=self.bind_timeout_ns) for binding in bindings]

    def prepared(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult:
        """Wait until all bindings are seen (checkBindings); one that will not be fails the pod."""
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None or volumes.progress is None:
            return _READY
        return PermitResult(volumes.progress.look(), self.bind_timeout_ns)

    def give_up(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """The bindings were not seen in time."""
        return failed("context deadline exceeded")

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Any storage object may come or change for the better, or a node with other labels."""
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            EventToRegister(EventResource.STORAGE_CLASS, changed, _allows_more),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, changed, concerns_own_claim),
            EventToRegister(EventResource.PERSISTENT_VOLUME, changed),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            EventToRegister(EventResource.CSI_NODE, changed, _migrates),
            EventToRegister(EventResource.CSI_DRIVER, ActionType.UPDATE, _stops_reporting),
            EventToRegister(EventResource.CSI_STORAGE_CAPACITY, changed, _has_more_room),
        )

    def _search(self, volumes: _PodVolumes, view: View) -> VolumeSearch:
        search = VolumeSearch(view, self._storage)
        search.check_bound(volumes.bound)
        search.find(volumes.waiting)
        return search

    def _binds_late(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._storage.classes.get(claim.class_name)
        return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def _missing(mounted: PodClaim) -> str:
    if mounted.is_ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{mounted.name}"'
    return claim_not_found(mounted.name)


def _problem(pod: PodRecord, mounted: PodClaim, claim: PersistentVolumeClaim) -> str | None:
    """Why the pod cannot use a claim, or None."""
    if claim.status.phase == "Lost":
        return (
            f'persistentvolumeclaim "{mounted.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{mounted.name}" is being deleted'
    owner = claim.metadata.controller
    if mounted.is_ephemeral and (owner is None or owner.uid != pod.uid):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return None


def _refusal(lacking: int) -> Status:
    return unresolvable(*(reason for bit, reason in _REASONS.items() if lacking & bit))


def _allows_more(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.old is None or event.old.allowed_topologies != event.new.allowed_topologies


def _migrates(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.old is None or _migrated_plugins(event.old) != _migrated_plugins(event.new)


def _migrated_plugins(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")


def _stops_reporting(pod: PodRecord, event: ClusterEvent) -> bool:
    return bool(event.old.spec.storage_capacity and not event.new.spec.storage_capacity)


def _has_more_room(pod: PodRecord, event: ClusterEvent) -> bool:
    """There is a new capacity, or the largest volume that it can hold grew."""
    limit = volume_limit(event.new)
    before = None if event.old is None else volume_limit(event.old)
    return event.old is None or (limit is not None and (before is None or limit > before))
