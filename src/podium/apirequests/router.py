"""The router, which answers requests from a store: the implementation of each verb on each kind and subresource.

Simulated components and HTTP clients use the same router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from podium.api.meta import MAX_OBJECT_BYTES
from podium.api.nested import value_at
from podium.apirequests import handlers
from podium.apirequests.admission.control import AdmissionControl
from podium.apirequests.admission.webhooks import WebhookAnswers
from podium.apirequests.apply import apply, apply_scale
from podium.apirequests.context import DEFAULT_RULES, Context, RequestRules, check_size
from podium.apirequests.request import Request, Response
from podium.store.api_resource import APIResource
from podium.store.custom_kinds import DEFINITION
from podium.store.errors import StoreError, too_large_object, unknown_kind
from podium.store.store import Store
from podium.store.version_conversion import refused_as

_Handle = Callable[[Context, Request, int], Response]
_HANDLERS: Mapping[tuple[str, str], _Handle] = {
    ("get", ""): handlers.get,
    ("get", "status"): handlers.get,
    ("get", "scale"): handlers.get_scale,
    ("get", "resize"): handlers.get,
    ("get", "ephemeralcontainers"): handlers.get,
    ("list", ""): handlers.list_,
    ("watch", ""): handlers.watch,
    ("create", ""): handlers.create,
    ("create", "binding"): handlers.bind,
    ("create", "eviction"): handlers.evict,
    ("create", "token"): handlers.create_token,
    ("update", ""): handlers.update,
    ("update", "status"): handlers.update_status,
    ("update", "scale"): handlers.update_scale,
    ("update", "resize"): handlers.update_part,
    ("update", "ephemeralcontainers"): handlers.update_part,
    ("update", "finalize"): handlers.finalize,
    ("patch", ""): handlers.patch,
    ("patch", "status"): handlers.patch_status,
    ("patch", "scale"): handlers.patch_scale,
    ("patch", "resize"): handlers.patch_part,
    ("patch", "ephemeralcontainers"): handlers.patch_part,
    ("delete", ""): handlers.delete,
    ("deletecollection", ""): handlers.delete_collection,
}
# Kinds that are not stored and are requested like objects.
_OF_KINDS: Mapping[tuple[str, str], _Handle] = {("create", "Binding"): handlers.create_binding}

SERVED = frozenset(_HANDLERS)
"""The verbs that are served, each with its subresource; the resources of the kinds say which of them each kind has."""

# The verbs that change field ownership.
_OWNING = frozenset(("create", "update", "patch"))
_OWNED = frozenset(("", "ephemeralcontainers", "resize", "scale", "status"))
_SUBRESOURCES = frozenset(subresource for _, subresource in SERVED)


class Router:
    """A router that answers requests from a store.

    With `takes_history`, created objects keep their uid, times and status, as parts of a cluster that existed before;
    by default the server sets these. `rules` are the administrator's.
    """

    def __init__(self, store: Store, *, takes_history: bool = False, rules: RequestRules = DEFAULT_RULES) -> None:
        self.store = store
        self._context = Context(store, rules, creates_new=not takes_history)
        self._admission = AdmissionControl(store)
        # The handlers of plain requests by verb, kind and subresource, valid for the current version of the kinds.
        self._plain: dict[tuple[str, str, str], _Handle] = {}
        self._kinds_version = -1

    @contextmanager
    def knowing(self, answers: WebhookAnswers) -> Iterator[None]:
        """Use these answers of webhooks for the request within."""
        webhooks = self._admission.webhooks
        before, webhooks.answers = webhooks.answers, answers
        try:
            yield
        finally:
            webhooks.answers = before

    def answer(self, request: Request, now: int) -> Response:
        """Answer a request. A refusal is a response; StoreError is never raised.

        Raises CallNeededError for a request that needs the answer of a webhook.
        """
        if (
            request.field_manager
            or request.api_version
            or request.dry_run
            or request.patch_type == "apply"
            or self._admission.concerns(request)
        ):
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
        """Answer any request, and remember the handler of plain ones for similar requests."""
        try:
            resource = self.store.resources.named(request.kind)
            handle = _handle_of(resource, request)
            if not resource.is_custom and request.kind != DEFINITION and request.patch_type != "apply":
                self._plain[request.verb, request.kind, request.subresource] = handle
            if resource.is_custom and not request.api_version and not request.key:
                # A stored object may be in another version: the storage version when it was written.
                request = msgspec.structs.replace(request, api_version=_version_of(resource, request))
            if request.field_manager and request.verb in _OWNING and request.subresource in _OWNED:
                check_size(resource, request.key, request.written_body)
                with self._context.writing(resource, request, now), self.store.transaction(dry_run=request.dry_run):
                    response = self._admitted(handle, request, now)
                    if response.stored is not None and len(response.stored.encoded) > MAX_OBJECT_BYTES:
                        raise too_large_object()
            else:
                response = self._answer(handle, request, now)
            return _in_version(resource, request, response)
        except StoreError as error:
            return Response(code=error.code, error=refused_as(error, request.kind, request.api_version))
        finally:
            if request.kind == DEFINITION:
                # Undo the effects of definitions from a dry run or a refused request.
                self.store.definitions.follow()

    def _answer(self, handle: _Handle, request: Request, now: int) -> Response:
        if not request.dry_run and not self._admission.concerns(request):
            return handle(self._context, request, now)
        with self.store.transaction(dry_run=request.dry_run):
            return self._admitted(handle, request, now)

    def _admitted(self, handle: _Handle, request: Request, now: int) -> Response:
        if not self._admission.concerns(request):
            return handle(self._context, request, now)
        return self._admission.answer(self._context, request, lambda: handle(self._context, request, now))


def _handle_of(resource: APIResource, request: Request) -> _Handle:
    """Return the handler of the request. Raises StoreError 404, 405 and 501."""
    verb, subresource = request.verb, request.subresource
    handle = _HANDLERS.get((verb, subresource))
    if handle is None or (not subresource and verb not in resource.verbs):
        raise _not_served(resource, request)
    if subresource and resource.subresource(subresource) is None:
        raise unknown_kind(f"{request.kind}/{subresource}")
    if verb == "patch" and request.patch_type == "apply":
        return apply_scale if subresource == "scale" else apply
    return _OF_KINDS.get((verb, request.kind), handle)


def _version_of(resource: APIResource, request: Request) -> str:
    """Return the version for a request that names none: that of its object, or the storage version."""
    given = value_at(request.body, "apiVersion") if request.verb == "create" else None
    return given if isinstance(given, str) and given else resource.api_version


def _in_version(resource: APIResource, request: Request, response: Response) -> Response:
    """Return the response with its object in the requested version; a deprecated version adds a warning."""
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
    """Return the refusal of a verb on a subresource."""
    subresource = request.subresource
    if resource.name == "Pod" and subresource in handlers.UNSERVED:
        return handlers.unserved(subresource)
    if subresource not in _SUBRESOURCES:
        return unknown_kind(f"{request.kind}/{subresource}")
    what = f"{resource.qualified}/{subresource}" if subresource else resource.qualified
    return StoreError(405, "MethodNotAllowed", f"{request.verb} is not supported on resources of kind {what}")
