"""Processes that Podium itself starts, forked as other processes of tests are: answers of servers, runs of sweeps."""

from __future__ import annotations

import asyncio
import multiprocessing.util
import os
import subprocess
import sys
from asyncio.streams import FlowControlMixin
from collections.abc import Callable
from typing import Any

from tests.app import forked

_PROGRAM = "import sys; from {} import main; sys.exit(main())"
_CREATE = asyncio.create_subprocess_exec


class _Worker:
    """A forked process with pipes to it; it has the methods of `asyncio.subprocess.Process` that servers use."""

    def __init__(
        self,
        process: subprocess.Popen[Any],
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        close_output: Callable[[], None],
    ) -> None:
        self._process, self.stdin, self.stdout, self._close_output = process, stdin, stdout, close_output

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        """Return the exit code once it has ended; servers have read its output before."""
        loop = asyncio.get_running_loop()
        while (code := self._process.poll()) is None:
            has_ended, descriptor = asyncio.Event(), os.pidfd_open(self._process.pid)
            loop.add_reader(descriptor, has_ended.set)
            try:
                await has_ended.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        self._close_output()
        return code


async def _create(program: str, *arguments: str, limit: int = 2**16, **settings: Any) -> Any:
    """Fork a worker; start any other process."""
    match arguments:
        case ("-P", "-m", module) if program == sys.executable and settings["start_new_session"]:
            return await _worker(_PROGRAM.format(module), limit)
    return await _CREATE(program, *arguments, limit=limit, **settings)


async def _worker(code: str, limit: int) -> _Worker:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    process, loop = forked.start(code, start_new_session=True, **pipes), asyncio.get_running_loop()
    output = asyncio.StreamReader(limit)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), process.stdout)
    writing, protocol = await loop.connect_write_pipe(FlowControlMixin, process.stdin)
    return _Worker(process, asyncio.StreamWriter(writing, protocol, None, loop), output, reading.close)


def fork_workers(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Let servers of this process fork workers instead of starting them."""
    replace(asyncio, "create_subprocess_exec", _create)


def fork_spawned(replace: Callable[[object, str, object], None]) -> None:
    """Let pools of this process fork the processes that play runs, instead of starting them."""
    replace(multiprocessing.util, "spawnv_passfds", forked.spawn)
