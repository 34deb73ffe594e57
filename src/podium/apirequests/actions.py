"""The requests that carry out the actions of controllers.

Most actions are one request; those that read before they write, or that write several objects, are conversations. The
requests are those that kube-scheduler, the kubelet and the controllers send for the same purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any

from podium.api import errors, kinds, times
from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, EvictionHints, avoid_list, hints_to_record
from podium.api.devices import DELETE_PROTECTION, ResourceClaim
from podium.api.disruption_policy import POLICY_NAME, AvoidLists, DisruptionPolicy
from podium.api.meta import Raw, key_of
from podium.api.pod import Pod
from podium.api.reading import read
from podium.api.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from podium.apirequests.events import event_body
from podium.apirequests.request import (
    Answer,
    Binding,
    Conversation,
    Request,
    Response,
    delete_options_body,
    eviction_body,
    problem_of,
    run_conversation,
)
from podium.apirequests.status_reports import nominate, patch_status, report_unschedulable
from podium.controllers import actions
from podium.controllers.observations import ActionFinished
from podium.store.api_resources import BUILT_IN
from podium.store.cleanup import DeleteStep, PatchStep, Step, StepRunner
from podium.store.errors import StoreError, Suppressed

_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"


def bind_claim(action: actions.BindClaim, now: int) -> Conversation:
    """Set the claim in its volume, or the selected node in a claim whose volume is to be provisioned.

    Each is written only if it has not changed since it was read. The result is the claim, which does not change if its
    volume is written.
    """
    raw = (yield Request(verb="get", kind=_CLAIM, key=action.claim)).object or {}
    uid = raw["metadata"]["uid"]
    if uid != action.uid:
        raise _conflict(_CLAIM, action.claim, f"has uid {uid}, not {action.uid}")
    bound_to = raw.get("spec", {}).get("volumeName", "")
    if bound_to and bound_to != action.volume:
        raise _conflict(_CLAIM, action.claim, f"is bound to volume {bound_to}")
    if not action.volume:
        if raw["metadata"].get("annotations", {}).get(SELECTED_NODE) == action.node_name:
            return raw
        return (yield _volume_patch(_CLAIM, action.claim, raw, {SELECTED_NODE: action.node_name})).object
    volume = (yield Request(verb="get", kind=_VOLUME, key=action.volume)).object or {}
    reference = volume.get("spec", {}).get("claimRef") or {}
    taken = reference.get("uid", "")
    if taken == action.uid:
        return raw
    namespace, _, name = action.claim.rpartition("/")
    claimed_by = reference.get("namespace", ""), reference.get("name", "")
    if taken or (reference and claimed_by != (namespace, name)):
        raise _conflict(_VOLUME, action.volume, f"is kept for claim {'/'.join(claimed_by)} of uid {taken}")
    claim = {"apiVersion": "v1", "kind": _CLAIM, "namespace": namespace, "name": name, "uid": action.uid}
    # A volume that users reserved for the claim is not marked as bound by the controller.
    annotations = {} if reference else {BOUND_BY_CONTROLLER: "yes"}
    yield _volume_patch(_VOLUME, action.volume, volume, annotations, {"claimRef": claim})
    return raw


def _volume_patch(kind: str, key: str, read: Raw, annotations: Raw, spec: Raw | None = None) -> Request:
    """Return a patch that applies only if the object is unchanged since it was read."""
    metadata = {name: read["metadata"][name] for name in ("uid", "resourceVersion")}
    body: Raw = {"metadata": {**metadata, "annotations": annotations} if annotations else metadata}
    if spec is not None:
        body["spec"] = spec
    return Request(verb="patch", kind=kind, key=key, body=body)


def _conflict(kind: str, key: str, problem: str) -> StoreError:
    return StoreError(409, "Conflict", f"{kind} {key}: {problem}")


_MOST_USERS = 256
_KIND = "ResourceClaim"
_Reading = Generator[Request, Response, Raw]


def reserve_claim(action: actions.ReserveClaim, now: int) -> Conversation:
    """Reserve the claim for the pod, with devices if it gets any (bindClaim); return the claim after that."""
    raw = yield from _claim_to_reserve(action)
    claim = read(raw, ResourceClaim)
    if claim.metadata.deletion_timestamp is not None:
        raise _conflict(_KIND, claim.key, "is being deleted")
    if claim.is_reserved_for(action.pod_uid):
        return raw
    if action.allocation is not None and claim.is_allocated:
        raise _conflict(_KIND, claim.key, "got allocated elsewhere in the meantime")
    if action.allocation is None and not claim.is_allocated:
        raise _conflict(_KIND, claim.key, "was deallocated in the meantime")
    if len(claim.status.reserved_for) >= _MOST_USERS:
        raise _conflict(_KIND, claim.key, f"is used by {_MOST_USERS} pods already")
    written = yield from _reserve(raw, action, now)
    if action.made is not None:
        status = {"requestMappings": list(action.mappings), "resourceClaimName": claim.metadata.name}
        yield from patch_status("Pod", action.pod, action.pod_uid, {"extendedResourceClaimStatus": status}, (), now)
    return written


def release_claim(action: actions.ReleaseClaim, now: int) -> Conversation:
    """Remove the pod from the claim's reservations and, if requested, the allocation of a claim without other users.

    A claim that was generated for the pod's extended resources is deleted. Nothing happens if there is no such claim
    any more. Returns the claim after that, None if there is none.
    """
    raw: Raw | None = None
    if not action.claim:
        raw = yield from _made_for(action.pod, action.pod_uid)
    else:
        with Suppressed(404):
            raw = (yield Request(verb="get", kind=_KIND, key=action.claim)).object
    if raw is None or (action.uid and raw["metadata"]["uid"] != action.uid):
        return None
    claim = read(raw, ResourceClaim)
    users = [user for user in raw.get("status", {}).get("reservedFor", []) if user.get("uid") != action.pod_uid]
    if action.deallocate and users:
        raise _conflict(_KIND, claim.key, "is used by other pods")
    status = {**raw.get("status", {}), "reservedFor": users}
    if action.deallocate or claim.for_extended_resources:
        status = {field: value for field, value in status.items() if field not in ("allocation", "devices")}
    raw = yield from _put({**raw, "status": status}, "status")
    if not claim.for_extended_resources:
        return raw
    finalizers = [name for name in claim.metadata.finalizers if name != DELETE_PROTECTION]
    raw = yield from _put({**raw, "metadata": {**raw["metadata"], "finalizers": finalizers}})
    yield Request(verb="delete", kind=_KIND, key=claim.key, body=delete_options_body(raw["metadata"]["uid"]))
    return None


def _reserve(raw: Raw, action: actions.ReserveClaim, now: int) -> _Reading:
    metadata = raw["metadata"]
    finalizers = metadata.get("finalizers", [])
    if action.allocation is not None and DELETE_PROTECTION not in finalizers:
        raw = yield from _put({**raw, "metadata": {**metadata, "finalizers": [*finalizers, DELETE_PROTECTION]}})
    status: Raw = dict(raw.get("status", {}))
    if action.allocation is not None:
        status["allocation"] = {"allocationTimestamp": times.format_time(now), **action.allocation}
    name = action.pod.partition("/")[2]
    user = {"resource": "pods", "name": name, "uid": action.pod_uid}
    status["reservedFor"] = [*status.get("reservedFor", []), user]
    return (yield from _put({**raw, "status": status}, "status"))


def _claim_to_reserve(action: actions.ReserveClaim) -> _Reading:
    """Return the claim to reserve; one for extended resources is created unless an earlier attempt created it."""
    if action.made is None:
        response = yield Request(verb="get", kind=_KIND, key=action.claim)
        raw = response.object or {}
        if raw["metadata"]["uid"] != action.uid:
            raise _conflict(_KIND, action.claim, f"has uid {raw['metadata']['uid']}, not {action.uid}")
        return raw
    left_over = yield from _made_for(action.pod, action.pod_uid)
    if left_over is None:
        response = yield Request(verb="create", kind=_KIND, body=action.made)
        return response.object or {}
    claim = read(left_over, ResourceClaim)
    wanted = read({**left_over, "status": {"allocation": action.allocation}}, ResourceClaim)
    if not claim.is_reserved_for(action.pod_uid) or claim.devices != wanted.devices:
        raise _conflict(_KIND, claim.key, "was made for the pod before")
    return left_over


def _made_for(pod: str, pod_uid: str) -> Generator[Request, Response, Raw | None]:
    """Return the claim that was generated for a pod's extended resources, or None."""
    response = yield Request(verb="list", kind=_KIND, namespace=pod.partition("/")[0])
    for raw in response.objects():
        claim = read(raw, ResourceClaim)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None and owner.uid == pod_uid:
            return raw
    return None


def _put(raw: Raw, subresource: str = "") -> _Reading:
    """Write the claim, provided that it has not changed since it was read."""
    key = key_of(raw["metadata"])
    return (yield Request(verb="update", kind=_KIND, key=key, subresource=subresource, body=raw)).object or {}


def _request_of(action: actions.Action) -> Request | None:
    """Return the request of an action that takes one; None for the others."""
    match action:
        case actions.Bind(pod=pod, uid=uid, node_name=node_name):
            binding = Binding(node_name=node_name, uid=uid)
            return Request(verb="create", kind="Pod", key=pod, subresource="binding", body=binding)
        case actions.Evict():
            return _eviction(action, action.component, action.hints)
        case actions.CreateObject(raw=raw):
            return Request(verb="create", kind=_kind_of(raw), body=raw)
        case actions.ReplaceStatus(raw=raw):
            key = key_of(raw["metadata"])
            return Request(verb="update", kind=_kind_of(raw), key=key, subresource="status", body=raw)
        case actions.PatchObject(kind=kind, key=key, patch=patch, subresource=subresource):
            body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": action.uid}}
            return Request(verb="patch", kind=kind, key=key, subresource=subresource, body=body)
        case actions.DeleteObject(kind=kind, key=key):
            propagation = "" if kind == Pod.__name__ else action.propagation
            body = delete_options_body(action.uid, action.grace_seconds, propagation)
            return Request(verb="delete", kind=kind, key=key, body=body)
    return None


# Requests whose answer is the written object; others answer with a Status or the deleted object.
_WRITES = frozenset((actions.CreateObject, actions.PatchObject, actions.ReplaceStatus, actions.ReportStatus))
_CONVERSATIONS: Mapping[type[actions.Action], Callable[[Any, int], Conversation]] = {
    actions.BindClaim: bind_claim,
    actions.Nominate: lambda action, now: nominate(action.pod, action.uid, action.node_name, now),
    actions.ReleaseClaim: release_claim,
    actions.ReportStatus: lambda action, now: patch_status(
        action.kind, action.key, action.uid, action.fields, action.conditions, now
    ),
    actions.ReportUnschedulable: report_unschedulable,
    actions.ReserveClaim: reserve_claim,
}


def is_repeatable(action: actions.Action) -> bool:
    """Return whether an action may be repeated without reading the object: it reads itself, or is idempotent."""
    return isinstance(action, actions.PatchObject) or type(action) in _CONVERSATIONS


def conversation_of(action: actions.Action, component: str, now: int, *, is_podium_server: bool = True) -> Conversation:
    """Return the conversation of an action. `component` is the reporting component of an Event.

    If the API server does not know Podium's extensions (`is_podium_server`), evictions do themselves what it would do.
    """
    type_ = type(action)
    if isinstance(action, actions.Evict) and not is_podium_server:
        return (yield from evict_at_foreign_server(action, now))
    if type_ in _CONVERSATIONS:
        return (yield from _CONVERSATIONS[type_](action, now))
    if isinstance(action, actions.Record):
        yield Request(verb="create", kind="Event", body=event_body(action, component, now))
        return None
    request = _request_of(action)
    if request is None:
        raise AssertionError(f"{action} is neither a request nor a conversation")
    response = yield request
    return response.object if type_ in _WRITES else None


def carry_out(ask: Answer, action: actions.Action, now: int, component: str = "") -> ActionFinished:
    """Carry out an action through `ask`, which answers immediately; return the result."""
    type_ = type(action)
    try:
        request = None if type_ in _CONVERSATIONS else _request_of(action)
        if request is None:
            return ActionFinished(action, None, run_conversation(conversation_of(action, component, now), ask, now))
        response = ask(request, now)
    except StoreError as error:
        return ActionFinished(action, problem_of(error))
    if response.error is not None:
        return ActionFinished(action, problem_of(response.error))
    return ActionFinished(action, None, response.object if type_ in _WRITES else None)


def _kind_of(raw: Raw) -> str:
    """Return the store's name of an object's kind."""
    group, kind = kinds.group_of(raw["apiVersion"]), str(raw["kind"])
    return kind if (group, kind) in BUILT_IN else f"{kind}.{group}"


_TRIES = 5
# After these codes it is unknown whether the eviction was carried out.
_UNKNOWN = frozenset((502, 504))


def evict_at_foreign_server(action: actions.Evict, now: int) -> Conversation:
    """Record the eviction hints on the pod's node, and evict the pod. 409 if a different pod has that name now."""
    plain = _eviction(action)
    if not action.hints:
        yield plain
        return None
    pod = _pod((yield Request(verb="get", kind="Pod", key=action.pod)))
    if pod.metadata.uid != action.uid:
        raise _conflict("Pod", action.pod, f"has uid {pod.metadata.uid}, not {action.uid}")
    key = action.hints.until_scheduled
    awaited = _pod((yield Request(verb="get", kind="Pod", key=key))) if key else None
    hints, replaced = action.hints, action.hints.until_replaced
    if replaced is not None and not replaced.uid:
        found = _pod((yield Request(verb="get", kind="Pod", key=replaced.key)))
        hints = hints.with_replaced_uid(found.metadata.uid)
    left = hints_to_record(pod, hints, awaited, action.component, action.grace_seconds, now)
    if not left or not pod.spec.node_name:
        yield plain
        return None
    limits = yield from _limits()
    yield _eviction(action, is_dry_run=True)
    before = yield from _change(pod.spec.node_name, lambda present: left.added_to(present, limits, now))
    if before is None:
        yield plain
        return None
    try:
        yield plain
    except StoreError as error:
        if error.code not in _UNKNOWN:
            # Restore the list. If that fails, the entry expires; the caller needs the reason of the refusal.
            former, after = before, left.added_to(before, limits, now)
            with suppress(StoreError):
                yield from _change(
                    pod.spec.node_name, lambda there: former if there == after else left.taken_off(there, former)
                )
        raise
    return None


def _change(name: str, changed: Callable[[AvoidList], AvoidList]) -> Generator[Request, Response, AvoidList | None]:
    """Update a node's avoid list based on its current state; return the list before, None if there is no such node.

    After a write conflict the node is read again, up to `_TRIES` times.
    """
    for number in range(_TRIES):
        node: Raw | None = None
        with Suppressed(404):
            node = (yield Request(verb="get", kind="Node", key=name)).object
        if node is None:
            return None
        metadata: Raw = node["metadata"]
        text = (metadata.get("annotations") or {}).get(PREFER_AVOID_PODS, "")
        before = avoid_list(text)
        after = changed(before)
        if after == before:
            return before
        about = {field: metadata[field] for field in ("uid", "resourceVersion")}
        annotations = {PREFER_AVOID_PODS: after.written() if after else None}
        try:
            yield Request(verb="patch", kind="Node", key=name, body={"metadata": {**about, "annotations": annotations}})
        except StoreError as error:
            if error.code != 409 or number == _TRIES - 1:
                raise
        else:
            return before
    raise AssertionError("the last try either succeeds or fails")


def _limits() -> Generator[Request, Response, AvoidLists]:
    """Return the limits of avoid lists from the DisruptionPolicy, if it exists and can be read."""
    # The component that validates policies reports one that cannot be read.
    with Suppressed(403, 404), suppress(errors.InputError):
        found = yield Request(verb="get", kind="DisruptionPolicy", key=POLICY_NAME)
        return read(found.object or {}, DisruptionPolicy).spec.avoid_lists
    return AvoidLists()


def _eviction(
    action: actions.Evict, component: str = "", hints: EvictionHints | None = None, *, is_dry_run: bool = False
) -> Request:
    """Return the eviction request; only Podium's server reads the component and the hints."""
    body = eviction_body(action.pod, delete_options_body(action.uid, action.grace_seconds), component, hints)
    # The dry run is a request parameter, not part of the body, so that admission webhooks for evictions see it, too.
    return Request(verb="create", kind="Pod", key=action.pod, subresource="eviction", body=body, dry_run=is_dry_run)


def _pod(response: Response) -> Pod:
    return read(response.object or {}, Pod)


# Concurrent writes cause these refusals of cleanup steps; they arrive as events and are evaluated then.
_PASSING = frozenset(("NotFound", "Conflict"))


def cleanup_by_requests(ask: Answer) -> StepRunner:
    """Return a function that carries out steps by requests."""

    def carry_out(step: Step, now: int) -> None:
        stored = step.stored
        named: dict[str, Any] = {"kind": stored.kind, "key": stored.key}
        if isinstance(step, DeleteStep):
            options = delete_options_body(stored.uid, propagation=step.propagation)
            request = Request(verb="delete", **named, body=options)
        elif isinstance(step, PatchStep):
            precondition = {"uid": stored.uid, "resourceVersion": str(stored.version)}
            body = {**step.patch, "metadata": {**precondition, **step.patch.get("metadata", {})}}
            request = Request(verb="patch", **named, subresource=step.subresource, body=body)
        else:
            spec = {**stored.raw.get("spec", {}), "finalizers": step.finalizers}
            request = Request(verb="update", **named, subresource="finalize", body={**stored.raw, "spec": spec})
        error = ask(request, now).error
        if error is not None and error.reason not in _PASSING:
            raise error

    return carry_out
