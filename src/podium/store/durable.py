"""A journal in a file: SQLite with a write-ahead log.

The table `objects` holds a state of the store, and `events` what was written since, version by version, so that the
file always holds a whole beginning of the history. Appended writes are acknowledged by `sync`, which commits them
together and returns when the disk has them (WAL with synchronous=FULL). After a crash the file holds everything that
was acknowledged, and perhaps some of what came after; never a part of a transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from podium.api.errors import PodiumError, escape
from podium.api.meta import Raw
from podium.store.identity import Identities
from podium.store.journal import Saved
from podium.store.watch_log import WatchEvent

Result = TypeVar("Result")

_APPLICATION_ID = 0x706F6469
_MAX_PATH = 4_096
_FORMAT = 1
_SCHEMA = """
CREATE TABLE objects (kind TEXT, key TEXT, version INTEGER, object TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE events (version INTEGER PRIMARY KEY, type TEXT, kind TEXT, key TEXT, object TEXT);
CREATE TABLE given_uids (uid TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE state (version INTEGER, identities INTEGER);
INSERT INTO state VALUES (0, 0);
"""
# In this order: each version takes the place of the one before, and what was deleted last goes.
_COMPACT = (
    "INSERT OR REPLACE INTO objects SELECT kind, key, version, object FROM events WHERE version <= ? ORDER BY version",
    "DELETE FROM objects WHERE version IN (SELECT version FROM events WHERE type = 'DELETED' AND version <= ?)",
    "DELETE FROM events WHERE version <= ?",
    "UPDATE state SET version = ?",
)


class JournalError(PodiumError):
    """The file cannot be used, or no longer. What was acknowledged is in it; the store that wrote to it must stop."""


class DurableJournal:
    """Keeps the writes of a store in a file, which no other process can use meanwhile."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it. Raises JournalError for one that is damaged, in use, or not a journal."""
        self.path = path
        self._failed = self._is_closed = False
        self._connection = self._guarded(lambda: sqlite3.connect(path, timeout=0, isolation_level=None))
        try:
            self._guarded(self._open)
        except JournalError:
            self._connection.close()
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
            self.sync()
        finally:
            self._connection.close()

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """Do the work; after a failure of the disk there is no telling what a later write would stand on."""
        if self._failed:
            raise JournalError(f"{escape(self.path, _MAX_PATH)} failed before; start again with what it holds")
        try:
            return work()
        except (sqlite3.Error, json.JSONDecodeError) as error:
            self._failed = True
            raise JournalError(f"{escape(self.path, _MAX_PATH)}: {error}") from None

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
        if is_new:
            run("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION_ID}")
            run(f"PRAGMA user_version = {_FORMAT}")
            run("COMMIT")

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _load(self) -> Saved:
        run = self._connection.execute
        version, identities = run("SELECT version, identities FROM state").fetchone()
        objects = [(kind, _raw(text)) for kind, text in run("SELECT kind, object FROM objects ORDER BY kind, key")]
        events = run("SELECT version, type, kind, object FROM events ORDER BY version").fetchall()
        for expected, (found, *_) in enumerate(events, version + 1):
            if found != expected:
                raise sqlite3.DatabaseError(f"is damaged: version {expected} is missing")
        uids = [uid for (uid,) in run("SELECT uid FROM given_uids ORDER BY uid")]
        return Saved(version, objects, [(type_, kind, _raw(text)) for _, type_, kind, text in events], identities, uids)

    def _append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        rows = [
            (event.version, event.type, event.stored.kind, event.stored.key, json.dumps(event.stored.raw))
            for event in events
        ]
        connection = self._connection
        if not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        created = (event.stored.uid for event in events if event.type == "ADDED")
        given = ((uid,) for uid in created if identities.was_given(uid))
        connection.executemany("INSERT OR IGNORE INTO given_uids VALUES (?)", given)
        connection.execute("UPDATE state SET identities = ?", (identities.count,))

    def _commit(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def _compact(self, keep: int) -> None:
        self._commit()
        run = self._connection.execute
        (newest,) = run("SELECT max(version) FROM events").fetchone()
        (begin,) = run("SELECT version FROM state").fetchone()
        until = (newest or begin) - keep
        if until > begin:
            run("BEGIN IMMEDIATE")
            for statement in _COMPACT:
                run(statement, (until,))
            run("COMMIT")


def _raw(text: str) -> Raw:
    raw: Raw = json.loads(text)
    return raw
