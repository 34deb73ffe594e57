"""The search for devices by claim, request and device; the first solution is taken.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, the allocator of
kube-scheduler v1.36 with the gates on by default. One difference: this search counts steps, upstream measures time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from podium.api import devices as api
from podium.api.meta import Raw, plain
from podium.api.node import Node
from podium.api.pod import Quantity
from podium.api.quantity import canonical_quantity, parse_quantity
from podium.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.cluster.devices import DeviceID, Devices, DevicesInUse
from podium.cluster.view import tolerated
from podium.plugins.dynamic_resources.requests import (
    CandidateDevice,
    ConstraintState,
    Counters,
    EvaluatedClaim,
    EvaluatedRequest,
    Pool,
    RequestReader,
    consumed,
    fits,
    gather_pools,
)
from podium.plugins.dynamic_resources.selectors import AllocationError, NodeAllocationError, TooManyStepsError

MOST_STEPS = 50_000
"""The largest number of steps of the search for one node; upstream allows ten seconds (filterTimeout)."""

Search = Generator[Any, bool, bool]
"""A part of the search: it yields the parts that it needs, receives their success, and returns its own."""


class _TooManyDevicesError(Exception):
    """A claim would get more devices than allowed; other alternatives may need fewer."""


class _SearchState(Struct, frozen=True):
    """The state of the search: the next device to find, and the first candidate to try for it."""

    claim: int = 0
    request: int = 0
    alternative: int | None = None
    device: int = 0
    candidate: int = 0


def allocate(
    devices: Devices, node: Node, claims: Iterable[tuple[str, api.ResourceClaim]], most_steps: int = MOST_STEPS
) -> tuple[api.AllocationResult, ...] | None:
    """Return the allocations of labelled claims on a node; None if not all can be served.

    Raises AllocationError for invalid claims and classes, NodeAllocationError for invalid pools, and TooManyStepsError.
    """
    pools = gather_pools(devices, node)
    reader = RequestReader(node, pools, devices)
    search = _Allocator(devices, reader, [reader.claim(label, claim) for label, claim in claims], most_steps)
    search.candidates = [candidate for pool in pools for candidate in pool.candidates]
    if search.run():
        return tuple(result_of(*taken, node.metadata.name) for taken in zip(search.claims, search.taken, strict=True))
    if any(pool.is_invalid for pool in pools):
        raise NodeAllocationError("invalid resource pools were encountered")
    return None


class _Allocator:
    """One search on one node."""

    def __init__(self, devices: Devices, reader: RequestReader, claims: list[EvaluatedClaim], most_steps: int) -> None:
        self._allocated = devices.allocated
        self._keeps_alternative = devices.keeps_alternative
        self._reader = reader
        self.claims = claims
        self._most_steps = most_steps
        self.steps = 0
        self.candidates: list[CandidateDevice] = []
        self.taken: list[list[TakenDevice]] = [[] for _ in claims]
        # The claims that get a device exclusively.
        self._taking: dict[DeviceID, set[int]] = {}
        self._capacity: dict[DeviceID, dict[str, int]] = {}
        self._counters = PoolCounters(devices.allocated)

    def run(self) -> bool:
        """Search until a solution is found or none is left. Parts run on an explicit stack."""
        stack: list[Search] = [self._next(_SearchState())]
        done, failed, is_new = False, False, True
        while stack:
            part = stack[-1]
            try:
                if failed:
                    stack.append(part.throw(_TooManyDevicesError()))
                else:
                    stack.append(next(part) if is_new else part.send(done))
                failed, is_new = False, True
            except StopIteration as stop:
                done, failed, is_new = stop.value, False, False
                stack.pop()
            except _TooManyDevicesError:
                failed, is_new = True, False
                stack.pop()
        return done and not failed

    def _next(self, at: _SearchState) -> Search:
        """Find everything from this state on."""
        self.steps += 1
        if self.steps > self._most_steps:
            raise TooManyStepsError
        if at.claim >= len(self.claims):
            return True
        claim = self.claims[at.claim]
        if at.request >= len(claim.requests):
            try:
                return (yield self._next(_SearchState(at.claim + 1)))
            except _TooManyDevicesError:
                return False
        alternatives = claim.requests[at.request]
        if at.alternative is None and alternatives[0].parent:
            return (yield self._first_available(at, len(alternatives)))
        wanted = alternatives[at.alternative or 0]
        if wanted.all is not None and not wanted.all:
            return False
        if at.device >= wanted.number:
            return (yield self._next(_SearchState(at.claim, at.request + 1)))
        if len(self.taken[at.claim]) + wanted.number - at.device > api.MOST_RESULTS:
            raise _TooManyDevicesError
        found = self._exactly(at, wanted, wanted.all[at.device]) if wanted.all else self._any(at, wanted)
        return (yield found)

    def _first_available(self, at: _SearchState, number: int) -> Search:
        """Try the alternatives in order."""
        all_too_many = True
        for alternative in range(number):
            try:
                if (yield self._next(_SearchState(at.claim, at.request, alternative))):
                    return True
            except _TooManyDevicesError:
                continue
            all_too_many = False
        if all_too_many:
            raise _TooManyDevicesError
        return False

    def _exactly(self, at: _SearchState, wanted: EvaluatedRequest, candidate: CandidateDevice) -> Search:
        """Take this device and no other. Before 1.36 the first alternative gets the next one, by mistake."""
        if not self._take(at, wanted, candidate, must=True):
            return False
        return (yield self._go_on(at, candidate, 0, (at.alternative or 0) if self._keeps_alternative else 0))

    def _any(self, at: _SearchState, wanted: EvaluatedRequest) -> Search:
        """Take one device after the other until the rest succeeds.

        The order of devices within a request does not matter, so that the next device is searched after this one only.
        """
        label = self.claims[at.claim].label
        for number in range(at.candidate, len(self.candidates)):
            candidate = self.candidates[number]
            if self._is_refused(at, wanted, candidate.id):
                continue
            if not self._reader.selects(wanted, label, candidate, wanted.matches):
                continue
            if not self._has_room(wanted, candidate) or not self._take(at, wanted, candidate, must=False):
                continue
            if (yield self._go_on(at, candidate, number + 1, at.alternative or 0)):
                return True
        return False

    def _go_on(self, at: _SearchState, candidate: CandidateDevice, next_candidate: int, alternative: int) -> Search:
        """Find the rest after taking a device; release it if that fails."""
        try:
            done: bool = yield self._next(
                _SearchState(at.claim, at.request, alternative, at.device + 1, next_candidate)
            )
        except _TooManyDevicesError:
            self._give_back(at, candidate)
            raise
        if not done:
            self._give_back(at, candidate)
        return done

    def _is_refused(self, at: _SearchState, wanted: EvaluatedRequest, device: DeviceID) -> bool:
        """Return whether the device is held exclusively. Administrators ignore that, but only once for each claim."""
        taking = self._taking.get(device, ())
        if wanted.exact.admin_access:
            return at.claim in taking
        return bool(taking) or device in self._allocated.dedicated

    def _has_room(self, wanted: EvaluatedRequest, candidate: CandidateDevice) -> bool:
        taken, taking = (some.get(candidate.id, {}) for some in (self._allocated.capacity, self._capacity))
        return fits(wanted.exact.capacity, candidate.device.capacity, taken, taking)

    def _take(self, at: _SearchState, wanted: EvaluatedRequest, candidate: CandidateDevice, *, must: bool) -> bool:
        # As upstream, counters are not released if a taint or constraint then rejects the device (allocateDevice).
        device, id_ = candidate.device, candidate.id
        is_shared = device.allow_multiple_allocations
        if self._is_refused(at, wanted, id_):
            return False
        is_held = is_shared and (id_ in self._allocated.capacity or id_ in self._capacity)
        if not is_held and device.consumes_counters and not self._counters.take(candidate):
            return False
        if is_kept_away(device, wanted.exact.tolerations) or not self._constrain(at, wanted, candidate, must=must):
            return False
        if not is_shared:
            self._taking.setdefault(id_, set()).add(at.claim)
        if not self._has_room(wanted, candidate):
            return False
        amounts = consumed(wanted.exact.capacity, device.capacity) if is_shared else {}
        if is_shared:
            held = self._capacity.setdefault(id_, {})
            for name, amount in amounts.items():
                held[name] = held.get(name, 0) + parse_quantity(amount)
        self.taken[at.claim].append(TakenDevice(wanted, candidate, at.request, amounts, is_shared))
        return True

    def _constrain(self, at: _SearchState, wanted: EvaluatedRequest, candidate: CandidateDevice, *, must: bool) -> bool:
        """Add the device to the claim's constraints; return False, unchanged, if one of them rejects it."""
        claim = self.claims[at.claim]
        concerned = _constraints_of(claim.constraints, wanted)
        request = wanted.parent or wanted.name
        for number, constraint in enumerate(concerned):
            if constraint.add(request, candidate.device, candidate.id):
                continue
            if must:
                device = "/".join(candidate.id)
                raise AllocationError(
                    f"claim {claim.label}, request {wanted.name}: cannot add device {device} because a claim "
                    "constraint would not be satisfied"
                )
            for earlier in concerned[:number]:
                earlier.remove(request)
            return False
        return True

    def _give_back(self, at: _SearchState, candidate: CandidateDevice) -> None:
        """Undo `_take` for the last device. The counters of a shared device stay taken."""
        taken = self.taken[at.claim].pop()
        for constraint in _constraints_of(self.claims[at.claim].constraints, taken.wanted):
            constraint.remove(taken.wanted.parent or taken.wanted.name)
        id_ = candidate.id
        if not taken.is_shared:
            self._taking[id_].discard(at.claim)
            if candidate.device.consumes_counters:
                self._counters.give_back(candidate)
            return
        held = self._capacity[id_]
        for name, amount in taken.consumed.items():
            held[name] -= parse_quantity(amount)
        if not any(held.values()):
            del self._capacity[id_]


def _constraints_of(constraints: list[ConstraintState], wanted: EvaluatedRequest) -> list[ConstraintState]:
    name, alternative = (wanted.parent, wanted.name) if wanted.parent else (wanted.name, "")
    return [constraint for constraint in constraints if constraint.concerns(name, alternative)]


def is_kept_away(device: api.Device, tolerations: tuple[api.DeviceToleration, ...]) -> bool:
    """Return whether the device has an untolerated taint with an effect."""
    return any(taint.effect != "None" and not tolerated(tolerations, taint) for taint in device.taints)


class PoolCounters:
    """The remaining counters of each pool, and those being taken for a pod.

    As upstream, pools are identified by name only: of equal names of two drivers, the first counts.
    """

    def __init__(self, allocated: DevicesInUse) -> None:
        self._allocated = allocated
        self._available: dict[str, Counters] = {}
        self._taken: dict[str, Counters] = {}

    def take(self, candidate: CandidateDevice) -> bool:
        """Take a device's counters; return False, unchanged, if there are too few."""
        pool = candidate.pool
        available = self._available.get(pool.name)
        if available is None:
            available = self._available[pool.name] = self._remaining(pool)
        taken = self._taken.setdefault(pool.name, {})
        _add(taken, candidate.device, 1)
        for name, counters in available.items():
            here = taken.get(name, {})
            if any(here.get(counter, 0) > amount for counter, amount in counters.items()):
                self.give_back(candidate)
                return False
        return True

    def give_back(self, candidate: CandidateDevice) -> None:
        """Release a device's counters."""
        _add(self._taken[candidate.pool.name], candidate.device, -1)

    def _remaining(self, pool: Pool) -> Counters:
        """Return the counters that held devices leave, possibly negative."""
        held: Counters = {}
        for id_, device in pool.all_devices():
            if id_ in self._allocated:
                _add(held, device, 1)
        return {
            name: {counter: amount - held.get(name, {}).get(counter, 0) for counter, amount in counters.items()}
            for name, counters in pool.counters.items()
        }


def _add(taken: Counters, device: api.Device, sign: int) -> None:
    for counted in device.consumes_counters:
        counters = taken.setdefault(counted.counter_set, {})
        for name, counter in counted.counters.items():
            counters[name] = counters.get(name, 0) + sign * parse_quantity(counter.value)


class TakenDevice(Struct, frozen=True, eq=False):
    """A device found for a request (by index), with the consumed capacity if shared."""

    wanted: EvaluatedRequest
    candidate: CandidateDevice
    request: int
    consumed: dict[str, Quantity]
    is_shared: bool


def result_of(claim: EvaluatedClaim, taken: list[TakenDevice], node_name: str) -> api.AllocationResult:
    """Return the allocation of a claim. Raises AllocationError."""
    results = tuple(_result(claim, taken_device, number) for number, taken_device in enumerate(taken))
    try:
        selector = _node_selector(taken, node_name)
    except AllocationError as error:
        raise AllocationError(f"create NodeSelector for claim {claim.claim.metadata.name}: {error}") from None
    return api.AllocationResult(
        devices=api.AllocatedDevices(results=results, config=_config(claim, taken)), node_selector=selector
    )


def _result(claim: EvaluatedClaim, taken: TakenDevice, number: int) -> api.DeviceResult:
    driver, pool, device = taken.candidate.id
    share_id = None
    if taken.is_shared:
        # Upstream's is random.
        label = claim.claim.metadata.uid or claim.label
        digest = blake2b(f"{label}/{number}".encode(), digest_size=16).hexdigest()
        share_id = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))
    return api.DeviceResult(
        request=taken.wanted.full_name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if taken.wanted.exact.admin_access else None,
        tolerations=taken.wanted.exact.tolerations,
        binding_conditions=taken.candidate.device.binding_conditions,
        binding_failure_conditions=taken.candidate.device.binding_failure_conditions,
        share_id=share_id,
        consumed_capacity={name: canonical_quantity(amount) for name, amount in taken.consumed.items()},
    )


def _config(claim: EvaluatedClaim, taken: list[TakenDevice]) -> tuple[Raw, ...]:
    """Return the drivers' settings: those of the used classes, once each, then the claim's own."""
    chosen: dict[int, EvaluatedRequest] = {taken_device.request: taken_device.wanted for taken_device in taken}
    found: list[Raw] = []
    of_class: dict[str, list[Raw]] = {}
    for _, wanted in sorted(chosen.items(), key=lambda entry: entry[0]):
        name = wanted.device_class.metadata.name
        if name not in of_class:
            of_class[name] = [
                {"source": "FromClass", "requests": [], **plain(device_class_configuration)}
                for device_class_configuration in wanted.device_class.spec.config
            ]
            found += of_class[name]
        for configuration in of_class[name]:
            configuration["requests"] = [*configuration["requests"], wanted.full_name]
    for config in claim.claim.spec.devices.config:
        names = set(config.requests)
        concerned = [asked for asked in chosen.values() if names & {asked.parent or asked.name, asked.full_name}]
        entry = {"source": "FromClaim", **plain(config)}
        found += [entry] * (len(concerned) if names else 1)
    return tuple(found)


def _node_selector(taken: Iterable[TakenDevice], node_name: str) -> NodeSelector | None:
    """Return where the devices can be used: one node if any is local, else all of their conditions; None anywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for taken_device in taken:
        device, offered = taken_device.candidate.device, taken_device.candidate.slice
        placing = device if offered.spec.per_device_node_selection else offered.spec
        name, selector = placing.node_name, placing.node_selector
        if name or device.binds_to_node:
            own = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(own,)),))
        terms = () if selector is None else selector.node_selector_terms
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(requirements: Iterable[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    def key_of(each: NodeSelectorRequirement) -> tuple[object, ...]:
        return each.key, each.operator, frozenset(each.values)

    known = set(map(key_of, to))
    to += [requirement for requirement in requirements if key_of(requirement) not in known]
