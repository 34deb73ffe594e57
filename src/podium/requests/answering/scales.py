"""The scale subresource: how many pods a workload has, and is to have."""

from __future__ import annotations

from podium.requests.answering.context import Context
from podium.requests.request import Request, Response
from podium.store.errors import bad_request
from podium.store.verbs.scale import scale_of


def get_scale(context: Context, request: Request, now: int) -> Response:
    """The scale of a workload."""
    return Response(object=context.store.scale(request.kind, request.key))


def update_scale(context: Context, request: Request, now: int) -> Response:
    """The scale in the place of what was there."""
    body = request.body
    if not isinstance(body, dict):
        raise bad_request("an autoscaling/v1 Scale with metadata is expected")
    return Response(object=scale_of(context.store.update_scale(request.kind, request.key, body)))


def patch_scale(context: Context, request: Request, now: int) -> Response:
    """The scale as a patch changes it."""
    stored = context.store.patch(request.kind, request.key, request.body, request.patch_type, "scale")
    return Response(object=scale_of(stored))
