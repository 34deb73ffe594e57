"""Answers requests from a store: what each verb on each kind and subresource means there.

Whoever speaks to the API server speaks to this: simulated components, and clients over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podium.requests.answering import accounts, applying, deletions, namespaces, objects, pods, scales
from podium.requests.answering.context import Context
from podium.requests.answering.rules import PLAIN, Rules
from podium.requests.answering.sizes import check_size
from podium.requests.request import Request, Response
from podium.store.api_resource import APIResource
from podium.store.conversion.conversion import refused_as
from podium.store.definitions.definition import KIND as DEFINITION
from podium.store.errors import StoreError, unknown_kind
from podium.store.store import Store

_Handle = Callable[[Context, Request, int], Response]
_HANDLERS: Mapping[tuple[str, str], _Handle] = {
    ("get", ""): objects.get,
    ("get", "status"): objects.get,
    ("get", "scale"): scales.get_scale,
    ("get", "resize"): objects.get,
    ("get", "ephemeralcontainers"): objects.get,
    ("list", ""): objects.list_,
    ("watch", ""): objects.watch,
    ("create", ""): objects.create,
    ("create", "binding"): pods.bind,
    ("create", "eviction"): deletions.evict,
    ("create", "token"): accounts.create_token,
    ("update", ""): objects.update,
    ("update", "status"): objects.update_status,
    ("update", "scale"): scales.update_scale,
    ("update", "resize"): pods.update_part,
    ("update", "ephemeralcontainers"): pods.update_part,
    ("update", "finalize"): namespaces.finalize,
    ("patch", ""): objects.patch,
    ("patch", "status"): objects.patch_status,
    ("patch", "scale"): scales.patch_scale,
    ("patch", "resize"): pods.patch_part,
    ("patch", "ephemeralcontainers"): pods.patch_part,
    ("delete", ""): deletions.delete,
    ("deletecollection", ""): deletions.delete_collection,
}
# What is no object, and is asked for like one.
_OF_KINDS: Mapping[tuple[str, str], _Handle] = {("create", "Binding"): pods.create_binding}

SERVED = frozenset(_HANDLERS)
"""The verbs that are served, each with the subresource it is for; which kinds have these, their resources say."""

# The verbs by which fields come to be somebody's.
_OWNING = frozenset(("create", "update", "patch"))
_OWNED = frozenset(("", "ephemeralcontainers", "resize", "scale", "status"))
_SUBRESOURCES = frozenset(subresource for _, subresource in SERVED)


class Router:
    """Answers requests from a store.

    `takes_history`: objects that are created keep the uid, the times and the status that they are given, as parts of
    a cluster that was there before do; else these are the server's to give. `rules` are the administrator's.
    """

    def __init__(self, store: Store, *, takes_history: bool = False, rules: Rules = PLAIN) -> None:
        self.store = store
        self._context = Context(store, rules, creates_new=not takes_history)
        # What answers plain requests, by verb, kind and subresource, at that version of the kinds.
        self._plain: dict[tuple[str, str, str], _Handle] = {}
        self._kinds_version = -1

    def answer(self, request: Request, now: int) -> Response:
        """Do what the request asks for. It never raises StoreError: a refusal is an answer."""
        if request.field_manager or request.api_version or request.dry_run or request.patch_type == "apply":
            return self._answer_in_full(request, now)
        if self._kinds_version != self.store.resources.version:
            self._plain, self._kinds_version = {}, self.store.resources.version
        handle = self._plain.get((request.verb, request.kind, request.subresource))
        if handle is None:
            return self._answer_in_full(request, now)
        try:
            return handle(self._context, request, now)
        except StoreError as error:
            return Response(code=error.code, error=error)

    def _answer_in_full(self, request: Request, now: int) -> Response:
        """Answer any request, and take note of what answers plain ones that are like it."""
        try:
            resource = self.store.resources.named(request.kind)
            handle = _handle_of(resource, request)
            if not resource.is_custom and request.kind != DEFINITION and request.patch_type != "apply":
                self._plain[request.verb, request.kind, request.subresource] = handle
            if resource.is_custom and not request.api_version and not request.key:
                # The objects may be of another version: of the one that was stored when they were written.
                request = msgspec.structs.replace(request, api_version=_version_of(resource, request))
            if request.field_manager and request.verb in _OWNING and request.subresource in _OWNED:
                check_size(resource, request.key, request.written_body)
                with self._context.writing(resource, request, now):
                    response = self._answer(handle, request, now)
            else:
                response = self._answer(handle, request, now)
            return _in_version(resource, request, response)
        except StoreError as error:
            return Response(code=error.code, error=refused_as(error, request.api_version))
        finally:
            if request.kind == DEFINITION:
                # What a dry run has defined, or a request that was refused in the end, is taken back.
                self.store.follow_definitions()

    def _answer(self, handle: _Handle, request: Request, now: int) -> Response:
        if not request.dry_run:
            return handle(self._context, request, now)
        with self.store.transaction(dry_run=True):
            return handle(self._context, request, now)


def _handle_of(resource: APIResource, request: Request) -> _Handle:
    """What answers the request. Raises StoreError 404, 405 and 501."""
    verb, subresource = request.verb, request.subresource
    handle = _HANDLERS.get((verb, subresource))
    if handle is None or (not subresource and verb not in resource.verbs):
        raise _not_served(resource, request)
    if subresource and resource.subresource(subresource) is None:
        raise unknown_kind(f"{request.kind}/{subresource}")
    if verb == "patch" and request.patch_type == "apply":
        return applying.apply_scale if subresource == "scale" else applying.apply
    return _OF_KINDS.get((verb, request.kind), handle)


def _version_of(resource: APIResource, request: Request) -> str:
    """The version of a kind that a request is about that names none: that of its object, or the stored one."""
    body = request.body if request.verb == "create" else None
    given = body.get("apiVersion") if isinstance(body, dict) else None
    return given if isinstance(given, str) and given else resource.api_version


def _in_version(resource: APIResource, request: Request, response: Response) -> Response:
    """The answer with its object in the version that was asked for; people are told of one that is on its way out."""
    if not request.api_version and not resource.is_custom:
        return response
    api_version = request.api_version or resource.api_version
    warning = resource.deprecations.get(api_version)
    if warning:
        response = msgspec.structs.replace(response, warnings=(*response.warnings, warning))
    if response.stored is not None:
        stored = response.stored.served_as(api_version)
        return msgspec.structs.replace(response, object=stored.raw, stored=stored)
    return response


def _not_served(resource: APIResource, request: Request) -> StoreError:
    """Why there is no answer to a verb on a subresource."""
    subresource = request.subresource
    if resource.name == "Pod" and subresource in pods.UNSERVED:
        return pods.unserved(subresource)
    if subresource not in _SUBRESOURCES:
        return unknown_kind(f"{request.kind}/{subresource}")
    what = f"{resource.qualified}/{subresource}" if subresource else resource.qualified
    return StoreError(405, "MethodNotAllowed", f"{request.verb} is not supported on resources of kind {what}")
