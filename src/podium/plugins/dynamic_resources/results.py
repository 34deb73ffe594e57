"""What is written down of the devices that were found for a claim.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(Allocate, createNodeSelector).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from podium.api.devices import Device, ResourceSlice
from podium.api.meta import Raw, plain
from podium.api.resource_claims import AllocatedDevices, AllocationResult, DeviceResult
from podium.api.selection import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.plugins.dynamic_resources.errors import AllocationError
from podium.plugins.dynamic_resources.pools import Candidate
from podium.plugins.dynamic_resources.requests import Wanted, WantedClaim


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A device that was found for a request, by its number; of one that is shared, how much (in nano units)."""

    wanted: Wanted
    candidate: Candidate
    request: int
    consumed: dict[str, int]
    is_shared: bool


def result_of(claim: WantedClaim, taken: list[Taken], node_name: str) -> AllocationResult:
    """The allocation of a claim. Raises AllocationError."""
    results = tuple(_result(claim, taken_device, number) for number, taken_device in enumerate(taken))
    try:
        selector = _node_selector(taken, node_name)
    except AllocationError as error:
        raise AllocationError(f"create NodeSelector for claim {claim.claim.metadata.name}: {error}") from None
    return AllocationResult(
        devices=AllocatedDevices(results=results, config=_config(claim, taken)), node_selector=selector
    )


def _result(claim: WantedClaim, taken: Taken, number: int) -> DeviceResult:
    driver, pool, device = taken.candidate.id
    fields = taken.candidate.device.fields
    return DeviceResult(
        request=taken.wanted.full_name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if taken.wanted.exact.admin_access else None,
        tolerations=taken.wanted.exact.tolerations,
        binding_conditions=fields.binding_conditions,
        binding_failure_conditions=fields.binding_failure_conditions,
        share_id=_share_id(claim.claim.metadata.uid or claim.label, number) if taken.is_shared else None,
        consumed_capacity={name: _shown(amount) for name, amount in taken.consumed.items()},
    )


def _share_id(claim: str, number: int) -> str:
    """The name of a share: upstream's is drawn at random, this one is the claim's and the same each time."""
    digest = blake2b(f"{claim}/{number}".encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def _shown(nano: int) -> str:
    """An amount in nano units as a quantity."""
    for suffix, size in (("", 10**9), ("m", 10**6), ("u", 10**3)):
        if nano % size == 0:
            return f"{nano // size}{suffix}"
    return f"{nano}n"


def _config(claim: WantedClaim, taken: list[Taken]) -> tuple[Raw, ...]:
    """The settings for the drivers: those of the classes that were used, each once, then the claim's own."""
    chosen: dict[int, Wanted] = {taken_device.request: taken_device.wanted for taken_device in taken}
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


def _node_selector(taken: Iterable[Taken], node_name: str) -> NodeSelector | None:
    """From where the devices can be used: one node if any is local to it, else what all of them ask; None for all."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for taken_device in taken:
        device, offered = taken_device.candidate.device, taken_device.candidate.slice
        name, selector = _place(device, offered)
        if name or device.fields.binds_to_node:
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


def _place(device: Device, offered: ResourceSlice) -> tuple[str | None, NodeSelector | None]:
    if offered.spec.per_device_node_selection:
        return device.fields.node_name, device.fields.node_selector
    return offered.spec.node_name, offered.spec.node_selector


def _add_new(requirements: Iterable[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    known = {(requirement.key, requirement.operator, frozenset(requirement.values)) for requirement in to}
    to += [
        requirement
        for requirement in requirements
        if (requirement.key, requirement.operator, frozenset(requirement.values)) not in known
    ]
