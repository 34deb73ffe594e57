"""Watch streams, which cost nothing while there are no events.

An event wakes the streams concerned, and their output is written in the loop's next iteration. The output buffered for
a slow client is bounded; at the bound its stream stops pulling until the client has read. A client that reads nothing
for too long is disconnected, without any effect on others. Source: apiserver (pkg/endpoints/handlers/watch.go,
pkg/storage/cacher).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from aiohttp.abc import AbstractStreamWriter

from podium.api.meta import Raw
from podium.server.backend import Backend
from podium.server.http.replies import MakeTable, ResponseForm, metadata_of
from podium.server.http.security import ServerLimits
from podium.server.protobuf import encode, encode_event
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError
from podium.store.listing import Notice, Watch
from podium.store.stored import encoded, framed
from podium.store.webhook_calls import CallNeededError, WebhookCall

_LOG = logging.getLogger("podium.server")
# More events than this are written by the stream's own task, so that other tasks can run.
_MANY = 100
_LONGEST_PAUSE_SECONDS = 0.05


@dataclass(slots=True, eq=False)
class Stream:
    """A watch that is sent to a client. `run` sends it until its end; `end` ends it from outside.

    The ``transport`` is for immediate writes, the ``writer`` tracks flow control.
    """

    watch: Watch
    formatter: EventFormatter
    transport: asyncio.Transport
    writer: AbstractStreamWriter
    hub: Hub
    bookmarks: bool
    # Events that were pulled and not yet written; while there are any, or the client is slow, the stream does not pull.
    _pending: deque[Notice] = field(default_factory=deque)
    _is_stalled: bool = False
    _is_ended: bool = False
    # The call of the webhook that converts the next events.
    _needed: WebhookCall | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, seconds: float) -> None:
        """Send events for this many seconds, or until the stream is ended."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        next_bookmark = loop.time() + self.hub.limits.bookmark_seconds if self.bookmarks else end
        self.watch.wake_by(partial(self.hub.wake, self))
        try:
            while not self._is_ended:
                await self._wait(min(end, next_bookmark) - loop.time())
                if self._is_stalled:
                    await self._catch_up()
                now = loop.time()
                if now >= end:
                    return
                if self.bookmarks and now >= next_bookmark:
                    next_bookmark = now + self.hub.limits.bookmark_seconds
                    self._send_bookmark()
        finally:
            self.watch.close()

    def end(self) -> None:
        """End the stream after what it has sent."""
        self._is_ended = True
        self._changed.set()

    def send(self, frames: Frames) -> None:
        if self._is_stalled or self._is_ended or self.transport.is_closing():
            return
        if self.hub.backend.is_busy:
            self.hub.wake(self)
            return
        self.hub.keep()
        try:
            notices = self.watch.pull()
        except CallNeededError as needed:
            self._needed = needed.call
            self._stall([])
            return
        except StoreError as error:
            self.fail(error)
            return
        if len(notices) > _MANY:
            self._stall(notices)
            return
        if notices:
            self.transport.write(self._chunks(notices, frames))
        if self.watch.is_ended:
            self.end()
        elif notices and self.transport.get_write_buffer_size() > self.hub.limits.pending_bytes:
            self._stall([])

    def _resume(self) -> None:
        self._is_stalled = False
        self.send(Frames())

    def _stall(self, notices: list[Notice]) -> None:
        self._pending.extend(notices)
        self._is_stalled = True
        self._changed.set()

    def fail(self, error: StoreError) -> None:
        """End the stream because its events cannot be sent."""
        self.transport.write(error_chunk(error, self.formatter.form))
        self.end()

    def _send_bookmark(self) -> None:
        """Send a bookmark, after the events that are still pending."""
        frames = Frames()
        self.send(frames)
        is_waiting = self._is_stalled or self.hub.backend.is_busy
        if not is_waiting and not self._is_ended and not self.transport.is_closing():
            self.transport.write(self._chunks([self.watch.bookmark()], frames))

    def _chunks(self, notices: Iterable[Notice], frames: Frames) -> bytes:
        chunk = self.formatter.chunk
        return b"".join([chunk(notice, frames) for notice in notices])

    async def _wait(self, seconds: float) -> None:
        """Wait for a change that `send` leaves to the task."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        self._changed.clear()

    async def _catch_up(self) -> None:
        """Write pending events at the client's pace until none are left.

        A client that does not read is disconnected.
        """
        while not self._is_ended:
            await self.writer.drain()
            if not self._pending:
                call, self._needed = self._needed, None
                if call is None:
                    self._resume()
                else:
                    await self.hub.backend.continue_with(call, self._resume)
                if not self._is_stalled:
                    return
                continue
            notices = [self._pending.popleft() for _ in range(min(_MANY, len(self._pending)))]
            self.transport.write(self._chunks(notices, Frames()))
            await asyncio.sleep(0)


@dataclass(slots=True, eq=False)
class Hub:
    """All streams of a server; those with new events are written in one iteration of the loop.

    ``keep`` returns when the writes behind these events are durable.
    """

    limits: ServerLimits
    keep: Callable[[], None]
    backend: Backend
    _streams: set[Stream] = field(default_factory=set)
    _woken: list[Stream] = field(default_factory=list)
    _is_called: bool = False
    _waiting: asyncio.Future[None] | None = None
    # The duration of the last pass, and its end: after a long one, other tasks run first.
    _took_seconds: float = 0.0
    _ended_seconds: float = 0.0

    @contextmanager
    def register(self, stream: Stream) -> Iterator[None]:
        """Register a stream while it is sent."""
        self._streams.add(stream)
        try:
            yield
        finally:
            self._streams.discard(stream)

    def end_all(self) -> None:
        for stream in list(self._streams):
            stream.end()

    def wake(self, stream: Stream) -> None:
        """Schedule the output of a stream. It may be called within a write."""
        self._woken.append(stream)
        if self._is_called:
            return
        self._is_called = True
        loop = asyncio.get_running_loop()
        pause = min(self._took_seconds, _LONGEST_PAUSE_SECONDS) - (loop.time() - self._ended_seconds)
        if pause > 0:
            loop.call_later(pause, self._send_all)
        else:
            loop.call_soon(self._send_all)

    def _send_all(self) -> None:
        if self.backend.is_busy:
            self._waiting = asyncio.ensure_future(self.backend.idle())
            self._waiting.add_done_callback(lambda _: self._send_all())
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._is_called = False
        woken, self._woken = self._woken, []
        frames = Frames()
        for stream in woken:
            try:
                stream.send(frames)
            except Exception:
                # Continue with the other streams, which would not be woken again for these events.
                _LOG.exception("a watch cannot go on")
                stream.fail(StoreError(500, "InternalError", "Internal error occurred: the server's log has more"))
        self._ended_seconds = loop.time()
        self._took_seconds = self._ended_seconds - began


class Frames:
    """The events of one iteration of the event loop, each encoded on first use.

    A frame ends with a newline, and is a chunk of chunked transfer encoding.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, str, bool], bytes] = {}

    def chunk(self, notice: Notice, *, in_protobuf: bool = False) -> bytes:
        """Return the event with the object as it is, as an HTTP chunk."""
        # The notice keeps the stored object alive, so its id is not reused meanwhile.
        key = id(notice.stored), notice.type, in_protobuf
        made = None if notice.stored is None else self._made.get(key)
        if made is None:
            made = _protobuf_chunk(notice.type, notice.raw) if in_protobuf else chunked(notice.encoded())
            if notice.stored is not None:
                self._made[key] = made
        return made


@dataclass(slots=True)
class EventFormatter:
    """A formatter for the events of one watch: plain, tables, or metadata."""

    resource: APIResource
    form: ResponseForm
    make_table: MakeTable
    _has_columns: bool = False

    def chunk(self, notice: Notice, frames: Frames) -> bytes:
        if not self.form.kind:
            return frames.chunk(notice, in_protobuf=self.form.is_protobuf)
        raw = self._table(notice) if self.form.is_table else metadata_of(notice.raw, self.form)
        return frames.chunk(Notice(notice.type, raw, notice.version), in_protobuf=self.form.is_protobuf)

    def _table(self, notice: Notice) -> Raw:
        """Return the object as a table row; only the first table has column definitions."""
        objects = [] if notice.type == "BOOKMARK" else [notice.raw]
        table = self.make_table(self.resource, objects)
        names = ("resourceVersion",) if objects else ("resourceVersion", "annotations")
        list_metadata = {name: value for name, value in notice.raw["metadata"].items() if name in names}
        if self._has_columns:
            table = {name: value for name, value in table.items() if name != "columnDefinitions"}
        self._has_columns = True
        return {**table, "metadata": list_metadata}


def error_chunk(error: StoreError, form: ResponseForm) -> bytes:
    """Return the error event that ends a failed watch."""
    if form.is_protobuf:
        return _protobuf_chunk("ERROR", error.to_dict())
    return chunked(framed("ERROR", encoded(error.to_dict())))


def chunked(event: bytes) -> bytes:
    """Return an event with a newline, as an HTTP chunk."""
    return b"%x\r\n%b\n\r\n" % (len(event) + 1, event)


def _protobuf_chunk(type_: str, raw: Raw) -> bytes:
    """Return an event in protobuf, as an HTTP chunk."""
    frame = encode_event(type_, encode(raw))
    return b"%x\r\n%b\r\n" % (len(frame), frame)
