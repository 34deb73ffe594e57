"""What a scheduler tells those who ask how it is: `/healthz`, `/livez`, `/readyz`, `/metrics`.

Source: cmd/kube-scheduler/app/server.go (newHealthEndpointsAndMetricsHandler).
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from podium.api.errors import InputError, shown
from podium.server.http.security import is_loopback

_PATHS = ("/healthz", "/livez", "/readyz")
_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Where to listen; ``port`` None is nowhere, 0 any port. ``token_file`` holds what who wants metrics must show."""

    host: str = "127.0.0.1"
    port: int | None = None
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""

    def check(self) -> None:
        """Raise InputError for a place where so much must not be told to everybody."""
        if self.port is None or is_loopback(self.host):
            return
        where = f"--bind-address {shown(self.host)} can be reached by others"
        if not self.certificate_file or not self.key_file:
            raise InputError(f"{where}: give it --tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1")
        if not self.token_file:
            raise InputError(f"{where}: give it --metrics-token-file, or listen on 127.0.0.1")


class Health:
    """A small HTTP server; ``problems`` are what keeps the program from being ready, each by what it is about."""

    def __init__(
        self,
        settings: HealthSettings,
        metrics: Callable[[], bytes],
        alive: Callable[[], dict[str, str]],
        ready: Callable[[], dict[str, str]],
        content_type: str,
    ) -> None:
        self._settings = settings
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
            self._token = _read_token(settings.token_file)
        app = web.Application(client_max_size=1)
        app.router.add_get("/metrics", self._tell_metrics)
        for path in _PATHS:
            app.router.add_get(path, self._tell)
        context = _context(settings)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
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

    async def stop(self) -> None:
        """Listen no longer."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _tell(self, request: web.Request) -> web.Response:
        self._check_host(request)
        problems = self._checks[request.path]()
        if not problems and "verbose" not in request.query:
            return web.Response(text="ok", headers=_HEADERS)
        lines = [f"[-]{name} failed: {problem}" for name, problem in sorted(problems.items())]
        lines.append(f"{request.path.removeprefix('/')} check {'failed' if problems else 'passed'}")
        return web.Response(text="\n".join(lines) + "\n", status=500 if problems else 200, headers=_HEADERS)

    async def _tell_metrics(self, request: web.Request) -> web.Response:
        self._check_host(request)
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            return web.Response(text="Unauthorized\n", status=401, headers=_HEADERS)
        return web.Response(body=self._metrics(), headers={"Content-Type": self._content_type})

    def _check_host(self, request: web.Request) -> None:
        """Turn away what a page of somebody else's makes a browser ask (DNS rebinding)."""
        host = request.headers.get("Host", "").rpartition(":")[0].strip("[]") or request.headers.get("Host", "")
        if is_loopback(self._settings.host) and host and not is_loopback(host):
            raise web.HTTPForbidden(text="this host is not known here\n")


def _context(settings: HealthSettings) -> ssl.SSLContext | None:
    if not settings.certificate_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file or None)
    except (OSError, ssl.SSLError):
        raise InputError("is no certificate with its key, as PEM", source=settings.certificate_file) from None
    return context


def _read_token(path: str) -> bytes:
    try:
        token = Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if len(token) < 16:
        raise InputError("holds a token of less than 16 letters; make it longer", source=path)
    return token
