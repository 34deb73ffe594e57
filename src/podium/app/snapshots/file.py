"""The file format of a snapshot: a List in JSON, compressed with gzip, of the objects and of a Snapshot about them.

Pods are in tables, which `-f` reads fastest (`podium.api.input.pod_table`). The file gets its name when it is complete.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from podium.api.errors import InputError
from podium.api.input.pod_table import PodTableWriter
from podium.api.meta import Raw
from podium.api.snapshot import Snapshot

_OPENS = b'{"apiVersion":"v1","kind":"List","items":[\n'
_BETWEEN = b",\n"
_ENDS = b"\n]}\n"
# zlib's own: the highest level takes several times as long for little less.
_LEVEL = 6


class SnapshotFile:
    """Takes objects one after another, and the Snapshot that goes with them; "-" is standard output.

    The file is readable by its owner alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = ExitStack()
        self._part: Path | None = None
        self._separator = b""
        self._pods = PodTableWriter()
        self.count = 0
        """How many objects were written."""
        self.size = 0
        """How many bytes there are to read, unpacked."""

    def __enter__(self) -> Self:
        file = self._shown.enter_context(self._opened())
        # Neither a name nor a time: the same objects give the same bytes.
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0)
        self._packed = self._shown.enter_context(packed)
        self._packed.write(_OPENS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_pods()
                self._packed.write(_ENDS)
            self._shown.close()
            if kind is None and self._part is not None:
                self._part.replace(self._name)
        finally:
            # Remove an incomplete file, even if only its last bytes could not be written.
            if self._part is not None:
                self._part.unlink(missing_ok=True)

    def add(self, raw: Raw) -> None:
        self.add_text(msgspec.json.encode(raw))

    def add_text(self, text: bytes) -> None:
        self.count += 1
        if not self._pods.add(text):
            self._begin(text)
        elif self._pods.is_full:
            self._write_pods()

    def begin(self, text: bytes) -> None:
        """Write the beginning of an object, of which `go_on` writes the rest."""
        self._write_pods()
        self._begin(text)

    def _write_pods(self) -> None:
        """Write the pods that wait for others to share a table with."""
        for item in self._pods.take():
            self._begin(item)

    def _begin(self, text: bytes) -> None:
        self.go_on(self._separator + text)
        self._separator = _BETWEEN

    def go_on(self, text: bytes) -> None:
        """Write a further part of an object."""
        self._packed.write(text)
        self.size += len(text)

    def end(self, snapshot: Snapshot) -> None:
        self._write_pods()
        self.add(snapshot.to_dict())
        self.count -= 1

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self._name == "-":
            return nullcontext(sys.stdout.buffer)
        target = Path(self._name)
        # Created for its owner alone, beside the file that it is to be.
        try:
            descriptor, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", source=self._name) from None
        self._part = Path(part)
        return os.fdopen(descriptor, "wb")
