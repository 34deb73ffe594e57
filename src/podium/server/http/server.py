"""The API server over HTTP: where it listens, and how it begins and ends."""

from __future__ import annotations

import asyncio
import errno

from podium.api.errors import InputError, shown
from podium.server.backend import Backend
from podium.server.documents import Documents, NoDocuments
from podium.server.http.connections import LimitedConnections
from podium.server.http.handler import Handler
from podium.server.http.pages import Pages
from podium.server.http.security import Guard, check_settings, ssl_context
from podium.server.http.settings import Settings

_DEFAULT = Settings()
_BACKLOG = 1_024


class Server:
    """Serves a backend over HTTP, on the loop that starts it, until it is stopped."""

    def __init__(
        self,
        backend: Backend,
        documents: Documents | None = None,
        settings: Settings = _DEFAULT,
        pages: Pages | None = None,
    ) -> None:
        """Raises InputError for settings that leave the server open to others."""
        check_settings(settings)
        self._settings = settings
        self._guard = Guard(settings)
        self._handler = Handler(backend, documents or NoDocuments(), settings, self._guard, pages)
        self._listener: asyncio.Server | None = None
        self._connections: LimitedConnections | None = None
        self._port = settings.port
        # One address: behind a name there may be two, each with a free port of its own.
        host = settings.host.strip("[]")
        self._host = "127.0.0.1" if host.lower() == "localhost" else host

    async def start(self) -> None:
        """Begin to listen. Raises InputError where that cannot be done."""
        settings = self._settings
        context = ssl_context(settings.tls)
        self._connections = LimitedConnections(self._handler, settings.limits)
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connections,
                self._host,
                settings.port,
                ssl=context,
                backlog=_BACKLOG,
                ssl_handshake_timeout=settings.limits.handshake_seconds if context is not None else None,
            )
        except OSError as error:
            raise InputError(f"the server cannot listen on {self._where()}: {_why(error)}") from None
        self._port = self._listener.sockets[0].getsockname()[1]

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def address(self) -> str:
        """Where clients find it, as a URL. A server that listens everywhere is found on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 - it is asked for
        host = f"[{host}]" if ":" in host else host
        return f"{'http' if self._settings.tls is None else 'https'}://{host}:{self._port}"

    def takes_token(self, token: str) -> bool:
        """Whether the server lets somebody in who shows this token."""
        return self._guard.holder(token) is not None

    async def stop(self) -> None:
        """End: take no more connections, end all watches, and let what is under way be answered, for a while."""
        self._handler.is_stopping = True
        if self._listener is None or self._connections is None:
            return
        listener, self._listener = self._listener, None
        listener.close()
        self._handler.hub.end_all()
        self._connections.pre_shutdown()
        await self._connections.shutdown(self._settings.limits.stop_seconds)
        await listener.wait_closed()

    def _where(self) -> str:
        return f"{shown(self._settings.host)}, port {self._settings.port}"


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "somebody else does already"
    if error.errno == errno.EACCES:
        return "that is not allowed; ports from 1024 on are"
    return error.strerror or str(error)
