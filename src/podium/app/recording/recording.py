"""The recording of a cluster's changes, with only rights to list and watch."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

import msgspec

from podium.api.errors import InputError
from podium.api.kinds import KINDS
from podium.api.meta import ObjectMeta
from podium.api.snapshot import API_VERSION, HiddenKind, Snapshot
from podium.api.times import format_duration, format_time
from podium.apirequests.observations import Seen
from podium.app.console.options import ClusterSource
from podium.app.console.page import counted
from podium.app.snapshots.cluster import SnapshotFile, open_session
from podium.app.snapshots.slimming import Slimmer, left_out_beside
from podium.client.reflector import Reflector, Reflectors
from podium.client.reflector_state import ReflectorState
from podium.client.session import Session, server_version
from podium.sim.recording.recorder import ClusterRecorder
from podium.sim.recording.tape import FORMAT, RECORDING, RecordingEntry

# Kinds without which nothing is recorded.
_NEEDED = ("Node", "Pod")
_ABSENT, _REFUSED = "404", ("401", "403")
_TIMEOUT_S = 60.0
_MILLISECOND = 10**6
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a recording: its length, None for no limit, and the uncompressed size of its file."""

    length_ns: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """The numbers of a recording."""

    objects: int
    steps: int
    events: int
    length_ns: int
    is_full: bool


def record(source: ClusterSource, target: str, limits: Limits, say: Say) -> Recorded:
    """Record until an interrupt or a limit, and complete the file. Raises PodiumError."""
    return asyncio.run(_record(source, target, limits, say))


async def _record(source: ClusterSource, target: str, limits: Limits, say: Say) -> Recorded:
    async with open_session(source, "podium-record", _TIMEOUT_S) as session:
        # Reflectors retry for ever, so a server that cannot be reached is reported here.
        version = await server_version(session, must_answer=True)
        with RecordingFile(target, session.access.name) as file:
            return await _Recording(session, file, limits, say).run(version)


class _Recording:
    """One recording: reflectors pass changes to a recorder, and its entries are written to the file."""

    def __init__(self, session: Session, file: RecordingFile, limits: Limits, say: Say) -> None:
        self._session = session
        self._file = file
        self._limits = limits
        self._say = say
        self._recorder = ClusterRecorder(Slimmer().slim)
        self._began_ns: int | None = None
        self._over = asyncio.Event()
        self._is_full = False
        self._reflectors = [
            Reflector(
                ReflectorState(session.resources.named(kind.name), is_optional=kind.name not in _NEEDED),
                session,
                time.time_ns,
                self._see,
                self._problem,
            )
            for kind in KINDS.values()
        ]

    async def run(self, version: str) -> Recorded:
        """Record until the end, and complete the file. Raises InputError if it ends before the initial lists."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._over.set)
        keeping_up = Reflectors(self._reflectors)
        keeping_up.begin()
        try:
            await keeping_up.during(self._sync())
            self._begin(version)
            await keeping_up.during(self._wait())
        finally:
            await keeping_up.close()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
        for machine in (reflector.machine for reflector in self._reflectors):
            if machine.reader.unreadable:
                count = counted(len(machine.reader.unreadable), "object")
                self._say(f"{machine.resource.name}: {count} omitted: they cannot be read")
            if machine.counts.expired:
                self._say(f"{machine.resource.name}: changes during broken connections have the time of reconnection")
        length_ns = self._elapsed_ns()
        termination_ns = self._recorder.terminations.usual_ns
        self._file.end(format_duration(length_ns), None if termination_ns is None else format_duration(termination_ns))
        return Recorded(self._file.objects.count, self._file.steps, self._file.events, length_ns, self._is_full)

    async def _sync(self) -> None:
        """Wait until the watch caches are synced. Raises InputError if the recording ends before that."""
        over = asyncio.ensure_future(self._over.wait())
        for reflector in self._reflectors:
            synced = asyncio.ensure_future(reflector.synced())
            await asyncio.wait((synced, over), return_when=asyncio.FIRST_COMPLETED)
            if not synced.done():
                synced.cancel()
                await asyncio.gather(synced, return_exceptions=True)
                raise InputError(f"nothing was recorded: {self._missing()}")
        over.cancel()

    def _missing(self) -> str:
        """Return which kinds are not synced, or, if some cannot be listed, only these with their errors."""
        machines = [reflector.machine for reflector in self._reflectors if not reflector.machine.is_synced]
        wrong = [
            f"{machine.resource.name} cannot be listed: {machine.problem}" for machine in machines if machine.problem
        ]
        return (
            "; ".join(wrong)
            or f"the initial lists are incomplete: {', '.join(machine.resource.name for machine in machines)}"
        )

    def _begin(self, version: str) -> None:
        name = self._session.access.name
        self._began_ns = time.time_ns()
        for raw in self._recorder.begin():
            self._file.objects.add(raw)
        absent = [reflector.machine for reflector in self._reflectors if reflector.machine.is_absent]
        hidden = tuple(
            HiddenKind(api_version=machine.resource.api_version, kind=machine.resource.kind, message=machine.problem)
            for machine in absent
            if machine.problem.startswith("403")
        )
        hidden_kinds = {kind.kind for kind in hidden}
        self._file.begin(
            Snapshot(
                metadata=ObjectMeta(name=name),
                context=name,
                server_version=version,
                taken_at=format_time(self._began_ns),
                hidden=hidden,
                not_served=tuple(
                    f"{machine.resource.kind} ({machine.resource.api_version})"
                    for machine in absent
                    if machine.resource.kind not in hidden_kinds
                ),
                left_out=left_out_beside(()),
            )
        )
        self._say(f"recording {name}: {counted(self._file.objects.count, 'object')} at the start; interrupt to end")

    async def _wait(self) -> None:
        limit_ns = self._limits.length_ns
        try:
            async with asyncio.timeout(None if limit_ns is None else limit_ns / 10**9):
                await self._over.wait()
        except TimeoutError:
            return

    def _see(self, _kind: str, seen: Seen) -> None:
        entry = self._recorder.see(seen, self._elapsed_ns())
        if self._began_ns is not None and not self._is_full:
            self._file.write(entry)
            self._is_full = self._file.size >= self._limits.size_bytes
            if self._is_full:
                self._over.set()

    def _problem(self, kind: str, problem: str) -> None:
        if problem and not problem.startswith(_ABSENT):
            self._say(f"{kind}: {problem}")
        if kind in _NEEDED and self._began_ns is None and problem.startswith(_REFUSED):
            # Retries do not help against missing rights.
            self._over.set()

    def _elapsed_ns(self) -> int:
        """Return the elapsed time in whole milliseconds, the precision of the recording."""
        elapsed_ns = 0 if self._began_ns is None else max(time.time_ns() - self._began_ns, 0)
        return elapsed_ns // _MILLISECOND * _MILLISECOND


_COPIED_BYTES = 1 << 20


class RecordingFile:
    """A file of a recording: initial objects, `begin`, entries, `end`. It gets its name when it is complete."""

    def __init__(self, target: str, name: str) -> None:
        self.objects = SnapshotFile(target)
        self._name = name
        self._between_steps = self._between_events = b""
        self.steps = self.events = 0

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._events: IO[bytes] = opened.enter_context(tempfile.TemporaryFile(prefix="podium-"))
            self.objects.__enter__()
            opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._events.close()
        self.objects.__exit__(kind, error, traceback)

    @property
    def size(self) -> int:
        return self.objects.size + self._events.tell()

    def begin(self, snapshot: Snapshot) -> None:
        self.objects.end(snapshot)
        self.objects.begin(_opening("Scenario", self._name) + b',"spec":{"recorded":true,"steps":[')
        self._events.write(_opening(RECORDING, self._name) + b',"format":%d,"events":[' % FORMAT)

    def write(self, entry: RecordingEntry) -> None:
        for step in entry.steps:
            self.objects.go_on(self._between_steps + msgspec.json.encode(step))
            self._between_steps = b",\n"
        for event in entry.events:
            self._events.write(self._between_events + msgspec.json.encode(event))
            self._between_events = b",\n"
        self.steps += len(entry.steps)
        self.events += len(entry.events)

    def end(self, length: str, termination: str | None = None) -> None:
        """Complete the file with the length of the recording and the usual ``termination`` time of pods."""
        ending = msgspec.json.encode(length)
        self.objects.go_on(b'],"until":' + ending + b"}}")
        suffix = b"" if termination is None else b',"termination":' + msgspec.json.encode(termination)
        self._events.write(b'],"length":' + ending + suffix + b"}")
        self._events.seek(0)
        self.objects.begin(self._events.read(_COPIED_BYTES))
        while part := self._events.read(_COPIED_BYTES):
            self.objects.go_on(part)


def _opening(kind: str, name: str) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}})[:-1]
