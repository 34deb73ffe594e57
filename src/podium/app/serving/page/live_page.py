"""The page for browsers: its files, what it shows, and the questions that are asked by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp.web import StreamResponse

from podium.api.errors import InputError, shown
from podium.api.input.yaml import parse_documents
from podium.app.serving.page.answering import Answering
from podium.app.serving.page.files import HEADERS, PREFIX, files
from podium.app.serving.page.forms import EXPLAIN, FORMS, PLANS
from podium.app.serving.page.shown import Shown
from podium.app.serving.page.watching import KINDS, Watching
from podium.server.http.bodies import read_body
from podium.server.http.exchange import Exchange
from podium.server.http.metrics import READING, InFlightLimits
from podium.server.http.replies import Reply, of_object, send
from podium.server.http.security import forbidden
from podium.store.errors import StoreError, bad_request
from podium.store.stored import encoded

HEADER = "Podium-Page"
"""The header with which the page asks for anything but its files; a page of somebody else's cannot send it unasked."""

_ABOUT, _ASK, _READ = f"{PREFIX}about", f"{PREFIX}ask", f"{PREFIX}read"
_WATCH = f"{PREFIX}watch/"
_SAFE = ("GET", "HEAD")
_LINES = "application/x-ndjson"
_MOST_BYTES = 3 * 1024 * 1024
_BODY_SECONDS = 60.0
_MOST_IN_FLIGHT = 100
_OWN = ("same-origin", "none")


class LivePage:
    """Answers what a browser asks below `/ui/`. Files are for everybody; the rest is as the API's rules have it."""

    def __init__(
        self, shown_: Callable[[], Shown], answering: Answering | None = None, watching: Watching | None = None
    ) -> None:
        """``watching`` tells of nodes and pods where no API does.

        ``shown_`` is asked anew for each request; it raises StoreError where there is nothing to show yet.
        """
        self._shown = shown_
        self._answering = answering or Answering()
        self._watching = watching
        self._flights = InFlightLimits({READING: _MOST_IN_FLIGHT})

    def has(self, path: str) -> bool:
        return path == PREFIX.rstrip("/") or path.startswith(PREFIX)

    def is_public(self, method: str, path: str) -> bool:
        return method in _SAFE and (path in files() or path == PREFIX.rstrip("/"))

    async def answer(self, exchange: Exchange) -> StreamResponse:
        exchange.reply_headers.update(HEADERS)
        if self._watching is not None and exchange.path.startswith(_WATCH) and exchange.method in _SAFE:
            return await self._watch(self._watching, exchange)
        with self._flights.flight(READING):
            if exchange.path == PREFIX.rstrip("/"):
                reply = Reply(code=308, headers=(("Location", PREFIX),), content_type="text/plain")
                return await send(exchange.request, reply, exchange.reply_headers)
            if exchange.path in files():
                return await self._file(exchange)
            _check_own(exchange)
            if exchange.path == _ABOUT and exchange.method in _SAFE:
                return await self._about(exchange)
            if exchange.path == _ASK and exchange.method == "POST":
                return await self._ask(exchange)
            if exchange.path == _READ and exchange.method == "POST":
                return await self._read(exchange)
        raise StoreError(404, "NotFound", "the server could not find the requested resource")

    async def _watch(self, watching: Watching, exchange: Exchange) -> StreamResponse:
        _check_own(exchange)
        self._shown()
        name = exchange.path.removeprefix(_WATCH)
        if name not in KINDS:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        return await watching.answer(exchange, name)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.end()
        await self._answering.close()

    async def _file(self, exchange: Exchange) -> StreamResponse:
        if exchange.method not in _SAFE:
            raise StoreError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        file = files()[exchange.path]
        headers = (("ETag", file.etag),)
        if file.etag in exchange.headers.get("If-None-Match", ""):
            reply = Reply(code=304, content_type=file.content_type, headers=headers)
        else:
            reply = Reply(pieces=(file.body,), content_type=file.content_type, headers=headers, may_be_compressed=True)
        return await send(exchange.request, reply, exchange.reply_headers)

    async def _about(self, exchange: Exchange) -> StreamResponse:
        """What the page is about; whoever looks at it may soon ask something."""
        found = self._shown()
        self._answering.prepare()
        about = {
            "mode": found.mode,
            "title": found.title,
            "readOnly": found.mode == "component" or exchange.caller.reads_only,
            "user": exchange.caller.user,
            "watch": {"nodes": found.nodes_path, "pods": found.pods_path},
            "speed": found.speed,
            "now": found.now() // 10**6,
            "explain": EXPLAIN.to_dict(),
            "plans": [form.to_dict() for form in PLANS],
        }
        return await send(exchange.request, of_object(about), exchange.reply_headers)

    async def _ask(self, exchange: Exchange) -> StreamResponse:
        """Answer a question, line by line, about the cluster as it is."""
        question = _question(await self._body(exchange))
        found = self._shown()
        asked = self._answering.asked(encoded(question), found.objects(), found.options_now())
        async with asked as lines:
            response = StreamResponse(headers={**exchange.reply_headers, "Content-Type": _LINES})
            await response.prepare(exchange.request)
            async for line in lines:
                await response.write(line)
            await response.write_eof()
        self._answering.prepare()
        return response

    async def _read(self, exchange: Exchange) -> StreamResponse:
        """The objects of a text in YAML, each in JSON, by which the page asks the API for their creation."""
        try:
            text = (await self._body(exchange)).decode()
        except UnicodeDecodeError:
            raise bad_request("the text is not in UTF-8") from None
        try:
            documents = await asyncio.get_running_loop().run_in_executor(None, _documents, text)
        except InputError as error:
            raise bad_request(str(error)) from None
        return await send(exchange.request, of_object({"documents": documents}), exchange.reply_headers)

    async def _body(self, exchange: Exchange) -> bytes:
        return await read_body(exchange.request, _MOST_BYTES, _BODY_SECONDS)


def _check_own(exchange: Exchange) -> None:
    """Raise StoreError 403 for what no page of ours asks: without its header, or from elsewhere.

    That the Origin is this server's own was looked at before, as for every request.
    """
    if HEADER not in exchange.headers:
        raise forbidden(f"what is not asked with the header {HEADER} is not asked by the page")
    if exchange.headers.get("Sec-Fetch-Site", "same-origin") not in _OWN:
        raise forbidden("requests of pages from elsewhere are not answered")


def _question(body: bytes) -> dict[str, Any]:
    """The question in a body. Raises StoreError 400."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None
    question = found.get("question") if isinstance(found, dict) else None
    if not isinstance(question, str) or not isinstance(found.get("values"), dict):
        raise bad_request('a question is {"question": NAME, "values": {...}}')
    if question not in FORMS:
        raise bad_request(f"there is no question {shown(question)}; there are {', '.join(FORMS)}")
    return {"question": question, "values": found["values"]}


def _documents(text: str) -> list[dict[str, Any]]:
    """The documents of a text that are objects; the JSON of each is a text, in which no number loses a digit.

    Raises InputError.
    """
    found = []
    for index, document in parse_documents(text):
        if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
            raise InputError("is no object with apiVersion, kind and metadata", document=index)
        metadata = document.get("metadata", {})
        found.append(
            {
                "apiVersion": str(document.get("apiVersion", "")),
                "kind": str(document.get("kind", "")),
                "name": str(metadata.get("name", "")),
                "namespace": str(metadata.get("namespace", "")),
                "json": encoded(document).decode(),
            }
        )
    return found
