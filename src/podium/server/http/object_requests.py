"""Requests about objects: read, answered by the backend, and put in the form that was asked for."""

from __future__ import annotations

from secrets import SystemRandom

from aiohttp import HttpVersion11
from aiohttp.web import StreamResponse

from podium.api.meta import Raw
from podium.api.schemas.amounts import write_out_amounts
from podium.api.schemas.schema import schema_of
from podium.requests.request import FieldValidation, Request, Verb
from podium.requests.wire.content_types import BODY_TYPES, JSON, YAML, body_type, media_type, patch_type, unsupported
from podium.requests.wire.incoming import Asked, asked, request_of
from podium.requests.wire.parameters import read_parameters
from podium.requests.wire.paths import Place
from podium.server.backend import Backend
from podium.server.documents import Documents
from podium.server.http.bodies import decoded, read_body
from podium.server.http.exchange import Exchange, seconds_of
from podium.server.http.flights import READING, WATCHING, WRITING, Flights
from podium.server.http.forms import MakeTable, formed, list_reply
from podium.server.http.frames import Shaper, error_chunk
from podium.server.http.json_body import Body
from podium.server.http.keeping import Keeping
from podium.server.http.metrics import Subject
from podium.server.http.negotiation import PLAIN, Form, negotiated
from podium.server.http.replies import Reply, is_pretty, of_error, of_object, prettified, send, warned
from podium.server.http.security import forbidden
from podium.server.http.settings import Limits
from podium.server.http.streams import Connection, Hub, Stream
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError, bad_request
from podium.store.patches.patching import PatchType

_READS = frozenset(("get", "list"))
_WITHOUT_BODY = frozenset(("get", "list", "watch"))
_VALIDATED = frozenset(("create", "update", "patch"))
# With these a watch that could be asked for does not begin; they are told in the stream (storage/cacher).
_TOLD_IN_THE_STREAM = (410, 504)
_DICE = SystemRandom()


class ObjectRequests:
    """Answers requests about objects."""

    def __init__(
        self,
        backend: Backend,
        documents: Documents,
        limits: Limits,
        flights: Flights,
        hub: Hub,
        keeping: Keeping,
    ) -> None:
        self._backend = backend
        self._documents = documents
        self._limits = limits
        self._flights = flights
        self._hub = hub
        self._keeping = keeping

    async def answer(self, exchange: Exchange, place: Place) -> StreamResponse:
        """Do what is asked for at a place, and send the answer. Raises StoreError for what is not to be answered."""
        what = asked(exchange.method, place, read_parameters(exchange.query))
        exchange.subject = _subject(what.verb, place)
        form = negotiated(exchange.accepts())
        if what.verb == "watch":
            return await self._watch(exchange, what, form)
        if exchange.caller.reads_only and what.verb not in _READS:
            raise forbidden(f"this token is for reading, and not to {what.verb} {place.resource.qualified}")
        with self._flights.flight(READING if what.verb in _READS else WRITING):
            reply = await self._reply(exchange, what, form)
            await self._keeping.kept()
            pretty, agent = what.parameters.pretty, exchange.headers.get("User-Agent", "")
            if is_pretty(pretty, agent):
                reply = prettified(reply)
            return await send(exchange.request, reply, exchange.reply_headers)

    async def _reply(self, exchange: Exchange, what: Asked, form: Form) -> Reply:
        request, warnings = await self._request(exchange, what)
        response = self._backend.answer(request)
        if response.error is not None:
            return of_error(response.error)
        if response.page is not None:
            reply = await list_reply(response.page, form, self._table(what))
            reply.code = response.code
        elif what.verb == "get" and response.stored is not None and form == PLAIN:
            reply = Reply(code=response.code, pieces=(response.stored.encoded,))
        else:
            raw = formed(response.to_dict(), what.place.resource, form, self._table(what))
            reply = of_object(raw, response.code, form.header if form.kind else form.content_type)
        reply.may_be_compressed = what.verb in _READS
        return warned(reply, (*warnings, *response.warnings))

    async def _request(self, exchange: Exchange, what: Asked) -> tuple[Request, list[str]]:
        """The request, and what there is to say about its body."""
        validation: FieldValidation = "Warn" if what.verb in _VALIDATED else ""
        asker = exchange.asker(validation)
        if what.verb in _WITHOUT_BODY:
            return request_of(what, asker=asker), []
        place = what.place
        if not _has_part(place):
            # Whatever it carries, the answer is why it is not there.
            return Request(verb=what.verb, kind=place.resource.name, key=place.key, subresource=place.subresource), []
        type_, written_in = _type_of_body(what, exchange.headers.get("Content-Type", ""))
        seconds = seconds_of(what.parameters.timeout, self._limits.request_seconds)
        data = await read_body(exchange.request, self._limits.body_bytes, seconds)
        if data and not written_in:
            raise unsupported(BODY_TYPES)
        body = await decoded(data, written_in, self._documents.decoded)
        if not data and what.verb in _VALIDATED:
            raise bad_request("the request has no body")
        schema = schema_of(place.resource.group, place.resource.kind)
        if schema is not None:
            write_out_amounts(body.value, schema)
        request = request_of(what, body.value, type_, asker)
        return request, _repeated(request, body)

    def _table(self, what: Asked) -> MakeTable:
        include = what.parameters.include_object or "Metadata"

        def table(resource: APIResource, objects: list[Raw]) -> Raw:
            return self._documents.table(resource, objects, self._backend.now(), include)

        return table

    async def _watch(self, exchange: Exchange, what: Asked, form: Form) -> StreamResponse:
        if form.content_type != JSON:
            raise StoreError(406, "NotAcceptable", f"a watch is told in {JSON} alone")
        if exchange.request.version < HttpVersion11:
            raise bad_request("a watch needs HTTP/1.1")
        with self._flights.flight(WATCHING):
            request, _ = await self._request(exchange, what)
            response = self._backend.answer(request)
            error = response.error
            if error is not None and error.code not in _TOLD_IN_THE_STREAM:
                raise error
            reply = StreamResponse(headers={**exchange.reply_headers, "Content-Type": JSON})
            reply.enable_chunked_encoding()
            await reply.prepare(exchange.request)
            transport = exchange.request.transport
            if transport is None:
                return reply
            if error is not None or response.watch is None:
                transport.write(error_chunk(error or bad_request("there is nothing to watch")))
                return reply
            shaper = Shaper(what.place.resource, form, self._table(what))
            connection = Connection(transport, exchange.request.writer)
            stream = Stream(response.watch, shaper, connection, self._hub, bookmarks=what.parameters.bookmarks)
            with self._hub.opened(stream):
                await stream.run(self._watch_seconds(what.parameters.timeout_seconds))
            return reply

    def _watch_seconds(self, asked_for: int) -> float:
        """How long a watch lasts: if its client does not say, so long that not all of them end together."""
        return float(asked_for) if asked_for > 0 else self._limits.watch_seconds * (1 + _DICE.random())


def _type_of_body(what: Asked, content_type: str) -> tuple[PatchType, str]:
    """Which patch the body is, and what it is written in; "" for a type that is not read, where it may have no bytes.

    Raises StoreError 415.
    """
    if what.verb == "patch":
        type_ = patch_type(content_type)
        return type_, YAML if type_ == "apply" else JSON
    if what.verb in _VALIDATED:
        return "merge", body_type(content_type)
    named = media_type(content_type) or JSON
    return "merge", named if named in BODY_TYPES else ""


def _repeated(request: Request, body: Body) -> list[str]:
    """The warnings about fields that are in the body twice. Raises StoreError 400 where the request is strict."""
    if not body.repeated or request.field_validation in ("", "Ignore"):
        return []
    told = [f'duplicate field "{path}"' for path in body.repeated]
    if request.field_validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(told)}")
    return told


def _has_part(place: Place) -> bool:
    """Whether there is what the place stands for, if it is a subresource."""
    return not place.subresource or place.resource.subresource(place.subresource) is not None


def _subject(verb: Verb, place: Place) -> Subject:
    """What a request is counted as; a subresource that there is not has no name there."""
    part = place.subresource if _has_part(place) else ""
    scope = "resource" if place.name else "namespace" if place.namespace else "cluster"
    resource = place.resource
    return Subject(verb.upper(), resource.group, resource.version, resource.plural, part, scope)
