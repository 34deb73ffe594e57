"""A request, as HTTP carries it."""

from __future__ import annotations

import msgspec

from podium.api.meta import Raw
from podium.requests.request import Request, Response
from podium.requests.wire.content_types import JSON, PATCH_NAMES
from podium.requests.wire.parameters import ALL, NOTHING_SAID, Parameters, written
from podium.requests.wire.paths import path_of
from podium.requests.wire.verbs import METHODS
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.encoding import encoded
from podium.store.errors import StoreError

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_SELECTING = frozenset(("list", "watch", "deletecollection"))


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send. ``path`` and ``query`` are decoded text; ``body`` None is none."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    content_type: str = ""
    body: bytes | None = None


def outgoing(
    request: Request, resources: APIResources, *, timeout_seconds: int = 0, bookmarks: bool = False
) -> Outgoing:
    """How a request is sent. ``timeout_seconds`` and ``bookmarks`` are what a watch asks for besides.

    Raises StoreError 404 for a kind that is not known, ValueError for a key that no path can name.
    """
    resource = resources.named(request.kind)
    if request.api_version:
        resource = resource.served_as(request.api_version)
    parameters = _parameters(request, timeout_seconds, bookmarks=bookmarks)
    return Outgoing(
        method=METHODS[request.verb],
        path=_path(request, resource),
        query=() if parameters is NOTHING_SAID else tuple(written(parameters)),
        content_type=_content_type(request),
        body=None if request.body is None else encoded(request.written_body),
    )


def response_of(
    code: int, body: Raw | None, retry_after_s: int | None = None, warnings: tuple[str, ...] = ()
) -> Response:
    """What an answer of HTTP says. ``body`` is its decoded JSON, None where it is none.

    ``retry_after_s`` is the header Retry-After; it joins the details of a refusal that has none of its own.
    """
    if code < 400:
        return Response(code=code, object=body, warnings=warnings)
    return Response(code=code, error=error_of(code, body, retry_after_s), warnings=warnings)


def error_of(code: int, body: Raw | None, retry_after_s: int | None = None) -> StoreError:
    """A refusal: a Status, or what a proxy says in its place."""
    status = body if body is not None and body.get("kind") == "Status" else {}
    details = status.get("details")
    known: Raw = dict(details) if isinstance(details, dict) else {}
    if retry_after_s is not None:
        known.setdefault("retryAfterSeconds", retry_after_s)
    if not isinstance(known.get("retryAfterSeconds", 0), int):
        del known["retryAfterSeconds"]
    causes = known.get("causes", [])
    if not isinstance(causes, list) or not all(isinstance(cause, dict) for cause in causes):
        del known["causes"]
    reason, message = status.get("reason"), status.get("message")
    return StoreError(
        code,
        reason if isinstance(reason, str) and reason else _REASONS.get(code, "InternalError"),
        message if isinstance(message, str) and message else f"the API server answered with {code}",
        known,
    )


def _parameters(request: Request, timeout_seconds: int, *, bookmarks: bool) -> Parameters:
    selecting = request.verb in _SELECTING
    watches = request.verb == "watch"
    says_more = request.dry_run or request.field_manager or request.field_validation or request.force
    if not selecting and not says_more:
        return NOTHING_SAID
    return Parameters(
        options=request.options if selecting else NOTHING_SAID.options,
        watches=watches,
        bookmarks=watches and bookmarks,
        timeout_seconds=timeout_seconds if watches else 0,
        dry_run=ALL if request.dry_run else "",
        field_manager=request.field_manager,
        field_validation=request.field_validation,
        force=True if request.force else None,
    )


def _path(request: Request, resource: APIResource) -> str:
    if request.api_version:
        resource = resource.served_as(request.api_version)
    if request.key and (request.verb != "create" or request.subresource):
        namespace, _, name = request.key.rpartition("/")
        return path_of(resource, namespace, name, request.subresource)
    if request.verb in ("create", "update"):
        metadata: Raw = request.body.get("metadata", {})
        namespace = request.namespace or metadata.get("namespace") or "default"
        name = metadata.get("name", "") if request.verb == "update" else ""
        return path_of(resource, namespace if resource.namespaced else "", name, request.subresource)
    return path_of(resource, request.namespace)


def _content_type(request: Request) -> str:
    if request.body is None:
        return ""
    return PATCH_NAMES[request.patch_type] if request.verb == "patch" else JSON
