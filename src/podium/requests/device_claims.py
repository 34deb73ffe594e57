"""How a scheduler reserves claims for devices, and lets go of them.

Source: pkg/scheduler/framework/plugins/dynamicresources (bindClaim, Unreserve, PostFilter).
"""

from __future__ import annotations

from collections.abc import Generator

from podium.api.meta import Raw
from podium.api.reading import read
from podium.api.resource_claims import DELETE_PROTECTION, ResourceClaim
from podium.api.times import format_time
from podium.machines.actions import ReleaseClaim, ReserveClaim
from podium.requests.conversation import Conversation
from podium.requests.options import delete_options_body
from podium.requests.request import Request, Response
from podium.requests.status_reports import patch_status
from podium.store.errors import StoreError

_MOST_USERS = 256
_KIND = "ResourceClaim"
_Reading = Generator[Request, Response, Raw]


def reserve_claim(action: ReserveClaim, now: int) -> Conversation:
    """Let the pod use the claim, with devices if it is to be given any (bindClaim); the claim as it is then."""
    raw = yield from _claim_to_reserve(action)
    claim = read(raw, ResourceClaim)
    if claim.metadata.deletion_timestamp is not None:
        raise _conflict(claim, "is being deleted")
    if claim.is_reserved_for(action.pod_uid):
        return raw
    if action.allocation is not None and claim.is_allocated:
        raise _conflict(claim, "got allocated elsewhere in the meantime")
    if action.allocation is None and not claim.is_allocated:
        raise _conflict(claim, "was deallocated in the meantime")
    if len(claim.status.reserved_for) >= _MOST_USERS:
        raise _conflict(claim, f"is used by {_MOST_USERS} pods already")
    written = yield from _reserve(raw, action, now)
    if action.made is not None:
        status = {"requestMappings": list(action.mappings), "resourceClaimName": claim.metadata.name}
        yield from patch_status("Pod", action.pod, action.pod_uid, {"extendedResourceClaimStatus": status}, (), now)
    return written


def release_claim(action: ReleaseClaim, now: int) -> Conversation:
    """Take the pod off the claim and, where that is asked, the devices from a claim that nobody else uses.

    A claim that was made for the pod's extended resources goes. Nothing is done where there is no such claim any more.
    The claim as it is then, None where there is none.
    """
    raw = yield from _claim_to_release(action)
    if raw is None or (action.uid and raw["metadata"]["uid"] != action.uid):
        return None
    claim = read(raw, ResourceClaim)
    users = [user for user in raw.get("status", {}).get("reservedFor", []) if user.get("uid") != action.pod_uid]
    if action.deallocate and users:
        raise _conflict(claim, "is used by other pods")
    status = {**raw.get("status", {}), "reservedFor": users}
    if action.deallocate or claim.for_extended_resources:
        status = {field: value for field, value in status.items() if field not in ("allocation", "devices")}
    raw = yield from _put({**raw, "status": status}, "status")
    if not claim.for_extended_resources:
        return raw
    finalizers = [name for name in claim.metadata.finalizers if name != DELETE_PROTECTION]
    raw = yield from _put({**raw, "metadata": {**raw["metadata"], "finalizers": finalizers}})
    body = delete_options_body(raw["metadata"]["uid"])
    yield Request(verb="delete", kind=_KIND, key=claim.key, body=body)
    return None


def _reserve(raw: Raw, action: ReserveClaim, now: int) -> _Reading:
    metadata = raw["metadata"]
    finalizers = metadata.get("finalizers", [])
    if action.allocation is not None and DELETE_PROTECTION not in finalizers:
        protected = {**metadata, "finalizers": [*finalizers, DELETE_PROTECTION]}
        raw = yield from _put({**raw, "metadata": protected})
    status: Raw = dict(raw.get("status", {}))
    if action.allocation is not None:
        status["allocation"] = {"allocationTimestamp": format_time(now), **action.allocation}
    name = action.pod.partition("/")[2]
    user = {"resource": "pods", "name": name, "uid": action.pod_uid}
    status["reservedFor"] = [*status.get("reservedFor", []), user]
    return (yield from _put({**raw, "status": status}, "status"))


def _claim_to_reserve(action: ReserveClaim) -> _Reading:
    """The claim that is to be reserved; one for extended resources is made, or was made by an earlier try."""
    if action.made is None:
        response = yield Request(verb="get", kind=_KIND, key=action.claim)
        raw = response.object or {}
        if raw["metadata"]["uid"] != action.uid:
            raise _conflict(read(raw, ResourceClaim), f"has uid {raw['metadata']['uid']}, not {action.uid}")
        return raw
    left_over = yield from _made_for(action.pod, action.pod_uid)
    if left_over is None:
        response = yield Request(verb="create", kind=_KIND, body=action.made)
        return response.object or {}
    claim = read(left_over, ResourceClaim)
    wanted = read({**left_over, "status": {"allocation": action.allocation}}, ResourceClaim)
    if not claim.is_reserved_for(action.pod_uid) or claim.devices != wanted.devices:
        raise _conflict(claim, "was made for the pod before")
    return left_over


def _claim_to_release(action: ReleaseClaim) -> Generator[Request, Response, Raw | None]:
    if not action.claim:
        return (yield from _made_for(action.pod, action.pod_uid))
    try:
        return (yield Request(verb="get", kind=_KIND, key=action.claim)).object
    except StoreError as error:
        if error.code != 404:
            raise
        return None


def _made_for(pod: str, pod_uid: str) -> Generator[Request, Response, Raw | None]:
    """The claim that was made for a pod's extended resources; None where there is none."""
    response = yield Request(verb="list", kind=_KIND, namespace=pod.partition("/")[0])
    for raw in response.objects():
        claim = read(raw, ResourceClaim)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None and owner.uid == pod_uid:
            return raw
    return None


def _put(raw: Raw, subresource: str = "") -> _Reading:
    """Write the claim as it is to be, if it is still what it was made from."""
    metadata = raw["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    response = yield Request(verb="update", kind=_KIND, key=key, subresource=subresource, body=raw)
    return response.object or {}


def _conflict(claim: ResourceClaim, problem: str) -> StoreError:
    return StoreError(409, "Conflict", f"{_KIND} {claim.key}: {problem}")
