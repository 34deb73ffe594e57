"""DynamicResources: place pods where their claims can be served, and allocate the devices.

Source: pkg/scheduler/framework/plugins/dynamicresources (dynamicresources.go, extendeddynamicresources.go), with the
gates on by default in v1.36. DeviceTaintRules count if there are any: their gate is off by default, but so is their
API. Of several unused claims the first is deallocated; upstream draws one at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from podium.api.devices import DELETE_PROTECTION, AllocatedDeviceStatus, AllocationResult, DeviceResult, ResourceClaim
from podium.api.meta import Raw, plain
from podium.api.selectors import NodeTerm, compile_node_selector
from podium.api.times import SECOND, parse_duration
from podium.api.versions.release import Behavior
from podium.cluster import arrays, nodes, pod_classes
from podium.cluster.cluster import Cluster
from podium.cluster.devices import Devices
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cache.class_cache import OneCell
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import (
    ClaimRelease,
    DeviceReservation,
    PermitResult,
    PluginContext,
    PostFilterResult,
    Scope,
)
from podium.framework.scoring import default_normalize
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, Code, Outcome, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.dynamic_resources.allocator import is_kept_away
from podium.plugins.dynamic_resources.fitting import IN_MEMORY, ClaimFitting, PodClaims, backed_resources, empty_claim
from podium.plugins.dynamic_resources.requests import RequestReader, gather_pools
from podium.plugins.dynamic_resources.selectors import AllocationError

_NOTHING_TO_DEALLOCATE = PostFilterResult(unschedulable("no new claims to deallocate").by("DynamicResources"))


class DynamicResourcesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: how long devices may take to be prepared; ``filterTimeout`` is only checked, as steps are counted."""

    filter_timeout: str = "10s"
    binding_timeout: str = "600s"

    def __post_init__(self) -> None:
        if parse_duration(self.filter_timeout) < 0:
            raise ValueError("filterTimeout must be zero or positive")
        if parse_duration(self.binding_timeout) < SECOND:
            raise ValueError("bindingTimeout must be 1s or more")


class DynamicResources:
    """Finds devices at Filter, reserves them at Reserve, and writes the allocations at PreBind."""

    name = "DynamicResources"
    scope = Scope.CLUSTER
    after_others = True
    needs_state = True

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, DynamicResourcesArgs, self.name)
        self._cluster = context.cluster
        self._devices = context.cluster.devices
        self._scores = context.cluster.release.has(Behavior.ALTERNATIVES_SCORED)
        self._binding_timeout_ns = parse_duration(args.binding_timeout)
        # The uids of claims whose devices were not ready in time.
        self._late: dict[str, None] = {}

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Hold a pod until all of its claims exist."""
        if pod.pod_class.spec.resource_claims:
            try:
                pod_claims(pod, self._devices)
            except ClaimError as error:
                return unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without claims; reject those with a claim that cannot be served anywhere."""
        state[self.name] = None
        backed = backed_resources(pod, cluster) if cluster.devices.backed else ()
        if not backed and not pod.pod_class.spec.resource_claims:
            return SKIP
        try:
            claims = tuple(pod_claims(pod, self._devices))
        except ClaimError as error:
            return unresolvable(str(error))
        if not claims and not backed:
            return SKIP
        terms: dict[int, tuple[NodeTerm, ...]] = {}
        for number, claim in enumerate(claims):
            allocation = claim.status.allocation
            problem = None if allocation is not None else self._problem(claim)
            if problem is not None:
                return problem
            if allocation is not None and allocation.node_selector is not None:
                terms[number] = compile_node_selector(allocation.node_selector)
        if backed and pod.uid in self._devices.in_flight:
            return unresolvable("the resource claim for extended resources is in the process of being allocated")
        extended = (self._devices.claim_cache.made_for(pod.uid) or empty_claim(pod)) if backed else None
        lost = frozenset(number for number, claim in enumerate(claims) if self._is_lost(claim))
        state[self.name] = ClaimFitting(pod, cluster, PodClaims(claims, extended, backed, lost), terms)
        return SUCCESS

    def never_filters(self, pod_class: pod_classes.PodClass) -> bool:
        native = len(nodes.FIRST_RESOURCES)
        return not pod_class.spec.resource_claims and all(resource < native for resource in pod_class.requests)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        fitting: ClaimFitting = state[self.name]
        return Verdicts(fitting.codes(view), fitting.statuses.__getitem__, has_errors=fitting.has_errors)

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        """Deallocate a claim that only this pod uses if its devices exclude nodes."""
        if self.name in state.never_run or not (self.name in state.skip_filter or self.name in state):
            # An earlier PreFilter rejected the pod, or it has no PreFilter: there is no state (getStateData).
            return PostFilterResult(Status(Code.ERROR, ("not found",)))
        fitting: ClaimFitting | None = state.get(self.name)
        if fitting is None:
            return _NOTHING_TO_DEALLOCATE
        for number in sorted(fitting.unavailable):
            claim = fitting.pod_claims.claims[number]
            if {consumer.uid for consumer in claim.status.reserved_for} <= {pod.uid}:
                release = ClaimRelease(claim.key, claim.metadata.uid)
                return PostFilterResult(unschedulable("deallocation of ResourceClaim completed"), releases=(release,))
        extended = fitting.pod_claims.extended
        if extended is not None and extended.metadata.name != IN_MEMORY:
            release = ClaimRelease(extended.key, extended.metadata.uid)
            return PostFilterResult(unschedulable("deletion of ResourceClaim completed"), releases=(release,))
        return PostFilterResult(unschedulable("still not schedulable"))

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods without alternatives, since only these distinguish nodes."""
        fitting: ClaimFitting | None = state.get(self.name)
        return SUCCESS if self._scores and fitting is not None and fitting.pod_claims.has_alternatives else SKIP

    def score_cells(self, pod: PodRecord) -> OneCell | None:
        """Return one cell for all nodes if the pod needs no devices."""
        return OneCell.of(
            pod, lambda it: not (self._scores and (it.spec.resource_claims or backed_resources(it, self._cluster)))
        )

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> arrays.Int64s:
        fitting: ClaimFitting = state[self.name]
        return np.array([fitting.score(row) for row in view.rows.tolist()], dtype=np.int64)

    def normalize(self, state: CycleState, pod: PodRecord, scores: arrays.Int64s, feasible: View) -> arrays.Int64s:
        return default_normalize(scores, reverse=False)

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Count the devices found on the node as taken."""
        for claim, allocation in self.allocations(state, node_name):
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            self._devices.claim_cache.assume(msgspec.structs.replace(claim, status=status))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        """Release the devices of `reserve` unless the allocation may have been written."""
        fitting: ClaimFitting | None = state.get(self.name)
        if fitting is not None:
            for claim in (*fitting.pod_claims.claims, *filter(None, (fitting.pod_claims.extended,))):
                self._devices.claim_cache.release(claim.metadata.uid)

    def pre_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Sequence[DeviceReservation]:
        """Return the allocations and reservations to write."""
        fitting: ClaimFitting | None = state.get(self.name)
        if fitting is None:
            return ()
        found = {claim.metadata.uid: (claim, allocation) for claim, allocation in self.allocations(state, node_name)}
        wanted = []
        for claim in fitting.pod_claims.claims:
            if claim.metadata.uid in found or not self._devices.claim_cache.is_reserved_for(claim, pod.uid):
                _, allocation = found.pop(claim.metadata.uid, (claim, None))
                wanted.append(DeviceReservation(claim.key, claim.metadata.uid, _raw(allocation)))
        row = self._cluster.nodes.row_of.get(node_name, 0)
        for claim, allocation in found.values():
            mappings = fitting.extended_on(row).mappings
            wanted.append(DeviceReservation("", "", _raw(allocation), _made(claim), mappings))
        return wanted

    def prepared(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult:
        """Wait until all devices of the pod's claims are ready; fail if one cannot be."""
        fitting: ClaimFitting | None = state.get(self.name)
        for claim in self._reserved(pod, fitting):
            problem = failure(claim)
            if problem is not None:
                return PermitResult(Status(Code.ERROR, (problem,)))
            if not is_ready(claim):
                return PermitResult(Status(Code.WAIT), self._binding_timeout_ns)
        return PermitResult(SUCCESS)

    def give_up(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Mark the claims whose devices are late, so that PostFilter deallocates them."""
        fitting: ClaimFitting | None = state.get(self.name)
        late = (claim for claim in self._reserved(pod, fitting) if not is_ready(claim))
        self._late.update(dict.fromkeys(claim.metadata.uid for claim in late))
        return Status(Code.ERROR, ("device binding timeout",))

    def _reserved(self, pod: PodRecord, fitting: ClaimFitting | None) -> list[ResourceClaim]:
        """Return the present state of the pod's claims."""
        if fitting is None:
            return []
        known = (self._devices.claims.get(claim.key) for claim in fitting.pod_claims.claims)
        made = self._devices.claim_cache.made_for(pod.uid) if fitting.pod_claims.extended is not None else None
        return [claim for claim in (*known, made) if claim is not None]

    def allocations(self, state: CycleState, node_name: str) -> list[tuple[ResourceClaim, AllocationResult]]:
        """Return the allocations of the pod's claims without devices on a node that can serve them.

        A claim without requests, because the node offers the extended resources itself, is left out.
        """
        fitting: ClaimFitting | None = state.get(self.name)
        row = self._cluster.nodes.row_of.get(node_name)
        if fitting is None or row is None:
            return []
        found = fitting.results_on(row)
        return [pair for pair in found if pair[0].metadata.name != IN_MEMORY or pair[0].spec.devices.requests]

    def events_to_register(self) -> Sequence[EventToRegister]:
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            EventToRegister(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
            ),
            EventToRegister(EventResource.RESOURCE_CLAIM, changed, self._helps),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._has_its_claims),
            EventToRegister(EventResource.DEVICE_CLASS, changed),
            EventToRegister(EventResource.RESOURCE_SLICE, changed),
        )

    def _is_lost(self, claim: ResourceClaim) -> bool:
        """Return whether the devices of a claim failed or were not ready in time."""
        if not claim.is_allocated or is_ready(claim):
            self._late.pop(claim.metadata.uid, None)
        return failure(claim) is not None or claim.metadata.uid in self._late

    def _problem(self, claim: ResourceClaim) -> Status | None:
        """Return why a claim without devices cannot be served anywhere, or None."""
        if claim.metadata.uid in self._devices.in_flight:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        for request in claim.spec.devices.requests:
            subrequests: Mapping[str, Any] = {
                f"{request.name}/{subrequest.name}": subrequest for subrequest in request.first_available
            }
            if request.exactly is not None:
                subrequests = {request.name: request.exactly}
            if not subrequests:
                return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
            for name, wanted in subrequests.items():
                if not wanted.device_class_name:
                    return Status(Code.ERROR, (f"request {name}: unsupported request type",))
                if wanted.device_class_name not in self._devices.classes:
                    return unresolvable(f"request {name}: device class {wanted.device_class_name} does not exist")
        return None

    def _helps(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether a claim released its devices, or one of the pod's claims is new or has another status."""
        old: ResourceClaim | None = event.old
        new: ResourceClaim = event.new
        try:
            uids = [claim.metadata.uid for claim in pod_claims(pod, self._devices)]
        except ClaimError:
            return False
        if old is not None and old.is_allocated and not new.is_allocated:
            return True
        return new.metadata.uid in uids and (old is None or old.status != new.status)

    def _has_its_claims(self, pod: PodRecord, event: ClusterEvent) -> bool:
        try:
            pod_claims(event.new, self._devices)
        except ClaimError:
            return False
        return bool(event.new.uid == pod.uid)


def device_shortages(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """Yield each request of the pod's claims for which too few devices that suit it are free on a node."""
    devices, node = cluster.devices, cluster.nodes.node(row)
    pools = gather_pools(devices, node)
    reader, candidates = RequestReader(node, pools, devices), [each for pool in pools for each in pool.candidates]
    try:
        for claim in pod_claims(pod, devices):
            for request in () if claim.is_allocated else reader.claim(claim.key, claim).requests:
                short = []
                for wanted in request:
                    free = sum(
                        each.id not in devices.allocated.dedicated
                        and not is_kept_away(each.device, wanted.exact.tolerations)
                        and reader.selects(wanted, claim.key, each, wanted.matches)
                        for each in candidates
                    )
                    short += [f"{wanted.number} wanted, {free} free"] if free < max(wanted.number, 1) else []
                if len(short) == len(request):
                    name = request[0].parent or request[0].name
                    yield f"devices for claim {claim.metadata.name}, request {name}: {' or '.join(short)}"
    except (ClaimError, AllocationError):
        return


def _raw(allocation: AllocationResult | None) -> Raw | None:
    return None if allocation is None else plain(allocation)


def _made(claim: ResourceClaim) -> Raw:
    """Return a claim as it is created; the API server generates its name."""
    raw: Raw = plain(msgspec.structs.replace(claim, status=type(claim.status)()))
    metadata = {key: value for key, value in raw["metadata"].items() if key not in ("name", "uid")}
    return {**raw, "metadata": {**metadata, "finalizers": [DELETE_PROTECTION]}}


class ClaimError(Exception):
    """A pod's claim that does not exist or cannot be used."""


def pod_claims(pod: PodRecord, devices: Devices) -> list[ResourceClaim]:
    """Return a pod's claims in order, without unneeded ones. Raises ClaimError."""
    made = dict(pod.made_claims)
    found = []
    for resource_claim in pod.spec.resource_claims:
        if resource_claim.resource_claim_name is not None:
            name: str | None = resource_claim.resource_claim_name
        elif resource_claim.resource_claim_template_name is None:
            raise ClaimError(
                f'pod "{pod.key}", spec.resourceClaim "{resource_claim.name}": none of the supported fields are set'
            )
        elif resource_claim.name in made:
            name = made[resource_claim.name]
        else:
            raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
        if name is None:
            continue
        key = f"{pod.namespace}/{name}"
        claim = devices.claims.get(key)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        owner = claim.metadata.controller
        if resource_claim.resource_claim_name is None and (owner is None or owner.uid != pod.uid):
            noun = devices.consumer_noun
            raise ClaimError(f"ResourceClaim {key} was not created for {noun} {pod.key} ({noun} is not owner)")
        found.append(claim)
    return found


def failure(claim: ResourceClaim) -> str | None:
    """Return why a device of a claim will not be ready, or None."""
    for result, status in _devices_to_prepare(claim):
        # The first condition of a type counts.
        conditions = {} if status is None else {each.type: each for each in reversed(status.conditions)}
        for name in result.binding_failure_conditions:
            condition = conditions.get(name)
            if condition is not None and condition.status == "True":
                statuses = f'reason={condition.reason}, message="{condition.message}"'
                return f"claim {claim.metadata.name} binding failed: {statuses}"
    return None


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of a claim are ready, or need no preparation."""
    for result, status in _devices_to_prepare(claim):
        conditions = () if status is None else status.conditions
        met = {condition.type for condition in conditions if condition.status == "True"}
        if not met.issuperset(result.binding_conditions):
            return False
    return True


def _devices_to_prepare(claim: ResourceClaim) -> list[tuple[DeviceResult, AllocatedDeviceStatus | None]]:
    """Return the devices of a claim that need preparation, each with its driver's status."""
    allocation = claim.status.allocation
    if allocation is None:
        return []
    statuses = {(device.driver, device.pool, device.device): device for device in claim.status.devices}
    return [
        (result, statuses.get((result.driver, result.pool, result.device)))
        for result in allocation.devices.results
        if result.binding_conditions
    ]
