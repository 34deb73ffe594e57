"""The page for browsers: its files, the cluster that it shows, and the questions that it asks."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web
from aiohttp.web import StreamResponse

from podium.api.errors import InputError, shown
from podium.api.input.yaml import parse_documents
from podium.api.kinds import KINDS
from podium.app.serving.page.answering import Answering
from podium.app.serving.page.forms import EXPLAIN, FORMS, PLANS
from podium.app.serving.page.now import NowView, described
from podium.app.serving.page.watching import WATCHED, ShownCluster, Watching
from podium.server.http.exchange import Exchange, Pages, read_body, read_target
from podium.server.http.handler import audit_id
from podium.server.http.metrics import READING, InFlightLimits
from podium.server.http.replies import Reply, of_error, of_object, send
from podium.server.http.security import Guard, ServerSettings, Token, forbidden
from podium.store.errors import StoreError, bad_request
from podium.store.stored import Stored, encoded

if TYPE_CHECKING:
    from podium.client.live_cluster import LiveCluster
    from podium.sim.run_options import RunOptions

PREFIX = "/ui/"
"""The path of the page."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The content security policy: scripts and requests of this server alone, and no markup from text (trusted types)."""

HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""The headers of every reply of the page."""

HEADER = "Podium-Page"
"""The header of the page's requests for anything but files; pages of other origins cannot send it."""

_ABOUT, _ASK, _READ = f"{PREFIX}about", f"{PREFIX}ask", f"{PREFIX}read"
_NOW, _OBJECT = f"{PREFIX}now", f"{PREFIX}object"
_WATCH = f"{PREFIX}watch/"
_SAFE = ("GET", "HEAD")
_LINES = "application/x-ndjson"
_MOST_BYTES = 3 * 1024 * 1024
_BODY_SECONDS = 60.0
_MOST_IN_FLIGHT = 100
_OWN = ("same-origin", "none")


class LivePage:
    """Answers requests below `/ui/`. Files are public; the rest follows the API's rules."""

    def __init__(self, shown: Callable[[], ShownCluster], watching: Watching, answering: Answering) -> None:
        """Call ``shown`` for each request; it raises StoreError if there is nothing to show yet."""
        self._shown = shown
        self._answering = answering
        self._now = NowView()
        self._watching = watching
        self._flights = InFlightLimits({READING: _MOST_IN_FLIGHT})

    def has(self, path: str) -> bool:
        return path == PREFIX.rstrip("/") or path.startswith(PREFIX)

    def is_public(self, method: str, path: str) -> bool:
        return method in _SAFE and (path in files() or path == PREFIX.rstrip("/"))

    async def answer(self, exchange: Exchange) -> StreamResponse:
        exchange.reply_headers.update(HEADERS)
        watched = exchange.path.removeprefix(_WATCH)
        if watched in WATCHED and exchange.method in _SAFE:
            _check_own(exchange)
            self._shown()
            return await self._watching.answer(exchange, watched)
        with self._flights.flight(READING):
            if exchange.path == PREFIX.rstrip("/"):
                reply = Reply(code=308, headers=(("Location", PREFIX),), content_type="text/plain")
                return await send(exchange.request, reply, exchange.reply_headers)
            if exchange.path in files():
                return await self._file(exchange)
            _check_own(exchange)
            if exchange.path == _ABOUT and exchange.method in _SAFE:
                return await self._about(exchange)
            if exchange.path in (_NOW, _OBJECT) and exchange.method in _SAFE:
                cluster, query = self._shown(), dict(exchange.query)
                about = query.get("kind", ""), query.get("name", "")
                found = await self._now.answer(cluster) if exchange.path == _NOW else described(cluster, *about)
                return await send(exchange.request, of_object(found), exchange.reply_headers)
            if exchange.path == _ASK and exchange.method == "POST":
                return await self._ask(exchange)
            if exchange.path == _READ and exchange.method == "POST":
                return await self._read(exchange)
        raise StoreError(404, "NotFound", "the server could not find the requested resource")

    async def close(self) -> None:
        self._watching.end()
        await self._answering.close()
        await self._now.close()

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
        """Return the content of the page, and prepare for a question."""
        found = self._shown()
        await self._answering.prepare()
        about = {
            "mode": found.mode,
            "title": found.title,
            "readOnly": found.mode == "component" or exchange.caller.reads_only,
            "user": exchange.caller.identity.name,
            "speed": found.speed,
            "now": found.now() // 10**6,
            "explain": msgspec.to_builtins(EXPLAIN),
            "plans": msgspec.to_builtins(PLANS),
        }
        return await send(exchange.request, of_object(about), exchange.reply_headers)

    async def _ask(self, exchange: Exchange) -> StreamResponse:
        """Answer a question about the cluster as it is, line by line."""
        question = _question(await read_body(exchange.request, _MOST_BYTES, _BODY_SECONDS))
        found = self._shown()
        await found.idle()
        answering = self._answering.ask(
            encoded(question), found.objects(), replace(found.options, start_ns=found.now())
        )
        async with answering as lines:
            response = StreamResponse(headers={**exchange.reply_headers, "Content-Type": _LINES})
            await response.prepare(exchange.request)
            async for line in lines:
                await response.write(line)
            await response.write_eof()
        await self._answering.prepare()
        return response

    async def _read(self, exchange: Exchange) -> StreamResponse:
        """Return the objects of a YAML text, each as JSON, which the page sends to the API to create them."""
        try:
            text = (await read_body(exchange.request, _MOST_BYTES, _BODY_SECONDS)).decode()
        except UnicodeDecodeError:
            raise bad_request("the text is not in UTF-8") from None
        try:
            documents = await asyncio.get_running_loop().run_in_executor(None, _documents, text)
        except InputError as error:
            raise bad_request(str(error)) from None
        return await send(exchange.request, of_object({"documents": documents}), exchange.reply_headers)


def _check_own(exchange: Exchange) -> None:
    """Raise StoreError 403 for requests without the page's header, or from another site.

    The Origin was checked before, as for every request.
    """
    if HEADER not in exchange.headers:
        raise forbidden(f"requests of the page need the header {HEADER}")
    if exchange.headers.get("Sec-Fetch-Site", "same-origin") not in _OWN:
        raise forbidden("requests from other sites are refused")


def _question(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None
    question = found.get("question") if isinstance(found, dict) else None
    if not isinstance(question, str) or not isinstance(found.get("values"), dict):
        raise bad_request('a question is {"question": NAME, "values": {...}}')
    if question not in FORMS:
        raise bad_request(f"there is no question {shown(question)}; there are {', '.join(FORMS)}")
    return {"question": question, "values": found["values"]}


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the objects in a text, each with its JSON as text, which keeps all digits. Raises InputError."""
    found = []
    for index, document in parse_documents(text):
        if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
            raise InputError("is not an object with apiVersion, kind and metadata", document=index)
        metadata = document.get("metadata", {})
        texts = {name: str(document.get(name, "")) for name in ("apiVersion", "kind")}
        texts |= {name: str(metadata.get(name, "")) for name in ("name", "namespace")}
        found.append({**texts, "json": encoded(document).decode()})
    return found


_HEAD = {"Cache-Control": "no-cache, private", "Server": "podium"}


class PageHandler:
    """Answers requests for a page by the rules of the API: authentication, and no requests from other origins."""

    def __init__(self, pages: Pages, host: str, token: str) -> None:
        """Clients must send the ``token`` for everything except files; "" is only for loopback."""
        self._pages = pages
        self._guard = Guard(ServerSettings(host=host, tokens=(Token(text=token),) if token else ()))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        head = {**_HEAD, **dict(HEADERS), "Audit-Id": audit_id(request.headers)}
        try:
            self._guard.check_origin(request.headers)
            path, query = read_target(request.raw_path)
            is_public = self._pages.is_public(request.method, path)
            caller = self._guard.caller(request.headers, None, is_public=is_public)
            return await self._pages.answer(Exchange(request, path, query, caller, head))
        except StoreError as error:
            return await send(request, of_error(error), head)


_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FIRST = "index.html"
# The folders whose files are served, and below which path.
_FOLDERS: Mapping[str, Path] = {
    "": Path(__file__).parent / "web",
    # The modules that draw pictures also draw the live cluster.
    "drawing/": Path(__file__).parents[2] / "reporting" / "page",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page; ``etag`` changes with its content."""

    body: bytes
    content_type: str
    etag: str


@cache
def files() -> Mapping[str, File]:
    """Return all files of the page, by path."""
    found: dict[str, File] = {}
    for below, folder in _FOLDERS.items():
        for path in sorted(folder.iterdir()):
            if path.suffix in _TYPES:
                body = path.read_bytes()
                etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
                found[f"{PREFIX}{below}{path.name}"] = File(body, _TYPES[path.suffix], etag)
    found[PREFIX] = found[PREFIX + _FIRST]
    return found


def cluster_page(
    cluster: LiveCluster, title: str, now: Callable[[], int], options: Callable[[], RunOptions]
) -> LivePage:
    """Return a page that shows a cluster once its watch caches are synced; ``options`` are for simulations."""
    watching = Watching(lambda kind: cluster.reflectors[kind].machine.known)
    cluster.on_seen = watching.saw

    def objects() -> list[Stored]:
        known = [reflector.machine for reflector in cluster.reflectors.values()]
        read = [machine for machine in known if (machine.resource.group, machine.resource.kind) in KINDS]
        return [stored for machine in read for stored in machine.known.values()]

    def shown() -> ShownCluster:
        if cluster.unsynced:
            # The page retries.
            raise StoreError(503, "ServiceUnavailable", f"watch caches are not synced: {', '.join(cluster.unsynced)}")
        return ShownCluster(
            mode="component",
            title=title,
            objects=objects,
            events=lambda: cluster.reflectors["Event"].machine.known.values() if "Event" in cluster.reflectors else (),
            now=now,
            options=options(),
        )

    return LivePage(shown, watching, Answering())
