"""Questions answered in processes of their own, so that neither their work nor their errors stop the server."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from podium.framework.settings.registry import loaded_places
from podium.server.http.metrics import InFlightLimits
from podium.store.stored import Stored, encoded

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions

_LOG = logging.getLogger(__name__)
_WORKER = "podium.app.serving.page.worker"
_ASKING = "asking"
_HEAD, _BETWEEN, _TAIL = b'{"apiVersion":"v1","kind":"List","items":[', b",", b"]}"
# Objects are put into bytes this many at a time; then others have the loop.
_AT_A_TIME = 50
_LENGTH_BYTES = 8
_LONGEST_ANSWER_BYTES = 256 * 1024 * 1024


class Answering:
    """A pool of processes, each of which answers one question and ends.

    It answers ``at_once`` questions at a time, each within so many ``seconds``. `prepare` starts a process in advance,
    since that takes a second; an unused one ends by itself.
    """

    def __init__(self, seconds: float = 120.0, at_once: int = 2) -> None:
        self._seconds = seconds
        self._flights = InFlightLimits({_ASKING: at_once})
        self._processes: set[Process] = set()
        self._spare: Process | None = None
        self._preparing = asyncio.Lock()
        self._is_closed = False

    @asynccontextmanager
    async def ask(
        self, question: bytes, objects: Sequence[Stored], options: RunOptions
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of the answer to a question about objects; the last one is the answer, or an error.

        The work ends with the context. Raises StoreError 429 if too many questions are being answered.
        """
        with self._flights.flight(_ASKING):
            process = await self._take()
            sending = asyncio.ensure_future(_send(process, question, objects, options))
            try:
                yield self._lines(process)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                await self._end(process)

    async def prepare(self) -> None:
        """Start a process for the next question, unless one waits or none can be started."""
        async with self._preparing:
            if not self._is_closed and (self._spare is None or self._spare.returncode is not None):
                with suppress(OSError):
                    self._spare = await self._start()

    async def close(self) -> None:
        self._is_closed = True
        async with self._preparing:
            for process in list(self._processes):
                await self._end(process)

    async def _take(self) -> Process:
        spare, self._spare = self._spare, None
        return spare if spare is not None and spare.returncode is None else await self._start()

    async def _start(self) -> Process:
        for ended in [process for process in self._processes if process.returncode is not None]:
            await self._end(ended)
        # It imports from the same path as this process, including plugins, but not from the working directory.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command, limit = (sys.executable, "-P", "-m", _WORKER), _LONGEST_ANSWER_BYTES
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=environment, limit=limit, start_new_session=True
        )
        self._processes.add(process)
        return process

    async def _lines(self, process: Process) -> AsyncIterator[bytes]:
        """Yield the output of the process, and an error if it has no answer."""
        stream = process.stdout
        if stream is None:
            raise AssertionError("its output is a pipe")
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._seconds
        is_answered = False
        try:
            while line := await asyncio.wait_for(stream.readline(), max(0.0, end_s - loop.time())):
                is_answered = not line.startswith(b'{"progress"')
                yield line
        except TimeoutError:
            yield _error(f"the answer takes longer than {self._seconds:g} s; podium plan has no such limit")
            return
        except ValueError:
            yield _error("the answer is too long for a page; podium plan has no such limit")
            return
        if not is_answered:
            _LOG.error("a question could not be answered: its process exited with %d", await process.wait())
            yield _error("the answer failed, or exceeded its limits; see the server's log")

    async def _end(self, process: Process) -> None:
        """Kill the process, and close its pipes."""
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        if process.stdin is not None:
            process.stdin.close()
        if process.stdout is not None:
            with suppress(ValueError):
                while await process.stdout.read(1 << 16):
                    pass
        await process.wait()
        self._processes.discard(process)


async def _send(process: Process, question: bytes, objects: Sequence[Stored], options: RunOptions) -> None:
    writer = process.stdin
    if writer is None:
        raise AssertionError("its input is a pipe")
    with suppress(ConnectionError):
        for frame in (pickle.dumps((options, loaded_places())), question):
            writer.write(len(frame).to_bytes(_LENGTH_BYTES) + frame)
        writer.write(_HEAD)
        for place in range(0, len(objects), _AT_A_TIME):
            # The encoded objects are not cached, since they may not be needed again.
            some = _BETWEEN.join([encoded(stored.raw) for stored in objects[place : place + _AT_A_TIME]])
            writer.write(_BETWEEN + some if place else some)
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(_TAIL)
        await writer.drain()
        writer.close()


def _error(problem: str) -> bytes:
    return encoded({"error": problem}) + b"\n"
