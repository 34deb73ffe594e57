"""How the API server carries out what schedulers ask for of claims for devices."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.resource_claims import DELETE_PROTECTION, ResourceClaim
from podium.api.times import format_time
from podium.machines.actions import ReleaseClaim, ReserveClaim
from podium.store.errors import conflict
from podium.store.store import Store
from podium.store.stored import Stored

_MOST_USERS = 256
_KIND = "ResourceClaim"


def reserve_claim(store: Store, action: ReserveClaim, now: int) -> None:
    """Let the pod use the claim, with devices if it is to be given any (bindClaim). Raises StoreError."""
    stored = _claim_of(store, action, now)
    claim = _read(stored)
    if claim.metadata.deletion_timestamp is not None:
        raise conflict(stored.resource, stored.key, "is being deleted")
    if claim.is_reserved_for(action.pod_uid):
        return
    if action.allocation is not None and claim.is_allocated:
        raise conflict(stored.resource, stored.key, "got allocated elsewhere in the meantime")
    if action.allocation is None and not claim.is_allocated:
        raise conflict(stored.resource, stored.key, "was deallocated in the meantime")
    if len(claim.status.reserved_for) >= _MOST_USERS:
        raise conflict(stored.resource, stored.key, f"is used by {_MOST_USERS} pods already")
    _reserve(store, stored, action, now)
    if action.made is not None:
        status = {"requestMappings": list(action.mappings), "resourceClaimName": claim.metadata.name}
        fields = {"extendedResourceClaimStatus": status}
        store.patch_pod_status(action.pod, fields, [], now=now, uid=action.pod_uid)


def release_claim(store: Store, action: ReleaseClaim, now: int) -> None:
    """Take the pod off the claim and, where that is asked, the devices from a claim that nobody else uses.

    A claim that was made for the pod's extended resources goes. Raises StoreError.
    """
    stored = store.find(_KIND, action.claim) if action.claim else _made_for(store, action.pod_uid)
    if stored is None or (action.uid and stored.uid != action.uid):
        return
    claim = _read(stored)
    users = [one for one in stored.raw.get("status", {}).get("reservedFor", []) if one.get("uid") != action.pod_uid]
    if action.deallocate and users:
        raise conflict(stored.resource, stored.key, "is used by other pods")
    status = {**stored.raw.get("status", {}), "reservedFor": users}
    if action.deallocate or claim.for_extended_resources:
        status = {key: value for key, value in status.items() if key not in ("allocation", "devices")}
    stored = store.update_status({**stored.raw, "status": status})
    if claim.for_extended_resources:
        finalizers = [one for one in claim.metadata.finalizers if one != DELETE_PROTECTION]
        stored = store.update({**stored.raw, "metadata": {**stored.raw["metadata"], "finalizers": finalizers}})
        store.delete(_KIND, stored.key, now=now, uid=stored.uid)


def _reserve(store: Store, stored: Stored, action: ReserveClaim, now: int) -> None:
    metadata = stored.raw["metadata"]
    finalizers = metadata.get("finalizers", [])
    if action.allocation is not None and DELETE_PROTECTION not in finalizers:
        protected = {**metadata, "finalizers": [*finalizers, DELETE_PROTECTION]}
        stored = store.update({**stored.raw, "metadata": protected})
    status: Raw = dict(stored.raw.get("status", {}))
    if action.allocation is not None:
        status["allocation"] = {"allocationTimestamp": format_time(now), **action.allocation}
    name = action.pod.partition("/")[2]
    user = {"resource": "pods", "name": name, "uid": action.pod_uid}
    status["reservedFor"] = [*status.get("reservedFor", []), user]
    store.update_status({**stored.raw, "status": status})


def _claim_of(store: Store, action: ReserveClaim, now: int) -> Stored:
    if action.made is None:
        stored = store.get(_KIND, action.claim)
        if stored.uid != action.uid:
            raise conflict(stored.resource, stored.key, f"has uid {stored.uid}, not {action.uid}")
        return stored
    left_over = _made_for(store, action.pod_uid)
    if left_over is None:
        return store.create(action.made, now=now)
    if not _read(left_over).is_reserved_for(action.pod_uid):
        raise conflict(left_over.resource, left_over.key, "was made for the pod before")
    return left_over


def _made_for(store: Store, pod_uid: str) -> Stored | None:
    for stored in store.objects(_KIND):
        claim = _read(stored)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None and owner.uid == pod_uid:
            return stored
    return None


def _read(stored: Stored) -> ResourceClaim:
    if not isinstance(stored.object, ResourceClaim):
        raise TypeError(f"{stored.kind} {stored.key} is no ResourceClaim")
    return stored.object
