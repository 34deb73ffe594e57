"""A connection to an API server with cuts, late bytes and lost answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from podium.api.versions.release import Release
from podium.apirequests.request import Request, Response
from podium.server.backend import Backend
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError

_REASONS = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultyWire:
    """Forwards a port to another one; every now and then a connection ends in the middle, or stands still for a while.

    With ``rate`` 0 all goes well. ``latency_s`` is how long everything takes. ``cuts`` counts what was cut.
    """

    def __init__(self, port: int, seed: int) -> None:
        self._target = port
        self._random = Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self.rate = 0.0
        self.latency_s = 0.0
        self.cuts = 0
        self.delays = 0
        self.port = 0

    async def __aenter__(self) -> FaultyWire:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut_all()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_all(self) -> None:
        """End all connections without a word."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, there_writer}
        try:
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for each in (writer, there_writer):
                each.transport.abort()
                self._open.discard(each)
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            drawn = self._random.random()
            if drawn < self.rate:
                # A part arrives, and then the connection is dead.
                writer.write(data[: self._random.randrange(len(data) + 1)])
                self.cuts += 1
                raise ConnectionResetError
            if drawn < 2 * self.rate:
                self.delays += 1
                await asyncio.sleep(0.1 * self._random.random())
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError


class FaultyBackend(Backend):
    """A backend that refuses at times what it could do, or says that it did not do what it did.

    ``asked`` counts requests, ``refused`` by what was answered in place of the truth.
    """

    def __init__(self, backend: Backend, seed: int) -> None:
        self._backend = backend
        self._random = Random(seed)
        self.rate = 0.0
        self.asked = 0
        self.refused: Counter[str] = Counter()

    @property
    def release(self) -> Release:
        return self._backend.release

    @property
    def resources(self) -> APIResources:
        return self._backend.resources

    def now(self) -> int:
        return self._backend.now()

    def answer(self, request: Request) -> Response:
        self.asked += 1
        if self._random.random() >= self.rate:
            return self._backend.answer(request)
        if request.verb == "watch":
            return self._refusal("410", 410, "Expired")
        kind = self._random.choice(["429", "500", "503", "504 before", "504 after", "500 after", "409"])
        if kind == "409" and request.verb in ("get", "list"):
            kind = "500"
        if kind.endswith("after"):
            self._backend.answer(request)
        code = int(kind[:3])
        return self._refusal(kind, code, _REASONS[code])

    def _refusal(self, kind: str, code: int, reason: str) -> Response:
        self.refused[kind] += 1
        return Response(code=code, error=StoreError(code, reason, "by way of a test"))
