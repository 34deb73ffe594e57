"""What the claims of a pod ask for, worked out for one node.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(Allocate, validateDeviceRequest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.api.devices import DeviceClass
from podium.api.node import Node
from podium.api.resource_claims import MOST_RESULTS, DeviceRequest, ExactDeviceRequest, ResourceClaim
from podium.cluster.devices import Devices
from podium.plugins.dynamic_resources.capacity import fits
from podium.plugins.dynamic_resources.constraints import Constraint
from podium.plugins.dynamic_resources.errors import AllocationError
from podium.plugins.dynamic_resources.pools import Candidate, Pool, node_matches
from podium.plugins.dynamic_resources.selectors import Selectors


@dataclass(slots=True, eq=False)
class Wanted:
    """A request, or one of its alternatives: then ``parent`` is the request's name.

    ``number`` is how many devices it needs. ``all`` are the devices that it needs where it asks for all there are.
    """

    name: str
    exact: ExactDeviceRequest
    parent: str
    device_class: DeviceClass
    number: int
    all: tuple[Candidate, ...] | None = None

    @property
    def full_name(self) -> str:
        """The request's name, an alternative's behind it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


@dataclass(slots=True, eq=False)
class WantedClaim:
    """A claim that has no devices yet. Each request is a list of alternatives, most of them of one."""

    claim: ResourceClaim
    label: str
    requests: list[list[Wanted]]
    constraints: list[Constraint]


class Reader:
    """Works out what claims ask for on one node. Raises AllocationError for what cannot be served anywhere."""

    def __init__(self, node: Node, pools: list[Pool], devices: Devices, selectors: Selectors) -> None:
        self._node = node
        self._pools = pools
        self._classes = devices.classes
        self._capacity = devices.allocated.capacity
        self._selectors = selectors

    def read(self, claims: Iterable[tuple[str, ResourceClaim]]) -> list[WantedClaim]:
        """The claims, each under the name by which messages call it."""
        return [self._claim(label, claim) for label, claim in claims]

    def selects(self, wanted: Wanted, label: str, candidate: Candidate) -> bool:
        """Whether the class and the request select a device that this node can use."""
        driver, device = candidate.id[0], candidate.device
        of_class = wanted.device_class
        selectors = self._selectors
        if not selectors.match(of_class.spec.selectors, driver, device, f"class {of_class.metadata.name}"):
            return False
        if not selectors.match(wanted.exact.selectors, driver, device, f"claim {label}"):
            return False
        fields = device.fields
        return not candidate.slice.spec.per_device_node_selection or node_matches(
            self._node, fields.node_name, fields.all_nodes, fields.node_selector
        )

    def _claim(self, label: str, claim: ResourceClaim) -> WantedClaim:
        asked = claim.spec.devices
        requests = [self._alternatives(label, request) for request in asked.requests]
        least = sum(min(alternative.number for alternative in alternatives) for alternatives in requests)
        if least > MOST_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}"
            raise AllocationError(f"claim {label}: {problem}")
        for number, constraint in enumerate(asked.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                problem = f"constraint #{number}: empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {label}, {problem}")
        return WantedClaim(
            claim, label, requests, [Constraint(device_constraint) for device_constraint in asked.constraints]
        )

    def _alternatives(self, label: str, request: DeviceRequest) -> list[Wanted]:
        if request.first_available:
            return [
                self._wanted(label, subrequest.name, subrequest, request.name) for subrequest in request.first_available
            ]
        exact = request.exact
        if exact is None:
            raise AllocationError(
                f"claim {label}, request {request.name}: missing device class name (unsupported request type?)"
            )
        return [self._wanted(label, request.name, exact, "")]

    def _wanted(self, label: str, name: str, exact: ExactDeviceRequest, parent: str) -> Wanted:
        def failed(problem: str) -> AllocationError:
            return AllocationError(f"claim {label}, request {name}: {problem}")

        for number, selector in enumerate(exact.selectors):
            if selector.cel is None:
                problem = f"selector #{number}: CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"claim {label}, request {name}, {problem}")
        device_class = self._classes.get(exact.device_class_name)
        if device_class is None:
            missing = exact.device_class_name
            raise failed(
                f'could not retrieve device class {missing}: deviceclass.resource.k8s.io "{missing}" not found'
            )
        wanted = Wanted(name, exact, parent, device_class, exact.count)
        if exact.allocation_mode == "All":
            wanted.all = self._all(label, wanted, failed)
            wanted.number = len(wanted.all)
        elif exact.allocation_mode != "ExactCount":
            raise failed(f"unsupported count mode {exact.allocation_mode}")
        return wanted

    def _all(self, label: str, wanted: Wanted, failed: Callable[[str], AllocationError]) -> tuple[Candidate, ...]:
        """All devices that will do; they are not known while a pool is not whole."""
        found = []
        for pool in self._pools:
            state = "being updated" if pool.is_incomplete else "invalid" if pool.is_invalid else ""
            if state:
                raise failed(f"asks for all devices, but resource pool {pool} is currently {state}")
            found += [
                candidate
                for candidate in pool.candidates
                if self.selects(wanted, label, candidate) and self._has_room(wanted, candidate)
            ]
        return tuple(found)

    def _has_room(self, wanted: Wanted, candidate: Candidate) -> bool:
        return fits(wanted.exact.capacity, candidate.device.fields.capacity, self._capacity.get(candidate.id, {}), {})
