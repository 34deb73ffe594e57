"""The API server over HTTP: listening, start, shutdown, and the event loops of servers and clients."""

from __future__ import annotations

import asyncio
import errno
import faulthandler
import logging
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiohttp.web import BaseRequest, RequestPayloadError, Response, StreamResponse
from aiohttp.web import Server as Connections
from aiohttp.web_protocol import RequestHandler

from podium.api.errors import InputError, shown
from podium.server.backend import Backend
from podium.server.http.exchange import Pages
from podium.server.http.handler import Handler
from podium.server.http.replies import of_error
from podium.server.http.security import Guard, ServerLimits, ServerSettings, check_settings, ssl_context
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.store.errors import StoreError

_DEFAULT = ServerSettings()
Result = TypeVar("Result")
_BACKLOG = 1_024
_LOG = logging.getLogger("podium.server")
# The maximum size of the request line, which is not part of the headers.
_MOST_OF_A_LINE = 1024 * 1024
_MOST_HEADERS = 500


class Server:
    """An HTTP server for a backend, which runs on the event loop that starts it."""

    def __init__(
        self,
        backend: Backend,
        documents: KubernetesDocuments | None = None,
        settings: ServerSettings = _DEFAULT,
        pages: Pages | None = None,
    ) -> None:
        """Check the settings. Raises InputError for settings that leave the server unprotected."""
        check_settings(settings)
        self._settings = settings
        self._guard = Guard(settings)
        self._handler = Handler(backend, documents or KubernetesDocuments(backend), settings, self._guard, pages)
        self._listener: asyncio.Server | None = None
        self._connections: Connections | None = None
        self.port = settings.port
        """The port on which the server listens, once it does."""
        # Use one address: a name may have two, each with a different free port.
        host = settings.host.strip("[]")
        self._host = "127.0.0.1" if host.lower() == "localhost" else host

    async def start(self) -> None:
        """Start to listen. Raises InputError if that is not possible."""
        settings, loop = self._settings, asyncio.get_running_loop()
        context = ssl_context(settings.tls)
        connections = self._connections = Connections(self._handler, handler_cancellation=True)
        try:
            self._listener = await loop.create_server(
                lambda: LimitedConnection(connections, settings.limits, loop=loop),
                self._host,
                settings.port,
                ssl=context,
                backlog=_BACKLOG,
                ssl_handshake_timeout=settings.limits.handshake_seconds if context is not None else None,
            )
        except OSError as error:
            where = f"{shown(settings.host)}, port {settings.port}"
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                why = "another process listens there"
            elif error.errno == errno.EACCES:
                why = "only privileged processes may use ports below 1024"
            raise InputError(f"the server cannot listen on {where}: {why}") from None
        self.port = self._listener.sockets[0].getsockname()[1]

    @property
    def address(self) -> str:
        """The server's URL for clients. A server on all addresses is given by a local address."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 - it is asked for
        host = f"[{host}]" if ":" in host else host
        return f"{'http' if self._settings.tls is None else 'https'}://{host}:{self.port}"

    async def stop(self) -> None:
        """Stop: accept no more connections, end all watches, and wait for requests in flight, up to a limit."""
        self._handler.is_stopping = True
        if self._listener is None or self._connections is None:
            return
        listener, self._listener = self._listener, None
        listener.close()
        self._handler.hub.end_all()
        self._connections.pre_shutdown()
        await self._connections.shutdown(self._settings.limits.stop_seconds)
        await listener.wait_closed()


class LimitedConnection(RequestHandler):
    """A connection with limits on the time and size of request heads, and on the time for reading responses."""

    def __init__(self, manager: Connections, limits: ServerLimits, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=_MOST_OF_A_LINE,
            max_field_size=limits.header_bytes,
            max_headers=_MOST_HEADERS,
            lingering_time=1.0,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]
            logger=_LOG,
        )
        self._limits = limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Process received bytes, and enforce the limits of an incomplete head."""
        before = self._request_count
        super().data_received(data)
        if self._request_count != before or self._waiter is None:
            # A request is complete, or in progress.
            self._forget_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._limits.header_bytes + _MOST_OF_A_LINE:
            self._refuse(StoreError(431, "", "Request Header Fields Too Large"))
        elif self._head_timer is None and data:
            seconds = self._limits.header_seconds
            self._head_timer = asyncio.get_running_loop().call_later(seconds, self.force_close)

    def pause_writing(self) -> None:
        """Start the stall timer, because the client does not read; it drops the connection and what is pending."""
        super().pause_writing()
        if self.transport is not None:
            loop = asyncio.get_running_loop()
            self._stall_timer = loop.call_later(self._limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the stall timer, because the client has read."""
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_head()
        self._forget_stall()
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log errors of the server, not those of the client."""
        if not isinstance(more.get("exc_info"), RequestPayloadError):
            _LOG.error(*args, **more)

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """Return the response to malformed HTTP, or to a request that failed."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the reply is sent already")
        if status >= 500:
            _LOG.error("a request could not be answered", exc_info=exc)
            error = StoreError(status, "InternalError", "Internal error occurred")
        else:
            error = StoreError(status, "BadRequest", f"this is not a request in HTTP/1.1: {message or exc}")
        response = Response(body=b"".join(of_error(error).pieces), status=status, headers={"Server": "podium"})
        response.content_type = "application/json"
        response.force_close()
        return response

    def _refuse(self, error: StoreError) -> None:
        """Answer a request that is incomplete, and read no further."""
        if self.transport is not None:
            body = b"".join(of_error(error).pieces)
            head = f"HTTP/1.1 {error.code} {error.message}\r\nConnection: close\r\nContent-Type: application/json\r\n"
            self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.force_close()

    def _forget_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _forget_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a server until it ends, on uvloop if that is installed."""
    _show_stacks()
    try:
        import uvloop  # noqa: PLC0415 - there is none for Windows
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def run_client(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a client program until it ends, on asyncio's own loop.

    Under uvloop a connection attempt that is cancelled, as when an API server is down, may abort the whole process
    (github.com/libuv/libuv/issues/5130).
    """
    _show_stacks()
    return asyncio.run(main)


def _show_stacks() -> None:
    """Enable stack dumps of all threads on stderr if native code aborts or crashes."""
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
