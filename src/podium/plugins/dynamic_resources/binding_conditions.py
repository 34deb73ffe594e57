"""Devices that are made ready only once they are allocated: what their drivers say about that.

Source: isClaimReadyForBinding of pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from podium.api.resource_claims import AllocatedDeviceStatus, DeviceResult, ResourceClaim


def failure(claim: ResourceClaim) -> str | None:
    """Why a device of a claim will not be ready, or None."""
    for result, status in _awaited(claim):
        for name in result.binding_failure_conditions if status is not None else ():
            condition = (
                next((condition for condition in status.conditions if condition.type == name), None) if status else None
            )
            if condition is not None and condition.status == "True":
                said = f'reason={condition.reason}, message="{condition.message}"'
                return f"claim {claim.metadata.name} binding failed: {said}"
    return None


def has_failed(claim: ResourceClaim) -> bool:
    """Whether a device of a claim will not be ready."""
    return failure(claim) is not None


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of a claim are ready; those that need nothing done are so at once."""
    for result, status in _awaited(claim):
        met = (
            {condition.type for condition in status.conditions if condition.status == "True"}
            if status is not None
            else set()
        )
        if not met.issuperset(result.binding_conditions):
            return False
    return True


def _awaited(claim: ResourceClaim) -> list[tuple[DeviceResult, AllocatedDeviceStatus | None]]:
    """The devices of a claim that must be made ready, each with what its driver says."""
    allocation = claim.status.allocation
    if allocation is None:
        return []
    said = {(device.driver, device.pool, device.device): device for device in claim.status.devices}
    return [
        (result, said.get((result.driver, result.pool, result.device)))
        for result in allocation.devices.results
        if result.binding_conditions
    ]
