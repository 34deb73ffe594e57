"""The file that a recording is: a snapshot of the start, a Scenario of what was asked for since, and a Recording.

Steps are written as they come; events, which stand behind them in the file, wait in another one until the end.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

import msgspec

from podium.api.meta import Raw
from podium.api.snapshot import API_VERSION, Snapshot
from podium.app.snapshots.file import SnapshotFile
from podium.sim.recording.tape import FORMAT, RECORDING, Entry

_COPIED_BYTES = 1 << 20


class RecordingFile:
    """Takes the objects of the start, then `begin`, entries, and `end`. It takes its name when it is whole."""

    def __init__(self, target: str, name: str) -> None:
        self._file = SnapshotFile(target)
        self._name = name
        self._between_steps = self._between_events = b""
        self.steps = self.events = 0

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._events: IO[bytes] = opened.enter_context(tempfile.TemporaryFile(prefix="podium-"))
            self._file.__enter__()
            opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._events.close()
        self._file.__exit__(kind, error, traceback)

    @property
    def size(self) -> int:
        """How many bytes there are to read, unpacked."""
        return self._file.size + self._events.tell()

    @property
    def count(self) -> int:
        """How many objects there were at the start."""
        return self._file.count

    def add(self, raw: Raw) -> None:
        """Write an object of the start."""
        self._file.add(raw)

    def begin(self, snapshot: Snapshot) -> None:
        """All objects of the start are written."""
        self._file.end(snapshot)
        self._file.begin(_opening("Scenario", self._name) + b',"spec":{"recorded":true,"steps":[')
        self._events.write(_opening(RECORDING, self._name) + b',"format":%d,"events":[' % FORMAT)

    def write(self, entry: Entry) -> None:
        """Write what came of an observation."""
        for step in entry.steps:
            self._file.go_on(self._between_steps + msgspec.json.encode(step))
            self._between_steps = b",\n"
        for event in entry.events:
            self._events.write(self._between_events + msgspec.json.encode(event))
            self._between_events = b",\n"
        self.steps += len(entry.steps)
        self.events += len(entry.events)

    def end(self, length: str, termination: str | None = None) -> None:
        """Nothing more comes; so long after the start it was over, and pods took that ``termination`` to end."""
        ending = msgspec.json.encode(length)
        self._file.go_on(b'],"until":' + ending + b"}}")
        told = b"" if termination is None else b',"termination":' + msgspec.json.encode(termination)
        self._events.write(b'],"length":' + ending + told + b"}")
        self._events.seek(0)
        self._file.begin(self._events.read(_COPIED_BYTES))
        shutil.copyfileobj(self._events, _Rest(self._file), _COPIED_BYTES)


class _Rest:
    """Writes on in a file, for whoever copies into one."""

    def __init__(self, file: SnapshotFile) -> None:
        self._file = file

    def write(self, text: bytes, /) -> int:
        self._file.go_on(text)
        return len(text)


def _opening(kind: str, name: str) -> bytes:
    """The beginning of an object, without its last bracket."""
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}})[:-1]
