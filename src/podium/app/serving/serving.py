"""A control plane that is served until a signal or the end of its command."""

from __future__ import annotations

import asyncio
import hmac
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import yaml

from podium.api.errors import InputError
from podium.api.input.yaml import Dumper
from podium.api.meta import Raw, list_at, objects_at
from podium.apirequests.authorization import ISSUER, FlowControl, User, token_user
from podium.app.console.output import write_private
from podium.app.serving.page.live_page import LivePage
from podium.client.extenders import call_webhook
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.runtime.clock import SystemClock
from podium.server.http.security import TLS, ServerSettings, Token
from podium.server.http.server import Server
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.server.reviews import ADMINISTRATOR

_NAME = "podium"
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_MOST_CHARACTERS = 65_536
_FIRST_LINE = "# Written by `podium up`, which overwrites it.\n"


def kubeconfig(server: str, authority_file: str = "", token: str = "") -> Raw:
    """Return a kubeconfig with one context, for the URL of a server with a certificate and a token, if it has them."""
    cluster = {"server": server}
    if authority_file:
        cluster["certificate-authority"] = str(Path(authority_file).absolute())
    user = {"token": token} if token else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def check_place(path: Path) -> None:
    """Raise InputError if another program wrote the file, or if it is a device or the like: it would be overwritten."""
    if not path.exists():
        return
    if not path.is_file():
        raise InputError("is not a regular file, and is not overwritten; name another file", source=str(path))
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_MOST_CHARACTERS)
    if text and not text.startswith(_FIRST_LINE) and not _is_as_kubectl_writes_it(text):
        problem = "is not a kubeconfig of `podium up`, and is not overwritten; name another file"
        raise InputError(problem, source=str(path))


def _is_as_kubectl_writes_it(text: str) -> bool:
    """Return whether the file is such a kubeconfig after kubectl changed a context, which removes comments.

    Each list then has only our entry, with only our fields and a namespace.
    """
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return False
    ours = kubeconfig("", "file", "token")
    for listed, kind in _LISTS.items():
        entries = objects_at(raw, listed)
        if len(list_at(raw, listed)) != 1 or len(entries) != 1 or entries[0].get("name") != _NAME:
            return False
        value = entries[0].get(kind) or {}
        if not isinstance(value, dict) or not value.keys() <= {*ours[listed][0][kind], "namespace"}:
            return False
    return True


def write_kubeconfig(path: Path, server: str, authority_file: str = "", token: str = "") -> None:
    """Write the `kubeconfig` atomically, readable only by its owner. Raises InputError as `check_place` does."""
    check_place(path)
    text = _FIRST_LINE + yaml.dump(kubeconfig(server, authority_file, token), Dumper=Dumper, sort_keys=False)
    write_private(path, text)


DEFAULT_PORT = 7443
_ANY_TOKEN = "none-is-needed"  # noqa: S105 - a server without tokens ignores it
_ENDING = (signal.SIGINT, signal.SIGTERM)
_BY_SIGNAL = 128
_NOT_FOUND = 127
_NOT_RUN = 126


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingAddress:
    """The address and credentials of a server; port None is the default one, or any free port.

    `audit` receives a line of JSON about each request that may change something.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    tls: TLS | None = None
    token: str = ""
    audit: Callable[[bytes], None] | None = None

    def user_of(self, plane: EmbeddedControlPlane, given: str, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """Return the user of the server's own token, or of one that the cluster issued; None for others."""
        if self.token and hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return ADMINISTRATOR
        return token_user(plane.store, plane.rules.token_key, given, plane.now(), audiences)

    def settings(self, plane: EmbeddedControlPlane, runner: ControlPlaneRunner) -> ServerSettings:
        """Return the settings of the server of a control plane."""
        checks = (("control-plane", lambda: runner.problem), *((name, _check(plane, name)) for name in plane.checks()))
        collectors: tuple[MetricsCollector, ...] = ()
        if plane.account is not None:
            from podium.app.live.metrics import MetricsCollector, of_ledger

            collectors = (MetricsCollector(partial(of_ledger, plane.account.tallies)),)
        tokens = (Token(text=self.token),) if self.token else ()
        port = DEFAULT_PORT if self.port is None else self.port
        return ServerSettings(
            host=self.host,
            port=port,
            tls=self.tls,
            tokens=tokens,
            checks=checks,
            audit=self.audit,
            collectors=collectors,
            identify=lambda given: token_user(plane.store, plane.rules.token_key, given, plane.now()),
            authorizer=plane.authorizer,
            flows=FlowControl(plane.store),
        )


@dataclass(eq=False)
class Serving:
    """A control plane, its server, and the command or the signals that end it.

    The ``kubeconfig`` is written once clients can connect; then ``on_ready`` is called with the server's URL. ``page``
    is shown to browsers, if any.
    """

    plane: EmbeddedControlPlane
    clock: SystemClock
    place: ServingAddress
    kubeconfig: Path
    command: Sequence[str] = ()
    on_ready: Callable[[str], None] = lambda _: None
    page: LivePage | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _signals: list[signal.Signals] = field(default_factory=list, init=False)
    _child: asyncio.subprocess.Process | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        plane = self.plane
        plane.call = call_webhook
        self._documents = KubernetesDocuments(plane, partial(self.place.user_of, plane), plane.authorizer)
        self._runner = ControlPlaneRunner(plane, self.clock)

    async def run(self) -> int:
        """Serve, and return the exit code. Raises PodiumError if that is not possible, or no longer."""
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.add_signal_handler(number, self._end, number)
        running = asyncio.ensure_future(self._runner.run())
        try:
            server = await self._started()
            try:
                tls = self.place.tls
                # kubectl asks for a user name on TLS without credentials, even if the server needs none.
                token = self.place.token or ("" if tls is None else _ANY_TOKEN)
                authority = "" if tls is None else tls.certificate_file
                write_kubeconfig(self.kubeconfig, server.address, authority, token)
                self.on_ready(server.address)
                return await self._until_over(running)
            finally:
                if self.page is not None:
                    await self.page.close()
                await server.stop()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            for number in _ENDING:
                loop.remove_signal_handler(number)
            await self.plane.idle()
            self.plane.close()

    async def _started(self) -> Server:
        """Return a server that listens; if no port was given and the default one is taken, on any port."""
        settings = self.place.settings(self.plane, self._runner)
        server = Server(self.plane, self._documents, settings, self.page)
        try:
            await server.start()
        except InputError:
            if self.place.port is not None:
                raise
            server = Server(self.plane, self._documents, replace(settings, port=0), self.page)
            await server.start()
        return server

    async def _until_over(self, running: asyncio.Future[None]) -> int:
        """Wait for the end, and return the exit code."""
        waiting = asyncio.ensure_future(self._run_command() if self.command else self._ended.wait())
        try:
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                # It ends by itself only after an error.
                await running
            code = await waiting
            return int(code) if self.command else 0
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            if self._child is not None and self._child.returncode is None:
                self._child.kill()
                await self._child.wait()

    async def _run_command(self) -> int:
        """Run the command with the kubeconfig of this cluster, and return its exit code as a shell does."""
        for number in self._signals:
            return _BY_SIGNAL + number
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig.absolute())}
        try:
            self._child = await asyncio.create_subprocess_exec(*self.command, env=environment)
        except OSError as error:
            print(f"podium: error: {self.command[0]}: {error.strerror}", file=sys.stderr)
            return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN
        for number in self._signals:
            # The signal came before the command was started.
            self._child.send_signal(number)
        code = await self._child.wait()
        return code if code >= 0 else _BY_SIGNAL - code

    def _end(self, number: signal.Signals) -> None:
        """Record a signal, and pass it to the command unless the terminal has sent it the same interrupt."""
        self._ended.set()
        self._signals.append(number)
        has_it = number == signal.SIGINT and sys.stdin is not None and sys.stdin.isatty()
        if self._child is not None and self._child.returncode is None and not has_it:
            self._child.send_signal(number)


def _check(plane: EmbeddedControlPlane, name: str) -> Callable[[], str]:
    return lambda: plane.checks().get(name, "")
