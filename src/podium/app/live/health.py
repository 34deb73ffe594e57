"""What a scheduler tells those who ask how it is: `/healthz`, `/livez`, `/readyz`, `/metrics`.

Source: cmd/kube-scheduler/app/server.go (newHealthEndpointsAndMetricsHandler).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from podium.api.errors import InputError, shown
from podium.server.http.exchange import Pages
from podium.server.http.handler import health_text
from podium.server.http.security import is_foreign_host, is_loopback, ssl_context
from podium.server.http.settings import TLS, read_token

_PATHS = ("/healthz", "/livez", "/readyz")
_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Where to listen; ``port`` None is nowhere, 0 any port. ``token_file`` holds what who wants metrics must show.

    With ``has_page`` browsers are shown a page there, and who wants to see the cluster in it must show what
    ``page_token_file`` holds, "" for nothing.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""
    has_page: bool = False
    page_token_file: str = ""

    @property
    def tls(self) -> TLS | None:
        """The files by which connections are secured; None for plain ones."""
        if not self.certificate_file:
            return None
        return TLS(certificate_file=self.certificate_file, key_file=self.key_file)

    def check(self) -> None:
        """Raise InputError for a place where so much must not be told to everybody."""
        if self.has_page and self.port is None:
            raise InputError("--page needs a port: give it --port")
        if self.port is None or is_loopback(self.host):
            return
        where = f"--bind-address {shown(self.host)} can be reached by others"
        if not self.certificate_file or not self.key_file:
            raise InputError(f"{where}: give it --tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1")
        if not self.token_file:
            raise InputError(f"{where}: give it --metrics-token-file, or listen on 127.0.0.1")
        if self.has_page and not self.page_token_file:
            raise InputError(f"{where}: give --page a --page-token-file, or listen on 127.0.0.1")


class Health:
    """A small HTTP server; ``problems`` are what keeps the program from being ready, each by what it is about."""

    def __init__(
        self,
        settings: HealthSettings,
        metrics: Callable[[], bytes],
        alive: Callable[[], dict[str, str]],
        ready: Callable[[], dict[str, str]],
        content_type: str,
        pages: Pages | None = None,
    ) -> None:
        self._settings = settings
        self._pages = pages
        self._metrics = metrics
        self._checks = {"/healthz": alive, "/livez": alive, "/readyz": ready}
        self._content_type = content_type
        self._runner: web.AppRunner | None = None
        self._token = b""

    async def start(self) -> str:
        """Listen; the URL, "" where there is none. Raises InputError where it cannot."""
        settings = self._settings
        if settings.port is None:
            return ""
        settings.check()
        if settings.token_file:
            self._token = read_token(settings.token_file, is_shared=True).encode()
        app = web.Application(client_max_size=1)
        app.router.add_get("/metrics", self._tell_metrics)
        for path in _PATHS:
            app.router.add_get(path, self._tell)
        if self._pages is not None:
            self._add_page(app, self._pages)
        context = ssl_context(settings.tls)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            problem = f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}"
            raise InputError(problem) from None
        self._runner = runner
        port = runner.addresses[0][1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{'http' if context is None else 'https'}://{host}:{port}"

    def _add_page(self, app: web.Application, pages: Pages) -> None:
        # Few want one.
        from podium.app.serving.page.aside import PageAside

        file = self._settings.page_token_file
        aside = PageAside(pages, self._settings.host, read_token(file) if file else "")
        app.router.add_route("*", "/ui{rest:(/.*)?}", aside.answer)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _tell(self, request: web.Request) -> web.Response:
        self._check_host(request)
        problems = sorted(self._checks[request.path]().items())
        is_verbose = "verbose" in request.query
        text, code = health_text(request.path.removeprefix("/"), problems, is_verbose=is_verbose, tells_reasons=True)
        return web.Response(text=text, status=code, headers=_HEADERS)

    async def _tell_metrics(self, request: web.Request) -> web.Response:
        self._check_host(request)
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            return web.Response(text="Unauthorized\n", status=401, headers=_HEADERS)
        return web.Response(body=self._metrics(), headers={"Content-Type": self._content_type})

    def _check_host(self, request: web.Request) -> None:
        """Turn away what a page of somebody else's makes a browser ask (DNS rebinding)."""
        if is_foreign_host(request.headers.get("Host", ""), self._settings.host):
            raise web.HTTPForbidden(text="this host is not known here\n")
