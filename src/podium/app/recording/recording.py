"""Watches a cluster and writes what happens there, with rights to list and watch alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from podium.api.errors import InputError
from podium.api.kinds import KINDS
from podium.api.meta import ObjectMeta
from podium.api.snapshot import HiddenKind, Snapshot
from podium.api.times import format_duration, format_time
from podium.app.console.page import counted
from podium.app.console.source import ClusterSource
from podium.app.recording.file import RecordingFile
from podium.app.snapshots.slimming import Slimmer, left_out_beside
from podium.client.access.credentials import Credentials
from podium.client.access.in_cluster import find_access
from podium.client.reflecting.reflecting import Reflecting
from podium.client.reflecting.reflector import Reflector
from podium.client.reflecting.reflectors import Reflectors
from podium.client.session import Session
from podium.requests.observations import Seen
from podium.sim.recording.recorder import Recorder
from podium.store.api_resources import APIResources

# Without them there is no cluster to speak of.
_NEEDED = ("Node", "Pod")
_ABSENT, _REFUSED = "404", ("401", "403")
_TIMEOUT_S = 60.0
_MILLISECOND = 10**6

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a recording ends by itself: after so long, None for never; and before the file has more bytes, unpacked."""

    length_ns: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """How much was recorded."""

    objects: int
    steps: int
    events: int
    length_ns: int
    is_full: bool


def record(source: ClusterSource, target: str, limits: Limits, say: Say) -> Recorded:
    """Record until somebody interrupts it, or a limit is reached; the file is whole then. Raises PodiumError."""
    return asyncio.run(_record(source, target, limits, say))


async def _record(source: ClusterSource, target: str, limits: Limits, say: Say) -> Recorded:
    access = find_access(os.environ, source.kubeconfig, source.context)
    credentials = Credentials(access, time.time_ns, allows_exec=source.allows_exec_plugins)
    session = Session(access, credentials, APIResources(), user_agent="podium-record", timeout_s=_TIMEOUT_S)
    try:
        version = await session.read("/version")
        with RecordingFile(target, access.name) as file:
            recording = _Recording(session, file, limits, say)
            return await recording.run(str((version.object or {}).get("gitVersion", "")))
    finally:
        await session.close()


class _Recording:
    """One recording: a reflector for each kind shows a recorder what comes, and the file gets what comes of that."""

    def __init__(self, session: Session, file: RecordingFile, limits: Limits, say: Say) -> None:
        self._session = session
        self._file = file
        self._limits = limits
        self._say = say
        self._recorder = Recorder(Slimmer().slim)
        self._began_ns: int | None = None
        self._over = asyncio.Event()
        self._is_full = False
        self._reflectors = [
            Reflector(
                Reflecting(session.resources.named(kind.name), is_optional=kind.name not in _NEEDED),
                session,
                time.time_ns,
                self._see,
                self._problem,
            )
            for kind in KINDS.values()
        ]

    async def run(self, version: str) -> Recorded:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        keeping_up = Reflectors(self._reflectors)
        keeping_up.begin()
        try:
            await keeping_up.during(self._sync())
            self._begin(version)
            await keeping_up.during(self._wait())
        finally:
            await keeping_up.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        self._tell_gaps()
        length_ns = self._elapsed_ns()
        termination_ns = self._recorder.termination_ns
        self._file.end(format_duration(length_ns), None if termination_ns is None else format_duration(termination_ns))
        return Recorded(self._file.count, self._file.steps, self._file.events, length_ns, self._is_full)

    def _tell_gaps(self) -> None:
        """Say what of the cluster was seen late, or not at all."""
        for machine in (reflector.machine for reflector in self._reflectors):
            if machine.reader.unreadable:
                count = counted(len(machine.reader.unreadable), "object")
                self._say(f"{machine.resource.name}: {count} left out: what is there cannot be read")
            if machine.counts.expired:
                self._say(f"{machine.resource.name}: what came while the connection was broken is seen as of its end")

    async def _sync(self) -> None:
        """Wait until all objects are known. Raises InputError where it is over before that."""
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
        """Which kinds are not known yet, in words; those of which something is wrong go first."""
        machines = [reflector.machine for reflector in self._reflectors if not reflector.machine.is_synced]
        wrong = [
            f"{machine.resource.name} cannot be listed: {machine.problem}" for machine in machines if machine.problem
        ]
        return (
            "; ".join(wrong)
            or f"not all objects were there yet of {', '.join(machine.resource.name for machine in machines)}"
        )

    def _begin(self, version: str) -> None:
        name = self._session.access.name
        self._began_ns = time.time_ns()
        for raw in self._recorder.begin():
            self._file.add(raw)
        absent = [reflector.machine for reflector in self._reflectors if reflector.machine.is_absent]
        hidden = tuple(
            HiddenKind(api_version=machine.resource.api_version, kind=machine.resource.kind, message=machine.problem)
            for machine in absent
            if machine.problem.startswith("403")
        )
        told = {kind.kind for kind in hidden}
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
                    if machine.resource.kind not in told
                ),
                left_out=left_out_beside(()),
            )
        )
        self._say(f"recording {name}: {counted(self._file.count, 'object')} at the start; interrupt to end")

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
            # Waiting changes nothing about rights.
            self._over.set()

    def _elapsed_ns(self) -> int:
        """How long it has been, in whole milliseconds: nobody sees what happens more exactly than that."""
        elapsed_ns = 0 if self._began_ns is None else max(time.time_ns() - self._began_ns, 0)
        return elapsed_ns // _MILLISECOND * _MILLISECOND
