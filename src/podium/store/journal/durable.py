"""A journal in a file: SQLite with a write-ahead log.

The file holds a state of the store and what was written since, version by version, so that it always holds a whole
beginning of the history. Appended writes are acknowledged by `sync`, which commits them together and returns when the
disk has them (WAL with synchronous=FULL). After a crash the file holds everything that was acknowledged, and perhaps
some of what came after; never a part of a transaction.

While the journal is open, the file `PATH-acknowledged` says up to where it was acknowledged. What a damaged disk
changed, dropped or cut off is found when the journal is opened or loaded, and so is the loss of a file beside it. What
is not found: that all files together were put back to an earlier time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from podium.api.errors import PodiumError, escape
from podium.store.identities import Identities
from podium.store.journal.acknowledgement import Acknowledged, AcknowledgementFile
from podium.store.journal.journal import Saved
from podium.store.journal.tables import JournalTables
from podium.store.log.watch_event import WatchEvent

Result = TypeVar("Result")

_APPLICATION_ID = 0x706F6469
_MAX_PATH = 4_096
_FORMAT = 2


class JournalError(PodiumError):
    """The file cannot be used, or no longer. What was acknowledged is in it; the store that wrote to it must stop."""


class JournalInUseError(JournalError):
    """Another process uses the file."""


class DurableJournal:
    """Keeps the writes of a store in a file, which no other process can use meanwhile."""

    def __init__(self, path: str, *, accept_loss: bool = False) -> None:
        """Open the file, or make it. Raises JournalInUseError, and JournalError for one that is damaged or no journal.

        With ``accept_loss`` a file of which acknowledged writes were lost is taken for what is left of it.
        """
        self.path = path
        self._failed = self._is_closed = False
        self._accepts_loss = accept_loss
        # What was acknowledged when the journal was last in use, if it was not closed.
        self._witness: Acknowledged | None = None
        self._check_path()
        self._connection = self._guarded(lambda: sqlite3.connect(path, timeout=0, isolation_level=None))
        self._acknowledgements: AcknowledgementFile | None = None
        self._tables = JournalTables(self._connection)
        try:
            self._guarded(self._open)
        except JournalError:
            self._let_go()
            raise

    def load(self) -> Saved:
        """What the file holds. Raises JournalError where that is not a whole beginning of the history."""
        return self._guarded(self._load)

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Write the events of one transaction, to be acknowledged by `sync`. Raises JournalError."""
        self._guarded(lambda: self._append(events, identities))

    def sync(self) -> None:
        """Acknowledge what was appended: it outlasts a crash from now on. Raises JournalError."""
        self._guarded(self._commit)

    def compact(self, keep: int) -> None:
        """Keep the last `keep` events, and of the others what they led to; acknowledges. Raises JournalError."""
        self._guarded(lambda: self._compact(keep))

    def close(self) -> None:
        """Acknowledge what was appended, and let go of the file; once is enough. Raises JournalError."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._guarded(self._finish)
        finally:
            self._let_go()

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """Do the work; after a failure of the disk there is no telling what a later write would stand on."""
        if self._failed:
            raise self._error("failed before; start again with what it holds")
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            self._failed = True
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                raise JournalInUseError(self._placed("is in use: another process has it open")) from None
            raise self._error(str(error)) from None
        except UnicodeDecodeError:
            self._failed = True
            raise self._error("is damaged: it holds text that is none") from None

    def _error(self, problem: str) -> JournalError:
        return JournalError(self._placed(problem))

    def _placed(self, problem: str) -> str:
        return f"{escape(self.path, _MAX_PATH)}: {problem}"

    def _check_path(self) -> None:
        """SQLite would take the first two for databases that are gone when they are closed."""
        if self.path in {"", ":memory:"}:
            raise JournalError(f"{self.path!r} is no path of a file that a journal could be kept in")
        if os.path.isfile(self.path) and not os.path.getsize(self.path):
            raise self._error("is empty, and so no journal: remove it to begin a new one there")

    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        is_new = run("PRAGMA schema_version").fetchone()[0] == 0
        if not is_new and self._pragma("application_id") != _APPLICATION_ID:
            raise sqlite3.DatabaseError("is a database, but not a journal of Podium's")
        if not is_new and self._pragma("user_version") != _FORMAT:
            raise sqlite3.DatabaseError(f"is a journal of format {self._pragma('user_version')}, not {_FORMAT}")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        problem = self._pragma("quick_check")
        if problem != "ok":
            raise sqlite3.DatabaseError(f"is damaged: {problem}")
        run("BEGIN IMMEDIATE")
        if is_new:
            self._tables.create()
            run(f"PRAGMA application_id = {_APPLICATION_ID}")
            run(f"PRAGMA user_version = {_FORMAT}")
        else:
            self._tables.read_state()
        self._find_witness()
        if not self._accepts_loss:
            self._ask_witness()
        self._begin()

    def _find_witness(self) -> None:
        if os.path.exists(self._witness_path):
            self._acknowledgements = AcknowledgementFile(self._witness_path)
            self._witness = self._acknowledgements.read()

    def _ask_witness(self) -> None:
        """Compare with what was acknowledged; raises sqlite3.DatabaseError where less is left, or may be."""
        last = self._tables.last.version
        if self._witness is None and self._tables.was_left_open:
            name = os.path.basename(self._witness_path)
            raise sqlite3.DatabaseError(
                f"was not closed, and {name}, which belongs to it, is missing or damaged: what was written last may be "
                f"lost. It ends at version {last}; to go on from there, open it with accept_loss"
            )
        if self._witness is not None and last < self._witness.version:
            raise sqlite3.DatabaseError(
                f"is damaged: what was acknowledged ends at version {self._witness.version}, but the file at {last}: "
                "its write-ahead log was lost or cut. To go on from there, open it with accept_loss"
            )

    def _begin(self) -> None:
        """From here on the witness belongs to the file: it is there before the file says so."""
        if self._acknowledgements is None:
            self._acknowledgements = AcknowledgementFile(self._witness_path)
        self._acknowledgements.write(self._tables.last)
        self._tables.mark(is_open=True)
        self._tables.commit()

    @property
    def _witness_path(self) -> str:
        return f"{self.path}-acknowledged"

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _load(self) -> Saved:
        saved, digests = self._tables.load()
        witness = self._witness
        if witness is None or self._accepts_loss or digests.get(witness.version, witness.digest) == witness.digest:
            return saved
        raise sqlite3.DatabaseError(f"is damaged: version {witness.version} is not what was acknowledged")

    def _append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        self._tables.append(events, identities)

    def _commit(self) -> None:
        if self._connection.in_transaction:
            self._tables.commit()
            self._acknowledge()

    def _acknowledge(self) -> None:
        if self._acknowledgements is not None:
            self._acknowledgements.write(self._tables.last)

    def _compact(self, keep: int) -> None:
        self._commit()
        self._connection.execute("BEGIN IMMEDIATE")
        self._tables.compact(keep)
        self._tables.commit()

    def _finish(self) -> None:
        """Acknowledge what was appended, and put everything into the one file."""
        self._commit()
        self._connection.execute("BEGIN IMMEDIATE")
        self._tables.mark(is_open=False)
        self._tables.commit()
        self._connection.close()
        if self._acknowledgements is not None:
            self._acknowledgements.remove()

    def _let_go(self) -> None:
        self._connection.close()
        if self._acknowledgements is not None:
            self._acknowledgements.close()
