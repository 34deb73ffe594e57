"""Processes like `python -c CODE`, forked from a process that has imported Podium already.

A start takes half a second, nearly all of it imports. On Linux a server imports the modules of all commands once, and
forks for each start. The fork gets its own arguments, environment, working directory, standard streams and signal
handlers, runs the code as the program `__main__`, and ends as any Python process does. It is a child of the process
that asked for it, which may wait for it and send it signals.

Start a real process where the start itself is tested: imports, interrupts during imports, and entry points.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import inspect
import io
import json
import multiprocessing.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from podium.app.console.command import LOADED_FIRST, SUBCOMMANDS

ROOT = Path(__file__).parents[2]
# It leaves no name in `__main__`.
_PROGRAM = "__import__('tests.app.forked', fromlist=['import_and_serve']).import_and_serve({})"
_PREFIXES = ("PYTHON", "LANG", "LC_", "OMP_", "OPENBLAS_")
"""The names of variables that Python and numpy read when they start begin so."""

_PR_SET_CHILD_SUBREAPER = 36
_LENGTH_BYTES = 8
_STREAMS = 3
_MOST_KEPT = 8
_OF_MULTIPROCESSING = "--multiprocessing-fork"
_SPAWN: Callable[[str, list[str], Sequence[int]], int] = vars(multiprocessing.util)["spawnv_passfds"]
_MORE_MODULES = (
    "podium.app.planning.question",
    "podium.app.reporting.pictures",
    "podium.app.serving.run",
    "podium.app.live.live_scheduler",
    "podium.app.serving.page.live_ui",
    "podium.app.serving.page.worker",
    "uvloop",
)
"""What commands import when they run."""


def start(
    code: str, *words: str, real: bool = False, forks_workers: bool = False, **settings: Any
) -> subprocess.Popen[str]:
    """Start `python -c CODE WORDS`; further settings are those of `subprocess.Popen`.

    If it ``forks_workers``, the processes in which a server answers questions are forks, too.
    """
    command = [sys.executable, "-c", code, *words]
    if real or not _SERVER.can_fork(settings.get("env") or os.environ):
        return cast("subprocess.Popen[str]", subprocess.Popen(command, **settings))
    return _Forked(command, forks_workers=forks_workers, **settings)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables on which the start of a process depends."""
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES)}


_EXECUTE = inspect.signature(vars(subprocess.Popen)["_execute_child"])


class _Forked(subprocess.Popen[str]):
    """A process that the server forks: a child of this process, as others are."""

    def __init__(self, command: list[str], *, forks_workers: bool, **settings: Any) -> None:
        self._forks_workers = forks_workers
        super().__init__(command, **settings)

    def _execute_child(self, *given: Any) -> None:
        call = _EXECUTE.bind(self, *given).arguments
        if any(call[name] for name in ("preexec_fn", "pass_fds", "shell")):
            raise ValueError("a fork has no such settings: start a real process")
        ends = [call[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = _request(call["args"][2], call["args"][3:], call["env"], call["cwd"])
        request |= {"has_own_session": call["start_new_session"], "forks_workers": self._forks_workers}
        self.pid = _SERVER.fork(request, [number if end < 0 else end for number, end in enumerate(ends)])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(call[name] for name in pipes))  # type: ignore[attr-defined]


def _request(
    code: str, words: list[str], environment: Mapping[str, str] | None = None, folder: str | Path | None = None
) -> dict[str, Any]:
    return {
        "code": code,
        "words": words,
        "folder": os.path.abspath(folder or os.curdir),
        "environment": dict(os.environ if environment is None else environment),
        "has_own_session": False,
        "forks_workers": False,
        "kept": [],
    }


def spawn(path: str, command: list[str], kept: Sequence[int]) -> int:
    """Fork a process of `multiprocessing` that would start anew; it gets the descriptors that are ``kept``."""
    if command[-1] != _OF_MULTIPROCESSING or not _SERVER.can_fork(os.environ):
        return _SPAWN(path, command, kept)
    return _SERVER.fork(_request(command[-2], command[-1:]) | {"kept": list(kept)}, [*range(_STREAMS), *kept])


class _Server:
    """The process that forks. It starts when it is first needed, and ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._wait: Callable[[], object] = lambda: None
        self._is_usable: bool | None = None
        # That of the test run, which a test may change.
        self._environment = dict(os.environ)

    def can_fork(self, environment: Mapping[str, str]) -> bool:
        """Return whether its forks are children of this process, and start as a process with this environment does."""
        with self._lock:
            if self._is_usable is None:
                self._is_usable = sys.platform == "linux" and self._start()
        return self._is_usable and _read_at_start(environment) == _read_at_start(self._environment)

    def fork(self, request: Mapping[str, Any], streams: list[int]) -> int:
        """Return the id of a new child with these standard streams, and then those that the request keeps."""
        with self._lock:
            return self._ask(request, streams)

    def branch(self) -> None:
        """Start a server for a fork that has one thread and has imported everything: a fork of it."""
        self._connection, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            self._connection.close()
            serve(theirs)
            os._exit(0)
        theirs.close()
        self._is_usable, self._wait = True, lambda: os.waitpid(pid, 0)
        atexit.register(self.close)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._wait()

    def _start(self) -> bool:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-c", _PROGRAM.format(number)]
            process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, pass_fds=[number], stdin=subprocess.DEVNULL
            )
        self._wait = process.wait
        self._connection = ours
        atexit.register(self.close)
        found = self._ask(_request("", []), list(range(_STREAMS)))
        # Some sandboxes do not know subreapers; the child is another's then.
        try:
            _, status = os.waitpid(found, 0)
        except ChildProcessError:
            return False
        if status:
            raise AssertionError("a fork that does nothing has failed")
        return True

    def _ask(self, request: Mapping[str, Any], streams: list[int]) -> int:
        if self._connection is None:
            raise AssertionError("it has been started")
        text = json.dumps(request).encode()
        _adopt_orphans(is_on=True)
        try:
            socket.send_fds(self._connection, [len(text).to_bytes(_LENGTH_BYTES)], streams)
            self._connection.sendall(text)
            return int.from_bytes(_received(self._connection, _LENGTH_BYTES))
        finally:
            _adopt_orphans(is_on=False)


_SERVER = _Server()


def _adopt_orphans(*, is_on: bool) -> None:
    """Let children of descendants whose parents end become children of this process, instead of those of init."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


def _received(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError("the process that forks has ended")
        data += part
    return data


def import_and_serve(number: int) -> None:
    """Import what all commands need, then serve the socket of this number."""
    _import_all()
    serve(socket.socket(fileno=number))


def serve(connection: socket.socket) -> None:
    """Fork for each request of a socket, and end with it; in each fork, run its program and end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            data, streams, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, _STREAMS + _MOST_KEPT)
            length = int.from_bytes(data + _received(connection, _LENGTH_BYTES - len(data)))
            request = json.loads(_received(connection, length))
        except EOFError:
            return
        pid = _fork()
        if not pid:
            connection.close()
            _become(request, streams)
            _run(request["code"])
            return
        for stream in streams:
            os.close(stream)
        connection.sendall(pid.to_bytes(_LENGTH_BYTES))


def _import_all() -> None:
    modules = [place.partition(":")[0] for place, _ in SUBCOMMANDS.values()]
    for module in (*modules, *(module for more in LOADED_FIRST.values() for module in more), *_MORE_MODULES):
        import_module(module)
    gc.collect()
    # The forks share these objects, which their collectors would copy.
    gc.freeze()


def _fork() -> int:
    """Return the id of a grandchild, whose parent has ended; 0 in the grandchild."""
    ours, theirs = os.pipe()
    middle = os.fork()
    if middle:
        os.close(theirs)
        os.waitpid(middle, 0)
        with os.fdopen(ours, "rb") as stream:
            return int.from_bytes(stream.read())
    os.close(ours)
    # It is closed when the process between the two ends, just before that hands over its children.
    ended, ends = os.pipe()
    between = os.getpid()
    pid = os.fork()
    if pid:
        os.write(theirs, pid.to_bytes(_LENGTH_BYTES))
        os._exit(0)
    os.close(theirs)
    os.close(ends)
    os.read(ended, 1)
    os.close(ended)
    while os.getppid() == between:
        os.sched_yield()
    return 0


def _become(request: Mapping[str, Any], streams: list[int]) -> None:
    """Make this fork what a new process would be."""
    # None of them may have a number that another one gets.
    moved = [fcntl.fcntl(stream, fcntl.F_DUPFD, max(streams + request["kept"]) + 1) for stream in streams]
    for number, stream in zip((*range(_STREAMS), *request["kept"]), moved, strict=True):
        os.dup2(stream, number)
    for stream in {*moved, *streams} - {*range(_STREAMS), *request["kept"]}:
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.argv[:] = ["-c", *request["words"]]
    if request["has_own_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(_STREAMS))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    if request["forks_workers"]:
        _SERVER.branch()
        import_module("tests.app.forked_workers").fork_workers()


def _run(code: str) -> None:
    """Run a program to its end, as Python does."""
    try:
        exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        _end(end.code or 0)
        raise
    # Python itself reports any other error, and an interrupt, whose signal then ends the process.
    _end(0)


def _end(code: int) -> None:
    """Do what Python does at the end, except that objects are not freed: that would copy the memory of the server."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    # If the output cannot be written, Python ends with another code.
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code & 0xFF)


def _stream(number: int) -> io.TextIOWrapper:
    """Return a standard stream as Python opens it."""
    before = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number]
    if before is None:
        raise AssertionError("the server has all streams")
    is_raw = bool(number) and before.write_through
    is_by_lines = not is_raw and (number == 2 or os.isatty(number))
    data: Any = os.fdopen(number, "wb" if number else "rb", 0 if is_raw else -1, closefd=False)
    (data if is_raw else data.raw).name = before.name
    stream = io.TextIOWrapper(data, before.encoding, before.errors, "\n", is_by_lines, is_raw)
    stream.mode = "w" if number else "r"  # type: ignore[misc]
    return stream
