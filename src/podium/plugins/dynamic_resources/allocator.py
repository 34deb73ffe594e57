"""The search for devices: claim by claim, request by request, device by device, the first solution is taken.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, the allocator that
kube-scheduler v1.36 runs with the gates that are on by default. It differs in one thing: the search counts its steps,
where upstream's looks at the clock.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from podium.api.node import Node
from podium.api.resource_claims import MOST_RESULTS, AllocationResult, ResourceClaim
from podium.cluster.allocated_devices import DeviceID
from podium.cluster.devices import Devices
from podium.plugins.dynamic_resources.capacity import consumed, fits
from podium.plugins.dynamic_resources.constraints import Constraint
from podium.plugins.dynamic_resources.counters import CounterBook
from podium.plugins.dynamic_resources.errors import AllocationError, NodeAllocationError, TooManyStepsError
from podium.plugins.dynamic_resources.pools import Candidate, gather_pools
from podium.plugins.dynamic_resources.requests import Reader, Wanted, WantedClaim
from podium.plugins.dynamic_resources.results import Taken, result_of
from podium.plugins.dynamic_resources.selectors import Selectors
from podium.plugins.dynamic_resources.taints import is_kept_away

MOST_STEPS = 50_000
"""How many steps the search may take for one node; upstream gives it ten seconds (filterTimeout)."""

Search = Generator[Any, bool, bool]
"""A part of the search: it yields the parts that it needs, is sent whether they succeeded, and says whether it did."""


class _TooManyDevicesError(Exception):
    """A claim would get more devices than one may have; other alternatives may need fewer."""


@dataclass(frozen=True, slots=True)
class _At:
    """How far the search is: the next device to find, and from which candidate on to look for it."""

    claim: int = 0
    request: int = 0
    alternative: int | None = None
    device: int = 0
    candidate: int = 0


def allocate(
    devices: Devices,
    node: Node,
    claims: Iterable[tuple[str, ResourceClaim]],
    selectors: Selectors,
    most_steps: int = MOST_STEPS,
) -> tuple[AllocationResult, ...] | None:
    """What the claims, each under the name that messages have for it, would get on a node; None where not all do.

    Raises AllocationError for claims and classes that are wrong, NodeAllocationError where the node's offers are, and
    TooManyStepsError.
    """
    pools = gather_pools(devices, node)
    reader = Reader(node, pools, devices, selectors)
    search = _Allocator(devices, reader, reader.read(claims), most_steps)
    search.candidates = [candidate for pool in pools for candidate in pool.candidates]
    if search.run():
        name = node.metadata.name
        return tuple(result_of(*taken, name) for taken in search.taken_by_claim())
    if any(pool.is_invalid for pool in pools):
        raise NodeAllocationError("invalid resource pools were encountered")
    return None


class _Allocator:
    """One search on one node."""

    def __init__(self, devices: Devices, reader: Reader, claims: list[WantedClaim], most_steps: int) -> None:
        self._allocated = devices.allocated
        self._reader = reader
        self._claims = claims
        self._most_steps = most_steps
        self.steps = 0
        self.candidates: list[Candidate] = []
        self._taken: list[list[Taken]] = [[] for _ in claims]
        # Which claims get a device that only one of them can have.
        self._taking: dict[DeviceID, set[int]] = {}
        self._capacity: dict[DeviceID, dict[str, int]] = {}
        self._counters = CounterBook(devices.allocated)
        self._selected: dict[tuple[int, DeviceID], bool] = {}

    def taken_by_claim(self) -> list[tuple[WantedClaim, list[Taken]]]:
        """What was found."""
        return list(zip(self._claims, self._taken, strict=True))

    def run(self) -> bool:
        """Search until there is a solution, or none is left. The parts call one another without nesting."""
        stack: list[Search] = [self._next(_At())]
        done, failed, is_new = False, False, True
        while stack:
            part = stack[-1]
            try:
                stack.append(part.throw(_TooManyDevicesError()) if failed else _entered(part, is_new, done))
                failed, is_new = False, True
            except StopIteration as stop:
                done, failed, is_new = stop.value, False, False
                stack.pop()
            except _TooManyDevicesError:
                failed, is_new = True, False
                stack.pop()
        return done and not failed

    def _next(self, at: _At) -> Search:
        """Find everything from there on."""
        self.steps += 1
        if self.steps > self._most_steps:
            raise TooManyStepsError
        if at.claim >= len(self._claims):
            return True
        claim = self._claims[at.claim]
        if at.request >= len(claim.requests):
            try:
                return (yield self._next(_At(at.claim + 1)))
            except _TooManyDevicesError:
                return False
        alternatives = claim.requests[at.request]
        if at.alternative is None and alternatives[0].parent:
            return (yield self._first_available(at, len(alternatives)))
        wanted = alternatives[at.alternative or 0]
        if wanted.all is not None and not wanted.all:
            return False
        if at.device >= wanted.number:
            return (yield self._next(_At(at.claim, at.request + 1)))
        if len(self._taken[at.claim]) + wanted.number - at.device > MOST_RESULTS:
            raise _TooManyDevicesError
        found = self._exactly(at, wanted, wanted.all[at.device]) if wanted.all else self._any(at, wanted)
        return (yield found)

    def _first_available(self, at: _At, number: int) -> Search:
        """Try the alternatives in their order."""
        all_too_many = True
        for alternative in range(number):
            try:
                if (yield self._next(_At(at.claim, at.request, alternative))):
                    return True
            except _TooManyDevicesError:
                continue
            all_too_many = False
        if all_too_many:
            raise _TooManyDevicesError
        return False

    def _exactly(self, at: _At, wanted: Wanted, candidate: Candidate) -> Search:
        """Take this device and no other."""
        if not self._take(at, wanted, candidate, must=True):
            return False
        return (yield self._go_on(at, candidate, 0))

    def _any(self, at: _At, wanted: Wanted) -> Search:
        """Take one device after the other until the rest can be found too.

        Within a request the order of devices does not matter: the next is looked for behind this one only.
        """
        for number in range(at.candidate, len(self.candidates)):
            candidate = self.candidates[number]
            if not self._is_usable(at, wanted, candidate) or not self._take(at, wanted, candidate, must=False):
                continue
            if (yield self._go_on(at, candidate, number + 1)):
                return True
        return False

    def _go_on(self, at: _At, candidate: Candidate, next_candidate: int) -> Search:
        """Find the rest beside a device that was taken; give it back where that fails."""
        try:
            done: bool = yield self._next(_At(at.claim, at.request, at.alternative or 0, at.device + 1, next_candidate))
        except _TooManyDevicesError:
            self._give_back(at, candidate)
            raise
        if not done:
            self._give_back(at, candidate)
        return done

    # One device

    def _is_usable(self, at: _At, wanted: Wanted, candidate: Candidate) -> bool:
        if self._is_refused(at, wanted, candidate.id):
            return False
        key = (id(wanted), candidate.id)
        selected = self._selected.get(key)
        if selected is None:
            label = self._claims[at.claim].label
            selected = self._selected[key] = self._reader.selects(wanted, label, candidate)
        return selected and self._has_room(wanted, candidate)

    def _is_refused(self, at: _At, wanted: Wanted, device: DeviceID) -> bool:
        """Whether somebody has the device for himself. Administrators get it all the same, but once in a claim."""
        taking = self._taking.get(device, ())
        if wanted.exact.admin_access:
            return at.claim in taking
        return bool(taking) or device in self._allocated.dedicated

    def _has_room(self, wanted: Wanted, candidate: Candidate) -> bool:
        taken, taking = (some.get(candidate.id, {}) for some in (self._allocated.capacity, self._capacity))
        return fits(wanted.exact.capacity, candidate.device.fields.capacity, taken, taking)

    def _take(self, at: _At, wanted: Wanted, candidate: Candidate, *, must: bool) -> bool:
        """Take a device, if it can be had.

        What a device takes of counters is not given back where it is then refused for its taints or a constraint; that
        is so upstream (allocateDevice).
        """
        fields, id_ = candidate.device.fields, candidate.id
        is_shared = fields.allow_multiple_allocations
        if self._is_refused(at, wanted, id_):
            return False
        is_held = is_shared and (id_ in self._allocated.capacity or id_ in self._capacity)
        if not is_held and fields.consumes_counters and not self._counters.take(candidate):
            return False
        if is_kept_away(candidate.device, wanted.exact.tolerations):
            return False
        if not self._constrain(at, wanted, candidate, must=must):
            return False
        if not is_shared:
            self._taking.setdefault(id_, set()).add(at.claim)
        if not self._has_room(wanted, candidate):
            return False
        amounts = consumed(wanted.exact.capacity, fields.capacity) if is_shared else {}
        if is_shared:
            held = self._capacity.setdefault(id_, {})
            for name, amount in amounts.items():
                held[name] = held.get(name, 0) + amount
        self._taken[at.claim].append(Taken(wanted, candidate, at.request, amounts, is_shared))
        return True

    def _constrain(self, at: _At, wanted: Wanted, candidate: Candidate, *, must: bool) -> bool:
        """Let the claim's constraints take the device; False, with nothing done, where one of them does not."""
        claim = self._claims[at.claim]
        concerned = _concerned(claim.constraints, wanted)
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

    def _give_back(self, at: _At, candidate: Candidate) -> None:
        """Undo what `_take` did for the device that was taken last. A shared device's counters stay taken."""
        taken = self._taken[at.claim].pop()
        for constraint in _concerned(self._claims[at.claim].constraints, taken.wanted):
            constraint.remove(taken.wanted.parent or taken.wanted.name)
        id_ = candidate.id
        if not taken.is_shared:
            self._taking[id_].discard(at.claim)
            if candidate.device.fields.consumes_counters:
                self._counters.give_back(candidate)
            return
        held = self._capacity[id_]
        for name, amount in taken.consumed.items():
            held[name] -= amount
        if not any(held.values()):
            del self._capacity[id_]


def _entered(part: Search, is_new: bool, done: bool) -> Search:
    """Begin a part of the search, or go on with it after the part that it needed."""
    return next(part) if is_new else part.send(done)


def _concerned(constraints: list[Constraint], wanted: Wanted) -> list[Constraint]:
    name, alternative = (wanted.parent, wanted.name) if wanted.parent else (wanted.name, "")
    return [constraint for constraint in constraints if constraint.concerns(name, alternative)]
