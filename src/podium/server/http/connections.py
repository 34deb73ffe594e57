"""Connections: how long one may be idle or take to say what it wants, and what is answered to what is no HTTP."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiohttp.web import BaseRequest, RequestPayloadError, Response, StreamResponse
from aiohttp.web import Server as Connections
from aiohttp.web_protocol import RequestHandler

from podium.server.http.replies import of_error
from podium.server.http.settings import Limits
from podium.store.encoding import encoded
from podium.store.errors import StoreError

_LOG = logging.getLogger("podium.server")
# A request's first line, beside its headers.
_MOST_OF_A_LINE = 1024 * 1024
_MOST_HEADERS = 500


class LimitedConnection(RequestHandler):
    """A connection whose client has so long, and so many bytes, for what comes before a body, and so long to read."""

    def __init__(self, manager: Connections, limits: Limits, **more: Any) -> None:
        super().__init__(manager, **more)
        self._limits = limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and watch over those of a head that is not complete."""
        before = self._request_count
        super().data_received(data)
        if self._request_count != before or self._waiter is None:
            # A request is complete, or under way.
            self._forget_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._limits.header_bytes + _MOST_OF_A_LINE:
            self._refuse(StoreError(431, "", "Request Header Fields Too Large"))
        elif self._head_timer is None and data:
            seconds = self._limits.header_seconds
            self._head_timer = asyncio.get_running_loop().call_later(seconds, self.force_close)

    def pause_writing(self) -> None:
        """The client has not read what waits for it; one that does not for long is dropped."""
        super().pause_writing()
        self._stall_timer = asyncio.get_running_loop().call_later(self._limits.stall_seconds, self._drop)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget what was to be watched over."""
        self._forget_head()
        self._forget_stall()
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Write down what went wrong here, and not what a client sent."""
        if not isinstance(more.get("exc_info"), RequestPayloadError):
            _LOG.error(*args, **more)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """The answer to what is no HTTP, or could not be answered."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the reply is sent already")
        if status >= 500:
            _LOG.error("a request could not be answered", exc_info=exc)
            error = StoreError(status, "InternalError", "Internal error occurred")
        else:
            error = StoreError(status, "BadRequest", f"this is no request in HTTP/1.1: {message or exc}")
        response = Response(body=encoded(error.to_dict()), status=status, headers={"Server": "podium"})
        response.content_type = "application/json"
        response.force_close()
        return response

    def _refuse(self, error: StoreError) -> None:
        """Answer a request that has no end, and read no more."""
        if self.transport is not None:
            body = b"".join(of_error(error).pieces)
            head = f"HTTP/1.1 {error.code} {error.message}\r\nConnection: close\r\nContent-Type: application/json\r\n"
            self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.force_close()

    def _drop(self) -> None:
        """End the connection with all that waits in it."""
        if self.transport is not None:
            self.transport.abort()

    def _forget_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _forget_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class LimitedConnections(Connections):
    """The connections of a server."""

    def __init__(self, handler: Any, limits: Limits) -> None:
        super().__init__(handler, handler_cancellation=True)
        self._limits = limits

    def __call__(self) -> LimitedConnection:
        """A connection that comes."""
        limits = self._limits
        return LimitedConnection(
            self,
            limits,
            loop=self._loop,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=_MOST_OF_A_LINE,
            max_field_size=limits.header_bytes,
            max_headers=_MOST_HEADERS,
            lingering_time=1.0,
            auto_decompress=False,
            access_log=None,
            logger=_LOG,
        )
