"""A journal in a file: SQLite with a write-ahead log.

The file holds a state of the store and the events written since, version by version, so that it is always a prefix of
the history. `sync` acknowledges appended writes: it commits them together and returns when the disk has them (WAL with
synchronous=FULL). After a crash the file holds everything that was acknowledged, and possibly some later writes, but
never a part of a transaction.

While the journal is open, the file `PATH-acknowledged` records up to which version writes were acknowledged. Opening or
loading the journal detects changed, dropped or truncated content and the loss of a file beside it. It does not detect
that all files together were reset to an earlier time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from podium.api.errors import PodiumError, escape
from podium.store.journal_tables import Acknowledged, AcknowledgementFile, JournalTables, check_identity
from podium.store.revisions import Identities, JournalContent
from podium.store.watch_log import WatchEvent

Given = ParamSpec("Given")
Result = TypeVar("Result")

_ACCEPT = "To go on from what it holds, accept the loss (--accept-loss)"
_APPLICATION_ID = 0x706F6469
_MAX_PATH = 4_096
_FORMAT = 2
_NOT_KEPT = ". No more writes are kept: check the disk and its free space, then start again"
_ADVICE = dict.fromkeys(("append", "sync", "compact", "_finish"), _NOT_KEPT)
# Half of so many events are merged into the state.
_MOST_EVENTS = 20_000


class JournalError(PodiumError):
    """An error that makes the file unusable. Acknowledged writes are in it; the store that writes to it must stop."""


class JournalInUseError(JournalError):
    """An error that reports a file used by another process."""


def _guarded(
    method: Callable[Concatenate[DurableJournal, Given], Result],
) -> Callable[Concatenate[DurableJournal, Given], Result]:
    """Let a disk failure make the journal unusable, since later writes would have an unknown base."""

    @wraps(method)
    def guarded(self: DurableJournal, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        if self.problem:
            raise JournalError(self.problem)
        try:
            return method(self, *args, **kwargs)
        except (sqlite3.Error, OSError, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                self.problem = self._placed("is in use: another process has it open")
                raise JournalInUseError(self.problem) from None
            self.problem = self._placed(f"{error}{_ADVICE.get(method.__name__, '')}")
        except UnicodeDecodeError:
            self.problem = self._placed("is damaged: it holds text that is none")
        raise JournalError(self.problem)

    return guarded


class DurableJournal:
    """A journal that keeps a store's writes in a file, which no other process can use at the same time."""

    def __init__(self, path: str, *, accept_loss: bool = False) -> None:
        """Open the file, or create it.

        Raises JournalInUseError, and JournalError for a file that is damaged or not a journal. With ``accept_loss``, a
        file that lost acknowledged writes is used as it is.
        """
        self.path = path
        self.problem = ""
        """The failure that made the journal unusable, and what to do; "" for none."""
        self._is_closed = False
        self._accepts_loss = accept_loss
        # The last acknowledgement of the journal, if it was not closed.
        self._witness: Acknowledged | None = None
        # SQLite interprets these as temporary databases.
        if path in {"", ":memory:"}:
            raise JournalError(f"{path!r} is not a path at which a journal can be kept")
        self._was_there = os.path.isfile(path)
        if self._was_there and not os.path.getsize(path):
            raise JournalError(self._placed("is empty, and so not a journal: remove it to begin a new one there"))
        self._connection = self._connected()
        self._acknowledgements: AcknowledgementFile | None = None
        self._tables = JournalTables(self._connection)
        try:
            self._open()
        except JournalError:
            self._let_go()
            raise

    @_guarded
    def load(self) -> JournalContent:
        """Return the content of the file. Raises JournalError if it is not a prefix of the history."""
        saved, digests = self._tables.load()
        witness = self._witness
        if witness is None or self._accepts_loss or digests.get(witness.version, witness.digest) == witness.digest:
            return saved
        raise sqlite3.DatabaseError(f"is damaged: version {witness.version} is not what was acknowledged")

    @_guarded
    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Write the events of one transaction, to be acknowledged by `sync`. Raises JournalError."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        self._tables.append(events, identities)

    @property
    def has_unsynced(self) -> bool:
        """Return whether there are appended writes that `sync` has not acknowledged."""
        return bool(self.problem) or self._connection.in_transaction

    @_guarded
    def sync(self) -> None:
        """Acknowledge the appended writes: they survive a crash from now on. Raises JournalError.

        From time to time, older events are merged into the state.
        """
        if not self._connection.in_transaction:
            return
        self._tables.commit()
        if self._acknowledgements is not None:
            self._acknowledgements.write(self._tables.last)
        if self._tables.state.last_version - self._tables.state.version >= _MOST_EVENTS:
            self.compact(_MOST_EVENTS // 2)

    @_guarded
    def compact(self, keep: int) -> None:
        """Keep the last `keep` events and merge older ones into the state; acknowledge. Raises JournalError."""
        self.sync()
        self._connection.execute("BEGIN IMMEDIATE")
        self._tables.compact(keep)
        self._tables.commit()

    def close(self) -> None:
        """Acknowledge the appended writes, and close the file if it is open. Raises JournalError."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._finish()
        finally:
            self._let_go()

    def _placed(self, problem: str) -> str:
        return f"{escape(self.path, _MAX_PATH)}: {problem}"

    @_guarded
    def _connected(self) -> sqlite3.Connection:
        """Open the file; a new one is accessible only to its owner, as are the files that SQLite adds beside it."""
        # SQLite reports paths that cannot be opened.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        # Long requests are answered on other threads; there is never more than one call at a time.
        return sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)

    @_guarded
    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        is_new = run("PRAGMA schema_version").fetchone()[0] == 0
        if is_new and self._was_there and not self._accepts_loss:
            raise sqlite3.DatabaseError(f"holds nothing: its write-ahead log was lost. {_ACCEPT}")
        if not is_new:
            check_identity(self._connection, _APPLICATION_ID, _FORMAT, "journal")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        problem = run("PRAGMA quick_check").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(f"is damaged: {problem}")
        run("BEGIN IMMEDIATE")
        if is_new:
            self._tables.create()
            run(f"PRAGMA application_id = {_APPLICATION_ID}")
            run(f"PRAGMA user_version = {_FORMAT}")
        else:
            self._tables.read_state()
        if os.path.exists(self._witness_path):
            self._acknowledgements = AcknowledgementFile(self._witness_path)
            self._witness = self._acknowledgements.read()
        if not self._accepts_loss:
            self._ask_witness()
        # The acknowledgement file exists before the journal is marked as open.
        if self._acknowledgements is None:
            self._acknowledgements = AcknowledgementFile(self._witness_path)
        self._acknowledgements.write(self._tables.last)
        self._tables.mark(is_open=True)
        self._tables.commit()
        # The file itself says from now on that it was left open, even if all files beside it are lost.
        run("PRAGMA wal_checkpoint(TRUNCATE)")

    def _ask_witness(self) -> None:
        """Compare the content with the acknowledgement; raise sqlite3.DatabaseError if writes were, or may be, lost."""
        last = self._tables.last.version
        if self._witness is None and self._tables.state.is_open:
            name = os.path.basename(self._witness_path)
            raise sqlite3.DatabaseError(
                f"was not closed, and {name}, which belongs to it, is missing or damaged: what was written last may be "
                f"lost. It ends at version {last}. {_ACCEPT}"
            )
        if self._witness is not None and last < self._witness.version:
            raise sqlite3.DatabaseError(
                f"is damaged: what was acknowledged ends at version {self._witness.version}, but the file at {last}: "
                f"its write-ahead log was lost or cut. {_ACCEPT}"
            )

    @property
    def _witness_path(self) -> str:
        return f"{self.path}-acknowledged"

    @_guarded
    def _finish(self) -> None:
        """Acknowledge the appended writes, and merge the write-ahead log into the file."""
        self.sync()
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
