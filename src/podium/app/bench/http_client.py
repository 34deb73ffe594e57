"""A client for the server to be measured with, which does little so that it takes little of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import perf_counter_ns

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"Content-Length: "
_LIMIT = 64 * 1024 * 1024


def request(method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """A request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


async def ask_all(port: int, requests: Iterable[bytes], connections: int) -> list[int]:
    """Send requests over so many connections, each as soon as one is free; the time that each took.

    Raises RuntimeError for one that is refused.
    """
    waiting = iter(requests)
    times: list[int] = []

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LIMIT)
        for data in waiting:
            began = perf_counter_ns()
            writer.write(data)
            await _answer(reader)
            times.append(perf_counter_ns() - began)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(work() for _ in range(connections)))
    return times


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(_HEAD_END)
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"the server refused a request: {head[:100]!r}")
    begin = head.index(_LENGTH) + len(_LENGTH)
    await reader.readexactly(int(head[begin : head.index(b"\r\n", begin)]))


class Watcher:
    """A watch that counts what it is told."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        self._path = path
        self._task: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._changed = asyncio.Event()
        self.events = 0
        self.bytes = 0

    async def open(self) -> None:
        """Begin to watch."""
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LIMIT)
        self._writer.write(request("GET", self._path))
        await reader.readuntil(_HEAD_END)
        self._task = asyncio.create_task(self._read(reader))

    async def until(self, events: int) -> None:
        """Wait until so many events have been told."""
        while self.events < events:
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        """Watch no longer."""
        if self._writer is not None and self._task is not None:
            self._writer.close()
            await self._task

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1024 * 1024):
            self.bytes += len(data)
            # An event is a line, and no object has a line's end in it.
            self.events += data.count(b"\n\r\n")
            self._changed.set()
