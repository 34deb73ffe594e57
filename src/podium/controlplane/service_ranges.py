"""The controller of the ranges from which Services get addresses (pkg/controller/servicecidrs)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from podium.api.meta import list_at, objects_at, value_at
from podium.store.initial_objects import READY_RANGE, SERVICE_RANGE_FINALIZER
from podium.store.store import Store
from podium.store.stored import Stored, with_condition

RANGE, SERVICE = "ServiceCIDR", "Service"

_REFERENCED = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
_IN_USE = {"type": "Ready", "status": "False", "reason": "Terminating", "message": _REFERENCED}


def keep_range(store: Store, stored: Stored, now: int) -> None:
    """Make a range ready, and keep a deleted one until no Service has an address of it alone."""
    finalizers, condition = list(stored.object.metadata.finalizers), READY_RANGE
    if stored.object.metadata.deletion_timestamp is None:
        finalizers += [] if SERVICE_RANGE_FINALIZER in finalizers else [SERVICE_RANGE_FINALIZER]
    elif _is_needed(store, stored):
        condition = _IN_USE
    else:
        finalizers.remove(SERVICE_RANGE_FINALIZER)
    raw = store.update({**stored.raw, "metadata": {**stored.raw["metadata"], "finalizers": finalizers}}).raw
    if SERVICE_RANGE_FINALIZER in finalizers:
        conditions = with_condition(objects_at(raw, "status", "conditions"), condition, now)
        store.update_status({**raw, "status": {"conditions": conditions}})


def _is_needed(store: Store, stored: Stored) -> bool:
    """Return whether Services have addresses that are in this range and in no other one."""
    ranges = [
        (of is stored, ip_network(cidr)) for of in store.objects(RANGE) for cidr in list_at(of.raw, "spec", "cidrs")
    ]
    held = (value_at(service.raw, "spec", "clusterIP") for service in store.objects(SERVICE))
    addresses = [ip_address(address) for address in held if address not in (None, "", "None")]
    around = ([is_own for is_own, network in ranges if address in network] for address in addresses)
    return any(found and all(found) for found in around)
