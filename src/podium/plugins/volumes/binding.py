"""VolumeBinding: place pods where bound volumes are accessible and unbound claims can get volumes.

Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go). Three differences: a claim that a
pod mounts twice gets one volume; the node affinity of in-tree volumes is used as written, not translated to the
topology of the CSI driver; and when a driver stops reporting capacity, pods with claims are retried, while upstream
looks for inline volumes of that driver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from podium.api.storage import BIND_COMPLETED, MIGRATED_PLUGINS, SELECTED_NODE, PersistentVolumeClaim
from podium.api.versions.gates import Gate
from podium.api.versions.release import Behavior
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding, PermitResult, PluginContext, Scope
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, Code, Status, Verdicts, unresolvable
from podium.plugins.resource_scores import shape_scores
from podium.plugins.volumes import claims


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether claim and volume are bound to each other (isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def failed(problem: str) -> Status:
    """Return the status of a failed binding (BindPodVolumes)."""
    return Status(Code.ERROR, (f"binding volumes: {problem}",))


_UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_REASONS = {
    claims.AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    claims.VOLUME_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    claims.SPACE: "node(s) did not have enough free storage",
    claims.BOUND_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class ShapePoint(Arguments, frozen=True, kw_only=True):
    """The score of a storage utilization."""

    utilization: Annotated[int, Meta(ge=0, le=100)] = 0
    score: Annotated[int, Meta(ge=0, le=10)] = 0


class VolumeBindingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: how long a pod's claims may take to be bound.

    ``shape`` is how `ScoringVolumeBinding` scores the utilization of storage.
    """

    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
    shape: tuple[ShapePoint, ...] = ()

    def __post_init__(self) -> None:
        if any(left.utilization >= right.utilization for left, right in pairwise(self.shape)):
            raise ValueError("in shape, utilization must rise from point to point")


class _PodVolumes(Struct):
    """The claims of a pod in an attempt, and the bindings needed on the chosen node.

    ``requested`` are the bindings whose request the API has shown; a reset after that is a failure.
    """

    bound: list[PersistentVolumeClaim]
    waiting: list[claims.WaitingClaim]
    bindings: tuple[ClaimBinding, ...] = ()
    requested: set[ClaimBinding] = set()


# Of pods without claims.
_NO_VOLUMES = _PodVolumes([], [])


class VolumeBinding:
    """Finds volumes at Filter, reserves them at Reserve, and requests bindings at PreBind.

    The pod is bound when the API shows that all its claims are. ``bind_timeout_ns`` limits the time of all its
    bindings.
    """

    name = "VolumeBinding"
    scope = Scope.CLUSTER
    needs_state = True

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, VolumeBindingArgs, self.name)
        self.bind_timeout_ns = args.bind_timeout_seconds * 10**9
        self._cluster = context.cluster
        self._storage = context.cluster.storage
        self._reasons = _REASONS
        if not context.cluster.release.has(Behavior.VOLUME_AFFINITY_NAMED):
            self._reasons = {**_REASONS, claims.AFFINITY: "node(s) had volume node affinity conflict"}
        self._assumed = claims.AssumedVolumes(self._storage)

    def _refusal(self, lacking: int) -> Status:
        return unresolvable(*(reason for bit, reason in self._reasons.items() if lacking & bit))

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without claims; reject those with a claim that is unusable, or unbound with immediate binding."""
        found: dict[str, PersistentVolumeClaim] = {}
        for pod_claim in claims.pod_claims(pod, self._storage):
            claim = _usable(pod, pod_claim)
            if isinstance(claim, str):
                return unresolvable(claim)
            found[pod_claim.name] = claim
        if not found:
            return SKIP
        volumes = _PodVolumes([], [])
        for claim in found.values():
            if is_bound(claim):
                volumes.bound.append(claim)
                continue
            storage_class = self._storage.classes.get(claim.class_name)
            if claim.spec.volume_name or storage_class is None or not storage_class.binds_late:
                return _UNBOUND
            matching = claims.volumes_for(claim, self._storage.volumes.values(), self._assumed.claim_of)
            volumes.waiting.append(claims.WaitingClaim(claim, self._assumed.node_of(claim), matching))
        state[self.name] = volumes
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        return not pod_class.claims

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        return Verdicts(self._search(state[self.name], view).lacking, self._refusal)

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Reserve the volumes found on the node for the pod's claims."""
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is None:
            return SUCCESS
        rows = np.array([self._cluster.nodes.row_of[node_name]], dtype=np.int64)
        search = self._search(volumes, View(self._cluster, rows))
        if lacking := int(search.lacking[0]):
            return self._refusal(lacking)
        volumes.bindings = tuple(search.bindings(0, node_name))
        for binding in volumes.bindings:
            self._assumed.assume(binding)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        volumes: _PodVolumes | None = state.get(self.name)
        if volumes is not None:
            for binding in volumes.bindings:
                self._assumed.forget(binding)
            volumes.bindings = ()

    def pre_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Sequence[ClaimBinding]:
        """Return the bindings to request; none if all claims are bound."""
        volumes: _PodVolumes = state.get(self.name) or _NO_VOLUMES
        return [replace(binding, timeout_ns=self.bind_timeout_ns) for binding in volumes.bindings]

    def prepared(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult:
        """Wait until all bindings are observed (checkBindings); fail if one will not be."""
        volumes: _PodVolumes = state.get(self.name) or _NO_VOLUMES
        for binding in volumes.bindings:
            status = self._progress(binding, volumes.requested)
            if not status.is_success:
                return PermitResult(status, self.bind_timeout_ns)
        return PermitResult(SUCCESS)

    def _progress(self, binding: ClaimBinding, requested: set[ClaimBinding]) -> Status:
        """Return SUCCESS if the API shows a claim as bound, WAIT, or an error if it will not be bound."""
        claim = self._storage.claims.get(binding.claim)
        if claim is None or claim.metadata.uid != binding.uid:
            return failed(f'could not find v1.PersistentVolumeClaim "{binding.claim}"')
        name = binding.volume or claim.spec.volume_name
        volume = self._storage.volumes.get(name)
        if binding.volume and volume is None:
            return failed(f'could not find v1.PersistentVolume "{name}"')
        claim_ref = None if volume is None else volume.spec.claim_ref
        is_asked = claim.metadata.annotations.get(SELECTED_NODE) == binding.node_name
        if binding.volume:
            is_asked = claim_ref is not None and bool(claim_ref.uid)
        if is_asked:
            requested.add(binding)
        elif binding in requested:
            reset = f'ClaimRef got reset for pv "{name}"'
            return failed(reset if binding.volume else f'provisioning failed for PVC "{claim.metadata.name}"')
        is_done = volume is not None and is_asked and is_bound(claim)
        return self._reach(claim, name, binding.node_name) if is_done else Status(Code.WAIT)

    def _reach(self, claim: PersistentVolumeClaim, name: str, node_name: str) -> Status:
        """Return whether the claim's volume is accessible from the node."""
        row = self._cluster.nodes.row_of.get(node_name)
        if row is None:
            return failed(f'node "{node_name}" not found')
        search = claims.VolumeSearch(View(self._cluster, np.array([row], dtype=np.int64)), self._storage)
        search.check_bound([claim])
        if search.lacking[0]:
            return failed(f'pv "{name}" node affinity doesn\'t match node "{node_name}"')
        return SUCCESS

    def give_up(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        return failed("context deadline exceeded")

    def events_to_register(self) -> Sequence[EventToRegister]:
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            EventToRegister(EventResource.STORAGE_CLASS, changed, _allows_more),
            EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, changed, claims.concerns_own_claim),
            EventToRegister(EventResource.PERSISTENT_VOLUME, changed),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            EventToRegister(EventResource.CSI_NODE, changed, _migrates),
            EventToRegister(EventResource.CSI_DRIVER, ActionType.UPDATE, _stops_reporting),
            EventToRegister(EventResource.CSI_STORAGE_CAPACITY, changed, _has_more_room),
        )

    def _search(self, volumes: _PodVolumes, view: View) -> claims.VolumeSearch:
        search = claims.VolumeSearch(view, self._storage)
        search.check_bound(volumes.bound)
        search.find(volumes.waiting)
        return search


_DEFAULT_SHAPE = ((0, 10), (100, 0))


class ScoringVolumeBinding(VolumeBinding):
    """Also prefers nodes with free storage, by the mean over the storage classes of a pod (StorageCapacityScoring).

    If several capacities of a class suffice on a node, the first by name counts; upstream takes any.
    """

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context)
        shape = read_arguments(context.args, VolumeBindingArgs, self.name).shape
        self._scores = shape_scores(tuple((point.utilization, point.score) for point in shape) or _DEFAULT_SHAPE)

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        volumes: _PodVolumes | None = state.get(self.name)
        return SUCCESS if volumes is not None and volumes.waiting else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        usage = self._search(state[self.name], view).usage()
        return np.array([self._score(storage) for storage in usage], dtype=np.int64)

    def _score(self, storage: Mapping[str, tuple[int, int]]) -> int:
        """Return the score of a node that takes storage of these classes: requested and capacity."""
        if not storage:
            return 0
        full = self._scores[-1]
        scores = [
            self._scores[requested * 100 // capacity] if requested <= capacity and capacity else full
            for requested, capacity in storage.values()
        ]
        return math.floor(sum(scores) / len(scores) + 0.5)


def volume_binding(context: PluginContext) -> VolumeBinding:
    """Return the plugin of the cluster's version."""
    scores = context.cluster.release.enabled(Gate.STORAGE_SCORED)
    return ScoringVolumeBinding(context) if scores else VolumeBinding(context)


def _usable(pod: PodRecord, mounted: claims.PodClaim) -> PersistentVolumeClaim | str:
    """Return a claim that the pod can use, or why it cannot."""
    claim = mounted.claim
    if claim is None:
        made = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{mounted.name}"'
        return made if mounted.is_ephemeral else claims.claim_not_found(mounted.name)
    if claim.status.phase == "Lost":
        return (
            f'persistentvolumeclaim "{mounted.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{mounted.name}" is being deleted'
    owner = claim.metadata.controller
    if mounted.is_ephemeral and (owner is None or owner.uid != pod.uid):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return claim


def _allows_more(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.old is None or event.old.allowed_topologies != event.new.allowed_topologies


def _migrates(pod: PodRecord, event: ClusterEvent) -> bool:
    if event.old is None:
        return True
    before, after = (node.metadata.annotations.get(MIGRATED_PLUGINS, "") for node in (event.old, event.new))
    return bool(before != after)


def _stops_reporting(pod: PodRecord, event: ClusterEvent) -> bool:
    return bool(event.old.spec.storage_capacity and not event.new.spec.storage_capacity)


def _has_more_room(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether a capacity is new, or its volume limit increased."""
    limit = claims.volume_limit(event.new)
    before = None if event.old is None else claims.volume_limit(event.old)
    return event.old is None or (limit is not None and (before is None or limit > before))
