"""`podium use` and the process of its session, which holds a cluster and answers each question in a fork of itself.

A fork shares the memory of the cluster until it writes there, so questions leave no traces, and one that fails or is
interrupted ends alone. After a question that is played, a fork prepares a simulation with its options, and takes over.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import select
import signal
import socket
import socketserver
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click
import msgspec

from podium.api.collector import collector_paused, free_cycles
from podium.api.errors import PodiumError, Validation
from podium.api.input.codec import Input
from podium.api.input.files import files_of
from podium.app.cluster import Cluster
from podium.app.console.command import LOADED_FIRST, Command, CommandFailure, option
from podium.app.console.options import Duration, Source, source_options, validate_option
from podium.app.using import client

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions
    from podium.sim.simulation import Simulation

MOST_AT_ONCE = 4
"""The number of questions that are answered at once; further ones wait."""

MOST_BYTES = 1 << 22
"""The longest request: a command line and the environment."""

_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 1.0
_INTERRUPTED_AGAIN_SECONDS = 1.0

Stamps = dict[str, tuple[int, int, int]]
"""The inode, size and time of each file, which change when the file does."""


@dataclass(frozen=True, slots=True)
class UseOptions:
    """The arguments of `podium use`; ``folder`` is that in which it names files, ``kubeconfig`` was in KUBECONFIG."""

    source: Source
    validation: Validation | None
    idle_ns: int
    max_age_ns: int
    folder: str
    kubeconfig: str


class CommandLine(msgspec.Struct, forbid_unknown_fields=True):
    """A command line, and the state of the process in which it was entered."""

    words: list[str]
    folder: str
    mask: int
    path: list[str]
    environment: dict[str, str]
    encodings: tuple[str, str, str]


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    """A request of a client: a question, or else the status."""

    identity: list[str]
    ask: CommandLine | None = None


def stamps_of(files: tuple[str, ...]) -> Stamps:
    """Return the stamps of files, and of the manifests in folders. Raises OSError and PodiumError."""
    found = ((str(file), Path(file).stat()) for name in files for file in files_of(name)[0])
    return {file: (status.st_ino, status.st_size, status.st_mtime_ns) for file, status in found}


def code_stamps() -> Stamps:
    """Return the stamps of Podium's modules that are loaded."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "podium"]
    return stamps_of(tuple(file for module in modules if (file := getattr(module, "__file__", None))))


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other sessions from putting a socket at a path, and from removing it."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


class SessionServer(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """A cluster that was read, and the server of the socket at which it is asked about.

    ``files`` are the stamps of its files before they were read. Its socket replaces that of the session before, which
    then ends.
    """

    max_children = MOST_AT_ONCE

    def __init__(self, use: UseOptions, cluster: Cluster, files: Stamps) -> None:
        self.use = use
        self.cluster = cluster
        self._files, self._code = files, code_stamps()
        self._read_ns = self._busy_ns = time.monotonic_ns()
        # The options of the last simulation that was to be prepared, and the simulation if it is.
        self._prepared: tuple[RunOptions | None, Simulation | None] = None, None
        # Questions send options with which they have found no simulation.
        self._wishes, self._wishing = Pipe(duplex=False)
        self._successor = 0
        self.active_children: set[int] = set()
        self._path = client.socket_path()
        super().__init__(self._path, socketserver.BaseRequestHandler, bind_and_activate=False)
        with _locked(self._path):
            self._listen()

    def _listen(self) -> None:
        """Listen, at the path of the session before."""
        own = os.path.join(os.path.dirname(self._path), f"{os.getpid()}")
        self.socket.bind(own)
        os.chmod(own, 0o600)
        self.socket.listen()
        os.replace(own, self._path)
        self._inode = os.stat(self._path).st_ino

    def serve(self) -> None:
        """Answer until there was no question for some time, or the socket at the path is another one."""
        gc.collect()
        gc.freeze()
        with suppress(SystemExit):
            self.serve_forever(_POLL_SECONDS)
        # Clients that have connected before.
        while select.select([self.socket], [], [], 0)[0]:
            self.handle_request()

    def service_actions(self) -> None:
        super().service_actions()
        if not self._is_current():
            raise SystemExit
        if self._wishes.poll():
            self._prepare(self._wishes.recv())
        if self.active_children:
            self._busy_ns = time.monotonic_ns()
        elif time.monotonic_ns() - self._busy_ns > self.use.idle_ns:
            with _locked(self._path):
                if self._is_current():
                    os.unlink(self._path)

    def _is_current(self) -> bool:
        with suppress(OSError):
            return os.stat(self._path).st_ino == self._inode
        return False

    def _prepare(self, options: RunOptions) -> None:
        """Prepare a simulation in a fork, which then serves in place of this process, if that still serves."""
        from podium.app.planning.question import simulation_before_steps

        if options == self._prepared[0] or self._successor in self.active_children:
            return
        # Only one simulation is kept.
        self._prepared = options, None
        self._successor = os.fork()
        if self._successor:
            self.active_children.add(self._successor)
            return
        try:
            gc.unfreeze()
            free_cycles()
            self.socket.close()
            with collector_paused():
                self._prepared = options, simulation_before_steps(self.cluster.read, options)
            self._code = {**code_stamps(), **self._code}
            self.socket = socket.socket(self.address_family, self.socket_type)
            with _locked(self._path):
                if not self._is_current():
                    return
                self._listen()
            self.serve()
        finally:
            os._exit(0)

    def prepared(self, read: Input, options: RunOptions) -> Simulation | None:
        """Return the simulation that is prepared for this input and these options; if there is none, ask for it.

        None is prepared for a configuration, which may load plugins: later questions have to load them again.
        """
        if read is not self.cluster.read or options.configuration or options.on_attempt or options.components:
            return None
        if options != self._prepared[0]:
            self._wishing.send(options)
            return None
        return self._prepared[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether the client's process belongs to the same user, as far as the system says."""
        self._busy_ns = time.monotonic_ns()
        if not hasattr(socket, "SO_PEERCRED"):
            return True
        peer = struct.Struct("3i")
        _, user, _ = peer.unpack(request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, peer.size))
        return bool(user == os.getuid())

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Read a request and reply, in the fork."""
        self.socket.close()
        request.settimeout(_PATIENCE_SECONDS)
        question, descriptors = _received(request)
        request.settimeout(None)
        reply: dict[str, Any] = {"code": 130}
        if (why := self._outdated(question.identity)) or question.ask is None:
            about = _described(self.cluster, self.use.source)
            reply = {"outdated" if why else "about": msgspec.to_builtins(self.use) if why else about, "why": why}
        else:
            ended = Event()
            with suppress(KeyboardInterrupt):
                Thread(target=_watch, args=(request, ended), daemon=True).start()
                reply = self._answer(question.ask, descriptors)
            ended.set()
        request.sendall(msgspec.json.encode(reply))

    def _outdated(self, identity: list[str]) -> str:
        """Return why the session has to be started again; "" if it has not."""
        if identity != client.identity():
            return "it belongs to another installation of Podium"
        with suppress(OSError, PodiumError):
            if code_stamps() != self._code:
                return "the code of Podium has changed"
            if stamps_of(self.use.source.all_files) == self._files:
                is_live = self.use.source.cluster is not None
                is_old = is_live and time.monotonic_ns() - self._read_ns > self.use.max_age_ns
                return "the cluster was read some time ago" if is_old else ""
        return "its files have changed"

    def _answer(self, question: CommandLine, descriptors: list[int]) -> dict[str, Any]:
        """Run the command line as the process of the client would, and return the exit code."""
        from podium.app.console import command

        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.chdir(question.folder)
        os.umask(question.mask)
        os.environ.clear()
        os.environ.update(question.environment)
        time.tzset()
        sys.path[:] = question.path
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(number, mode, closefd=False), encoding, line_buffering=os.isatty(number))  # noqa: SIM115
            for number, (mode, encoding) in enumerate(zip(("rb", "wb", "wb"), question.encodings, strict=True))
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        client.answering = self
        code = 0
        try:
            command.main(question.words)
        except client.NotForSessionError:
            return {}
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:
            # An error of Podium itself, which Python would show.
            sys.excepthook(*sys.exc_info())
            code = 1
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        return {"code": code}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: the client of a request that fails gets no reply."""


def _received(connection: socket.socket) -> tuple[_Request, list[int]]:
    """Return a request and its file descriptors. Raises OSError, ValueError and msgspec.MsgspecError."""
    head, descriptors, _, _ = socket.recv_fds(connection, client.LENGTH_BYTES, 3)
    length = int.from_bytes(head)
    if len(head) != client.LENGTH_BYTES or len(descriptors) != 3 or length > MOST_BYTES:
        raise ValueError("no request of a client")
    text = b""
    # No more than the request: an interrupt may follow at once.
    while len(text) < length and (part := connection.recv(length - len(text))):
        text += part
    return msgspec.json.decode(text, type=_Request), descriptors


def _watch(connection: socket.socket, ended: Event) -> None:
    """Interrupt this process when its client says so, until its question has ended; end it when its client is gone."""
    while connection.recv(1) == client.INTERRUPT:
        # A signal just before a system call that waits, or in a destructor, has no effect.
        while not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(_INTERRUPTED_AGAIN_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


_EPILOG = """
\b
Example: read a snapshot once, and ask about it
  podium use cluster.podium
  podium explain deploy/web
  podium plan pending
  podium use --stop
"""
_KUBECONFIG = "KUBECONFIG"
# Imported before the first question, beside what the commands import first.
_MODULES = ("podium.app.planning.command", "podium.app.planning.plans", "podium.app.explaining.text", "rich.progress")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("names", metavar="[FILE]...", nargs=-1)
@source_options
@validate_option
@option("--idle idle_ns", "End after this time without a question.", type=Duration(), default="1h", show_default=True)
@option(
    "--max-age max_age_ns",
    "Read a live cluster again before a question if it was read longer ago. Answers state when it was read.",
    type=Duration(),
    default="5m",
    show_default=True,
)
@option("--stop", "End the session.", is_flag=True)
def use(
    *, names: tuple[str, ...], source: Source, validation: Validation | None, idle_ns: int, max_age_ns: int, stop: bool
) -> None:
    """Use a cluster for the next questions: read it once, and answer from memory.

    A process of yours keeps the cluster, of files, a snapshot or a context. podium explain and podium plan ask it if
    their command line names no cluster. If the files or Podium change, it starts again by itself. Without arguments
    the command says which cluster is used.
    """
    source = replace(source, files=(*names, *source.files))
    if not stop and (source.files or source.cluster is not None):
        if "-" in source.all_files:
            raise click.UsageError("standard input cannot be read again; give a file")
        options = UseOptions(source, validation, idle_ns, max_age_ns, os.getcwd(), os.environ.get(_KUBECONFIG, ""))
        click.echo(f"using {_start(options)}; podium use --stop ends that")
    else:
        reply = client.send({})
        if reply is None:
            click.echo(f"no cluster is used{'' if stop else '; podium use FILE or podium use --context NAME'}")
        elif stop:
            with _locked(client.socket_path()):
                os.unlink(client.socket_path())
            click.echo("ended")
        elif reply.get("why"):
            click.echo(f"the next question reads the cluster again: {reply['why']}")
        else:
            click.echo(f"using {reply.get('about')}")


def _described(cluster: Cluster, source: Source) -> str:
    """Return the cluster of a session in words: its size, context and files."""
    context = [] if source.cluster is None else [f"context {source.cluster.context or '(current)'}"]
    return f"{f'{cluster!r}'.strip('<>').removeprefix('Cluster: ')} of {', '.join([*context, *source.all_files])}"


def use_again(given: dict[str, Any]) -> None:
    """Start an outdated session again. Raises SystemExit after an error, which is shown."""
    try:
        found = msgspec.convert(given, UseOptions)
        # The same cluster as before, whatever this client's environment says.
        os.environ[_KUBECONFIG] = found.kubeconfig
        with chdir(found.folder):
            _start(found)
    except (PodiumError, OSError, click.ClickException) as error:
        problem = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        CommandFailure(f"{problem}; podium use has chosen this cluster, podium use --stop ends that").show()
        sys.exit(1)


def _start(use: UseOptions) -> str:
    """Read the cluster, and leave a process that serves it; return a description. Raises PodiumError."""
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.planning.questions.pending import pending_answer

    path = client.socket_path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if not client.is_private(path):
        raise CommandFailure(f"{os.path.dirname(path)} is not a folder that only you may enter")
    files = stamps_of(use.source.all_files)
    cluster = Cluster(read_shown(use.source, use.validation))
    if use.source.cluster is not None:
        # The current context may be another one when the cluster is read again.
        named = replace(use.source.cluster, context=cluster.read.snapshots[0].context)
        use = replace(use, source=replace(use.source, cluster=named))
    with ProgressBar("preparing"):
        for module in (*LOADED_FIRST["explain"], *LOADED_FIRST["plan"], *_MODULES):
            import_module(module)
        # The first decisions build the columns and fill the caches that all others share.
        pending_answer(cluster, "", lambda *_: None)
        cluster.explainer.disruptions()
    session = SessionServer(use, cluster, files)
    if os.fork() == 0:
        _detach()
        session.serve()
        os._exit(0)
    session.server_close()
    return _described(cluster, use.source)


def _detach() -> None:
    """Leave the terminal: nothing of the process that has started the session is kept."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
