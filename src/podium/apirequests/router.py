"""The router, which answers requests from a store: the implementation of each verb on each kind and subresource.

Simulated components and HTTP clients use the same router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import msgspec

from podium.api.meta import MAX_OBJECT_BYTES, Raw
from podium.api.validation.objects import find_version_problems
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.apirequests import handlers
from podium.apirequests.admission.pod_security import PodSecurity
from podium.apirequests.admission.policies import CONFIGURING, EXEMPT, AdmissionAttributes, Policies
from podium.apirequests.admission.webhooks import Webhooks
from podium.apirequests.authorization import GRANTING, Authorizer, check_grant
from podium.apirequests.context import DEFAULT_RULES, Context, RequestRules, check_size
from podium.apirequests.request import Request, Response
from podium.store.api_resources import SCALE, APIResource
from podium.store.custom_kinds import DEFINITION
from podium.store.errors import StoreError, invalid_fields, too_large_object, unknown_kind
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.updates import scale_of
from podium.store.version_conversion import refused_as
from podium.store.webhook_calls import WebhookAnswers

_EVENTS = "events.k8s.io/v1"
_Handle = Callable[[Context, Request, int], Response]
_PARTS = ("approval", "ephemeralcontainers", "resize")
_HANDLERS: Mapping[tuple[str, str], _Handle] = {
    **{("get", subresource): handlers.get for subresource in ("", "status", *_PARTS)},
    **{(verb, part): handlers.write_part for verb in ("update", "patch") for part in _PARTS},
    ("get", "scale"): handlers.get_scale,
    ("list", ""): handlers.list_,
    ("watch", ""): handlers.watch,
    ("create", ""): handlers.create,
    ("create", "binding"): handlers.bind,
    ("create", "eviction"): handlers.evict,
    ("create", "token"): handlers.create_token,
    ("update", ""): handlers.update,
    ("update", "status"): handlers.update_status,
    ("update", "scale"): handlers.write_scale,
    ("update", "finalize"): handlers.finalize,
    ("patch", ""): handlers.patch,
    ("patch", "status"): handlers.patch_status,
    ("patch", "scale"): handlers.write_scale,
    ("delete", ""): handlers.delete,
    ("deletecollection", ""): handlers.delete_collection,
}
SERVED = frozenset(_HANDLERS)
"""The verbs that are served, each with its subresource; the resources of the kinds say which of them each kind has."""

# The verbs that change field ownership.
_OWNING = frozenset(("create", "update", "patch"))
_OWNED = frozenset(("", "ephemeralcontainers", "resize", "scale", "status"))
_SUBRESOURCES = frozenset(subresource for _, subresource in SERVED)
# The verbs about which policies and webhooks are asked.
_DELETING = ("delete", "deletecollection")
_ADMITTED = frozenset((*_OWNING, *_DELETING))
_ADMITTED_PARTS = ("", "status", SCALE.name, "ephemeralcontainers")


class Router:
    """A router that answers requests from a store.

    With `takes_history`, created objects keep their uid, times and status, as parts of a cluster that existed before;
    by default the server sets these. `rules` are the administrator's. The `authorizer` answers expressions of policies;
    without one everything is allowed.
    """

    def __init__(
        self,
        store: Store,
        *,
        takes_history: bool = False,
        rules: RequestRules = DEFAULT_RULES,
        authorizer: Authorizer | None = None,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        self.store = store
        self._authorizer = authorizer
        # The annotations of the current request's audit Event.
        self._audited: dict[str, str] = {}
        self._context = Context(store, rules, creates_new=not takes_history)
        self._policies, self._webhooks = Policies(store), Webhooks(store)
        self._pod_security = None if takes_history else PodSecurity(store, release.minor)
        # The handlers of plain requests by verb, kind and subresource, valid for the current version of the kinds.
        self._plain: dict[tuple[str, str, str], _Handle] = {}
        self._kinds_version = -1

    @contextmanager
    def knowing(self, answers: WebhookAnswers) -> Iterator[None]:
        """Use these answers of webhooks for the request within."""
        calls = self.store.webhooks
        before, calls.answers = calls.answers, answers
        try:
            yield
        finally:
            calls.answers = before

    def answer(self, request: Request, now: int) -> Response:
        """Answer a request. A refusal is a response; StoreError is never raised.

        Raises CallNeededError for a request that needs the answer of a webhook.
        """
        is_special = request.field_manager or request.api_version or request.dry_run or request.patch_type == "apply"
        if is_special or self.is_admitted(request):
            response = self._answer_in_full(request, now)
            raw = response.object
            if not request.dry_run or raw is None or "resourceVersion" not in raw.get("metadata", {}):
                return response
            previous = self.store.find(request.kind, request.key)
            written = _uncommitted(raw, None if previous is None else previous.raw)
            return msgspec.structs.replace(response, object=written, stored=None)
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
        self._audited = {}
        try:
            resource = self.store.resources.named(request.kind)
            if resource.name == "Pod" and request.subresource in handlers.UNSERVED:
                raise self._no_connection(resource, request)
            handle = _handle_of(resource, request)
            if not resource.is_custom and request.kind != DEFINITION and request.patch_type != "apply":
                self._plain[request.verb, request.kind, request.subresource] = handle
            if resource.is_custom and request.key and (known := self.store.find(request.kind, request.key)):
                # kube-apiserver reads an object in the requested version, whatever it is asked to do with it.
                known.served_as(request.api_version)
            is_owned = request.field_manager and request.verb in _OWNING and request.subresource in _OWNED
            writing: AbstractContextManager[None] = nullcontext()
            if is_owned:
                check_size(resource, request.key, request.written_body)
                writer = self._context.writer(resource, request, "Update", now)
                writing = self.store.written_by(writer) if self._context.creates_new else writing
            # A webhook may have to convert what was written; if its answer is missing, the write is undone.
            held = self._held(request)
            has_rules = request.api_version == _EVENTS and request.verb in _OWNING and self._context.creates_new
            is_whole = is_owned or request.dry_run or resource.is_custom or held is not None or has_rules
            is_whole |= self.is_admitted(request)
            together = self.store.transaction(dry_run=request.dry_run) if is_whole else nullcontext()
            is_compared = bool(request.key) and (held is not None or has_rules)
            previous = self.store.find(request.kind, request.key) if is_compared else None
            with writing, together:
                response = self._admitted(handle, request, now)
                if held is not None and response.stored is not None:
                    check_grant(self.store, request.identity, held, response.stored, previous)
                if is_owned and response.stored is not None and len(response.stored.encoded) > MAX_OBJECT_BYTES:
                    raise too_large_object()
                response = _in_version(resource, request, response)
                if has_rules and response.stored is not None:
                    before = None if previous is None else previous.served_as(_EVENTS).raw
                    if found := find_version_problems(response.stored.raw, before):
                        raise invalid_fields(resource, response.stored.key, found)
        except StoreError as error:
            response = Response(code=error.code, error=refused_as(error, request.kind, request.api_version))
        return msgspec.structs.replace(response, audited=self._audited) if self._audited else response

    def _held(self, request: Request) -> tuple[Raw, ...] | None:
        """Return the rules that apply to the user of a request that writes a role or binding; None for other ones."""
        if self._authorizer is None or request.kind not in GRANTING or request.verb not in _OWNING:
            return None
        namespace = request.key.rpartition("/")[0] if request.key else request.namespace
        return tuple(self._authorizer.rules(request.identity, namespace))

    def is_admitted(self, request: Request) -> bool:
        """Return whether policies, webhooks or pod security may be asked about a request."""
        is_write, security = request.verb in _ADMITTED and request.subresource in _ADMITTED_PARTS, self._pod_security
        return is_write and (self.store.has_any(CONFIGURING) or (security is not None and security.concerns(request)))

    def _admitted(self, handle: _Handle, request: Request, now: int) -> Response:
        """Answer a request as far as policies and webhooks admit it. Call it in a transaction.

        Mutating ones are asked before a write is checked, but not about scales; validating ones before it is committed.
        Raises StoreError for a request that is denied, and CallNeededError for one that needs the answer of a webhook.
        """
        context, resource = self._context, self.store.resources.named(request.kind)
        if not self.is_admitted(request) or resource.name in EXEMPT:
            return handle(context, request, now)
        warnings: list[str] = []
        previous = self.store.find(request.kind, request.key) if request.key else None
        api_version = request.api_version if resource.is_custom else ""
        is_scale = request.subresource == SCALE.name

        def seen_of(stored: Stored | None) -> Raw | None:
            return None if stored is None else scale_of(stored) if is_scale else stored.served_as(api_version).raw

        old = seen_of(previous)
        seen = AdmissionAttributes(
            operation="UPDATE" if old is not None else "CREATE",
            resource=resource,
            api_version=request.api_version or resource.api_version,
            subresource=request.subresource,
            old=old,
            user=request.identity,
            dry_run=request.dry_run,
            authorizer=self._authorizer,
        )
        if request.verb in _DELETING:
            for stored in handlers.objects_to_delete(context, request):
                deletion = replace(seen, operation="DELETE", old=stored.served_as(api_version).raw)
                self._webhooks.mutated(deletion, warnings)
                self._validate(deletion, warnings)
            response = handle(context, request, now)
        else:

            def mutated(raw: Raw) -> Raw:
                for mutate in (self._policies.mutated, lambda each: self._webhooks.mutated(each, warnings)):
                    changed = mutate(replace(seen, object=raw))
                    if changed is not None:
                        raw = changed if resource.is_custom else context.completed(resource, changed, now)
                return raw

            with nullcontext() if is_scale else self.store.admitted_by(mutated):
                response = handle(context, request, now)
            written = response.object if is_scale else seen_of(response.stored)
            if written is not None:
                self._validate(replace(seen, object=_uncommitted(written, old)), warnings)
        return msgspec.structs.replace(response, warnings=(*response.warnings, *warnings)) if warnings else response

    def _no_connection(self, resource: APIResource, request: Request) -> StoreError:
        """Return the refusal of a connection to a pod: that of a policy or a webhook, or that no container runs."""
        namespace, _, name = request.key.rpartition("/")
        seen = AdmissionAttributes(
            operation="CONNECT",
            resource=resource,
            api_version="v1",
            subresource=request.subresource,
            object={"metadata": {"name": name, "namespace": namespace}},
            user=request.identity,
            authorizer=self._authorizer,
        )
        if request.subresource != "log":
            self._validate(seen, [])
        reason = "containers do not run, so that they have no output and take no connections"
        return StoreError(501, "NotImplemented", f"pods/{request.subresource}: nodes are simulated: {reason}")

    def _validate(self, seen: AdmissionAttributes, warnings: list[str]) -> None:
        if self._pod_security is not None:
            self._pod_security.validate(seen, warnings, self._audited)
        self._policies.validate(seen, warnings, self._audited)
        self._webhooks.validate(seen, warnings)


def _handle_of(resource: APIResource, request: Request) -> _Handle:
    """Return the handler of the request. Raises StoreError 404 and 405."""
    verb, subresource = request.verb, request.subresource
    handle = _HANDLERS.get((verb, subresource))
    if handle is None or (not subresource and verb not in resource.verbs):
        if subresource not in _SUBRESOURCES:
            raise unknown_kind(f"{request.kind}/{subresource}")
        what = f"{resource.qualified}/{subresource}" if subresource else resource.qualified
        raise StoreError(405, "MethodNotAllowed", f"{verb} is not supported on resources of kind {what}")
    if subresource and resource.subresource(subresource) is None:
        raise unknown_kind(f"{request.kind}/{subresource}")
    if verb == "patch" and request.patch_type == "apply":
        return handlers.apply_scale if subresource == "scale" else handlers.apply
    # A Binding is not stored, and requested like an object.
    return handlers.create_binding if (verb, request.kind) == ("create", "Binding") else handle


def _uncommitted(raw: Raw, old: Raw | None) -> Raw:
    """Return a written object as it is before the write is committed, with the version of the `old` one if any."""
    before = {} if old is None else {"resourceVersion": old["metadata"]["resourceVersion"]}
    kept = {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
    return {**raw, "metadata": {**kept, **before}}


def _in_version(resource: APIResource, request: Request, response: Response) -> Response:
    """Return the response with its object in the requested version; a deprecated version adds a warning."""
    api_version = request.api_version or ("" if not resource.is_custom or request.key else resource.api_version)
    if not api_version:
        return response
    warning = resource.deprecations.get(api_version)
    if warning:
        response = msgspec.structs.replace(response, warnings=(*response.warnings, warning))
    if response.stored is not None:
        stored = response.stored.served_as(api_version)
        return msgspec.structs.replace(response, object=stored.raw, stored=stored)
    return response
