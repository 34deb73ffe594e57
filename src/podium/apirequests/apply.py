"""Server-side apply.

Source: apiserver (pkg/endpoints/handlers/patch.go, applyPatcher).
"""

from __future__ import annotations

from functools import partial

from podium.api.meta import Raw
from podium.api.nested import value_at
from podium.api.ownership.field_sets import KeyMissingError
from podium.api.ownership.owned import fields_of_value
from podium.apirequests.context import Context
from podium.apirequests.handlers import checked_fields, write_response
from podium.apirequests.request import Request, Response
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request, conflict, not_found
from podium.store.field_ownership import (
    KUBECTL,
    ApplyRequest,
    FieldWriter,
    applied,
    owned_fields,
    owned_part,
    with_last_applied,
    with_part,
)
from podium.store.managed_fields import entries_of, entry_of
from podium.store.stored import Stored
from podium.store.verbs.deletion import check_preconditions, preconditions_of
from podium.store.verbs.scale import nested, replicas_path, scale_of, scaled, with_value
from podium.store.verbs.updates import PARTS


def apply(context: Context, request: Request, now: int) -> Response:
    """Apply a configuration to an object; 201 if that creates it."""
    if not request.field_manager:
        raise bad_request("fieldManager is required for apply patch")
    config = context.object_of(request, completes=False)
    metadata = _metadata(config)
    config, warnings = checked_fields(context, request, config)
    resource = context.store.resources.named(request.kind)
    writer = context.writer(resource, request, "Apply", now)
    stored = context.store.find(request.kind, request.key)
    if stored is None:
        return _created(context, request, resource, config, writer, warnings)
    check_preconditions(stored, *preconditions_of(metadata))
    return write_response(_applied(context, request, stored, config, writer), 200, warnings, stored)


def apply_scale(context: Context, request: Request, now: int) -> Response:
    """Apply a configuration to a scale; the manager then owns the replicas in the workload's managed fields."""
    if not request.field_manager:
        raise bad_request("fieldManager is required for apply patch")
    stored, config = context.store.get(request.kind, request.key), request.body
    if not isinstance(config, dict):
        raise bad_request("an autoscaling/v1 Scale with metadata is expected")
    _metadata(config)
    wanted = scaled(stored, config)
    path, spec = replicas_path(stored), config.get("spec") or {}
    writer = context.writer(stored.resource, request, "Apply", now)
    result, writer.settled = applied(
        nested(path, value_at(stored.raw, *path)),
        nested(path, spec.get("replicas")),
        writer.shape,
        entries_of(stored.raw),
        ApplyRequest(writer.manager, writer.api_version, writer.now),
        force=request.force,
    )
    replicas = value_at(result, *path)
    with context.store.written_by(writer):
        return Response(object=scale_of(context.store.update(with_value(wanted, path, replicas or 0))))


def _metadata(config: Raw) -> Raw:
    """Return the metadata of an applied configuration. Raises StoreError 400."""
    metadata = config.get("metadata")
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not an object")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return metadata


def _created(
    context: Context,
    request: Request,
    resource: APIResource,
    config: Raw,
    writer: FieldWriter,
    warnings: tuple[str, ...],
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
    return write_response(stored, 201, warnings)


def _applied(context: Context, request: Request, stored: Stored, config: Raw, writer: FieldWriter) -> Stored:
    resource, part = stored.resource, request.subresource
    result, writer.settled = applied(
        owned_part(stored.raw, resource, part),
        owned_part(config, resource, part),
        writer.shape,
        entries_of(stored.raw),
        ApplyRequest(writer.manager, writer.api_version, writer.now, partial(owned_fields, subresource=part)),
        force=request.force,
    )
    raw = with_part(stored.raw, result, resource, part)
    if request.field_manager == KUBECTL and not part:
        raw = with_last_applied(raw, config)
    with context.store.written_by(writer):
        if part == "status":
            return context.store.update_status(raw)
        if part:
            return context.store.update_part(context.completed(resource, raw), PARTS[part])
        return context.store.update(context.completed(resource, raw))
