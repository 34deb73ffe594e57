"""Sees to it that what was written is on disk, and that the file does not grow for ever."""

from __future__ import annotations

from podium.store.journal.durable import DurableJournal

# So many versions are written between two times that the file is cut back to its last ones.
_COMPACTED_EACH = 10_000
_KEPT = 10_000


class Keeper:
    """Keeps the journal of a store whose version is given; ``version`` is what was kept when it began."""

    def __init__(self, journal: DurableJournal, version: int) -> None:
        self._journal = journal
        self._kept = self._compacted = version

    def has(self, version: int) -> bool:
        """Whether everything up to that version is on disk."""
        return version == self._kept

    def keep(self, version: int) -> None:
        """Return when everything up to that version is on disk. Raises JournalError."""
        if version == self._kept:
            return
        self._journal.sync()
        self._kept = version
        if version - self._compacted >= _COMPACTED_EACH:
            self._compacted = version
            self._journal.compact(_KEPT)

    def close(self) -> None:
        """Keep what there is, and let go of the file. Raises JournalError."""
        self._journal.close()
