"""Invariants of device claims, after each step and at rest."""

from collections import Counter

from podium.api.devices import ResourceClaim
from podium.api.pod import Pod
from podium.store.store import Store


def claims(store: Store) -> dict[str, ResourceClaim]:
    """Return the claims by name."""
    found = (one.object for one in store.objects("ResourceClaim"))
    return {one.metadata.name: one for one in found if isinstance(one, ResourceClaim)}


def held(store: Store) -> Counter[tuple[str, str]]:
    """Return how many claims hold each device of their own."""
    return Counter(
        (result.pool, result.device)
        for one in claims(store).values()
        if one.status.allocation is not None
        for result in one.status.allocation.devices.results
        if result.share_id is None and not result.admin_access
    )


def check_devices(store: Store, *, may_be_given_twice: bool = False) -> None:
    """No device is held twice, and what runs has the devices that it claims.

    ``may_be_given_twice``: a scheduler that has crashed forgets which devices it is giving away, an old list shows it
    as free what is taken, and the API server compares no claim with others.
    """
    assert may_be_given_twice or max(held(store).values(), default=0) <= 1
    found = claims(store)
    for one in _pods(store):
        if one.status.phase != "Running" or not one.spec.node_name:
            continue
        for name in (status.resource_claim_name for status in one.status.resource_claim_statuses):
            assert name is None or found[name].is_reserved_for(one.metadata.uid), one.key


def check_devices_at_rest(store: Store) -> None:
    """Check that claims are reserved for live pods only, and that placed pods have the claims that they name.

    An unused claim may keep its devices: after a failed binding only the reservation is released, as in kube-scheduler.
    """
    pods, found = _pods(store), claims(store)
    living = {one.metadata.uid for one in pods if not one.is_terminal}
    for claim in found.values():
        assert {one.uid for one in claim.status.reserved_for} <= living, claim.metadata.name
    for pod in pods:
        if pod.spec.node_name and not pod.is_terminal:
            for name in (one.resource_claim_name for one in pod.spec.resource_claims):
                assert not name or found[name].is_reserved_for(pod.metadata.uid), pod.key


def _pods(store: Store) -> list[Pod]:
    return [one.object for one in store.objects("Pod") if isinstance(one.object, Pod)]
