"""A scheduler extender over HTTP with scripted answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.client.api_server import CUT, cut

Answer = Callable[[dict[str, Any]], Any]


@dataclass(eq=False)
class ExtenderServer:
    """``answers`` by verb; ``asked`` are the verbs with what came. One in ``silent`` is not answered until the end.

    An answer that is CUT ends the connection instead.
    """

    answers: dict[str, Answer]
    silent: set[str] = field(default_factory=set)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ssl: Any = None

    async def __aenter__(self) -> ExtenderServer:
        self.ending = asyncio.Event()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/scheduler/{verb}", self.answer)
        self.runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.ssl).start()
        port = self.runner.addresses[0][1]
        self.url = f"{'https' if self.ssl else 'http'}://127.0.0.1:{port}/scheduler"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.ending.set()
        await self.runner.cleanup()

    async def answer(self, http: web.Request) -> web.StreamResponse:
        verb, args = http.match_info["verb"], await http.json()
        self.asked.append((verb, args))
        if verb in self.silent:
            await self.ending.wait()
        made = self.answers[verb](args)
        if asyncio.iscoroutine(made):
            made = await made
        if made is CUT:
            return cut(http)
        return made if isinstance(made, web.StreamResponse) else web.json_response(made)

    def of(self, verb: str) -> list[dict[str, Any]]:
        """Return what was asked by a verb."""
        return [args for asked, args in self.asked if asked == verb]
