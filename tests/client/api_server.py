"""A small API server over HTTP, with faults on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from podium.apirequests.http_mapping import incoming_request, patch_type, place_of, request_of
from podium.apirequests.parameters import read_parameters
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import SECOND, Raw

NOW = 1_767_225_600 * SECOND
CUT = web.StreamResponse()
"""The answer that is none: the connection ends instead."""

Fault = Callable[[Request], Awaitable["web.StreamResponse | None"]]


@dataclass(eq=False)
class APIServer:
    """Serves a store on a port of its own; ``fault`` may answer in its place, before or after it has acted.

    ``sent`` are all requests but watches, ``watches`` the options of those; ``headers`` are those of each request.
    """

    store: Store = field(default_factory=Store)
    before: Fault | None = None
    after: Fault | None = None
    serves_watch_lists: bool = True
    sent: list[Request] = field(default_factory=list)
    watches: list[Request] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    now: int = NOW
    watching: list[asyncio.Transport] = field(default_factory=list)
    ssl: Any = None

    async def __aenter__(self) -> APIServer:
        self.router = Router(self.store, takes_history=True)
        self.ending = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        self.runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.ssl)
        await site.start()
        self.port = self.runner.addresses[0][1]
        self.url = f"{'https' if self.ssl else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.ending.set()
        await self.runner.cleanup()

    def add(self, *objects: Raw) -> None:
        for raw in objects:
            self.store.create(raw, now=self.now)

    def cut_watches(self) -> None:
        """Break all connections on which something is watched."""
        for transport in tuple(self.watching):
            transport.abort()

    async def answer(self, http: web.Request) -> web.StreamResponse:
        self.headers.append(dict(http.headers))
        try:
            request = await self.read(http)
        except StoreError as error:
            return said(Response(code=error.code, error=error))
        (self.watches if request.verb == "watch" else self.sent).append(request)
        if self.before is not None:
            response = await self.before(request)
            if response is not None:
                return cut(http) if response is CUT else response
        if request.verb == "watch":
            return await self.watch(http, request)
        answer = self.router.answer(request, self.now)
        if self.after is not None:
            response = await self.after(request)
            if response is not None:
                return cut(http) if response is CUT else response
        return said(answer)

    async def read(self, http: web.Request) -> Request:
        place = place_of(http.path, self.store.resources)
        if place is None:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        parameters = read_parameters(http.query.items())
        if parameters.options.send_initial_events is not None and not self.serves_watch_lists:
            raise StoreError(422, "Invalid", "sendInitialEvents is forbidden for watch")
        text = await http.read()
        body = json.loads(text) if text else None
        kind = patch_type(http.content_type) if http.method == "PATCH" else "merge"
        return request_of(incoming_request(http.method, place, parameters), body, kind)

    async def watch(self, http: web.Request, request: Request) -> web.StreamResponse:
        answer = self.router.answer(request, self.now)
        if answer.watch is None:
            return said(answer)
        watch, woken = answer.watch, asyncio.Event()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(http)
        transport = cast("asyncio.Transport", http.transport)
        self.watching.append(transport)
        ending = asyncio.ensure_future(self.ending.wait())
        watch.wake_by(woken.set)
        try:
            while not self.ending.is_set():
                waiting = asyncio.ensure_future(woken.wait())
                await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                woken.clear()
                try:
                    notices = watch.pull()
                except StoreError as error:
                    await response.write(json.dumps({"type": "ERROR", "object": error.to_dict()}).encode() + b"\n")
                    break
                for notice in notices:
                    await response.write(notice.encoded() + b"\n")
        except ConnectionError:
            pass
        finally:
            ending.cancel()
            watch.close()
            self.watching.remove(transport)
        return response


def cut(http: web.Request) -> web.StreamResponse:
    """End the connection without a word."""
    cast("asyncio.Transport", http.transport).abort()
    return web.Response()


def said(answer: Response, **headers: str) -> web.Response:
    """Return an answer as HTTP has it."""
    return web.Response(
        status=answer.code, body=json.dumps(answer.to_dict()), content_type="application/json", headers=headers
    )


def refusal(code: int, reason: str, *, retry_after: int | None = None) -> web.Response:
    """Return a Status of failure."""
    error = StoreError(code, reason, f"{reason} by way of a test")
    return said(Response(code=code, error=error), **({} if retry_after is None else {"Retry-After": str(retry_after)}))
