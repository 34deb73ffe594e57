"""What plugins want done about claims: before a pod is bound, and after a pod was turned down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podium.api.meta import Raw
from podium.api.resource_claims import AllocationResult, ResourceClaim
from podium.framework.cycle_state import CycleState


@dataclass(frozen=True, slots=True)
class ClaimBinding:
    """Bind a claim to a volume, or (``volume`` "") have one provisioned that ``node_name`` can reach.

    ``claim`` is the claim's `namespace/name` and ``uid`` its uid. ``timeout_ns`` is how long that may take, None for as
    long as it does: once it is over, the pod goes back to the queue.
    """

    claim: str
    uid: str
    volume: str
    node_name: str
    timeout_ns: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceReservation:
    """Let a pod use a claim for devices, which it is given with the same write if it has none yet.

    ``allocation`` is what the claim gets, None where it has its devices. Where ``made`` is given, the claim is made
    first; the pod's status then says which of its requests serve which of the pod's extended resources, by
    ``mappings``.
    """

    claim: str
    uid: str
    allocation: Raw | None = None
    made: Raw | None = None
    mappings: tuple[Raw, ...] = ()
    timeout_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimRelease:
    """Take the devices from a claim that nobody but the pod uses; a claim that was ``made`` for the pod goes."""

    claim: str
    uid: str
    made: bool = False


@runtime_checkable
class DeviceGiver(Protocol):
    """A plugin that finds devices for claims at Filter."""

    def allocations(self, state: CycleState, node_name: str) -> list[tuple[ResourceClaim, AllocationResult]]:
        """What the claims of the pod of an attempt that have no devices yet get on a node that was let through."""
        ...
