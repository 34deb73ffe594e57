"""The ledger of a cluster in a file: SQLite, a row for each disruption; the oldest go, by number and by age.

What is told of disruptions is no state that anything stands on: a write that fails holds nobody up, and after a power
cut the last seconds may be missing. A process that dies loses nothing that was flushed, and no crash leaves half a
record (WAL with synchronous=NORMAL).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from podium.api.errors import InputError
from podium.machines.ledger.disruption import Disruption, Earlier, Trail, disruption_of
from podium.machines.ledger.fates import MOST_OPEN

LEDGER = "ledger"
"""What the file is called in a data directory."""

MOST_RECORDS = 100_000
"""So many disruptions are kept, some 1 kB each; the oldest go first."""

KEPT_SECONDS = 90 * 24 * 3_600
"""For so long disruptions are kept where nothing else is said: 90 days."""

MOST_WAITING = 10_000
"""So many records wait for a disk that takes none; the oldest are lost first."""

_APPLICATION_ID = 0x706F6C67
_FORMAT = 1
_MAGIC = b"SQLite format 3\0"
_SPARE = 1_000
_LONGEST_RECORD = 100_000
_SECOND = 10**9
_RETRY_NS = 10 * _SECOND
_OPENED_WITHIN_S = 5
_TABLES = """
CREATE TABLE disruptions (id INTEGER PRIMARY KEY, time REAL NOT NULL, record BLOB NOT NULL) STRICT;
CREATE TABLE dropped (number INTEGER NOT NULL) STRICT;
INSERT INTO dropped VALUES (0);
"""
# Beside records of which something is yet to come, what is needed to go on with them. Who only reads does without.
_TRAILS = "CREATE TABLE IF NOT EXISTS trails (id INTEGER PRIMARY KEY, trail BLOB NOT NULL) STRICT"


@dataclass(frozen=True, slots=True)
class Kept:
    """What a ledger holds: the records by their number, and how many earlier ones were let go."""

    records: tuple[Disruption, ...]
    dropped: int


class LedgerFile:
    """Writes records down as they come and change. ``on_problem`` is told what is wrong, once; "" when all is well.

    Records wait until `flush`; nothing is written where none have come. Where some have, those go that are older than
    ``kept_seconds`` (0: none), or too many; by their number, so that no others are looked at.
    """

    def __init__(
        self,
        path: str,
        on_problem: Callable[[str], None] = lambda problem: None,
        *,
        kept_seconds: float = KEPT_SECONDS,
        most_records: int = MOST_RECORDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Open the file, or make it. Raises InputError for one that is damaged, or none, or that another one writes."""
        self._path = path
        self._on_problem = on_problem
        self._kept_seconds = kept_seconds
        self._most_records = most_records
        self._most_waiting = most_waiting
        self._waiting: dict[int, tuple[Disruption, Trail | None]] = {}
        self._problem = ""
        self._retry_ns = 0
        self._lock = _locked(path)
        try:
            self._connection = _opened(path)
        except InputError:
            os.close(self._lock)
            raise
        self.last_id, self._count = self._connection.execute(
            "SELECT coalesce(max(id), 0), count(*) FROM disruptions"
        ).fetchone()
        # The number and the time of the first record that is kept.
        self._first = self._find_first()
        self.lost = 0
        """How many records could not be written down in time."""

    @property
    def has_waiting(self) -> bool:
        """Whether something is yet to be written down."""
        return bool(self._waiting)

    def put(self, record: Disruption, trail: Trail | None = None) -> None:
        """A record has come, or has changed; ``trail`` is what is needed to go on with it, None: nothing is to come."""
        self._waiting.pop(record.id, None)
        self._waiting[record.id] = record, trail
        if len(self._waiting) > self._most_waiting:
            del self._waiting[next(iter(self._waiting))]
            self.lost += 1

    def earlier(self) -> Earlier:
        """What there is to go on with. Raises InputError for records that are damaged."""
        run = self._connection.execute
        self.flush(self._retry_ns)
        try:
            rows = run("SELECT id, record, trail FROM disruptions JOIN trails USING (id) ORDER BY id").fetchall()
            recent = run("SELECT id, record FROM disruptions ORDER BY id DESC LIMIT ?", (MOST_OPEN,)).fetchall()
        except sqlite3.Error as error:
            raise InputError(f"cannot be read: {error}", source=self._path) from None
        followed = [
            (_record(number, record, self._path), _trail(number, trail, self._path)) for number, record, trail in rows
        ]
        came = [_record(number, record, self._path).replacement for number, record in recent] if followed else []
        return Earlier(tuple(followed), frozenset(found.uid for found in came if found is not None))

    def flush(self, now: int) -> None:
        """Write down what has come; what cannot be written is tried again some seconds later."""
        if not self._waiting or (self._problem and now < self._retry_ns):
            return
        try:
            self._write()
        except sqlite3.Error as error:
            self._retry_ns = now + _RETRY_NS
            self._tell(str(error))
            return
        self._waiting.clear()
        self._tell("")

    def close(self) -> None:
        """Write down what there is, and let go of the file."""
        self._problem = ""
        self.flush(0)
        with_problem = self._connection
        try:
            with_problem.close()
        except sqlite3.Error as error:
            self._tell(str(error))
        os.close(self._lock)

    def _write(self) -> None:
        # Of what has been let go nothing is told again.
        waiting = [(record, trail) for number, (record, trail) in self._waiting.items() if number >= self._first[0]]
        if not waiting:
            return
        rows = [(record.id, record.time, msgspec.json.encode(record)) for record, _ in waiting]
        trails = [(record.id, msgspec.json.encode(trail)) for record, trail in waiting if trail is not None]
        run, many = self._connection.execute, self._connection.executemany
        run("BEGIN IMMEDIATE")
        try:
            many("INSERT OR REPLACE INTO disruptions VALUES (?, ?, ?)", rows)
            many("DELETE FROM trails WHERE id = ?", [(record.id,) for record, trail in waiting if trail is None])
            many("INSERT OR REPLACE INTO trails VALUES (?, ?)", trails)
            count = self._count + sum(number > self.last_id for number in self._waiting)
            first = self._first if self._count else self._find_first()
            dropped = self._drop_excess(count - self._most_records)
            dropped += self._drop_aged(first[1], max(record.time for record, _ in waiting))
            if dropped:
                first = self._find_first()
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        self._count, self._first = count - dropped, first
        self.last_id = max(self.last_id, *self._waiting)

    def _drop_excess(self, excess: int) -> int:
        """Let go of what is too much, of some at a time; of how many."""
        if excess < min(_SPARE, self._most_records):
            return 0
        return self._drop("SELECT id FROM disruptions ORDER BY id LIMIT 1 OFFSET ?", excess)

    def _drop_aged(self, first: float, time: float) -> int:
        """Let go of what is too old at a time, if the first record is; of how many."""
        least = time - self._kept_seconds
        if not self._kept_seconds or first >= least:
            return 0
        return self._drop("SELECT id FROM disruptions WHERE time >= ? ORDER BY id LIMIT 1", least)

    def _drop(self, first_kept: str, number: float) -> int:
        """Let go of all before the record that a query names; of how many."""
        run = self._connection.execute
        found = run(first_kept, (number,)).fetchone()
        if found is None:
            return 0
        dropped = run("DELETE FROM disruptions WHERE id < ?", found).rowcount
        run("DELETE FROM trails WHERE id < ?", found)
        run("UPDATE dropped SET number = number + ?", (dropped,))
        return dropped

    def _find_first(self) -> tuple[int, float]:
        """The number and the time of the first record; for none, what none is before, or older than."""
        found = self._connection.execute("SELECT id, time FROM disruptions ORDER BY id LIMIT 1").fetchone()
        return (0, float("inf")) if found is None else found

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._on_problem(problem)


def is_ledger(path: str) -> bool:
    """Whether a file is a database, as ledgers are. False for what cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_ledger(path: str) -> Kept:
    """What a ledger holds, which may be in use meanwhile. Raises InputError for one that is damaged, or none."""
    if not is_ledger(path):
        raise InputError("is no ledger", source=path)
    problem = ""
    # One that lies where nothing can be written is read as it lies there.
    for how in ("mode=ro", "mode=ro&immutable=1"):
        try:
            with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?{how}", uri=True)) as connection:
                _check(connection)
                rows = connection.execute("SELECT id, record FROM disruptions ORDER BY id").fetchall()
                (dropped,) = connection.execute("SELECT number FROM dropped").fetchone()
        except sqlite3.OperationalError as error:
            problem = str(error)
        except sqlite3.Error as error:
            raise InputError(f"is damaged, or no ledger: {error}", source=path) from None
        else:
            return Kept(tuple(_record(number, record, path) for number, record in rows), dropped)
    raise InputError(f"cannot be read: {problem}", source=path)


def _record(number: int, record: bytes, path: str) -> Disruption:
    try:
        if len(record) > _LONGEST_RECORD:
            raise ValueError("it is too long")
        return disruption_of(msgspec.json.decode(record))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"is damaged, or of a later Podium: disruption {number}: {error}", source=path) from None


def _trail(number: int, trail: bytes, path: str) -> Trail:
    try:
        if len(trail) > _LONGEST_RECORD:
            raise ValueError("it is too long")
        return msgspec.json.decode(trail, type=Trail)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        problem = f"is damaged, or of a later Podium: trail of disruption {number}: {error}"
        raise InputError(problem, source=path) from None


def _locked(path: str) -> int:
    """A file beside the ledger that is held while this is written: its descriptor. Raises InputError.

    Whoever counts on from the last number that it has read would write over what another one has counted.
    """
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"cannot be written: {error}", source=path) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError("is written by another program; give each a file of its own", source=path) from None
    except OSError:
        # There are file systems that know no locks.
        pass
    return lock


def _opened(path: str) -> sqlite3.Connection:
    """A connection that writes. Raises InputError."""
    try:
        # For its owner alone, as all that lies in a data directory.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # Who reads it just then may hold up what follows upon a crash; later nothing waits.
        connection = sqlite3.connect(path, timeout=_OPENED_WITHIN_S, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"cannot be written: {error}", source=path) from None
    try:
        if connection.execute("PRAGMA schema_version").fetchone()[0] == 0:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
        _check(connection)
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_TRAILS)
        connection.execute("PRAGMA busy_timeout = 0")
    except sqlite3.OperationalError as error:
        connection.close()
        raise InputError(f"cannot be written: {error}", source=path) from None
    except sqlite3.Error as error:
        connection.close()
        raise InputError(f"is damaged, or no ledger: {error}; move it away to begin anew", source=path) from None
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for a database that is no ledger of this format."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise sqlite3.DatabaseError("it is a database, but not a ledger of Podium's")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != _FORMAT:
        raise sqlite3.DatabaseError(f"it is a ledger of format {found}, not {_FORMAT}")
