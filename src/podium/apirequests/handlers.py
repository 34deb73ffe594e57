"""The handlers of requests: reads and writes of objects and their parts, and server-side apply.

Source: apiserver (pkg/endpoints/handlers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext

from msgspec.structs import asdict, replace

from podium.api.errors import shown
from podium.api.meta import Raw, object_at, value_at
from podium.api.ownership import KeyMissingError, fields_of_value
from podium.api.pod import Pod
from podium.api.policy import SYSTEM_CLASSES
from podium.api.times import SECOND, format_time
from podium.api.validation.objects import is_unqualified_finalizer
from podium.apirequests.authorization import ISSUER, issued_token, token_claims
from podium.apirequests.context import (
    CREATED,
    DELETE_ANNOTATION,
    DIRECT,
    Context,
    check_size,
    checked_fields,
    identity_of,
    object_response,
)
from podium.apirequests.request import (
    Binding,
    DeleteOptions,
    EvictionOptions,
    Request,
    Response,
    read_binding,
    read_delete_options,
    read_eviction,
)
from podium.store import custom_kinds, listing, patching, version_conversion
from podium.store.errors import StoreError, bad_request, conflict, forbidden, invalid, not_found
from podium.store.field_ownership import KUBECTL, FieldWriter, entry_of, owned_part, with_last_applied, with_part
from podium.store.stored import Stored
from podium.store.verbs.deletion import check_preconditions, preconditions_of
from podium.store.verbs.updates import PARTS, SCALE, approved, nested, replicas_path, scale_of, scaled, with_value

# The warning of apiextensions-apiserver (pkg/registry/customresource, generateWarningsFromObj).
_PREFERRED = (
    'metadata.finalizers: "{}": prefer a domain-qualified finalizer name including a path (/) to avoid accidental '
    "conflicts with other finalizer writers"
)
_SIGNING_REQUEST, _OF_REQUESTERS = "CertificateSigningRequest", ("username", "uid", "groups", "extra")
_NO_VERSIONS = (None, "", "0")
_NO_SCALE = "an autoscaling/v1 Scale with metadata is expected"
# Built-in kinds whose updates must state a resourceVersion; so must all custom kinds.
_CONDITIONAL = frozenset((custom_kinds.DEFINITION, "Lease", "PodDisruptionBudget", "RuntimeClass"))

# The kinds that an update creates (AllowCreateOnUpdate).
_CREATED_BY_UPDATES = """
ClusterRole ClusterRoleBinding Endpoints Event Lease LimitRange Role RoleBinding RuntimeClass Service
""".split()


def get(context: Context, request: Request, now: int) -> Response:
    """Return the object; subresources that carry the object itself are read in the same way.

    Raises StoreError 504 if the requested minimum version is in the future.
    """
    if request.options.resource_version:
        context.store.check_version(request.options.resource_version)
    return object_response(context.store.get(request.kind, request.key))


def list_(context: Context, request: Request, now: int) -> Response:
    """Return a page of the objects."""
    context.store.forget_lists(now)
    return Response(page=_page(context, request).served_as(request.api_version))


def watch(context: Context, request: Request, now: int) -> Response:
    """Open a watch of the objects."""
    found = context.store.watch(request.kind, request.namespace, options_of(request), request.api_version)
    return Response(watch=found)


def create(context: Context, request: Request, now: int) -> Response:
    """Create an object.

    Raises StoreError 500 for an object with a resourceVersion, as etcd's store does; kube-apiserver has no better code
    for that refusal (pkg/storage/errors.go).
    """
    raw, warnings = checked_fields(context.store.resources, request, context.object_of(request, now))
    if context.creates_new and value_at(raw, "metadata", "resourceVersion") not in _NO_VERSIONS:
        raise StoreError(500, "", "resourceVersion should not be set on objects to be created")
    if context.creates_new and request.kind == _SIGNING_REQUEST:
        # The requester is the user who sends it (pkg/registry/certificates/certificates/strategy.go).
        stated = {name: value for name, value in object_at(raw, "spec").items() if name not in _OF_REQUESTERS}
        raw = {**raw, "spec": {**stated, **request.identity.to_dict()}}
    reading = request.reading if raw is request.body else None
    stored = context.store.create(raw, now=now, reading=reading, is_new=context.creates_new)
    return _write_response(stored, 201, warnings)


def update(context: Context, request: Request, now: int) -> Response:
    """Replace the object, except for its status; for a few kinds also create it."""
    previous = context.store.find(request.kind, request.key)
    if previous is None and request.kind in _CREATED_BY_UPDATES and context.creates_new:
        return create(context, request, now)
    raw, warnings = checked_fields(context.store.resources, request, context.object_of(request, now))
    _check_condition(context, request, raw)
    return _write_response(context.store.update(raw), 200, warnings, previous)


def update_status(context: Context, request: Request, now: int) -> Response:
    """Replace the object's status."""
    raw = context.object_of(request, now, completes=request.kind == "Namespace")
    _check_condition(context, request, raw)
    return object_response(context.store.update_status(raw))


def patch_status(context: Context, request: Request, now: int) -> Response:
    """Patch the object's status."""
    body, type_ = request.body, request.patch_type
    stored = context.store.patch(request.kind, request.key, body, type_, "status", request.api_version)
    return _write_response(stored, 200, ())


def patch(context: Context, request: Request, now: int) -> Response:
    """Patch the object."""
    store = context.store
    resource = store.resources.named(request.kind)
    warnings: tuple[str, ...] = ()

    def complete(raw: Raw) -> Raw:
        nonlocal warnings
        if request.field_manager:
            # Many patches together can create a larger object than each of them contains.
            check_size(resource, request.key, raw)
        raw, warnings = checked_fields(context.store.resources, request, raw)
        return context.completed(resource, raw, now)

    previous = store.find(request.kind, request.key)
    stored = store.patch(request.kind, request.key, request.body, request.patch_type, "", request.api_version, complete)
    return _write_response(stored, 200, warnings, previous)


def _check_condition(context: Context, request: Request, raw: Raw) -> None:
    """Raise StoreError 422 for an update without a version, of a kind that requires one (AllowUnconditionalUpdate)."""
    if not context.creates_new or value_at(raw, "metadata", "resourceVersion") not in _NO_VERSIONS:
        return
    stored = context.store.get(request.kind, request.key)
    if stored.resource.is_custom or request.kind in _CONDITIONAL:
        problem = "Invalid value: 0: must be specified for an update"
        raise invalid(stored.resource, stored.key, problem, "metadata.resourceVersion")


def _write_response(stored: Stored, code: int, warnings: tuple[str, ...], previous: Stored | None = None) -> Response:
    """Return the response to a write, with the warnings about a custom object that was written."""
    resource = stored.resource
    if resource.is_custom:
        before = () if previous is None else previous.object.metadata.finalizers
        added = [finalizer for finalizer in stored.object.metadata.finalizers if finalizer not in before]
        warnings = (*warnings, *(_PREFERRED.format(one) for one in sorted(added) if is_unqualified_finalizer(one)))
    return Response(code=code, object=stored.raw, stored=stored, warnings=warnings)


def options_of(request: Request) -> listing.ListOptions:
    """Return the options of a list in terms of the stored objects."""
    options = request.options
    if not request.api_version or not options.field_selector:
        return options
    selector = version_conversion.stored_selector(options.field_selector, request.api_version)
    return dataclasses.replace(options, field_selector=selector)


def finalize(context: Context, request: Request, now: int) -> Response:
    """Replace the finalizers in a namespace's spec; removing the last one removes the namespace."""
    given = context.object_of(request, now, completes=False)
    raw = context.store.get(request.kind, request.key).raw
    spec = {**raw.get("spec", {}), "finalizers": value_at(given, "spec", "finalizers") or []}
    required = {name: given["metadata"].get(name, "") for name in ("uid", "resourceVersion")}
    return object_response(context.store.update({**raw, "metadata": {**raw["metadata"], **required}, "spec": spec}))


def get_scale(context: Context, request: Request, now: int) -> Response:
    """Return the scale of a workload."""
    return Response(object=scale_of(context.store.get(request.kind, request.key)))


def write_scale(context: Context, request: Request, now: int) -> Response:
    """Replace or patch the scale of a workload."""
    if request.verb == "update" and not isinstance(request.body, dict):
        raise bad_request(_NO_SCALE)
    stored, scale = context.store.get(request.kind, request.key), request.body
    if request.verb == "patch":
        scale = patching.patched(SCALE, scale_of(stored), scale, request.patch_type)
    return Response(object=scale_of(context.store.update(scaled(stored, scale))))


_DEFAULT_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3_600, 600, 2**32
_SHORT, _LONG = "less than 10 minutes", "larger than 2^32 seconds"
_BINDING_KINDS = ("Pod", "Secret")


def create_token(context: Context, request: Request, now: int) -> Response:
    """Return a token by which the server recognizes the account, bound to an object if the request names one."""
    account = context.store.get(request.kind, request.key)
    spec = object_at(request.body, "spec")
    seconds = spec.get("expirationSeconds")
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    if type(seconds) is not int or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        problem = f"may not specify a duration {_SHORT if type(seconds) is int and seconds < 600 else _LONG}"
        message = f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: {problem}'
        raise StoreError(422, "Invalid", message)
    audiences = spec.get("audiences") or [ISSUER]
    meta = account.object.metadata
    bound: list[Raw] = []
    if reference := object_at(spec, "boundObjectRef"):
        kind = str(reference.get("kind"))
        if kind not in _BINDING_KINDS:
            raise bad_request(f"spec.boundObjectRef.kind: {shown(kind)} is not one of {', '.join(_BINDING_KINDS)}")
        found = context.store.get(kind, f"{meta.namespace}/{reference.get('name')}")
        check_preconditions(found, str(reference.get("uid") or ""), "")
        node = context.store.find("Node", str(value_at(found.raw, "spec", "nodeName") or ""))
        bound = [found.raw] if node is None else [found.raw, node.raw]
    claims = token_claims(account.raw, bound, audiences, seconds, now)
    expires = format_time((now // SECOND + seconds) * SECOND)
    answer: Raw = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": meta.name, "namespace": meta.namespace, "creationTimestamp": format_time(now)},
        "spec": {"boundObjectRef": None, **spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": issued_token(context.rules.token_key, claims), "expirationTimestamp": expires},
    }
    return Response(code=201, object=answer)


UNSERVED = ("attach", "exec", "log", "portforward", "proxy")
"""The pod subresources that are not served, because they need running containers."""


def bind(context: Context, request: Request, now: int) -> Response:
    """Bind a pod to a node."""
    body = request.body
    binding = body if isinstance(body, Binding) else read_binding(body, request.key)
    context.store.bind(request.key, now=now, **asdict(binding))
    return Response(code=201, object=CREATED)


def create_binding(context: Context, request: Request, now: int) -> Response:
    """Bind the pod that the Binding names (POST bindings)."""
    metadata = object_at(request.body, "metadata")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("metadata.name is missing: a Binding names its pod")
    key = f"{request.namespace or metadata.get('namespace') or 'default'}/{name}"
    return bind(context, replace(request, key=key), now)


def write_part(context: Context, request: Request, now: int) -> Response:
    """Replace or patch a pod's resources or ephemeral containers, or the approval of a certificate request."""
    stored = context.store.get(request.kind, request.key)
    if request.verb == "update":
        raw = context.object_of(request, now)
    else:
        result = patching.patched(stored.resource, stored.raw, request.body, request.patch_type)
        raw = context.completed(stored.resource, version_conversion.as_stored(stored.resource, result, ""), now)
    if request.subresource == "approval":
        return object_response(context.store.update_status(approved(stored, raw, now), approves=True))
    return object_response(context.store.update_part(raw, PARTS[request.subresource]))


# The kinds for which the answer is the deleted object instead of a Status (ReturnDeletedObject in pkg/registry, visible
# in the responses of the API reference).
_RETURNED_KINDS = """
CSIDriver CSINode DeviceClass DeviceTaintRule PersistentVolume PersistentVolumeClaim Pod PodTemplate ResourceClaim
ResourceClaimTemplate ResourceQuota ResourceSlice Service ServiceAccount StorageClass VolumeAttachment
VolumeAttributesClass
"""
_RETURNED = frozenset(_RETURNED_KINDS.split())


def delete(context: Context, request: Request, now: int) -> Response:
    """Delete an object; return its last or terminating state, or for most kinds a Status once it is gone."""
    options = read_delete_options(request.body)
    with context.store.transaction(dry_run=True) if options.dry_run else nullcontext():
        previous = context.store.get(request.kind, request.key)
        # kube-apiserver does not refuse to delete a collection with such a class.
        if request.kind == "PriorityClass" and request.key in SYSTEM_CLASSES:
            raise forbidden(previous.resource, request.key, "this is a system priority class and cannot be deleted")
        left = _delete(context, request, previous, options, now)
    if left is not None or previous.kind in _RETURNED:
        # Other deletions that do not end at once are answered with 200, which older clients expect.
        is_accepted = left is not None and value_at(request.body, "orphanDependents") is False
        return replace(object_response(left or previous), code=202 if is_accepted else 200)
    resource = previous.resource
    about = {"name": previous.object.metadata.name, "group": resource.group, "kind": resource.plural}
    details = {name: value for name, value in {**about, "uid": previous.uid}.items() if value}
    return Response(object={**CREATED, "code": 200, "details": details})


def delete_collection(context: Context, request: Request, now: int) -> Response:
    """Delete a collection; return the deleted objects."""
    options, page = read_delete_options(request.body), _page(context, request)
    with context.store.transaction(dry_run=options.dry_run):
        for stored in page.items:
            _delete(context, request, stored, options, now)
    return Response(page=page.served_as(request.api_version))


def _page(context: Context, request: Request) -> listing.ListPage:
    return context.store.page(request.kind, request.namespace, options_of(request), request.api_version)


def objects_to_delete(context: Context, request: Request) -> Sequence[Stored]:
    """Return the existing objects that a deletion names or selects."""
    if not request.key:
        return _page(context, request).items
    found = context.store.find(request.kind, request.key)
    return [] if found is None else [found]


def evict(context: Context, request: Request, now: int) -> Response:
    """Evict a pod if its budgets allow it."""
    _evict(context, request, read_eviction(request.body, request.key), now)
    return Response(code=201, object=CREATED)


def _evict(context: Context, request: Request, eviction: EvictionOptions, now: int, key: str = "") -> Stored | None:
    options = eviction.delete
    return context.store.evict(
        key or request.key,
        now=now,
        uid=options.uid,
        resource_version=options.resource_version,
        grace_seconds=options.grace_seconds,
        # The component that the request states counts if the identity implies none.
        component=context.rules.components.get(identity_of(request), eviction.component),
        hints=eviction.hints,
        dry_run=options.dry_run,
    )


def _delete(context: Context, request: Request, stored: Stored, options: DeleteOptions, now: int) -> Stored | None:
    """Delete an object, or evict it if the rules turn the deletion into an eviction; return None if it is gone."""
    if _is_eviction(context, request, stored, options):
        return _evict(context, request, EvictionOptions(delete=options), now, stored.key)
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
    """Return whether a deletion is treated as an eviction (`Rules.deletes_by_eviction`)."""
    if not context.rules.deletes_by_eviction or not isinstance(stored.object, Pod) or options.grace_seconds == 0:
        return False
    is_direct = stored.object.metadata.annotations.get(DELETE_ANNOTATION) == DIRECT
    return context.rules.is_person(request) and not is_direct and not stored.object.is_terminating


def apply(context: Context, request: Request, now: int) -> Response:
    """Apply a configuration to an object; 201 if that creates it (applyPatcher)."""
    config = context.object_of(request, now, completes=False)
    metadata = _applied_metadata(request, config)
    config, warnings = checked_fields(context.store.resources, request, config)
    resource, part = context.store.resources.named(request.kind), request.subresource
    writer = context.writer(resource, request, "Apply", now)
    stored = context.store.find(request.kind, request.key)
    if stored is None:
        return _create_response(context, request, config, writer, warnings)
    check_preconditions(stored, *preconditions_of(metadata))
    seen = stored.served_as(config["apiVersion"]).raw if resource.is_custom else stored.raw
    live, wanted = owned_part(seen, resource, part), owned_part(config, resource, part)
    result = writer.applied(seen, live, wanted, force=request.force, subresource=part)
    raw = with_part(seen, result, resource, part)
    if request.field_manager == KUBECTL and not part:
        raw = with_last_applied(raw, config)
    with context.store.written_by(writer):
        if part == "status":
            after = context.store.update_status(raw)
        elif part:
            after = context.store.update_part(context.completed(resource, raw, now), PARTS[part])
        else:
            after = context.store.update(context.completed(resource, raw, now))
    return _write_response(after, 200, warnings, stored)


def apply_scale(context: Context, request: Request, now: int) -> Response:
    """Apply a configuration to a scale; the manager then owns the replicas in the workload's managed fields."""
    stored, config = context.store.get(request.kind, request.key), request.body
    if not isinstance(config, dict):
        raise bad_request(_NO_SCALE)
    _applied_metadata(request, config)
    wanted = scaled(stored, config)
    path, spec = replicas_path(stored), config.get("spec") or {}
    writer = context.writer(stored.resource, request, "Apply", now)
    live, replicas = nested(path, value_at(stored.raw, *path)), nested(path, spec.get("replicas"))
    result = writer.applied(stored.raw, live, replicas, force=request.force)
    with context.store.written_by(writer):
        raw = with_value(wanted, path, value_at(result, *path) or 0)
        return Response(object=scale_of(context.store.update(raw)))


def _applied_metadata(request: Request, config: Raw) -> Raw:
    """Return the metadata of an applied configuration. Raises StoreError 400, also without a manager."""
    if not request.field_manager:
        raise bad_request("fieldManager is required for apply patch")
    metadata = config.get("metadata")
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not an object")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return metadata


def _create_response(
    context: Context, request: Request, config: Raw, writer: FieldWriter, warnings: tuple[str, ...]
) -> Response:
    resource = writer.resource
    if request.subresource:
        raise not_found(resource, request.key)
    uid = config["metadata"].get("uid")
    if uid:
        problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(resource, request.key, problem)
    try:
        fields = fields_of_value(owned_part(config, resource, ""), writer.shape)
    except KeyMissingError as error:
        raise bad_request(f"failed to create typed patch object: {error}") from None
    writer.settled = {writer.manager: entry_of(fields, writer.api_version, writer.now)} if fields else {}
    with context.store.written_by(writer):
        stored = context.store.create(context.completed(resource, config, writer.now), now=writer.now, is_new=True)
    return _write_response(stored, 201, warnings)
