"""The recording of a cluster's changes, with only rights to list and watch."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

import msgspec

from podium.api.errors import InputError, os_error_as
from podium.api.input.documents import API_VERSION, HiddenKind, Snapshot
from podium.api.kinds import KINDS
from podium.api.meta import ObjectMeta, Raw
from podium.api.times import format_duration, format_time
from podium.apirequests.observations import ObjectObservation
from podium.app.console.options import ClusterSource
from podium.app.console.page import counted
from podium.app.snapshots.cluster import Slimmer, left_out_beside, open_session, snapshot_file
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


class Limits(msgspec.Struct, frozen=True):
    """The limits of a recording: its length, None for no limit, and the uncompressed size of a file.

    With ``every_ns`` a file ends after that time, or when it is full, and another one begins.
    """

    length_ns: int | None
    size_bytes: int
    every_ns: int | None = None


class Recorded(msgspec.Struct, frozen=True):
    """The numbers of a recording; ``objects`` are those of its first file."""

    files: int
    objects: int
    steps: int
    events: int
    length_ns: int
    is_full: bool


async def record(source: ClusterSource, target: str, limits: Limits, say: Say) -> Recorded:
    """Record until an interrupt or a limit, and complete the file. Raises PodiumError.

    If a file ends after some time, ``target`` is a folder, and files are named by the time of their beginning. What an
    earlier recording has left that was killed is completed first.
    """
    _recover_all(target, limits, say)
    async with open_session(source, "podium-record", _TIMEOUT_S) as session:
        # Reflectors retry for ever, so a server that cannot be reached is reported here.
        version = await server_version(session, must_answer=True)
        return await _Recording(session, target, limits, say).run(version)


def _recover_all(target: str, limits: Limits, say: Say) -> None:
    """Complete the files of recordings that were killed. Raises InputError if ``target`` is the only one."""
    if limits.every_ns is None:
        if recover(target):
            raise InputError("the recording in it was killed, and is complete now; name another file", source=target)
        return
    with os_error_as("cannot be used as a folder", target):
        Path(target).mkdir(parents=True, exist_ok=True)
    for journal in sorted(Path(target).glob("*.podium.journal")):
        file = str(journal).removesuffix(".journal")
        try:
            say(f"{file}: {'completed' if recover(file) else 'nothing was recorded'}; the recording was killed")
        except InputError as error:
            say(str(error))


class _Recording:
    """One recording: reflectors pass changes to a recorder, and its entries are written to the file."""

    def __init__(self, session: Session, target: str, limits: Limits, say: Say) -> None:
        self._session = session
        self._target = target
        self._limits = limits
        self._say = say
        self._recorder = ClusterRecorder(Slimmer().slim)
        self._file: RecordingFile | None = None
        self._began_ns = 0
        # The end of the present file, and of the recording.
        self._ends, self._over = asyncio.Event(), asyncio.Event()
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
        """Record until the end, and complete the files. Raises InputError if it ends before the initial lists."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop)
        keeping_up = Reflectors(self._reflectors)
        keeping_up.begin()
        try:
            await keeping_up.during(self._sync())
            made = await keeping_up.during(self._write_files(version))
        finally:
            if self._file is not None:
                self._file.close()
            await keeping_up.close()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
        for machine in (reflector.machine for reflector in self._reflectors):
            if machine.reader.unreadable:
                unreadable = counted(len(machine.reader.unreadable), "object")
                self._say(f"{machine.resource.name}: {unreadable} omitted: they cannot be read")
            if machine.counts.expired:
                self._say(f"{machine.resource.name}: changes during broken connections have the time of reconnection")
        return made

    def _stop(self) -> None:
        self._ends.set()
        self._over.set()

    async def _write_files(self, version: str) -> Recorded:
        """Write one file, or one after another; each begins with the objects as they are when the one before ends."""
        limit_ns, every_ns = self._limits.length_ns, self._limits.every_ns
        file = self._begin(version)
        began_ns, objects = self._began_ns, file.objects
        files = steps = events = length_ns = 0
        is_last = False
        while not is_last:
            left_ns = None if limit_ns is None else limit_ns - (self._began_ns - began_ns)
            wait_ns = min((part for part in (every_ns, left_ns) if part is not None), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait_ns is None else wait_ns / 10**9):
                    await (self._over if self._over.is_set() else self._ends).wait()
            elapsed_ns = self._elapsed_ns()
            length_ns = self._began_ns + elapsed_ns - began_ns
            ended, self._file = file, None
            ended.end(elapsed_ns, self._recorder.terminations.usual_ns)
            files, steps, events = files + 1, steps + ended.steps, events + ended.events
            is_last = every_ns is None or self._over.is_set() or (limit_ns is not None and length_ns >= limit_ns)
            try:
                if not is_last:
                    file = self._begin(version)
            finally:
                # Meanwhile changes go to the next file.
                await asyncio.to_thread(ended.complete)
        return Recorded(files, objects, steps, events, length_ns, self._is_full)

    async def _sync(self) -> None:
        """Wait until the watch caches are synced. Raises InputError if the recording ends before that."""
        over = asyncio.ensure_future(self._over.wait())
        for reflector in self._reflectors:
            synced = asyncio.ensure_future(reflector.wait_synced())
            await asyncio.wait((synced, over), return_when=asyncio.FIRST_COMPLETED)
            if not synced.done():
                synced.cancel()
                await asyncio.gather(synced, return_exceptions=True)
                machines = [each.machine for each in self._reflectors if not each.machine.is_synced]
                # If some kinds cannot be listed, only these matter.
                wrong = [f"{each.resource.name} cannot be listed: {each.problem}" for each in machines if each.problem]
                missing = f"the initial lists are incomplete: {', '.join(each.resource.name for each in machines)}"
                raise InputError(f"nothing was recorded: {'; '.join(wrong) or missing}")
        over.cancel()

    def _begin(self, server: str) -> RecordingFile:
        """Begin a file with all objects. Raises InputError if it cannot be written or is full at once."""
        name = self._session.access.name
        hidden, not_served = list[HiddenKind](), list[str]()
        for machine in (each.machine for each in self._reflectors if each.machine.is_absent):
            version, kind, problem = machine.resource.api_version, machine.resource.kind, machine.problem
            if problem.startswith("403"):
                hidden.append(HiddenKind(api_version=version, kind=kind, message=problem))
            else:
                not_served.append(f"{kind} ({version})")
        elapsed_ns, self._began_ns = self._elapsed_ns(), time.time_ns()
        snapshot = Snapshot(
            metadata=ObjectMeta(name=name),
            context=name,
            server_version=server,
            taken_at=format_time(self._began_ns),
            hidden=tuple(hidden),
            not_served=tuple(not_served),
            left_out=left_out_beside(()),
        )
        every_ns, size_bytes = self._limits.every_ns, self._limits.size_bytes
        target = self._target
        if every_ns is not None:
            # A file that begins now and does not exist yet.
            target = str(Path(target) / format_time(self._began_ns).replace(":", "-"))
            names = chain((f"{target}.podium",), (f"{target}-{number}.podium" for number in count(2)))
            target = next(file for file in names if not (Path(file).exists() or _journal_of(file).exists()))
        file = self._file = RecordingFile(target, name)
        file.begin(self._recorder.begin(elapsed_ns), snapshot)
        if every_ns is not None and file.size > size_bytes // 2:
            _journal_of(target).unlink()
            problem = f"the objects alone take {file.size >> 20} MiB, and a file is to have {size_bytes >> 20} at most"
            raise InputError(f"{problem}; raise --max-size", source=self._target)
        self._is_full = False
        self._ends.clear()
        self._say(f"recording {name}: {counted(file.objects, 'object')} at the start; interrupt to end")
        return file

    def _see(self, _kind: str, seen: ObjectObservation) -> None:
        elapsed_ns, file = self._elapsed_ns(), self._file
        entry = self._recorder.see(seen, elapsed_ns)
        if file is not None and not self._is_full:
            file.write(entry, elapsed_ns)
            self._is_full = file.size >= self._limits.size_bytes
            if self._is_full:
                self._ends.set()

    def _problem(self, kind: str, problem: str) -> None:
        if problem and not problem.startswith(_ABSENT):
            self._say(f"{kind}: {problem}")
        if kind in _NEEDED and self._file is None and problem.startswith(_REFUSED):
            # Retries do not help against missing rights.
            self._stop()

    def _elapsed_ns(self) -> int:
        """Return the elapsed time in whole milliseconds, the precision of the recording."""
        elapsed_ns = max(time.time_ns() - self._began_ns, 0) if self._began_ns else 0
        return elapsed_ns // _MILLISECOND * _MILLISECOND


class RecordingFile:
    """A file of a recording: `begin` with the objects, entries, `end`, and `complete`, which gives it its name.

    Until then all is in a journal beside it, a line for each part. If the recording is killed or fails, `recover` makes
    the file of what the journal has.
    """

    def __init__(self, target: str, name: str) -> None:
        """Create the journal, readable by its owner alone. Raises InputError."""
        self._target = target
        self._name = name
        self._termination_ns: int | None = None
        self.objects = self.steps = self.events = self.size = 0
        """How much was written; the size is that of the journal in bytes."""
        with os_error_as("cannot be written", target):
            descriptor = os.open(_journal_of(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            # As long as this process runs, no other one takes the journal for that of a recording that was killed.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._journal = os.fdopen(descriptor, "wb")

    def begin(self, objects: Iterable[Raw], snapshot: Snapshot) -> None:
        for raw in objects:
            self._add({"object": raw})
            self.objects += 1
        self._add({"snapshot": snapshot.to_dict()})
        self._journal.flush()

    def write(self, entry: RecordingEntry, elapsed_ns: int) -> None:
        if entry.steps or entry.events:
            self.steps += len(entry.steps)
            self.events += len(entry.events)
            self._add({"at": format_duration(elapsed_ns), "steps": entry.steps, "events": entry.events})
            self._journal.flush()

    def _add(self, line: Raw) -> None:
        self.size += self._journal.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Leave the recording as it is, for `recover`."""
        self._journal.close()

    def end(self, elapsed_ns: int, termination_ns: int | None = None) -> None:
        """End the recording, with its length and the usual time that pods take to end."""
        self._add({"at": format_duration(elapsed_ns)})
        self._journal.flush()
        self._termination_ns = termination_ns

    def complete(self) -> None:
        """Write the file, and remove the journal, which no other process takes until then."""
        with self._journal:
            _complete(self._target, self._name, self._termination_ns)
            _journal_of(self._target).unlink()


def recover(target: str) -> bool:
    """Complete the file of a recording that was killed; return whether there was one.

    A journal that ends before the recording has begun counts as none, and is removed. Raises InputError if the file
    exists, too, or if another process is writing it.
    """
    journal = _journal_of(target)
    if not journal.exists():
        return False
    with journal.open("rb") as locked:
        try:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError("another process is recording to it", source=target) from None
        if Path(target).exists():
            problem = f"exists, and so does the journal of a recording that was killed, {journal}; move one away"
            raise InputError(problem, source=target)
        snapshot = next((line["snapshot"] for line in _lines(journal) if "snapshot" in line), None)
        if snapshot is not None:
            _complete(target, snapshot.get("context", ""), None)
        journal.unlink()
    return snapshot is not None


def _journal_of(target: str) -> Path:
    return Path(f"{target}.journal")


def _lines(journal: Path) -> Iterator[Raw]:
    """Yield the lines of a journal; the last one may be incomplete."""
    with journal.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line)


def _complete(target: str, name: str, termination_ns: int | None) -> None:
    """Write the file of a recording from its journal: the objects, a Scenario with the steps, and the events."""
    journal, length, separator = _journal_of(target), "0s", b""
    with snapshot_file(target) as file:
        for line in _lines(journal):
            if "object" in line:
                file.add(line["object"])
            elif "snapshot" in line:
                file.begin(msgspec.json.encode(line["snapshot"]))
                file.begin(_opening("Scenario", name) + b',"spec":{"recorded":true,"steps":[')
            length = line.get("at", length)
            for step in line.get("steps", ()):
                file.go_on(separator + msgspec.json.encode(step))
                separator = b",\n"
        file.go_on(b'],"until":' + msgspec.json.encode(length) + b"}}")
        file.begin(_opening(RECORDING, name) + b',"format":%d,"events":[' % FORMAT)
        separator = b""
        for event in (event for line in _lines(journal) for event in line.get("events", ())):
            file.go_on(separator + msgspec.json.encode(event))
            separator = b",\n"
        file.go_on(b'],"length":' + msgspec.json.encode(length))
        if termination_ns is not None:
            file.go_on(b',"termination":' + msgspec.json.encode(format_duration(termination_ns)))
        file.go_on(b"}")


def _opening(kind: str, name: str) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}})[:-1]
