"""The device pools that a node can use, and the requests of a pod's claims, evaluated for it.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating (pools_incubating.go,
allocator_incubating.go: Allocate, validateDeviceRequest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from podium.api import devices as api
from podium.api.node import Node
from podium.api.pod import Quantity
from podium.api.quantity import MEMORY, exact_quantity, parse_quantity, whole_value
from podium.api.selectors import NodeSelector, compile_node_selector, node_selector_matches
from podium.cluster.devices import DeviceID, Devices, PoolID, pool_of
from podium.plugins.dynamic_resources.selectors import AllocationError, selects

_terms = lru_cache(maxsize=1_024)(compile_node_selector)
Counters = dict[str, dict[str, int]]
"""Amounts in nano units, by counter set and counter."""


class CandidateDevice(Struct, frozen=True, eq=False):
    """A device that might be allocated."""

    id: DeviceID
    device: api.Device
    slice: api.ResourceSlice
    pool: Pool


class Pool(Struct, eq=False):
    """The slices of a pool's latest generation.

    ``slices`` have devices for the node, ``others`` only for other nodes. ``is_incomplete`` and ``is_invalid`` pools
    have no candidates, except for the slices of the node in incomplete ones before 1.35.
    """

    driver: str
    name: str
    slices: tuple[api.ResourceSlice, ...] = ()
    others: tuple[api.ResourceSlice, ...] = ()
    counters: Counters = {}
    is_incomplete: bool = False
    is_invalid: bool = False
    candidates: tuple[CandidateDevice, ...] = ()

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    def all_devices(self) -> Iterator[tuple[DeviceID, api.Device]]:
        for slice_ in (*self.slices, *self.others):
            for device in slice_.spec.devices:
                yield (self.driver, self.name, device.name), device


def node_matches(node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Return whether a node has that name, or all nodes match, or the selector matches it."""
    if name:
        return node.metadata.name == name
    if all_nodes:
        return True
    if selector is None:
        return False
    return node_selector_matches(_terms(selector), node.metadata.labels, node.metadata.name)


def gather_pools(devices: Devices, node: Node) -> list[Pool]:
    """Return the pools that a node can use, by driver and name; those with binding conditions come last."""
    found: dict[PoolID, list[api.ResourceSlice]] = {}
    for slice_ in (*devices.on_node(node.metadata.name), *devices.shared):
        if _is_relevant(slice_, node):
            slices, generation = found.setdefault(pool_of(slice_), []), slice_.spec.pool.generation
            # Those of the latest generation count.
            if slices and generation > slices[0].spec.pool.generation:
                slices.clear()
            if not slices or generation == slices[0].spec.pool.generation:
                slices.append(slice_)
    pools = [made for pool, slices in sorted(found.items()) if (made := _pool(devices, pool, slices)) is not None]

    def has_binding_conditions(pool: Pool) -> bool:
        return any(each.device.binding_conditions for each in pool.candidates)

    # Ordering by name lets drivers choose which pools are used first.
    return sorted(pools, key=has_binding_conditions)


def _is_relevant(slice_: api.ResourceSlice, node: Node) -> bool:
    spec = slice_.spec
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
    if not spec.per_device_node_selection:
        return False
    return any(node_matches(node, each.node_name, each.all_nodes, each.node_selector) for each in spec.devices)


def _pool(devices: Devices, pool: PoolID, slices: list[api.ResourceSlice]) -> Pool | None:
    """Return the pool of these slices; None if another node has a later generation."""
    wanted, generation = slices[0].spec.pool.resource_slice_count, slices[0].spec.pool.generation
    others: list[api.ResourceSlice] = []
    is_incomplete = len(slices) != wanted and not devices.skips_incomplete_pools
    if len(slices) != wanted and not is_incomplete:
        everywhere = list(devices.in_pool(pool))
        if any(slice_.spec.pool.generation > generation for slice_ in everywhere):
            return None
        of_generation = [slice_ for slice_ in everywhere if slice_.spec.pool.generation == generation]
        if len(of_generation) != wanted:
            return Pool(*pool, is_incomplete=True)
        here = {slice_.key for slice_ in slices}
        others = [slice_ for slice_ in of_generation if slice_.key not in here]
    slices = sorted(slices, key=lambda slice_: slice_.key)
    with_devices = tuple(slice_ for slice_ in slices if not slice_.spec.shared_counters)
    is_invalid = not _is_valid(slices, others)
    made = Pool(*pool, with_devices, tuple(others), is_incomplete=is_incomplete, is_invalid=is_invalid)
    if not made.is_invalid:
        made.counters = _counters(slices)
        made.candidates = tuple(
            CandidateDevice((*pool, device.name), device, with_device, made)
            for with_device in with_devices
            for device in with_device.spec.devices
        )
    return made


def _is_valid(slices: Iterable[api.ResourceSlice], others: Iterable[api.ResourceSlice]) -> bool:
    """Return whether names of devices and counter sets are unique, and all consumed counters exist."""
    sets = [shared_counter for each in slices for shared_counter in each.spec.shared_counters]
    names = [device.name for each in slices if not each.spec.shared_counters for device in each.spec.devices]
    known = {counters.name: counters.counters.keys() for counters in sets}
    if len(known) < len(sets) or len(set(names)) < len(names):
        return False
    consumed = (
        consumes_counter
        for each in (*slices, *others)
        for device in each.spec.devices
        for consumes_counter in device.consumes_counters
    )
    return all(
        consumption.counter_set in known and consumption.counters.keys() <= known[consumption.counter_set]
        for consumption in consumed
    )


def _counters(slices: Iterable[api.ResourceSlice]) -> Counters:
    return {
        shared_counter.name: {name: parse_quantity(counter.value) for name, counter in shared_counter.counters.items()}
        for each in slices
        for shared_counter in each.spec.shared_counters
    }


AttributeValue = tuple[str, str | int | bool]


class ConstraintState:
    """A constraint on an attribute of devices, and the devices taken under it.

    For a distinct attribute only the last value of each request is kept, so that a value may repeat within a request,
    as in kube-scheduler's distinctAttributeConstraint.
    """

    def __init__(self, written: api.DeviceConstraint) -> None:
        self.attribute = written.match_attribute or written.distinct_attribute or ""
        self._requests = frozenset(written.requests)
        self._is_distinct = written.match_attribute is None
        self._count = 0
        self._common: AttributeValue | None = None
        self._last: dict[str, AttributeValue] = {}

    def concerns(self, request: str, alternative: str) -> bool:
        """Return whether it applies to a request, or to one of its alternatives ("" for none)."""
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, request: str, device: api.Device, id_: DeviceID) -> bool:
        """Add a device; return False if that would violate the constraint."""
        found = _find(device, id_, self.attribute)
        value = None if found is None else _value(found)
        if value is None:
            return False
        if not self._count:
            self._common = value
        elif value in self._last.values() if self._is_distinct else value != self._common:
            return False
        self._last[request] = value
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        self._last.pop(request, None)
        self._count -= 1


def _find(device: api.Device, id_: DeviceID, name: str) -> api.DeviceAttribute | None:
    """Return an attribute by its full name; the driver's domain may be omitted."""
    attributes = device.attributes
    if name in attributes:
        return attributes[name]
    domain, slash, rest = name.partition("/")
    return attributes.get(rest) if slash and domain == id_[0] else None


def _value(attribute: api.DeviceAttribute) -> AttributeValue | None:
    values = {"string": attribute.string, "int": attribute.int_, "bool": attribute.bool_, "version": attribute.version}
    return next(((kind, value) for kind, value in values.items() if value is not None), None)


class EvaluatedRequest(Struct, eq=False):
    """A request, or an alternative of the request ``parent``.

    ``number`` is the number of devices; ``all`` are the devices if it asks for all. ``matches`` says of devices that
    were evaluated whether class and request select them.
    """

    name: str
    exact: api.ExactDeviceRequest
    parent: str
    device_class: api.DeviceClass
    number: int
    all: tuple[CandidateDevice, ...] | None = None
    matches: dict[DeviceID, bool] = {}

    @property
    def full_name(self) -> str:
        """Return the request's name, followed by an alternative's."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


class EvaluatedClaim(Struct, eq=False):
    """A claim without devices. Each request is a list of alternatives, usually of one."""

    claim: api.ResourceClaim
    label: str
    requests: list[list[EvaluatedRequest]]
    constraints: list[ConstraintState]


class RequestReader:
    """Evaluates the requests of claims on one node. Raises AllocationError for those that cannot be served anywhere."""

    def __init__(self, node: Node, pools: list[Pool], devices: Devices) -> None:
        self._node = node
        self._pools = pools
        self._classes = devices.classes
        self._capacity = devices.allocated.capacity
        self._shares_matches = devices.shares_matches

    def selects(
        self, wanted: EvaluatedRequest, label: str, candidate: CandidateDevice, known: dict[DeviceID, bool]
    ) -> bool:
        """Return whether class and request select a device that this node can use; ``known`` caches results."""
        found = known.get(candidate.id)
        if found is None:
            driver, device = candidate.id[0], candidate.device
            of_class = wanted.device_class
            found = known[candidate.id] = (
                selects(of_class.spec.selectors, driver, device, f"class {of_class.metadata.name}")
                and selects(wanted.exact.selectors, driver, device, f"claim {label}")
                and (
                    not candidate.slice.spec.per_device_node_selection
                    or node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)
                )
            )
        return found

    def claim(self, label: str, claim: api.ResourceClaim) -> EvaluatedClaim:
        """Return a claim; ``label`` names it in messages."""
        devices = claim.spec.devices
        requests = [self._alternatives(label, request) for request in devices.requests]
        least = sum(min(alternative.number for alternative in alternatives) for alternatives in requests)
        if least > api.MOST_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {api.MOST_RESULTS}"
            raise AllocationError(f"claim {label}: {problem}")
        for number, constraint in enumerate(devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                problem = f"constraint #{number}: empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {label}, {problem}")
        return EvaluatedClaim(claim, label, requests, list(map(ConstraintState, devices.constraints)))

    def _alternatives(self, label: str, request: api.DeviceRequest) -> list[EvaluatedRequest]:
        if request.first_available:
            found: list[EvaluatedRequest] = []
            for each in request.first_available:
                is_shared = self._shares_matches and len(found) == 1 and found[0].all is not None
                found.append(self._evaluate(label, each.name, each, request.name, found[0] if is_shared else None))
            return found
        exact = request.exactly
        if exact is None:
            problem = "missing device class name (unsupported request type?)"
            raise AllocationError(f"claim {label}, request {request.name}: {problem}")
        return [self._evaluate(label, request.name, exact, "")]

    def _evaluate(
        self, label: str, name: str, exact: api.ExactDeviceRequest, parent: str, earlier: EvaluatedRequest | None = None
    ) -> EvaluatedRequest:
        """Return a request; the mode All uses the matches of an ``earlier`` alternative, if there is one."""

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
        wanted = EvaluatedRequest(name, exact, parent, device_class, exact.count)
        if exact.allocation_mode == "All":
            wanted.all = self._all(label, wanted, (earlier or wanted).matches, failed)
            wanted.number = len(wanted.all)
        elif exact.allocation_mode != "ExactCount":
            raise failed(f"unsupported count mode {exact.allocation_mode}")
        return wanted

    def _all(
        self,
        label: str,
        wanted: EvaluatedRequest,
        known: dict[DeviceID, bool],
        failed: Callable[[str], AllocationError],
    ) -> tuple[CandidateDevice, ...]:
        """Return all matching devices. Raises an error if a pool is incomplete or invalid."""
        found, needed = [], wanted.exact.capacity
        for pool in self._pools:
            state = "being updated" if pool.is_incomplete else "invalid" if pool.is_invalid else ""
            if state:
                raise failed(f"asks for all devices, but resource pool {pool} is currently {state}")
            found += [
                candidate
                for candidate in pool.candidates
                if self.selects(wanted, label, candidate, known)
                and fits(needed, candidate.device.capacity, self._capacity.get(candidate.id, {}), {})
            ]
        return tuple(found)


_NANO = 10**9
Amounts = Mapping[str, int]
"""Amounts in nano units by capacity name."""


def consumed(
    wanted: api.CapacityRequirements | None, capacity: Mapping[str, api.DeviceCapacity]
) -> dict[str, Quantity]:
    """Return what a request consumes of each capacity of a device."""
    requests = {} if wanted is None else wanted.requests
    return {name: _consumed(requests.get(name), offered) for name, offered in capacity.items()}


def fits(
    wanted: api.CapacityRequirements | None, capacity: Mapping[str, api.DeviceCapacity], taken: Amounts, taking: Amounts
) -> bool:
    """Return whether a device has capacity for a request beside other claims, and this pod's other requests."""
    if wanted is not None and not wanted.requests.keys() <= capacity.keys():
        return False
    for name, quantity in consumed(wanted, capacity).items():
        amount, offered = parse_quantity(quantity), capacity[name]
        if offered.request_policy is not None and _violates(amount, offered.request_policy):
            return False
        if amount + taken.get(name, 0) + taking.get(name, 0) > parse_quantity(offered.value):
            return False
    return True


def _consumed(wanted: Quantity | None, capacity: api.DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return capacity.value if default is None else default
    if policy is None:
        return wanted
    if policy.valid_range is not None:
        return _rounded_up(wanted, policy.valid_range)
    amount = parse_quantity(wanted)
    return next((valid for valid in policy.valid_values if amount <= parse_quantity(valid)), wanted)


def _rounded_up(wanted: Quantity, valid: api.CapacityRange) -> Quantity:
    if parse_quantity(wanted) < parse_quantity(valid.min):
        return valid.min
    if valid.step is None:
        return wanted
    first, step = whole_value(valid.min), whole_value(valid.step)
    steps = -(-(whole_value(wanted) - first) // step) if step else 0
    return exact_quantity(first + steps * step, MEMORY)


def _violates(amount: int, policy: api.CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == parse_quantity(policy.default):
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and amount not in map(parse_quantity, policy.valid_values)
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    step = whole_value(valid.step or 0)
    return bool(step) and (-(-amount // _NANO) - whole_value(valid.min)) % step != 0
