"""Reading and writing objects and their status."""

from __future__ import annotations

import dataclasses
from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.structure import without_unknown
from podium.requests.answering.context import Context, done
from podium.requests.answering.sizes import check_size
from podium.requests.field_validation import check_fields
from podium.requests.request import Request, Response
from podium.store.conversion.conversion import stored_selector
from podium.store.definitions.definition import KIND as DEFINITION
from podium.store.definitions.definition import unheeded
from podium.store.errors import StoreError, invalid
from podium.store.reads.listing import ListOptions
from podium.store.stored import Stored

_NO_VERSIONS = (None, "", "0")
# Kubernetes' own kinds of which an update names the version that it is about; all custom kinds are such.
_CONDITIONAL = frozenset((DEFINITION, "Lease", "PodDisruptionBudget", "RuntimeClass"))


def get(context: Context, request: Request, now: int) -> Response:
    """The object; those of its subresources that carry the object itself are read the same way.

    Raises StoreError 504 for a version that is to come, as clients ask for one that the object has at least.
    """
    if request.options.resource_version:
        context.store.check_version(request.options.resource_version)
    return done(context.store.get(request.kind, request.key))


def list_(context: Context, request: Request, now: int) -> Response:
    """A page of the objects."""
    page = context.store.page(request.kind, request.namespace, options_of(request))
    return Response(page=page.served_as(request.api_version))


def watch(context: Context, request: Request, now: int) -> Response:
    """What happens to the objects."""
    found = context.store.watch(request.kind, request.namespace, options_of(request))
    found.serve_as(request.api_version)
    return Response(watch=found)


def create(context: Context, request: Request, now: int) -> Response:
    """A new object.

    Raises StoreError 500 for one that says which version it has, as etcd's store does, for whose refusal kube-apiserver
    has no better words (pkg/storage/errors.go).
    """
    raw, warnings = known(context, request, context.object_of(request))
    if context.creates_new and _version_of(raw) not in _NO_VERSIONS:
        raise StoreError(500, "", "resourceVersion should not be set on objects to be created")
    reading = request.reading if raw is request.body else None
    return written(context.store.create(raw, now=now, reading=reading, is_new=context.creates_new), 201, warnings)


def update(context: Context, request: Request, now: int) -> Response:
    """The object in the place of what was there, but for its status."""
    raw, warnings = known(context, request, context.object_of(request))
    _check_condition(context, request, raw)
    return written(context.store.update(raw), 200, warnings)


def update_status(context: Context, request: Request, now: int) -> Response:
    """The status in the place of what was there."""
    raw = context.object_of(request, completes=False)
    _check_condition(context, request, raw)
    return done(context.store.update_status(raw))


def patch_status(context: Context, request: Request, now: int) -> Response:
    """The status as a patch changes it."""
    body, type_ = request.body, request.patch_type
    return written(context.store.patch(request.kind, request.key, body, type_, "status", request.api_version), 200, ())


def patch(context: Context, request: Request, now: int) -> Response:
    """The object as a patch changes it."""
    store = context.store
    resource = store.resources.named(request.kind)
    warnings: tuple[str, ...] = ()

    def complete(raw: Raw) -> Raw:
        nonlocal warnings
        if request.field_manager:
            # What came about by many patches may be more than each of them brought.
            check_size(resource, request.key, raw)
        raw, warnings = known(context, request, raw)
        return context.completed(resource, raw) if context.creates_new else raw

    stored = store.patch(request.kind, request.key, request.body, request.patch_type, "", request.api_version, complete)
    return written(stored, 200, warnings)


def _check_condition(context: Context, request: Request, raw: Raw) -> None:
    """Raise StoreError 422 for an update without a version, of a kind that has no such (AllowUnconditionalUpdate)."""
    if not context.creates_new or _version_of(raw) not in _NO_VERSIONS:
        return
    stored = context.store.get(request.kind, request.key)
    if stored.resource.is_custom or request.kind in _CONDITIONAL:
        problem = "Invalid value: 0: must be specified for an update"
        raise invalid(stored.resource, stored.key, problem, "metadata.resourceVersion")


def _version_of(raw: Raw) -> Any:
    """Which version an object says that it has."""
    metadata = raw.get("metadata")
    return metadata.get("resourceVersion") if isinstance(metadata, dict) else None


def known(context: Context, request: Request, raw: Raw) -> tuple[Raw, tuple[str, ...]]:
    """The object without fields that there are not, where the request wants them judged, and the warnings about them.

    What the schema of a custom kind does not know goes as it is written. Raises StoreError as `check_fields` does.
    """
    if not request.field_validation:
        return raw, ()
    warnings = check_fields(context.store.resources, request, raw)
    return without_unknown(raw), warnings


def written(stored: Stored, code: int, warnings: tuple[str, ...]) -> Response:
    """The answer to a write, with what is to be known about a definition that was written."""
    if stored.resource.name == DEFINITION:
        warnings = (*warnings, *unheeded(stored.raw))
    return Response(code=code, object=stored.raw, stored=stored, warnings=warnings)


def options_of(request: Request) -> ListOptions:
    """The options of a list as they are about the objects that are stored."""
    options = request.options
    if not request.api_version or not options.field_selector:
        return options
    selector = stored_selector(options.field_selector, request.api_version)
    return dataclasses.replace(options, field_selector=selector)
