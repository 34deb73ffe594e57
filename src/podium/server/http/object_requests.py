"""Requests for objects: decoded, answered by the backend, and returned in the requested format."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from secrets import SystemRandom
from typing import Any

import msgspec
from aiohttp import HttpVersion11
from aiohttp.web import StreamResponse

from podium.api.schemas.schema import schema_of, write_out_amounts
from podium.apirequests import http_mapping
from podium.apirequests.authorization import Attributes
from podium.apirequests.http_mapping import BODY_TYPES, JSON, PROTOBUF, YAML, IncomingRequest, ResourcePath
from podium.apirequests.parameters import read_parameters
from podium.apirequests.request import FieldValidation, Request
from podium.server.backend import Backend
from podium.server.http import replies
from podium.server.http.exchange import (
    Body,
    Exchange,
    check_timeout,
    decode,
    program_of,
    read_body,
    seconds_of,
    with_floats,
)
from podium.server.http.metrics import READING, WATCHING, WRITING, InFlightLimits, Subject
from podium.server.http.replies import PLAIN_FORM, MakeTable, Reply, ResponseForm
from podium.server.http.security import ServerLimits, forbidden
from podium.server.http.streams import EventFormatter, Hub, Stream, error_chunk
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.server.protobuf import message_of
from podium.store.errors import StoreError, bad_request
from podium.store.patching import PatchType

_READS = frozenset(("get", "list"))
_WITHOUT_BODY = frozenset(("get", "list", "watch"))
_VALIDATED = frozenset(("create", "update", "patch"))
# Codes with which a valid watch may fail at its start; they are sent in the stream (storage/cacher).
_SENT_IN_THE_STREAM = (410, 504)
_DICE = SystemRandom()
# The maximum length of a list in protobuf for a client that also accepts JSON, which does not have to be encoded.
_MOST_IN_PROTOBUF = 500


@dataclass(slots=True)
class ObjectRequests:
    """A handler of requests for objects."""

    backend: Backend
    documents: KubernetesDocuments
    limits: ServerLimits
    flights: InFlightLimits
    hub: Hub
    keeping: GroupCommit
    admit: Callable[[Exchange, Attributes], None]

    async def answer(self, exchange: Exchange, place: ResourcePath) -> StreamResponse:
        """Answer a request at a place, and send the response. Raises StoreError for a request that is refused."""
        what = http_mapping.incoming_request(exchange.method, place, read_parameters(exchange.query))
        resource = place.resource
        # The metric labels do not name an unknown subresource.
        part = place.subresource if _verbs_at(place) else ""
        scope = "resource" if place.name else "namespace" if place.namespace else "cluster"
        exchange.subject = Subject(what.verb.upper(), resource.group, resource.version, resource.plural, part, scope)
        about = (resource.group, resource.plural, place.subresource, place.namespace, place.name)
        self.admit(exchange, Attributes(what.verb, *about))
        has_protobuf = bool(message_of(resource.api_version, resource.kind)) or place.subresource not in ("", "status")
        # The objects that are there when a watch begins are never sent as Tables.
        has_tables = not what.parameters.options.send_initial_events
        form = replies.negotiated(
            exchange.accepts(), has_protobuf=has_protobuf, prefers_json=what.verb == "watch", has_tables=has_tables
        )
        if what.verb == "watch":
            return await self._watch(exchange, what, form)
        if exchange.caller.reads_only and what.verb not in _READS:
            raise forbidden(f"this token is for reading, and not to {what.verb} {resource.qualified}")
        with self.flights.flight(READING if what.verb in _READS else WRITING):
            reply = await self._reply(exchange, what, form)
            await self.keeping.wait_durable()
            return await replies.send(exchange.request, reply, exchange.reply_headers)

    async def _reply(self, exchange: Exchange, what: IncomingRequest, form: ResponseForm) -> Reply:
        request, warnings, size = await self._request(exchange, what)
        response = await self.backend.respond(request, size)
        exchange.audited = response.audited
        if response.error is not None:
            return replies.of_error(response.error, form.content_type)
        if response.page is not None:
            if form.is_protobuf and len(response.page.items) > _MOST_IN_PROTOBUF:
                form = replies.negotiated(exchange.accepts(), has_protobuf=True, prefers_json=True)
            reply = await replies.list_reply(response.page, form, self._table(what, form))
            reply.code = response.code
        elif what.verb == "get" and response.stored is not None and form == PLAIN_FORM:
            reply = Reply(code=response.code, pieces=(response.stored.encoded,), may_be_indented=True)
        else:
            raw = replies.in_format(response.to_dict(), what.place.resource, form, self._table(what, form))
            reply = replies.of_object(raw, response.code, form.header if form.kind else form.content_type)
        reply.may_be_compressed = what.verb in _READS
        return replies.warned(reply, (*warnings, *response.warnings))

    async def _request(self, exchange: Exchange, what: IncomingRequest) -> tuple[Request, list[str], int]:
        """Return the request, the warnings about its body, and the size of the body in bytes."""
        validation: FieldValidation = "Warn" if what.verb in _VALIDATED else ""
        who: dict[str, Any] = {
            "user": exchange.caller.identity,
            "field_manager": program_of(exchange.headers.get("User-Agent", "")),
        }
        if what.verb != "watch":
            check_timeout(exchange.query)
        if what.verb in _WITHOUT_BODY:
            return http_mapping.request_of(what, **who), [], 0
        place = what.place
        if what.verb not in _verbs_at(place):
            # The body does not matter: the response says that the subresource or its verb does not exist.
            kind, part, user = place.resource.name, place.subresource, exchange.caller.identity
            return Request(verb=what.verb, kind=kind, key=place.key, subresource=part, identity=user), [], 0
        type_, written_in = _type_of_body(what, exchange.headers.get("Content-Type", ""))
        seconds = seconds_of(what.parameters.timeout, self.limits.request_seconds)
        data = await read_body(exchange.request, self.limits.body_bytes, seconds)
        if data and not written_in:
            raise http_mapping.unsupported(BODY_TYPES)
        try:
            body = await decode(data, written_in)
        except StoreError as error:
            if what.verb not in _VALIDATED:
                raise
            problem = f"the object provided is unrecognized (must be of type {place.resource.kind})"
            raise bad_request(f"{problem}: {error}") from None
        if not data and what.verb in _VALIDATED:
            raise bad_request("the request has no body")
        schema = schema_of(place.resource.group, place.resource.kind)
        if schema is not None:
            write_out_amounts(body.value, schema)
        value = with_floats(body.value, data)
        request = http_mapping.request_of(what, value, type_, field_validation=validation, **who)
        if body.repeated and not request.subresource:
            return msgspec.structs.replace(request, repeated=body.repeated), [], len(data)
        return request, _repeated(request, body), len(data)

    def _table(self, what: IncomingRequest, form: ResponseForm) -> MakeTable:
        include, version = what.parameters.include_object or "Metadata", form.meta_version
        return lambda resource, objects: self.documents.table(resource, objects, self.backend.now(), include, version)

    async def _watch(self, exchange: Exchange, what: IncomingRequest, form: ResponseForm) -> StreamResponse:
        if form.content_type not in (JSON, PROTOBUF):
            problem = f"only the following media types are accepted: {JSON};stream=watch, {PROTOBUF};stream=watch"
            raise StoreError(406, "NotAcceptable", problem)
        if exchange.request.version < HttpVersion11:
            raise bad_request("a watch needs HTTP/1.1")
        with self.flights.flight(WATCHING):
            request, _, size = await self._request(exchange, what)
            response = await self.backend.respond(request, size)
            error = response.error
            if error is not None and error.code not in _SENT_IN_THE_STREAM:
                raise error
            type_ = f"{PROTOBUF};stream=watch" if form.is_protobuf else JSON
            reply = StreamResponse(headers={**exchange.reply_headers, "Content-Type": type_})
            reply.enable_chunked_encoding()
            await reply.prepare(exchange.request)
            transport = exchange.request.transport
            if transport is None:
                return reply
            if error is not None or response.watch is None:
                transport.write(error_chunk(error or bad_request("there is nothing to watch"), form))
                return reply
            formatter = EventFormatter(what.place.resource, form, self._table(what, form))
            writer, bookmarks = exchange.request.writer, what.parameters.bookmarks
            stream = Stream(response.watch, formatter, transport, writer, self.hub, bookmarks=bookmarks)
            seconds = float(what.parameters.timeout_seconds)
            if seconds <= 0:
                # Randomized, so that watches do not end together.
                seconds = self.limits.watch_seconds * (1 + _DICE.random())
            await self.backend.idle()
            with self.hub.register(stream):
                await stream.run(seconds)
            return reply


def _type_of_body(what: IncomingRequest, content_type: str) -> tuple[PatchType, str]:
    """Return the patch type and content type of a body; "" for an unsupported type if the body may be empty.

    Raises StoreError 415.
    """
    if what.verb == "patch":
        type_ = http_mapping.patch_type(content_type)
        return type_, YAML if type_ == "apply" else JSON
    if what.verb in _VALIDATED:
        return "merge", http_mapping.body_type(content_type)
    named = http_mapping.media_type(content_type) or JSON
    return "merge", named if named in BODY_TYPES else ""


def _repeated(request: Request, body: Body) -> list[str]:
    """Return the warnings about repeated fields in the body of a subresource. Raises StoreError 400 in strict mode."""
    if not body.repeated or request.field_validation in ("", "Ignore"):
        return []
    if request.field_validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(body.repeated)}")
    return list(body.repeated)


def _verbs_at(place: ResourcePath) -> tuple[str, ...]:
    """Return the verbs that are served at a place, none for an unknown subresource."""
    if not place.subresource:
        return place.resource.verbs
    part = place.resource.subresource(place.subresource)
    return () if part is None else part.verbs


class GroupCommit:
    """A group commit of the backend's writes.

    Requests of the same loop iteration are answered one after the other, and synced together in the next iteration: a
    disk takes about as long for one write as for a hundred.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Return when everything is durable. Raises what the backend raises."""
        if not self._backend.is_kept:
            self._backend.keep()

    async def wait_durable(self) -> None:
        """Wait until everything is durable. Raises what the backend raises."""
        await self._backend.idle()
        if self._backend.is_kept:
            return
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(self._keep())
        # A cancelled waiter must not cancel the others.
        await asyncio.shield(self._waiting)

    async def _keep(self) -> None:
        await self._backend.idle()
        self._waiting = None
        self.keep()
