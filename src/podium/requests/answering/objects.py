"""Reading and writing objects and their status."""

from __future__ import annotations

import dataclasses

from podium.requests.answering.context import Context, done
from podium.requests.field_validation import check_fields
from podium.requests.request import Request, Response
from podium.store.conversion.conversion import as_stored, stored_selector
from podium.store.definitions.definition import KIND as DEFINITION
from podium.store.definitions.definition import unheeded
from podium.store.patches.patching import patched
from podium.store.reads.listing import ListOptions
from podium.store.store import Subresource
from podium.store.stored import Stored


def get(context: Context, request: Request, now: int) -> Response:
    """The object; those of its subresources that carry the object itself are read the same way."""
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
    """A new object."""
    raw = context.object_of(request)
    warnings = check_fields(context.store.resources, request, raw) if request.field_validation else ()
    return written(context.store.create(raw, now=now, is_new=context.creates_new), 201, warnings)


def update(context: Context, request: Request, now: int) -> Response:
    """The object in the place of what was there, but for its status."""
    raw = context.object_of(request)
    warnings = check_fields(context.store.resources, request, raw) if request.field_validation else ()
    return written(context.store.update(raw), 200, warnings)


def update_status(context: Context, request: Request, now: int) -> Response:
    """The status in the place of what was there."""
    return done(context.store.update_status(context.object_of(request)))


def patch(context: Context, request: Request, now: int) -> Response:
    """The object as a patch changes it, or its status."""
    store = context.store
    part: Subresource = "status" if request.subresource == "status" else ""
    if not request.field_validation:
        return done(store.patch(request.kind, request.key, request.body, request.patch_type, part, request.api_version))
    with store.transaction():
        # What the schema of a custom kind does not know is not written, so that it is looked for before.
        warnings = _unknown_to_schema(context, request)
        stored = store.patch(request.kind, request.key, request.body, request.patch_type, part, request.api_version)
        return written(stored, 200, (*warnings, *check_fields(store.resources, request, stored.raw)))


def _unknown_to_schema(context: Context, request: Request) -> tuple[str, ...]:
    """The warnings about what a patch brings into a custom object. Raises StoreError 400 if it is strict."""
    store = context.store
    stored = store.get(request.kind, request.key)
    if not stored.resource.is_custom:
        return ()
    result = patched(stored.resource, stored.served_as(request.api_version).raw, request.body, request.patch_type)
    return check_fields(store.resources, request, as_stored(stored.resource, result, request.api_version))


def written(stored: Stored, code: int, warnings: tuple[str, ...]) -> Response:
    """The answer to a write, with what is to be known about a definition that was written."""
    if stored.kind == DEFINITION:
        warnings = (*warnings, *unheeded(stored.raw))
    return done(stored, code, warnings)


def options_of(request: Request) -> ListOptions:
    """The options of a list as they are about the objects that are stored."""
    options = request.options
    if not request.api_version or not options.field_selector:
        return options
    selector = stored_selector(options.field_selector, request.api_version)
    return dataclasses.replace(options, field_selector=selector)
