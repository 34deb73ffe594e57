"""Watches as they are sent: one stream for each, which costs nothing while nothing happens.

What happens wakes the streams concerned, and what they have to tell is written in the loop's next turn. A client that
does not read is given no more than a bounded number of bytes; its stream stops pulling then, and goes on when it has
read. One that reads nothing for too long is dropped, which nobody else notices.
Source: apiserver (pkg/endpoints/handlers/watch.go, pkg/storage/cacher).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from aiohttp.abc import AbstractStreamWriter

from podium.server.http.frames import Frames, Shaper, error_chunk
from podium.server.http.settings import Limits
from podium.store.errors import StoreError
from podium.store.reads.watch import Notice, Watch

_LOG = logging.getLogger("podium.server")
# More events at once than this are written by the stream's own task, so that others have their turn.
_MANY = 100
_LONGEST_PAUSE_SECONDS = 0.05


class Connection(NamedTuple):
    """Where a stream writes: the transport at once, and the writer that knows when its client has read."""

    transport: asyncio.Transport
    writer: AbstractStreamWriter


class Stream:
    """One watch that is sent. `run` sends it to its end; `closing` is what ends it from outside."""

    def __init__(self, watch: Watch, shaper: Shaper, connection: Connection, hub: Hub, *, bookmarks: bool) -> None:
        self._watch = watch
        self._shaper = shaper
        self._transport = connection.transport
        self._writer = connection.writer
        self._hub = hub
        self._bookmarks = bookmarks
        self._limits = hub.limits
        # What has been pulled and is yet to be written; while there is any, or the client is slow, nobody pulls.
        self._pending: deque[Notice] = deque()
        self._is_stalled = False
        self._is_ended = False
        self._changed: asyncio.Event = asyncio.Event()

    async def run(self, seconds: float) -> None:
        """Send what happens for so many seconds, or until somebody ends it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        next_bookmark = loop.time() + self._limits.bookmark_seconds if self._bookmarks else end
        self._watch.wake_by(self._wake)
        try:
            while not self._is_ended:
                await self._wait(min(end, next_bookmark) - loop.time())
                if self._is_stalled:
                    await self._catch_up()
                now = loop.time()
                if now >= end:
                    return
                if self._bookmarks and now >= next_bookmark:
                    next_bookmark = now + self._limits.bookmark_seconds
                    self._send_bookmark()
        finally:
            self._watch.close()

    def end(self) -> None:
        """Let the stream end with what it has sent."""
        self._is_ended = True
        self._changed.set()

    def tell(self, frames: Frames) -> None:
        """Send what has happened."""
        if self._is_stalled or self._is_ended or self._transport.is_closing():
            return
        self._hub.keep()
        try:
            notices = self._watch.pull()
        except StoreError as error:
            self._give_up(error)
            return
        if len(notices) > _MANY:
            self._stall(notices)
            return
        if notices:
            shaper = self._shaper
            self._transport.write(b"".join([shaper.chunk(notice, frames) for notice in notices]))
        if self._watch.is_ended:
            self.end()
        elif notices and self._transport.get_write_buffer_size() > self._limits.pending_bytes:
            self._stall([])

    def _wake(self) -> None:
        self._hub.wake(self)

    def _stall(self, notices: list[Notice]) -> None:
        self._pending.extend(notices)
        self._is_stalled = True
        self._changed.set()

    def fail(self) -> None:
        """End the stream: it could not be told what has happened."""
        self._give_up(StoreError(500, "InternalError", "Internal error occurred: the server's log has more"))

    def _give_up(self, error: StoreError) -> None:
        self._transport.write(error_chunk(error))
        self.end()

    def _send_bookmark(self) -> None:
        """Tell up to where everything is known. What is not yet told is told first."""
        frames = Frames()
        self.tell(frames)
        if not self._is_stalled and not self._is_ended and not self._transport.is_closing():
            self._transport.write(self._shaper.chunk(self._watch.bookmark(), frames))

    async def _wait(self, seconds: float) -> None:
        """Until something changes that `tell` leaves to the task."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _catch_up(self) -> None:
        """Write what waits as fast as the client reads, until nothing waits. One that does not read is dropped."""
        while not self._is_ended:
            await self._writer.drain()
            if not self._pending:
                self._is_stalled = False
                self.tell(Frames())
                if not self._is_stalled:
                    return
                continue
            frames = Frames()
            chunks = [self._shaper.chunk(notice, frames) for notice in islice(self._pending, _MANY)]
            for _ in chunks:
                self._pending.popleft()
            self._transport.write(b"".join(chunks))
            await asyncio.sleep(0)


def _nothing() -> None:
    """What there is to do before anything is told."""


class Hub:
    """All streams of a server: those that something has happened for are told in one turn of the loop.

    ``keep`` returns when what they may be told is kept.
    """

    def __init__(self, limits: Limits, keep: Callable[[], None] = _nothing) -> None:
        self.limits = limits
        self.keep = keep
        self._streams: set[Stream] = set()
        self._woken: list[Stream] = []
        self._is_called = False
        # How long the last turn took, and when it ended: after a long one others have their turn first.
        self._took_seconds = 0.0
        self._ended_seconds = 0.0

    @contextmanager
    def opened(self, stream: Stream) -> Iterator[None]:
        """Know a stream for as long as it is sent."""
        self._streams.add(stream)
        try:
            yield
        finally:
            self._streams.discard(stream)

    def end_all(self) -> None:
        """Let all streams end."""
        for stream in list(self._streams):
            stream.end()

    def wake(self, stream: Stream) -> None:
        """Tell a stream soon. It may be called within a write."""
        self._woken.append(stream)
        if self._is_called:
            return
        self._is_called = True
        loop = asyncio.get_running_loop()
        pause = min(self._took_seconds, _LONGEST_PAUSE_SECONDS) - (loop.time() - self._ended_seconds)
        if pause > 0:
            loop.call_later(pause, self._tell)
        else:
            loop.call_soon(self._tell)

    def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._is_called = False
        woken, self._woken = self._woken, []
        frames = Frames()
        for stream in woken:
            try:
                stream.tell(frames)
            except Exception:
                # The others are told all the same: nobody wakes them for this again.
                _LOG.exception("a watch cannot go on")
                stream.fail()
        self._ended_seconds = loop.time()
        self._took_seconds = self._ended_seconds - began
