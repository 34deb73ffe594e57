"""The ledger of disruptions in a file: SQLite, one row for each; the oldest are dropped, by number and by age.

No component depends on these records: a write that fails blocks nothing, and after a power failure the last seconds may
be missing. A process crash loses nothing that was flushed, and leaves no partial record (WAL with synchronous=NORMAL).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from podium.api.errors import InputError, os_error_as
from podium.api.times import SECOND
from podium.controllers.ledger.disruption import (
    Disruption,
    DisruptionTotals,
    EarlierRecords,
    FollowUp,
    UsageEntry,
    disruption_of,
)
from podium.controllers.ledger.outcomes import MOST_OPEN
from podium.store.journal_tables import check_identity

Result = TypeVar("Result")

LEDGER = "ledger"
"""The name of the file in a data directory."""

MOST_RECORDS = 100_000
"""The maximum number of disruptions, about 1 kB each; the oldest are dropped first."""

KEPT_SECONDS = 90 * 24 * 3_600
"""The default retention of disruptions: 90 days."""

MOST_WAITING = 10_000
"""The maximum number of records that wait while the disk fails; the oldest are lost first."""

_APPLICATION_ID = 0x706F6C67
_FORMAT = 1
_MAGIC = b"SQLite format 3\0"
_SPARE = 1_000
_UsageKey = tuple[int, str, str, int, str]
_LONGEST_RECORD = 100_000
_RETRY_NS = 10 * SECOND
# Trails are the state needed to continue open records; readers do not use them. Usage is that of namespaces by hour.
_TABLES = """
CREATE TABLE disruptions (id INTEGER PRIMARY KEY, time REAL NOT NULL, record BLOB NOT NULL) STRICT;
CREATE TABLE dropped (number INTEGER NOT NULL) STRICT;
INSERT INTO dropped VALUES (0);
CREATE TABLE trails (id INTEGER PRIMARY KEY, trail BLOB NOT NULL) STRICT;
CREATE TABLE usage (
  hour INTEGER NOT NULL, namespace TEXT NOT NULL, class TEXT NOT NULL, priority INTEGER NOT NULL,
  resource TEXT NOT NULL, amount REAL NOT NULL, PRIMARY KEY (hour, namespace, class, priority, resource)
) STRICT, WITHOUT ROWID;
"""
_ADD_USAGE = """
INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount
"""


class LedgerContent(msgspec.Struct, frozen=True):
    """The content of a ledger: the records by number, the number of dropped ones, and the usage."""

    records: tuple[Disruption, ...]
    dropped: int
    usage: tuple[UsageEntry, ...] = ()


@dataclass(slots=True, eq=False)
class LedgerFile:
    """A ledger that writes records as they are added and changed.

    The file is opened, or created. ``on_problem`` receives a problem once; "" when it is resolved. Records wait until
    `flush`; without new records, nothing is written. With new records, those older than ``kept_seconds`` (0: no limit)
    or beyond the maximum number are dropped, in the order of their numbers, so that no others are scanned. ``lost`` is
    the number of records that could not be written in time, and ``tallies`` count the new ones.

    Raises InputError for a file that is damaged, not a ledger, or open for writing in another process.
    """

    path: str
    on_problem: Callable[[str], None] = lambda problem: None
    _: KW_ONLY
    kept_seconds: float = KEPT_SECONDS
    most_records: int = MOST_RECORDS
    most_waiting: int = MOST_WAITING
    lost: int = 0
    last_id: int = field(init=False)
    tallies: DisruptionTotals = field(init=False)
    # The records that are not yet in the file, by number.
    waiting: dict[int, tuple[Disruption, FollowUp | None]] = field(default_factory=dict)
    # Usage that is not yet in the file, by the key of its row.
    _used: Counter[_UsageKey] = field(default_factory=Counter)
    _problem: str = ""
    _retry_ns: int = 0
    _lock: int = field(init=False)
    _connection: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self._lock = _locked(self.path)
        try:
            self._connection = _opened(self.path)
        except InputError:
            os.close(self._lock)
            raise
        (self.last_id,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM disruptions").fetchone()
        self.tallies = DisruptionTotals(self.last_id)

    def put(self, record: Disruption, trail: FollowUp | None = None) -> None:
        """Add or update a record; ``trail`` is the state needed to continue it, None if the record is complete."""
        self.tallies.put(record)
        self.waiting.pop(record.id, None)
        self.waiting[record.id] = record, trail
        if len(self.waiting) > self.most_waiting:
            del self.waiting[next(iter(self.waiting))]
            self.lost += 1

    def put_usage(self, rows: Iterable[UsageEntry]) -> None:
        """Add the usage since the last call; the next `flush` writes it."""
        for used in rows:
            for resource, amount in used.requested.items():
                key = (used.hour, used.namespace, used.priority_class, used.priority, resource)
                self._used[key] += amount  # type: ignore[assignment] # hours are fractions

    def earlier(self) -> EarlierRecords:
        """Return the records to continue. Raises InputError for damaged records."""
        run = self._connection.execute
        self.flush(self._retry_ns)
        try:
            rows = run("SELECT id, record, trail FROM disruptions JOIN trails USING (id) ORDER BY id").fetchall()
            recent = run("SELECT id, record FROM disruptions ORDER BY id DESC LIMIT ?", (MOST_OPEN,)).fetchall()
        except sqlite3.Error as error:
            raise InputError(f"cannot be read: {error}", source=self.path) from None
        read_trail = msgspec.json.Decoder(FollowUp).decode
        followed = [
            (_record(number, record, self.path), _read(trail, f"trail of disruption {number}", self.path, read_trail))
            for number, record, trail in rows
        ]
        for known, _ in followed:
            self.tallies.known(known)
        replacements = [_record(number, record, self.path).replacement for number, record in recent] if followed else []
        return EarlierRecords(tuple(followed), frozenset(found.uid for found in replacements if found is not None))

    def flush(self, now: int) -> None:
        """Write what is waiting; after a failure, retry some seconds later."""
        if not (self.waiting or self._used) or (self._problem and now < self._retry_ns):
            return
        try:
            self._write()
            self._write_usage()
        except sqlite3.Error as error:
            self._retry_ns = now + _RETRY_NS
            self._report(str(error))
            return
        self.waiting.clear()
        self._report("")

    def close(self) -> None:
        self._problem = ""
        self.flush(0)
        try:
            self._connection.close()
        except sqlite3.Error as error:
            self._report(str(error))
        os.close(self._lock)

    def _write(self) -> None:
        if not self.waiting:
            return
        many, last_id = self._connection.executemany, max(self.last_id, *self.waiting)
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            # Dropped records are not written again.
            first, _ = self._find_first()
            waiting = [(record, trail) for number, (record, trail) in self.waiting.items() if number >= first]
            rows = [(record.id, record.time, msgspec.json.encode(record)) for record, _ in waiting]
            trails = [(record.id, msgspec.json.encode(trail)) for record, trail in waiting if trail is not None]
            many("INSERT OR REPLACE INTO disruptions VALUES (?, ?, ?)", rows)
            many("DELETE FROM trails WHERE id = ?", [(record.id,) for record, trail in waiting if trail is None])
            many("INSERT OR REPLACE INTO trails VALUES (?, ?)", trails)
            # Excess records are dropped in batches; aged ones only if the first one is too old.
            first, first_time = self._find_first()
            if last_id - first + 1 - self.most_records >= min(_SPARE, self.most_records):
                self._drop("SELECT id FROM disruptions ORDER BY id DESC LIMIT 1 OFFSET ?", self.most_records - 1)
            least = max((time for _, time, _ in rows), default=0.0) - self.kept_seconds
            if self.kept_seconds and first_time < least:
                self._drop("SELECT id FROM disruptions WHERE time >= ? ORDER BY id LIMIT 1", least)
        self.last_id = last_id

    def _write_usage(self) -> None:
        """Add the usage, all or nothing; delete hours that are too old."""
        if not self._used:
            return
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_ADD_USAGE, [(*key, amount) for key, amount in sorted(self._used.items())])
            if self.kept_seconds:
                oldest = max(self._used)[0] - self.kept_seconds
                self._connection.execute("DELETE FROM usage WHERE hour < ?", (oldest,))
        self._used.clear()

    def _drop(self, first_kept: str, number: float) -> None:
        """Drop all records before the one that a query returns, none if it returns none."""
        run = self._connection.execute
        found = run(first_kept, (number,)).fetchone()
        if found is not None:
            dropped = run("DELETE FROM disruptions WHERE id < ?", found).rowcount
            run("DELETE FROM trails WHERE id < ?", found)
            run("UPDATE dropped SET number = number + ?", (dropped,))

    def _find_first(self) -> tuple[int, float]:
        """Return the number and the time of the first record; 0 and infinity if there is none."""
        found = self._connection.execute("SELECT id, time FROM disruptions ORDER BY id LIMIT 1").fetchone()
        return (0, float("inf")) if found is None else found

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.on_problem(problem)


def is_ledger(path: str) -> bool:
    """Return whether a file is an SQLite database, as ledgers are. False for an unreadable file."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_ledger(path: str) -> LedgerContent:
    """Return the content of a ledger, which may be in use. Raises InputError if it is damaged or not a ledger."""
    if not is_ledger(path):
        raise InputError("is no ledger", source=path)
    problem = ""
    # A ledger on a read-only file system is read as immutable.
    for how in ("mode=ro", "mode=ro&immutable=1"):
        try:
            with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?{how}", uri=True)) as connection:
                check_identity(connection, _APPLICATION_ID, _FORMAT, "ledger", "it ")
                rows = connection.execute("SELECT id, record FROM disruptions ORDER BY id").fetchall()
                (dropped,) = connection.execute("SELECT number FROM dropped").fetchone()
                usage = _read_usage(connection)
        except sqlite3.OperationalError as error:
            problem = str(error)
        except sqlite3.Error as error:
            raise InputError(f"is damaged or not a ledger: {error}", source=path) from None
        else:
            return LedgerContent(tuple(_record(number, record, path) for number, record in rows), dropped, usage)
    raise InputError(f"cannot be read: {problem}", source=path)


def _read_usage(connection: sqlite3.Connection) -> tuple[UsageEntry, ...]:
    """Return the usage by hour, namespace and priority."""
    rows = connection.execute(
        "SELECT hour, namespace, class, priority, resource, amount FROM usage "
        "ORDER BY hour, namespace, priority DESC, class, resource"
    )
    return tuple(
        UsageEntry(
            hour=hour,
            namespace=namespace,
            priority_class=priority_class,
            priority=priority,
            requested={resource: amount for *_, resource, amount in group},
        )
        for (hour, namespace, priority_class, priority), group in groupby(rows, lambda row: row[:4])
    )


def _record(number: int, record: bytes, path: str) -> Disruption:
    return _read(record, f"disruption {number}", path, lambda text: disruption_of(msgspec.json.decode(text)))


def _read(text: bytes, what: str, path: str, read: Callable[[bytes], Result]) -> Result:
    """Return what a text of the file says. Raises InputError if it is damaged."""
    try:
        if len(text) > _LONGEST_RECORD:
            raise ValueError("it is too long")
        return read(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"is damaged, or of a later Podium: {what}: {error}", source=path) from None


def _locked(path: str) -> int:
    """Lock a file beside the ledger for writing; return its descriptor. Raises InputError.

    Without the lock, two processes could assign the same record numbers and overwrite each other's records.
    """
    with os_error_as("cannot be written", path):
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError("is written by another program; give each a file of its own", source=path) from None
    except OSError:
        # Some file systems do not support locks.
        pass
    return lock


def _opened(path: str) -> sqlite3.Connection:
    """Return a connection for writing. Raises InputError."""
    try:
        # Accessible only to its owner, like all files in a data directory.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # A concurrent reader may delay recovery after a crash; later accesses do not wait.
        connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"cannot be written: {error}", source=path) from None
    try:
        if connection.execute("PRAGMA schema_version").fetchone()[0] == 0:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
        check_identity(connection, _APPLICATION_ID, _FORMAT, "ledger", "it ")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA busy_timeout = 0")
    except sqlite3.OperationalError as error:
        connection.close()
        raise InputError(f"cannot be written: {error}", source=path) from None
    except sqlite3.Error as error:
        connection.close()
        raise InputError(f"is damaged or not a ledger: {error}; move it away to start a new one", source=path) from None
    return connection
