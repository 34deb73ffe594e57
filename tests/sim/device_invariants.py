"""What holds of devices and claims at any time."""

from __future__ import annotations

from collections import Counter

from podium.api.pod import Pod
from podium.api.resource_claims import ResourceClaim
from podium.store.store import Store


def claims(store: Store) -> dict[str, ResourceClaim]:
    """The claims that there are, by name."""
    found = (one.object for one in store.objects("ResourceClaim"))
    return {one.metadata.name: one for one in found if isinstance(one, ResourceClaim)}


def held(store: Store) -> Counter[tuple[str, str]]:
    """How many claims hold each device of their own."""
    return Counter(
        (result.pool, result.device)
        for one in claims(store).values()
        if one.status.allocation is not None
        for result in one.status.allocation.devices.results
        if result.share_id is None and not result.admin_access
    )


def check_devices(store: Store) -> None:
    """No device is held twice, and what runs has the devices that it claims."""
    assert max(held(store).values(), default=0) <= 1
    found = claims(store)
    for stored in store.objects("Pod"):
        pod = stored.object
        if not isinstance(pod, Pod) or pod.status.phase != "Running" or not pod.spec.node_name:
            continue
        for name in (status.resource_claim_name for status in pod.status.resource_claim_statuses):
            assert name is None or found[name].is_reserved_for(pod.metadata.uid), pod.key
