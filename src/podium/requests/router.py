"""Answers requests from a store: what each verb on each kind and subresource means there.

Whoever speaks to the API server speaks to this: simulated components, and clients over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.requests.field_validation import check_fields
from podium.requests.options import DeleteOptions, check_name, read_binding, read_delete_options, read_eviction
from podium.requests.request import Request, Response
from podium.store.api_resources import POD
from podium.store.errors import StoreError, bad_request, unknown_kind
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.scale import scale_of

# The kinds of which the deleted object is the answer, and no Status (ReturnDeletedObject in pkg/registry).
_RETURNED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ResourceQuota",
        "ServiceAccount",
        "StorageClass",
        "VolumeAttachment",
    )
)


class Router:
    """Answers requests from a store.

    `takes_history`: objects that are created keep the uid, the times and the status that they are given, as parts of
    a cluster that was there before do; else these are the server's to give.
    """

    def __init__(self, store: Store, *, takes_history: bool = False) -> None:
        self.store = store
        self._creates_new = not takes_history

    def answer(self, request: Request, now: int) -> Response:
        """Do what the request asks for. It never raises StoreError: a refusal is an answer."""
        try:
            handle = _HANDLERS.get((request.verb, request.subresource))
            if handle is None:
                raise _not_served(self.store, request)
            if not request.dry_run:
                return handle(self, request, now)
            with self.store.transaction(dry_run=True):
                return handle(self, request, now)
        except StoreError as error:
            return Response(code=error.code, error=error)

    # Reading

    def _get(self, request: Request, now: int) -> Response:
        return Response(object=self.store.get(request.kind, request.key).raw)

    def _get_status(self, request: Request, now: int) -> Response:
        return Response(object=self._with_status(request).raw)

    def _get_scale(self, request: Request, now: int) -> Response:
        return Response(object=self.store.scale(request.kind, request.key))

    def _list(self, request: Request, now: int) -> Response:
        return Response(page=self.store.page(request.kind, request.namespace, request.options))

    def _watch(self, request: Request, now: int) -> Response:
        return Response(watch=self.store.watch(request.kind, request.namespace, request.options))

    # Writing

    def _create(self, request: Request, now: int) -> Response:
        raw = self._object(request)
        warnings = check_fields(request, raw) if request.field_validation else ()
        stored = self.store.create(raw, now=now, is_new=self._creates_new)
        return Response(code=201, object=stored.raw, warnings=warnings)

    def _update(self, request: Request, now: int) -> Response:
        raw = self._object(request)
        warnings = check_fields(request, raw) if request.field_validation else ()
        return Response(object=self.store.update(raw).raw, warnings=warnings)

    def _update_status(self, request: Request, now: int) -> Response:
        return Response(object=self.store.update_status(self._object(request)).raw)

    def _update_scale(self, request: Request, now: int) -> Response:
        body = request.body
        if not isinstance(body, dict):
            raise bad_request("an autoscaling/v1 Scale with metadata is expected")
        return Response(object=scale_of(self.store.update_scale(request.kind, request.key, body)))

    def _patch(self, request: Request, now: int) -> Response:
        if not request.field_validation:
            stored = self.store.patch(request.kind, request.key, request.body, request.patch_type)
            return Response(object=stored.raw)
        with self.store.transaction():
            stored = self.store.patch(request.kind, request.key, request.body, request.patch_type)
            return Response(object=stored.raw, warnings=check_fields(request, stored.raw))

    def _patch_status(self, request: Request, now: int) -> Response:
        stored = self.store.patch(request.kind, request.key, request.body, request.patch_type, "status")
        return Response(object=stored.raw)

    def _patch_scale(self, request: Request, now: int) -> Response:
        stored = self.store.patch(request.kind, request.key, request.body, request.patch_type, "scale")
        return Response(object=scale_of(stored))

    def _delete(self, request: Request, now: int) -> Response:
        options = read_delete_options(request.body)
        if options.dry_run:
            with self.store.transaction(dry_run=True):
                return self._delete_one(request, options, now)
        return self._delete_one(request, options, now)

    def _delete_one(self, request: Request, options: DeleteOptions, now: int) -> Response:
        previous = self.store.get(request.kind, request.key)
        left = self.store.delete(
            request.kind,
            request.key,
            now=now,
            grace_seconds=options.grace_seconds,
            propagation=options.propagation,
            uid=options.uid,
            resource_version=options.resource_version,
        )
        if left is not None:
            return Response(object=left.raw)
        return Response(object=previous.raw if previous.kind in _RETURNED else _success(200, previous))

    def _delete_collection(self, request: Request, now: int) -> Response:
        options = read_delete_options(request.body)
        with self.store.transaction(dry_run=options.dry_run):
            page = self.store.delete_collection(
                request.kind,
                request.namespace,
                request.options,
                now=now,
                grace_seconds=options.grace_seconds,
                propagation=options.propagation,
            )
        return Response(page=page)

    # Subresources of pods

    def _bind(self, request: Request, now: int) -> Response:
        _check_pod(request)
        uid, version, target_kind, node_name = read_binding(request.body, request.key)
        self.store.bind(request.key, node_name, now=now, uid=uid, resource_version=version, target_kind=target_kind)
        return Response(code=201, object=_CREATED)

    def _evict(self, request: Request, now: int) -> Response:
        _check_pod(request)
        eviction = read_eviction(request.body, request.key)
        options = eviction.delete
        self.store.evict(
            request.key,
            now=now,
            uid=options.uid,
            resource_version=options.resource_version,
            grace_seconds=options.grace_seconds,
            component=eviction.component,
            avoid_node=eviction.avoid_node,
            avoid_for=eviction.avoid_for,
            dry_run=options.dry_run,
        )
        return Response(code=201, object=_CREATED)

    def _object(self, request: Request) -> Raw:
        """The object in the body, if it is of the request's kind, name and namespace. Raises StoreError 400 and 404."""
        raw = request.body
        if not isinstance(raw, dict):
            raise bad_request(f"{shown(raw)} is not an object")
        resource = self.store.resources.of(raw)
        if resource.name != request.kind:
            raise bad_request(f"the object is a {resource.name}, and the request is about a {request.kind}")
        metadata = raw.get("metadata")
        if isinstance(metadata, dict):
            if request.key:
                check_name(metadata, request.key)
            elif request.namespace:
                return _placed(raw, metadata, request.namespace)
        return raw

    def _with_status(self, request: Request) -> Stored:
        stored = self.store.get(request.kind, request.key)
        if not stored.resource.has_status:
            raise unknown_kind(f"{stored.kind}/status")
        return stored


_CREATED: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_Handle = Callable[[Router, Request, int], Response]
_HANDLERS: Mapping[tuple[str, str], _Handle] = {
    ("get", ""): Router._get,
    ("get", "status"): Router._get_status,
    ("get", "scale"): Router._get_scale,
    ("list", ""): Router._list,
    ("watch", ""): Router._watch,
    ("create", ""): Router._create,
    ("create", "binding"): Router._bind,
    ("create", "eviction"): Router._evict,
    ("update", ""): Router._update,
    ("update", "status"): Router._update_status,
    ("update", "scale"): Router._update_scale,
    ("patch", ""): Router._patch,
    ("patch", "status"): Router._patch_status,
    ("patch", "scale"): Router._patch_scale,
    ("delete", ""): Router._delete,
    ("deletecollection", ""): Router._delete_collection,
}
SERVED = frozenset(_HANDLERS)
"""The verbs that are served, each with the subresource it is for; which kinds have these is another question."""

_SUBRESOURCES = frozenset(subresource for _, subresource in SERVED)


def _success(code: int, deleted: Stored) -> Raw:
    """The Status of a deletion that is done."""
    resource = deleted.resource
    about = {
        "name": deleted.object.metadata.name,
        "group": resource.group,
        "kind": resource.plural,
        "uid": deleted.uid,
    }
    return {**_CREATED, "code": code, "details": {name: value for name, value in about.items() if value}}


def _placed(raw: Raw, metadata: Raw, namespace: str) -> Raw:
    """The object in the namespace of the request. Raises StoreError 400 for one that says it is in another."""
    given = metadata.get("namespace")
    if given == namespace:
        return raw
    if given:
        problem = f"the namespace of the object ({shown(given)}) does not match that of the request"
        raise bad_request(f"{problem} ({shown(namespace)})")
    return {**raw, "metadata": {**metadata, "namespace": namespace}}


def _check_pod(request: Request) -> None:
    if request.kind != POD.name:
        raise unknown_kind(f"{request.kind}/{request.subresource}")


def _not_served(store: Store, request: Request) -> StoreError:
    """Why there is no answer to a verb on a subresource."""
    resource = store.resources.named(request.kind)
    if request.subresource not in _SUBRESOURCES:
        return unknown_kind(f"{request.kind}/{request.subresource}")
    what = f"{resource.qualified}/{request.subresource}" if request.subresource else resource.qualified
    return StoreError(405, "MethodNotAllowed", f"{request.verb} is not supported on resources of kind {what}")
