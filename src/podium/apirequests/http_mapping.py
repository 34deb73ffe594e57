"""The conversion of HTTP requests to API requests and back, and the paths of the API.

Source: apiserver (pkg/endpoints/request/requestinfo.go, pkg/endpoints/installer.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw, object_at, value_at
from podium.apirequests.authorization import User
from podium.apirequests.parameters import ALL, NO_PARAMETERS, Parameters, check_deletion, check_parameters, query_of
from podium.apirequests.request import FieldValidation, Request, Response, Verb
from podium.store import api_resources, stored
from podium.store.errors import StoreError, bad_request
from podium.store.patching import PatchType

# An older version that is also accepted (pkg/registry/core/pod/storage, EvictionREST.AcceptsGroupVersion).
_OLDER = [["policy/v1beta1", "Eviction"]]
_DELETE_OPTIONS = "DeleteOptions"
_ABSENT = (None, "")


class IncomingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its body."""

    verb: Verb
    place: ResourcePath
    parameters: Parameters


def incoming_request(method: str, place: ResourcePath, parameters: Parameters) -> IncomingRequest:
    """Return the request for a method at a place. Raises StoreError 400 and 405."""
    verb = verb_of(method, place, watches=parameters.watches)
    for what, name in (("Name", place.name), ("Namespace", place.namespace)):
        problem = name_problem(name)
        if problem:
            raise bad_request(f"{what} parameter invalid: {shown(name)}: {problem}")
    return IncomingRequest(verb=verb, place=place, parameters=parameters)


def request_of(
    incoming_request: IncomingRequest,
    body: Any = None,
    patch_type: PatchType = "merge",
    *,
    user: User = User(""),  # noqa: B008 - an immutable value
    field_manager: str = "",
    field_validation: FieldValidation = "",
) -> Request:
    """Return the request of a user with its decoded body; None means no body.

    ``field_manager`` and ``field_validation`` are the defaults for parameters that the client omits. Raises StoreError
    400 for an object of another kind than the path's, 422 as `check_parameters` does.
    """
    verb, place, parameters = incoming_request.verb, incoming_request.place, incoming_request.parameters
    check_parameters(verb, parameters, applies=patch_type == "apply")
    if verb in ("create", "update"):
        body = _as_expected(verb, place, body)
    elif patch_type == "apply":
        _check_version(place, body)
    elif verb in ("delete", "deletecollection"):
        body = _delete_options(body, parameters.delete)
    key, options = place.key, parameters.options
    if verb == "watch" and place.name:
        # A watch of one object selects it by its name.
        selector = f"metadata.name={place.name}"
        if options.field_selector not in ("", selector):
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        key, options = "", replace(options, field_selector=selector)
    return Request(
        verb=verb,
        kind=place.resource.name,
        key=key,
        namespace="" if key else place.namespace,
        subresource=place.subresource,
        body=body,
        patch_type=patch_type,
        options=options,
        dry_run=parameters.dry_run == ALL,
        field_validation=parameters.field_validation or field_validation,
        field_manager=parameters.field_manager or field_manager,
        force=bool(parameters.force),
        # Objects of a custom kind may be stored in different versions.
        api_version="" if place.is_stored_version and not place.resource.is_custom else place.resource.api_version,
        identity=user,
    )


def _expected(place: ResourcePath) -> tuple[str, str]:
    """Return the version and kind of the objects at a place."""
    return place.resource.type_of(place.resource.subresource(place.subresource) if place.subresource else None)


def _check_version(place: ResourcePath, body: Any) -> None:
    """Raise StoreError 400 for an applied configuration in another version than the path's."""
    version, _ = _expected(place)
    given = value_at(body, "apiVersion")
    if given in _ABSENT or not body.get("kind"):
        missing = "Kind" if given not in _ABSENT else "apiVersion"
        raise bad_request(f"Object '{missing}' is missing in the apply patch; expected: {version}")
    if given != version:
        problem = f"Incorrect version specified in apply patch. Specified patch version: {given}, expected: {version}"
        raise bad_request(problem)


def _as_expected(verb: Verb, place: ResourcePath, body: Any) -> Raw:
    """Return the object in the body, with missing type information filled in, if its type fits the place.

    Raises StoreError 400 for one that does not fit, and for one without a name if the path requires one (rest.go).
    """
    version, kind = _expected(place)
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request is {shown(body)}, and a {kind} is an object")
    given_version, given_kind = body.get("apiVersion"), body.get("kind")
    if (given_version in _ABSENT or given_kind in _ABSENT) and place.resource.is_custom:
        raise bad_request(f"Object '{'apiVersion' if given_kind else 'Kind'}' is missing; it is {version} {kind}")
    if given_kind not in (*_ABSENT, kind):
        raise bad_request(f"{shown(given_kind)} in version {shown(given_version)} cannot be handled as a {kind}")
    if given_version not in (*_ABSENT, version) and [given_version, kind] not in _OLDER:
        problem = f"the API version in the data ({shown(given_version)}) does not match the expected API version"
        raise bad_request(f"{problem} ({version})")
    raw: Raw = {**body, "apiVersion": version, "kind": kind}
    if not value_at(raw, "metadata", "name"):
        if verb == "update":
            missing = "was undeterminable: name must be provided"
            raise bad_request(f"the name of the object ({place.name} based on URL) {missing}")
        if place.subresource in ("binding", "eviction"):
            raise bad_request(f"name in URL does not match name in {kind} object")
    return raw


def _delete_options(body: Any, from_query: Raw | None) -> Any:
    """Return the DeleteOptions in the body, or without a body those in the query."""
    if body is None:
        return from_query
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request is {shown(body)}, and {_DELETE_OPTIONS} are an object")
    if body.get("kind") not in (None, "", _DELETE_OPTIONS):
        raise bad_request(f"{shown(body['kind'])} cannot be handled as {_DELETE_OPTIONS}")
    check_deletion(body)
    return body


JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

BODY_TYPES = (JSON, YAML, PROTOBUF)
"""The content types of objects in requests, the usual one first."""

PATCH_TYPES: Mapping[str, PatchType] = {
    "application/apply-patch+yaml": "apply",
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
"""The patch type of each content type."""

PATCH_NAMES: Mapping[PatchType, str] = {type_: name for name, type_ in PATCH_TYPES.items()}
"""The content type of each patch type."""


def media_type(content_type: str) -> str:
    """Return the media type of a Content-Type header, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def patch_type(content_type: str) -> PatchType:
    """Return the patch type of a body. Raises StoreError 415."""
    found = PATCH_TYPES.get(media_type(content_type))
    if found is None:
        raise unsupported(PATCH_TYPES)
    return found


def body_type(content_type: str) -> str:
    """Return which of `BODY_TYPES` a body has; JSON by default. Raises StoreError 415."""
    named = media_type(content_type) or JSON
    if named not in BODY_TYPES:
        raise unsupported(BODY_TYPES)
    return named


def unsupported(accepted: Mapping[str, object] | tuple[str, ...]) -> StoreError:
    """Return the refusal of an unsupported content type (apiserver's negotiation.NewUnsupportedMediaTypeError)."""
    listed = ", ".join(accepted)
    problem = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StoreError(415, "UnsupportedMediaType", problem)


_REASONS = {
    **{400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed"},
    **{409: "Conflict", 410: "Expired", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid"},
    **{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"},
}
_SELECTING = frozenset(("list", "watch", "deletecollection"))


class HTTPRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send. ``path`` and ``query`` are decoded text; ``body`` None means no body."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    content_type: str = ""
    body: bytes | None = None


def http_request(
    request: Request, resources: api_resources.APIResources, *, timeout_seconds: int = 0, bookmarks: bool = False
) -> HTTPRequest:
    """Return the HTTP form of a request. ``timeout_seconds`` and ``bookmarks`` are additional options of a watch.

    Raises StoreError 404 for an unknown kind, ValueError for a key that no path can express.
    """
    named = resources.named(request.kind)
    resource = named.served_as(request.api_version) if request.api_version else named
    type_ = PATCH_NAMES[request.patch_type] if request.verb == "patch" else JSON
    watches = request.verb == "watch"
    parameters = Parameters(
        options=request.options if request.verb in _SELECTING else NO_PARAMETERS.options,
        watches=watches,
        bookmarks=watches and bookmarks,
        timeout_seconds=timeout_seconds if watches else 0,
        dry_run=ALL if request.dry_run else "",
        field_manager=request.field_manager,
        field_validation=request.field_validation,
        force=True if request.force else None,
    )
    return HTTPRequest(
        method=METHODS[request.verb],
        path=_path(request, resource),
        query=tuple(query_of(parameters)),
        content_type="" if request.body is None else type_,
        body=None if request.body is None else stored.encoded(request.written_body),
    )


def response_of(
    code: int, body: Raw | None, retry_after_s: int | None = None, warnings: tuple[str, ...] = ()
) -> Response:
    """Return the response in an HTTP response. ``body`` is its decoded JSON, None if it has none.

    ``retry_after_s`` is the header Retry-After; it is added to the details of a refusal that has none.
    """
    if code < 400:
        return Response(code=code, object=body, warnings=warnings)
    return Response(code=code, error=error_of(code, body, retry_after_s), warnings=warnings)


def error_of(code: int, body: Raw | None, retry_after_s: int | None = None) -> StoreError:
    """Return the refusal in an HTTP response: a Status, or the text that a proxy sent instead."""
    status = body if body is not None and body.get("kind") == "Status" else {}
    known = dict(object_at(status, "details"))
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


def _path(request: Request, resource: api_resources.APIResource) -> str:
    if request.key and (request.verb != "create" or request.subresource):
        namespace, _, name = request.key.rpartition("/")
        return path_of(resource, namespace, name, request.subresource)
    if request.verb in ("create", "update"):
        metadata = object_at(request.body, "metadata")
        namespace = request.namespace or metadata.get("namespace") or "default"
        name = metadata.get("name", "") if request.verb == "update" else ""
        return path_of(resource, namespace if resource.namespaced else "", name, request.subresource)
    return path_of(resource, request.namespace)


_NAMESPACES = "namespaces"
# Segments after a namespace's name that are subresources of the namespace itself.
_OF_NAMESPACES = frozenset(("status", "finalize"))


class ResourcePath(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a path: a collection, an object, or a subresource.

    `namespace` is "" for cluster-scoped kinds and for all namespaces; `name` is "" for a collection. `watches` is
    whether the path itself requests a watch, as those that begin with `watch/` do. `is_stored_version` is whether the
    version in the path is the storage version.
    """

    resource: api_resources.APIResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watches: bool = False
    is_stored_version: bool = True

    @property
    def key(self) -> str:
        """The object's key in the store; "" for a collection."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


def place_of(path: str, resources: api_resources.APIResources) -> ResourcePath | None:
    """Return the place of a decoded path among the served kinds, or None. A trailing slash is ignored."""
    parts = path.removesuffix("/").split("/")
    if parts[0] or "" in parts[1:]:
        return None
    if len(parts) > 3 and parts[1] == "api":
        api_version, rest = parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        api_version, rest = f"{parts[2]}/{parts[3]}", parts[4:]
    else:
        return None
    watches, namespace = rest[0] == "watch" and len(rest) > 1, ""
    rest = rest[1:] if watches else rest
    if len(rest) > 2 and rest[0] == _NAMESPACES and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    resource = resources.served_at(api_version, rest[0])
    if resource is None or len(rest) > 3:
        return None
    _, name, subresource = (*rest, "", "")[:3]
    if (namespace and not resource.namespaced) or (name and resource.namespaced and not namespace):
        return None
    return ResourcePath(
        resource=resource.served_as(api_version),
        namespace=namespace,
        name=name,
        subresource=subresource,
        watches=watches,
        is_stored_version=resource.api_version == api_version,
    )


def path_of(resource: api_resources.APIResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the decoded path of a collection, an object, or a subresource.

    Raises ValueError for what no path can express: a segment with a slash, or a namespaced object without a namespace.
    """
    if any("/" in part for part in (namespace, name, subresource)):
        raise ValueError(f"{resource.kind} {namespace} {name}: no part of a path has a slash")
    if name and resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name}: is in a namespace, and none is given")
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    within = (_NAMESPACES, namespace) if namespace and resource.namespaced else ()
    return "/".join((base, *within, resource.plural, *filter(None, (name, subresource))))


def name_problem(name: str) -> str:
    """Return the problem of a name as a path segment; "" if it is valid (apimachinery's api/validation/path)."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return "; ".join(f"may not contain '{letter}'" for letter in "/%" if letter in name)


METHODS: Mapping[Verb, str] = {
    **{"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH"},
    **{"delete": "DELETE", "deletecollection": "DELETE"},
}
"""The method of each verb."""

_ON_ONE: Mapping[str, Verb] = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_A_COLLECTION: Mapping[str, Verb] = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_A_SUBRESOURCE: Mapping[str, Verb] = {**_ON_ONE, "POST": "create"}


def verb_of(method: str, place: ResourcePath, *, watches: bool) -> Verb:
    """Return the verb of a method at a place; `watches` is whether the parameters request a watch.

    Raises StoreError 405 for a method that is not served there.
    """
    if place.subresource:
        verb = _ON_A_SUBRESOURCE.get(method)
    elif place.name:
        verb = _ON_ONE.get(method)
    else:
        verb = _ON_A_COLLECTION.get(method)
        if verb != "list" and place.resource.namespaced and not place.namespace:
            # Across all namespaces, only lists and watches are served.
            verb = None
    if verb is None or (place.watches and method != "GET"):
        raise not_allowed()
    if method == "GET" and (place.watches or watches) and not place.subresource:
        return "watch"
    return verb


def not_allowed() -> StoreError:
    """Return the refusal of a method that is not served at a path."""
    return StoreError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
