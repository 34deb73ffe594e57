"""Feasibility of one pod's claims on nodes, evaluated once for each kind of node; claims for extended resources.

Source: Filter and Score of pkg/scheduler/framework/plugins/dynamicresources (dynamicresources.go,
extendeddynamicresources.go).
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from podium.api import devices as api
from podium.api import quantity, resource_requests, selectors
from podium.api.meta import ObjectMeta, OwnerReference, Raw
from podium.api.pod import Container
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, matching_rows
from podium.framework.verdicts import SUCCESS, Code, Status, unresolvable
from podium.plugins.dynamic_resources.allocator import allocate
from podium.plugins.dynamic_resources.selectors import AllocationError, NodeAllocationError, TooManyStepsError

_CANNOT = unresolvable("cannot allocate all claims")
_LATE = unresolvable("timed out trying to allocate devices")
_STALE = unresolvable("cannot schedule extended resource claim")
_ELSEWHERE = unresolvable("resourceclaim not available on the node")

Results = tuple[api.AllocationResult, ...]


class _Fit(Struct, frozen=True):
    """The result for one kind of node, found on ``row``; ``results`` correspond to `ClaimFitting.waiting_on`."""

    status: Status
    row: int
    results: Results = ()


class PodClaims(Struct, frozen=True):
    """The requests of a pod in one attempt.

    ``claims`` are those that it names; ``extended`` is the claim for its ``backed`` extended resources, those that a
    class provides, None without any. ``lost`` are the indices of claims whose devices failed.
    """

    claims: tuple[api.ResourceClaim, ...]
    extended: api.ResourceClaim | None
    backed: tuple[str, ...]
    lost: frozenset[int] = frozenset()

    @property
    def has_alternatives(self) -> bool:
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)


class ClaimFitting(Struct, eq=False):
    """Evaluates where a pod's claims can be served, with a cache for the attempt.

    ``terms`` are the node terms of allocated claims. ``unavailable`` are the indices of claims that alone excluded a
    node.
    """

    pod: PodRecord
    cluster: Cluster
    pod_claims: PodClaims
    terms: dict[int, tuple[selectors.NodeTerm, ...]]
    unavailable: set[int] = set()
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    _codes: dict[Status, int] = field(default_factory=lambda: {SUCCESS: 0})
    _fits: dict[Hashable, _Fit] = {}
    _extended: dict[tuple[str, ...], ExtendedClaim] = {}
    _on_row: dict[int, int] = {}
    _results: dict[int, Results] = {}

    def codes(self, view: View) -> Int64s:
        """Return ``[n]`` 0 if all claims can be served, and for free rows; else the index of the status.

        Added and removed pods do not change that, so that each row is evaluated once.
        """
        rows = view.rows.tolist()
        present = self.cluster.nodes.present
        missing = [row for row in rows if row not in self._on_row and present[row]]
        if missing:
            part = View(self.cluster, np.array(missing, dtype=np.int64))
            away = {number: ~matching_rows(part, terms) for number, terms in self.terms.items()}
            for position, row in enumerate(missing):
                elsewhere = {number for number, refused in away.items() if refused[position]}
                status = self._status(row, elsewhere | self.pod_claims.lost)
                self._on_row[row] = code = self._codes.setdefault(status, len(self.statuses))
                if code == len(self.statuses):
                    self.statuses.append(status)
        return np.array([self._on_row.get(row, 0) for row in rows], dtype=np.int64)

    @property
    def has_errors(self) -> bool:
        """Return whether any result so far is an error."""
        return any(status.code is Code.ERROR for status in self.statuses)

    def waiting_on(self, row: int) -> list[api.ResourceClaim]:
        """Return the claims without devices on a node; that for extended resources comes last."""
        waiting = [claim for claim in self.pod_claims.claims if not claim.is_allocated]
        if self.pod_claims.extended is not None and not self.pod_claims.extended.is_allocated:
            waiting.append(self.extended_on(row).claim)
        return waiting

    def extended_on(self, row: int) -> ExtendedClaim:
        """Return the claim for the extended resources that a node does not offer itself."""
        resources, backed = self._delegated(row), self.cluster.devices.backed
        if resources not in self._extended:
            made = [_of_resource(self.pod, resource, backed[resource].metadata.name) for resource in resources]
            requests = sorted((each for some, _ in made for each in some), key=lambda request: request.name)
            spec = api.ResourceClaimSpec(devices=api.DeviceClaim(requests=tuple(requests)))
            mappings = tuple(each for _, some in made for each in some)
            self._extended[resources] = ExtendedClaim(replace(empty_claim(self.pod), spec=spec), mappings)
        return self._extended[resources]

    def results_on(self, row: int) -> list[tuple[api.ResourceClaim, api.AllocationResult]]:
        """Return the allocations of the claims without devices on a node that can serve them; deterministic."""
        results = self._results.get(row)
        if results is None:
            fit = self._fit(row)
            # On a similar node the devices have other names.
            results = self._results[row] = (fit if fit.row == row else self._found(row)).results
        return list(zip(self.waiting_on(row), results, strict=True)) if results else []

    def score(self, row: int) -> int:
        """Return a higher score for earlier alternatives (computeScore)."""
        found = iter(self._fit(row).results if self._needs_devices else ())
        total = 0
        for claim in self.pod_claims.claims:
            allocation = claim.status.allocation or next(found)
            names = {result.request for result in allocation.devices.results}
            for request in claim.spec.devices.requests:
                for number, subrequest in enumerate(request.first_available):
                    total += api.MOST_ALTERNATIVES - number if f"{request.name}/{subrequest.name}" in names else 0
        return total

    @property
    def _needs_devices(self) -> bool:
        extended = self.pod_claims.extended
        return any(not claim.is_allocated for claim in self.pod_claims.claims) or (
            extended is not None and not extended.is_allocated
        )

    def _status(self, row: int, elsewhere: set[int]) -> Status:
        if self.pod_claims.extended is not None and self.pod_claims.extended.spec.devices.requests:
            # The claim for extended resources is from a failed attempt.
            return _STALE
        if not self.pod_claims.claims and not self._delegated(row):
            return SUCCESS
        if self._needs_devices:
            status = self._fit(row).status
            if not status.is_success:
                return status
        if elsewhere:
            self.unavailable |= elsewhere
            return _ELSEWHERE
        return SUCCESS

    def _fit(self, row: int) -> _Fit:
        """Return the result for a node or a similar one; errors are node-specific."""
        nodes = self.cluster.nodes
        kind = (self.cluster.devices.offer(nodes.name(row)), self._delegated(row))
        fit = self._fits.get(kind)
        if fit is None or (fit.row != row and fit.status.code is Code.ERROR):
            fit = self._fits[kind] = self._found(row)
        return fit

    def _found(self, row: int) -> _Fit:
        claims = [(claim.key, claim) for claim in self.waiting_on(row)]
        try:
            results = allocate(self.cluster.devices, self.cluster.nodes.node(row), claims)
        except TooManyStepsError:
            return _Fit(_LATE, row)
        except NodeAllocationError as error:
            return _Fit(unresolvable(str(error)), row)
        except AllocationError as error:
            # kube-scheduler names the failed filter (RunFilterPlugins).
            return _Fit(Status(Code.ERROR, (f'running "DynamicResources" filter plugin: {error}',)), row)
        return _Fit(_CANNOT, row) if results is None else _Fit(SUCCESS, row, results)

    def _delegated(self, row: int) -> tuple[str, ...]:
        """Return the extended resources that a class provides and a node does not offer itself."""
        nodes = self.cluster.nodes
        return tuple(name for name in self.pod_claims.backed if not nodes.allocatable[nodes.resource_index[name], row])


IN_MEMORY = "<extended-resources>"
"""The name of a claim before it is written, which no object can have."""


class ExtendedClaim(Struct, frozen=True):
    """The claim for the extended resources that a kind of node does not offer itself.

    ``mappings`` are its requests for the containers' resources (core/v1 ContainerExtendedResourceRequest).
    """

    claim: api.ResourceClaim
    mappings: tuple[Raw, ...]


def backed_resources(pod: PodRecord, cluster: Cluster) -> tuple[str, ...]:
    """Return the pod's extended resources that device classes provide, by name."""
    backed = cluster.devices.backed
    if not backed:
        return ()
    wanted = [resource for resource, amount in pod.pod_class.requests.items() if amount]
    return tuple(sorted(filter(backed.__contains__, map(cluster.nodes.resources.__getitem__, wanted))))


def empty_claim(pod: PodRecord) -> api.ResourceClaim:
    """Return the claim without requests; it has the pod's uid until it is created."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return api.ResourceClaim(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=pod.namespace,
            uid=pod.uid,
            generate_name=f"{pod.name}-extended-resources-",
            owner_references=(owner,),
            annotations={api.EXTENDED_RESOURCE_CLAIM: "true"},
        ),
    )


def _of_resource(pod: PodRecord, resource: str, class_name: str) -> tuple[list[api.DeviceRequest], list[Raw]]:
    """Return the requests for devices instead of a resource, and which containers get them.

    Containers that run together each have a request. Init containers that end earlier may use the devices of later
    containers; what the largest of them lacks is requested once.
    """
    before = pod.spec.init_containers
    containers = (*before, *pod.spec.containers)
    long: list[_ContainerNeed | None] = []
    for number, container in enumerate(containers):
        ends = number < len(before) and container.restart_policy != "Always"
        long.append(None if ends else _part(number, container, resource, []))
    short: list[_ContainerNeed] = []
    for number, container in enumerate(before):
        if container.restart_policy != "Always":
            later = [part for part in long[number:] if part is not None]
            found = _part(number, container, resource, later)
            if found is not None:
                short.append(found)
    most = max((part for part in short if part.count), key=lambda part: part.count, default=None)
    own = {part.name for part in short if part.count}
    mappings = [
        {
            "containerName": part.container,
            "resourceName": resource,
            "requestName": most.name if most is not None and name in own else name,
        }
        for part in (*long, *short)
        if part is not None
        for name in part.serving
    ]
    exact_parts = [part for part in (most, *long) if part is not None and part.count]
    requests = [
        api.DeviceRequest(
            name=part.name,
            exactly=api.ExactDeviceRequest(
                device_class_name=class_name, allocation_mode="ExactCount", count=part.count
            ),
        )
        for part in exact_parts
    ]
    return requests, mappings


class _ContainerNeed(Struct, frozen=True):
    """A container's need of a resource: ``count`` devices in its own request, and the requests that serve it."""

    name: str
    container: str
    count: int
    serving: tuple[str, ...]


def _part(number: int, container: Container, resource: str, later: list[_ContainerNeed]) -> _ContainerNeed | None:
    """Return a container's need, None if there is none. It uses the requests of ``later`` containers first."""
    requests = resource_requests.requests_of(container.resources)
    wanted = quantity.whole_value(requests[resource]) if resource in requests else 0
    if not wanted:
        return None
    name = f"container-{number}-request-{sorted(requests).index(resource)}"
    serving: list[str] = []
    for part in later:
        if part.count:
            serving.append(part.name)
            wanted -= part.count
            if wanted <= 0:
                return _ContainerNeed(name, container.name, 0, tuple(serving))
    return _ContainerNeed(name, container.name, wanted, (*serving, name))
