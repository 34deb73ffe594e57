"""The file beside a journal that says up to where its writes were acknowledged.

SQLite takes a write-ahead log that was lost or cut for one that ends there. This file outlives such a loss, so that it
is noticed when the journal is opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from podium.store.journal.digest import DIGEST_SIZE, row_digest

# Each slot in a sector of its own, so that a write that is torn leaves the one before whole.
_SLOT_SIZE = 4_096
_VERSION_SIZE = 8
_SIZE = _VERSION_SIZE + 2 * DIGEST_SIZE


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The last version that was acknowledged, and the digest of the chain of events there."""

    version: int
    digest: bytes

    def to_bytes(self) -> bytes:
        """The form in the file, which ends with a checksum."""
        checksum = row_digest(self.version, self.digest.hex())
        return self.version.to_bytes(_VERSION_SIZE) + self.digest + checksum


class AcknowledgementFile:
    """Holds the last two acknowledgements. All methods raise OSError where the disk does."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it."""
        is_new = not os.path.exists(path)
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._next_slot = 0
        if is_new:
            _sync_folder(path)

    def read(self) -> Acknowledged | None:
        """The last acknowledgement; None where no slot is whole."""
        slots = [(_read(os.pread(self._file, _SIZE, index * _SLOT_SIZE)), index) for index in range(2)]
        whole = [(found.version, index, found) for found, index in slots if found is not None]
        if not whole:
            return None
        _, index, last = max(whole, key=lambda slot: slot[:2])
        self._next_slot = 1 - index
        return last

    def write(self, acknowledged: Acknowledged) -> None:
        """Take the place of the acknowledgement before the last one; returns when the disk has it."""
        os.pwrite(self._file, acknowledged.to_bytes(), self._next_slot * _SLOT_SIZE)
        os.fsync(self._file)
        self._next_slot = 1 - self._next_slot

    def remove(self) -> None:
        """The journal was closed in order, and needs no witness."""
        os.unlink(self._path)
        _sync_folder(self._path)

    def close(self) -> None:
        """Let go of the file; more than once does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _read(slot: bytes) -> Acknowledged | None:
    found = Acknowledged(int.from_bytes(slot[:_VERSION_SIZE]), slot[_VERSION_SIZE : _VERSION_SIZE + DIGEST_SIZE])
    return found if slot == found.to_bytes() else None


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
