"""Applying a part of an object (server-side apply).

Source: apiserver (pkg/endpoints/handlers/patch.go, applyPatcher).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.ownership.elements import KeyMissingError
from podium.api.ownership.owned import fields_of_value
from podium.requests.answering.context import Context
from podium.requests.answering.objects import known, written
from podium.requests.request import Request, Response
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError, bad_request, conflict, not_found
from podium.store.ownership.entries import entries_of, entry_of
from podium.store.ownership.ownership import Application, Claim, owned_part, with_part
from podium.store.ownership.writer import Writer
from podium.store.stored import Stored
from podium.store.verbs.deletion import check_preconditions

_WITH_FIELDS_OF_THE_OBJECT = ("", "status")


def apply(context: Context, request: Request, now: int) -> Response:
    """The object with what is applied to it; 201 for one that comes about by it."""
    if request.subresource not in _WITH_FIELDS_OF_THE_OBJECT:
        raise StoreError(415, "UnsupportedMediaType", f"{request.subresource} is changed by patches, and not applied")
    if not request.field_manager:
        raise bad_request("fieldManager is required for apply patch")
    config = context.object_of(request, completes=False)
    metadata = config.get("metadata")
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not an object")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    config, warnings = known(context, request, config)
    resource = context.store.resources.named(request.kind)
    writer = context.writer(resource, request, "Apply", now)
    stored = context.store.find(request.kind, request.key)
    if stored is None:
        return _created(context, request, resource, config, writer, warnings)
    check_preconditions(stored, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))
    return written(_applied(context, request, stored, config, writer), 200, warnings)


def _created(
    context: Context, request: Request, resource: APIResource, config: Raw, writer: Writer, warnings: tuple[str, ...]
) -> Response:
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
        stored = context.store.create(context.completed(resource, config), now=writer.now, is_new=True)
    return written(stored, 201, warnings)


def _applied(context: Context, request: Request, stored: Stored, config: Raw, writer: Writer) -> Stored:
    resource, part = stored.resource, request.subresource
    application = Application(
        owned_part(stored.raw, resource, part),
        owned_part(config, resource, part),
        writer.shape,
        entries_of(stored.raw),
        Claim(writer.manager, writer.api_version, writer.now),
        force=request.force,
    )
    writer.settled = application.entries
    raw = with_part(stored.raw, application.result, resource, part)
    with context.store.written_by(writer):
        if part:
            return context.store.update_status(raw)
        return context.store.update(context.completed(resource, raw))
