"""What becomes of a request: who asks, for what, and who answers it."""

from __future__ import annotations

import logging
import secrets
from time import perf_counter

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError, StreamResponse

from podium.requests.wire.content_types import body_type
from podium.requests.wire.paths import Paths
from podium.requests.wire.verbs import not_allowed
from podium.server.backend import Backend
from podium.server.documents import Document, Documents, Inquiry
from podium.server.http.audit import audit_line
from podium.server.http.audit_ids import AuditIDs
from podium.server.http.bodies import decoded, read_body
from podium.server.http.exchange import Exchange
from podium.server.http.flights import READING, WATCHING, WRITING, Flights
from podium.server.http.health import Health
from podium.server.http.keeping import Keeping
from podium.server.http.metrics import Metrics, subject_of_method
from podium.server.http.object_requests import ObjectRequests
from podium.server.http.pages import Pages
from podium.server.http.replies import Reply, of_error, of_object, of_text, send
from podium.server.http.security import Guard, forbidden
from podium.server.http.settings import Settings
from podium.server.http.streams import Hub
from podium.server.http.target import read_target
from podium.server.http.version import version_info
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError, bad_request

_LOG = logging.getLogger("podium.server")
_SAFE = frozenset(("GET", "HEAD"))
# What everybody may ask, whoever they are (system:public-info-viewer).
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_HEAD = {"Cache-Control": "no-cache, private", "Server": "podium"}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Handler:
    """Answers requests over HTTP."""

    def __init__(
        self,
        backend: Backend,
        documents: Documents,
        settings: Settings,
        guard: Guard,
        pages: Pages | None = None,
    ) -> None:
        limits = settings.limits
        self._pages = pages
        self._settings = settings
        self._backend = backend
        self._documents = documents
        self._paths = Paths(backend.resources)
        self._guard = guard
        self._audit_ids = AuditIDs(secrets.token_bytes(10))
        self._flights = Flights(
            {READING: limits.reads_in_flight, WRITING: limits.writes_in_flight, WATCHING: limits.watches}
        )
        self._metrics = Metrics(self._flights.under_way)
        self._health = Health(settings.checks, lambda: self.is_stopping)
        self._keeping = Keeping(backend)
        self.hub = Hub(limits, self._keeping.keep)
        self._objects = ObjectRequests(backend, documents, limits, self._flights, self.hub, self._keeping)
        self.is_stopping = False

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer a request. Whatever goes wrong is an answer too, but for a client that is gone."""
        began = perf_counter()
        received_ns = self._backend.now()
        head = {**_HEAD, "Audit-Id": self._audit_ids.audit_id(request.headers)}
        exchange = None
        try:
            self._guard.check_origin(request.headers)
            exchange = self._exchange(request, head)
            response = await self._answer(exchange)
        except StoreError as error:
            response = await send(request, of_error(error), head)
        except ConnectionError:
            raise
        except Exception as error:
            response = await send(request, _mishap(request, error, head["Audit-Id"]), head)
        subject = subject_of_method(request.method) if exchange is None else exchange.subject
        self._metrics.count(subject, response.status, perf_counter() - began)
        audit = self._settings.audit
        if audit is not None and exchange is not None and request.method not in _SAFE:
            audit(audit_line(exchange, response.status, received_ns, self._backend.now()))
        return response

    def _exchange(self, request: BaseRequest, head: dict[str, str]) -> Exchange:
        """The request, of which is known who asks. Raises StoreError 400, 401 and 403."""
        path, query = read_target(request.raw_path)
        certificate = None
        if self._settings.tls is not None and request.transport is not None:
            certificate = request.transport.get_extra_info("peercert")
        pages = self._pages
        is_public = path.startswith(_PUBLIC) or (pages is not None and pages.is_public(request.method, path))
        caller = self._guard.caller(request.headers, certificate, is_public=is_public)
        return Exchange(request, path, query, caller, head)

    async def _answer(self, exchange: Exchange) -> StreamResponse:
        place = exchange.place = self._paths.place(exchange.path)
        if place is not None:
            return await self._objects.answer(exchange, place)
        if self._pages is not None and self._pages.has(exchange.path):
            return await self._pages.answer(exchange)
        with self._flights.flight(READING if exchange.method in _SAFE else WRITING):
            reply = self._own(exchange) or await self._document(exchange) or self._nothing(exchange.path)
            await self._keeping.kept()
            return await send(exchange.request, reply, exchange.reply_headers)

    def _own(self, exchange: Exchange) -> Reply | None:
        """What the server tells of itself."""
        path = exchange.path.rstrip("/")
        if not path:
            reply: Reply | None = of_object({"paths": _paths(self._backend.resources)})
        elif path == "/version":
            reply = of_object(version_info())
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
            if not self._documents.takes_body(exchange.path):
                return None
            if exchange.caller.reads_only and exchange.method != "POST":
                raise forbidden("this token is for reading")
            limits = self._settings.limits
            written_in = body_type(exchange.headers.get(hdrs.CONTENT_TYPE, ""))
            data = await read_body(exchange.request, limits.body_bytes, limits.request_seconds)
            body = (await decoded(data, written_in, self._documents.decoded)).value
        document = self._documents.document(
            Inquiry(
                method=exchange.method,
                path=exchange.path,
                query=exchange.query,
                accept=exchange.accepts(),
                body=body,
                user=exchange.caller.user,
            )
        )
        return None if document is None else _of_document(document, exchange.headers.get(hdrs.IF_NONE_MATCH, ""))

    def _nothing(self, path: str) -> Reply:
        """There is nothing at a path: said as a Status where objects are, and elsewhere as servers say it."""
        parts = path.split("/")
        is_core = len(parts) > 3 and parts[1] == "api"
        group, version = ("", parts[2]) if is_core else (*parts[2:4], "", "")[:2]
        if parts[1:2] in (["api"], ["apis"]) and version and self._paths.serves(group, version):
            return of_error(StoreError(404, "NotFound", "the server could not find the requested resource"))
        return of_text("404 page not found\n", 404)


def _paths(resources: APIResources) -> list[str]:
    """Where there is something, as `/` lists it: what the server tells of itself, and the groups and versions."""
    found = {"/api", "/apis", "/metrics", "/openapi/v3", *_PUBLIC}
    for resource in resources.all():
        for api_version in resource.served_versions:
            found.add(f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}")
            if resource.group:
                found.add(f"/apis/{resource.group}")
    return sorted(found)


def _of_document(document: Document, known: str) -> Reply:
    headers = (("ETag", document.etag), ("Vary", "Accept")) if document.etag else ()
    if document.etag and document.etag in known:
        return Reply(code=304, content_type=document.content_type, headers=headers)
    return Reply(
        code=document.code,
        pieces=(document.body,),
        content_type=document.content_type,
        headers=headers,
        may_be_compressed=True,
    )


def _mishap(request: BaseRequest, error: Exception, audit_id: str) -> Reply:
    """What is answered to what nobody has thought of; what it was, the log tells, and nobody else."""
    if isinstance(error, RequestPayloadError):
        reply = of_error(bad_request(f"the body of the request cannot be read: {error}"))
        reply.closes = True
        return reply
    _LOG.error("a request could not be answered: Audit-Id %s", audit_id, exc_info=error)
    if request.writer.output_size > 0:
        raise ConnectionResetError("a part of the reply is sent already") from error
    problem = f"Internal error occurred: the server's log has more, under Audit-Id {audit_id}"
    return of_error(StoreError(500, "InternalError", problem))
