"""Deletions, and evictions, which are deletions that somebody may refuse."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.requests.answering.context import CREATED, Context, done
from podium.requests.answering.objects import options_of
from podium.requests.answering.rules import DELETE, DIRECT
from podium.requests.options import DeleteOptions, read_delete_options, read_eviction
from podium.requests.request import Request, Response
from podium.store.stored import Stored

# The kinds of which the deleted object is the answer, and no Status (ReturnDeletedObject in pkg/registry, which shows
# in the answers that the API reference gives).
_RETURNED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "ResourceSlice",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    )
)


def delete(context: Context, request: Request, now: int) -> Response:
    """The object as it was last, or is until it goes; of some kinds only that it is gone."""
    options = read_delete_options(request.body)
    if options.dry_run:
        with context.store.transaction(dry_run=True):
            return _delete_one(context, request, options, now)
    return _delete_one(context, request, options, now)


def delete_collection(context: Context, request: Request, now: int) -> Response:
    """The objects that were deleted."""
    options = read_delete_options(request.body)
    store = context.store
    with store.transaction(dry_run=options.dry_run):
        if request.kind == Pod.__name__ and context.rules.deletes_by_eviction:
            page = store.page(request.kind, request.namespace, options_of(request))
            for stored in page.items:
                _delete(context, request, stored, options, now)
        else:
            page = store.delete_collection(
                request.kind,
                request.namespace,
                options_of(request),
                now=now,
                grace_seconds=options.grace_seconds,
                propagation=options.propagation,
            )
    return Response(page=page.served_as(request.api_version))


def evict(context: Context, request: Request, now: int) -> Response:
    """That a pod goes, if its budgets let it."""
    eviction = read_eviction(request.body, request.key)
    options = eviction.delete
    context.store.evict(
        request.key,
        now=now,
        uid=options.uid,
        resource_version=options.resource_version,
        grace_seconds=options.grace_seconds,
        component=context.rules.component_of(request, eviction.component),
        avoid_node=eviction.avoid_node,
        avoid_for=eviction.avoid_for,
        for_replacement=eviction.for_replacement,
        dry_run=options.dry_run,
    )
    return Response(code=201, object=CREATED)


def _delete_one(context: Context, request: Request, options: DeleteOptions, now: int) -> Response:
    previous = context.store.get(request.kind, request.key)
    left = _delete(context, request, previous, options, now)
    if left is not None:
        return done(left)
    if previous.kind in _RETURNED:
        return done(previous)
    return Response(object=_success(previous))


def _delete(context: Context, request: Request, stored: Stored, options: DeleteOptions, now: int) -> Stored | None:
    """Delete an object, or evict it where that is how it is deleted; None where it is gone."""
    if _is_eviction(context, request, stored, options):
        return context.store.evict(
            stored.key,
            now=now,
            uid=options.uid,
            resource_version=options.resource_version,
            grace_seconds=options.grace_seconds,
            component=context.rules.component_of(request, ""),
        )
    return context.store.delete(
        stored.kind,
        stored.key,
        now=now,
        grace_seconds=options.grace_seconds,
        propagation=options.propagation,
        uid=options.uid,
        resource_version=options.resource_version,
    )


def _is_eviction(context: Context, request: Request, stored: Stored, options: DeleteOptions) -> bool:
    """Whether a deletion is judged as an eviction (`Rules.deletes_by_eviction`)."""
    if not context.rules.deletes_by_eviction or not isinstance(stored.object, Pod) or options.grace_seconds == 0:
        return False
    is_direct = stored.object.metadata.annotations.get(DELETE) == DIRECT
    return context.rules.is_person(request) and not is_direct and not stored.object.is_terminating


def _success(deleted: Stored) -> Raw:
    """The Status of a deletion that is done."""
    resource = deleted.resource
    about = {
        "name": deleted.object.metadata.name,
        "group": resource.group,
        "kind": resource.plural,
        "uid": deleted.uid,
    }
    return {**CREATED, "code": 200, "details": {name: value for name, value in about.items() if value}}
