"""The request handler: authentication, routing and responses."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any
from uuid import uuid4

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError, StreamResponse

from podium.api.errors import PodiumError
from podium.api.meta import Raw
from podium.api.times import format_exact_time
from podium.api.versions.release import Release, own_version
from podium.apirequests.authorization import Attributes
from podium.apirequests.http_mapping import body_type, not_allowed, place_of
from podium.server.backend import Backend
from podium.server.http.exchange import Exchange, Pages, check_timeout, decode, read_body, read_target
from podium.server.http.metrics import READING, WATCHING, WRITING, InFlightLimits, RequestMetrics, subject_of_method
from podium.server.http.object_requests import GroupCommit, ObjectRequests
from podium.server.http.replies import Reply, error_type, negotiated, of_error, of_object, of_text, send
from podium.server.http.security import Guard, ServerSettings, forbidden
from podium.server.http.streams import Hub
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.server.reviews import review_at
from podium.store.errors import StoreError, bad_request
from podium.store.stored import encoded

_LOG = logging.getLogger("podium.server")
_SAFE = frozenset(("GET", "HEAD"))
# Paths that need no authentication (system:public-info-viewer).
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_HEAD = {"Cache-Control": "no-cache, private", "Server": "podium"}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONGEST = 1_024
_LONGEST_AUDIT_ID = 64


class Handler:
    """An HTTP request handler."""

    def __init__(
        self,
        backend: Backend,
        documents: KubernetesDocuments,
        settings: ServerSettings,
        guard: Guard,
        pages: Pages | None = None,
    ) -> None:
        limits = settings.limits
        self._pages = pages
        self._settings = settings
        self._backend = backend
        self._documents = documents
        self._guard = guard
        self._flights = InFlightLimits(
            {READING: limits.reads_in_flight, WRITING: limits.writes_in_flight, WATCHING: limits.watches}
        )
        self._metrics = RequestMetrics(self._flights.in_flight)
        self._health = HealthEndpoints(settings.checks, lambda: self.is_stopping)
        self._keeping = GroupCommit(backend)
        self.hub = Hub(limits, self._keeping.keep, backend)
        self._objects = ObjectRequests(backend, documents, limits, self._flights, self.hub, self._keeping, self._admit)
        self.is_stopping = False

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer a request. Any error becomes a response, unless the client is gone."""
        began = perf_counter()
        received_ns = self._backend.now()
        head = {**_HEAD, "Audit-Id": audit_id(request.headers)}
        exchange = None
        try:
            self._guard.check_origin(request.headers)
            exchange = self._exchange(request, head)
            response = await self._answer(exchange)
        except StoreError as error:
            response = await send(request, of_error(error, error_type(request.headers.get("Accept", ""))), head)
        except ConnectionError:
            raise
        except PodiumError as error:
            _LOG.error("%s", error)
            response = await send(request, of_error(StoreError(500, "InternalError", str(error))), head)
        except Exception as error:
            response = await send(request, _mishap(request, error, head["Audit-Id"]), head)
        subject = subject_of_method(request.method) if exchange is None else exchange.subject
        self._metrics.count(subject, response.status, perf_counter() - began)
        audit = self._settings.audit
        if audit is not None and exchange is not None and request.method not in _SAFE:
            audit(audit_line(exchange, response.status, received_ns, self._backend.now()))
        return response

    def _exchange(self, request: BaseRequest, head: dict[str, str]) -> Exchange:
        """Return the authenticated request. Raises StoreError 400, 401 and 403."""
        path, query = read_target(request.raw_path)
        certificate = None
        if self._settings.tls is not None and request.transport is not None:
            certificate = request.transport.get_extra_info("peercert")
        pages = self._pages
        is_public = path.startswith(_PUBLIC) or (pages is not None and pages.is_public(request.method, path))
        caller = self._guard.caller(request.headers, certificate, is_public=is_public)
        return Exchange(request, path, query, caller, head)

    async def _answer(self, exchange: Exchange) -> StreamResponse:
        place = exchange.place = place_of(exchange.path, self._backend.resources)
        if place is not None:
            return await self._objects.answer(exchange, place)
        pages = self._pages if self._pages is not None and self._pages.has(exchange.path) else None
        is_public = pages is not None and pages.is_public(exchange.method, exchange.path)
        if not is_public:
            path, verb = exchange.path.rstrip("/"), "create" if exchange.method == "POST" else "get"
            attributes = Attributes(verb, path=exchange.path)
            if (review := review_at(path)) is not None:
                parts = path.split("/")
                attributes = Attributes(verb, parts[2], parts[-1], "", review[1])
            self._admit(exchange, attributes)
        if pages is not None:
            await self._backend.idle()
            return await pages.answer(exchange)
        with self._flights.flight(READING if exchange.method in _SAFE else WRITING):
            reply = self._own(exchange)
            if reply is None:
                reply = await self._document(exchange) or self._nothing(exchange.path)
                await self._keeping.wait_durable()
            return await send(exchange.request, reply, exchange.reply_headers)

    def _admit(self, exchange: Exchange, attributes: Attributes) -> None:
        """Name the flow of a request in the response. Raises StoreError 403 for one that its user may not send."""
        settings, user = self._settings, exchange.caller.identity
        if settings.flows is not None:
            exchange.reply_headers.update(settings.flows.headers(user, attributes))
        if settings.authorizer is not None:
            settings.authorizer.check(user, attributes)

    def _own(self, exchange: Exchange) -> Reply | None:
        path = exchange.path.rstrip("/")
        check_timeout(exchange.query)
        if not path:
            # The server's own paths, and the groups and versions.
            paths = {"/api", "/apis", "/metrics", "/openapi/v3", *_PUBLIC}
            for resource in self._backend.resources.all():
                for api_version in resource.served_versions:
                    paths.add(f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}")
                    if resource.group:
                        paths.add(f"/apis/{resource.group}")
            reply: Reply | None = of_object({"paths": sorted(paths)})
        elif path == "/version":
            reply = of_object(version_info(self._backend.release))
        elif path == "/metrics":
            text = self._metrics.text(*self._settings.collectors)
            reply = Reply(pieces=(text,), content_type=_METRICS_TYPE, may_be_compressed=True)
        else:
            reply = self._health.reply(path, exchange.query)
        if reply is not None and exchange.method not in _SAFE:
            raise not_allowed()
        return reply

    async def _document(self, exchange: Exchange) -> Reply | None:
        body = None
        if exchange.method not in _SAFE:
            if review_at(exchange.path.rstrip("/")) is None:
                self._check_discovery(exchange.path)
                return None
            if exchange.caller.reads_only and exchange.method != "POST":
                raise forbidden("this token is for reading")
            if negotiated(exchange.accepts()).is_table:
                raise StoreError(406, "NotAcceptable", "a review has no metadata, and is not answered as a Table")
            limits = self._settings.limits
            written_in = body_type(exchange.headers.get(hdrs.CONTENT_TYPE, ""))
            data = await read_body(exchange.request, limits.body_bytes, limits.request_seconds)
            body = (await decode(data, written_in)).value
        await self._backend.idle()
        document = self._documents.document(
            exchange.method, exchange.path, exchange.query, exchange.accepts(), body, exchange.caller.identity
        )
        if document is None:
            return None
        headers = (("ETag", document.etag), ("Vary", "Accept")) if document.etag else ()
        reply = Reply(code=document.code, content_type=document.content_type, headers=headers, may_be_compressed=True)
        if document.etag and document.etag in exchange.headers.get(hdrs.IF_NONE_MATCH, ""):
            reply.code = 304
        else:
            reply.pieces, reply.may_be_indented = (document.body,), not exchange.path.startswith("/openapi")
        return reply

    def _check_discovery(self, path: str) -> None:
        """Raise StoreError 405 for a document of discovery, which is only read."""
        is_discovery = path.startswith(("/api/", "/apis/")) or path in ("/api", "/apis")
        if is_discovery and self._documents.document("GET", path) is not None:
            raise not_allowed()

    def _nothing(self, path: str) -> Reply:
        """Return the response for an unknown path: a Status within the API, plain text elsewhere."""
        parts = path.split("/")
        group, version = ("", parts[2]) if parts[1:2] == ["api"] and parts[3:] else (*parts[2:4], "", "")[:2]
        api_version = f"{group}/{version}" if group else version
        is_served = any(api_version in of.served_versions for of in self._backend.resources.all())
        if is_served and parts[1:2] in (["api"], ["apis"]):
            return of_error(StoreError(404, "NotFound", "the server could not find the requested resource"))
        return of_text("404 page not found\n", 404)


def _mishap(request: BaseRequest, error: Exception, audit_id: str) -> Reply:
    """Return the response to an unexpected error; the details go only to the log."""
    if isinstance(error, RequestPayloadError):
        reply = of_error(bad_request(f"the body of the request cannot be read: {error}"))
        reply.closes = True
        return reply
    _LOG.error("a request could not be answered: Audit-Id %s", audit_id, exc_info=error)
    if request.writer.output_size > 0:
        raise ConnectionResetError("a part of the reply is sent already") from error
    problem = f"Internal error occurred: the server's log has more, under Audit-Id {audit_id}"
    return of_error(StoreError(500, "InternalError", problem))


@cache
def version_info(release: Release) -> Raw:
    """Return the response of `/version` (apimachinery's version.Info).

    The version is that of Kubernetes, since clients compare it with their own; `compiler` names Podium.
    """
    major, minor = "1", str(release.minor)
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(release.minor - 1),
        "gitVersion": str(release),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"podium {own_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def audit_line(exchange: Exchange, code: int, received_ns: int, sent_ns: int) -> bytes:
    """Return the audit record of a request: an Event of audit.k8s.io/v1."""
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": exchange.reply_headers["Audit-Id"],
        "stage": "ResponseComplete",
        "requestURI": exchange.request.raw_path[:_LONGEST],
        "verb": exchange.subject.verb.lower(),
        "user": {"username": exchange.caller.identity.name},
        "sourceIPs": [exchange.request.remote or ""],
        "userAgent": exchange.headers.get("User-Agent", "")[:_LONGEST],
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": format_exact_time(received_ns),
        "stageTimestamp": format_exact_time(sent_ns),
    }
    if exchange.audited:
        event["annotations"] = exchange.audited
    if exchange.place is not None:
        place = exchange.place
        reference = {
            "resource": place.resource.plural,
            "namespace": place.namespace,
            "name": place.name,
            "apiGroup": place.resource.group,
            "apiVersion": place.resource.version,
            "subresource": place.subresource,
        }
        event["objectRef"] = {name: value for name, value in reference.items() if value}
    return encoded(event)


Check = tuple[str, Callable[[], str]]
"""A health check: its name, and a function that returns the problem, "" if healthy."""

_UPSTREAM_CHECKS = """
ping log etcd poststarthook/start-apiserver-admission-initializer
poststarthook/start-kube-apiserver-admission-initializer poststarthook/generic-apiserver-start-informers
poststarthook/priority-and-fairness-config-consumer poststarthook/priority-and-fairness-filter
poststarthook/storage-object-count-tracker-hook poststarthook/start-apiextensions-informers
poststarthook/start-apiextensions-controllers poststarthook/crd-informer-synced poststarthook/bootstrap-controller
poststarthook/start-system-namespaces-controller poststarthook/rbac/bootstrap-roles
poststarthook/scheduling/bootstrap-system-priority-classes poststarthook/start-service-ip-repair-controllers
poststarthook/priority-and-fairness-config-producer poststarthook/start-cluster-authentication-info-controller
poststarthook/start-kube-aggregator-informers poststarthook/apiservice-registration-controller
poststarthook/apiservice-status-local-available-controller poststarthook/kube-apiserver-autoregistration
poststarthook/apiservice-status-remote-available-controller autoregister-completion
poststarthook/apiservice-openapi-controller informer-sync
"""


class HealthEndpoints:
    """The health endpoints. A failed check is reported by name, without its reason.

    They also have the checks of kube-apiserver, of which a server that answers passes all.
    """

    def __init__(self, checks: Iterable[Check], is_stopping: Callable[[], bool]) -> None:
        stopping: Check = ("shutdown", lambda: "the server is stopping" if is_stopping() else "")
        *own, synced = [(name, lambda: "") for name in _UPSTREAM_CHECKS.split()]
        self._checks = {"healthz": [*own, *checks], "livez": own, "readyz": [*own, synced, *checks, stopping]}

    def reply(self, path: str, query: Sequence[tuple[str, str]]) -> Reply | None:
        """Return the response at a path; None for a path that is not a health endpoint."""
        place, _, name = path[1:].partition("/")
        checks = [check for check in self._checks.get(place, ()) if name in ("", check[0])]
        if not checks:
            return None
        left_out = {value for parameter, value in query if parameter == "exclude"}
        results = [(of, _result(check) if of not in left_out else None) for of, check in checks]
        is_verbose = any(parameter == "verbose" for parameter, _ in query)
        return of_text(*health_text(place, results, is_verbose=is_verbose))


def health_text(
    place: str, results: Sequence[tuple[str, str | None]], *, is_verbose: bool, shows_reasons: bool = False
) -> tuple[str, int]:
    """Return the text and status code for the results of checks at an endpoint.

    A result is "" for healthy, None for skipped. `shows_reasons` includes the reasons, for callers that can act on
    them.
    """
    is_well = not any(problem for _, problem in results)
    if is_well and not is_verbose:
        return "ok", 200
    lines: list[str] = []
    for name, problem in results:
        if problem:
            lines.append(f"[-]{name} failed: {problem if shows_reasons else 'reason withheld'}")
        else:
            lines.append(f"[+]{name} excluded: ok" if problem is None else f"[+]{name} ok")
    lines.append(f"{place} check {'passed' if is_well else 'failed'}")
    return "".join(f"{line}\n" for line in lines), 200 if is_well else 500


def _result(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:
        return str(error) or type(error).__name__


def audit_id(headers: Mapping[str, str]) -> str:
    """Return the id of a request: the one that its client sent, or a new one."""
    given = headers.get("Audit-ID", "")
    return given[:_LONGEST_AUDIT_ID] if given and given.isascii() and given.isprintable() else str(uuid4())
