"""What an explanation says about devices: what a pod's claims would get on each node, and what is done for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.api.meta import plain
from podium.api.resource_claims import AllocationResult, ResourceClaim
from podium.app.console.page import Part
from podium.decide.placement import Placement, full_outcome
from podium.decide.preempting.deferred import Deferred
from podium.framework.runner import Runner
from podium.framework.status import Status
from podium.plugins.dynamic_resources.extended_resources import IN_MEMORY
from podium.plugins.dynamic_resources.plugin import DynamicResources

Claims = list[tuple[ResourceClaim, AllocationResult]]


@dataclass(frozen=True, slots=True)
class DeviceFindings:
    """``claims`` are those that have no devices yet, with what they would get, by each node that fits.

    ``post_filter`` is what DynamicResources says where none does; None for pods that name no claims. ``releases`` are
    the claims that it then takes devices from.
    """

    claims: Mapping[str, Claims] = field(default_factory=dict)
    post_filter: Status | None = None
    releases: tuple[str, ...] = ()


NO_DEVICES = DeviceFindings()


def device_findings(runner: Runner, placement: Placement) -> DeviceFindings:
    """What DynamicResources found in an attempt; nothing where the profile does not have it."""
    plugin = next(
        (
            dynamic_resources
            for dynamic_resources in runner.profile.filter
            if isinstance(dynamic_resources, DynamicResources)
        ),
        None,
    )
    if plugin is None or placement.error or placement.state.get(plugin.name) is None:
        return NO_DEVICES
    names = runner.cluster.nodes.names_by_row()
    if len(placement.feasible):
        state, taken = placement.state, sorted(names[row] for row in placement.feasible.tolist())
        found: Mapping[str, Claims] = Deferred(
            lambda: {name: claims for name in taken if (claims := plugin.allocations(state, name))}
        )
        return DeviceFindings(claims=found)
    if not placement.pod.spec.resource_claims:
        return NO_DEVICES
    outcome = full_outcome(runner.cluster, placement)
    result = plugin.post_filter(placement.state, placement.pod, runner, runner.cluster, outcome)
    return DeviceFindings(post_filter=result.status, releases=tuple(release.claim for release in result.releases))


def shown_claims(claims: Claims) -> dict[str, Any]:
    """What a pod's own claims would get on one node, by their names, in the form of the conformance cases."""
    found: dict[str, Any] = {}
    for claim, allocation in claims:
        if claim.metadata.name == IN_MEMORY:
            continue
        devices = [
            f"{result.request}={result.driver}/{result.pool}/{result.device}" for result in allocation.devices.results
        ]
        found[claim.metadata.name] = entry = {"devices": devices}
        if allocation.node_selector is not None:
            entry["nodeSelector"] = plain(allocation.node_selector)
    return found


def shown_devices(claims: Claims) -> list[list[Part]]:
    """What claims would get on one node, for people: a row for each device, with claim, request, driver and pool."""
    rows: list[list[Part]] = []
    for claim, allocation in claims:
        name = "extended resources" if claim.metadata.name == IN_MEMORY else claim.metadata.name
        rows += [
            [name, result.request, result.device, f"of {result.driver}/{result.pool}"]
            for result in allocation.devices.results
        ]
    return rows
