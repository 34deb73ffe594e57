"""A server on loopback, and typed clients of it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.server.backend import Backend
from podium.server.http.exchange import Pages
from podium.server.http.security import ServerLimits, ServerSettings
from podium.server.http.server import Server, run
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.store.api_resources import APIResources
from podium.store.store import Store
from tests.store.objects import SECOND, Raw
from tests.waiting import GUARD_SECONDS

NOW = 100 * SECOND
RUN: Callable[[Coroutine[Any, Any, None]], None] = run
"""What runs the server's loop: the quickest that there is."""

PODS = "/api/v1/namespaces/default/pods"


class LocalBackend(Backend):
    """A store behind a router, at one time."""

    def __init__(self, *objects: Raw, require_namespaces: bool = False) -> None:
        self.store = Store(require_namespaces=require_namespaces)
        for raw in objects:
            self.store.create(raw, now=0)
        self._router = Router(self.store)

    @property
    def resources(self) -> APIResources:
        return self.store.resources

    def answer(self, request: Request) -> Response:
        return self._router.answer(request, NOW)

    def now(self) -> int:
        return NOW


class Client:
    """Asks a server, and reads the answers."""

    def __init__(self, session: aiohttp.ClientSession, server: Server, backend: LocalBackend) -> None:
        self.session = session
        self.server = server
        self.backend = backend

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Return the code of the answer, and its body: decoded where it is JSON."""
        response, data = await self.reply(method, path, body, **more)
        is_json = response.content_type == "application/json" and data
        return response.status, json.loads(data) if is_json else data.decode()

    async def reply(
        self, method: str, path: str, body: Any = None, **more: Any
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Return the answer, and the bytes of its body."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        # Of long bytes the client warns that they hold up the loop.
        data = io.BytesIO(body) if body is not None and len(body) > 100_000 else body
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        url = URL(self.server.address + path, encoded=True)
        async with self.session.request(method, url, data=data, headers=headers, **more) as response:
            return response, await response.read()

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[Watcher]:
        """Provide a watch, for as long as it is looked at."""
        async with self.session.get(self.server.address + path, headers=headers) as response:
            yield Watcher(response)


class Watcher:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Raw:
        """Return the next event. Raises EOFError at the end of the watch."""
        line = await asyncio.wait_for(self.response.content.readuntil(b"\n"), GUARD_SECONDS)
        if not line:
            raise EOFError
        event: Raw = json.loads(line)
        return event

    async def names(self, number: int) -> list[tuple[str, str]]:
        """Return the types of the next events, and the names of their objects."""
        found = [await self.next() for _ in range(number)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]


@asynccontextmanager
async def served(
    *objects: Raw,
    documents: KubernetesDocuments | None = None,
    settings: ServerSettings | None = None,
    limits: ServerLimits | None = None,
    backend: LocalBackend | None = None,
    pages: Pages | None = None,
) -> AsyncIterator[Client]:
    """Provide a server with these objects, and a client of it."""
    backend = backend or LocalBackend(*objects)
    server = Server(backend, documents, settings or ServerSettings(limits=limits or ServerLimits()), pages)
    await server.start()
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector, auto_decompress=True) as session:
            yield Client(session, server, backend)
    finally:
        await server.stop()


def with_server(check: Callable[[Client], Awaitable[None]], *objects: Raw, **more: Any) -> None:
    """Run a check against a server with these objects."""

    async def run() -> None:
        async with asyncio.timeout(5 * GUARD_SECONDS), served(*objects, **more) as client:
            await check(client)

    RUN(run())


async def until_closed(writer: asyncio.StreamWriter) -> None:
    """Write until the other side wants no more. Raises ConnectionError."""
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)
