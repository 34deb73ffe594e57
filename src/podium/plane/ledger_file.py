"""The ledger of a cluster in a file: SQLite, a row for each disruption, the oldest going where there are too many.

What is told of disruptions is no state that anything stands on: a write that fails holds nobody up, and after a power
cut the last seconds may be missing. A process that dies loses nothing that was flushed, and no crash leaves half a
record (WAL with synchronous=NORMAL).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from podium.api.errors import InputError
from podium.machines.ledger.disruption import Disruption, disruption_of

LEDGER = "ledger"
"""What the file is called in a data directory."""

MOST_RECORDS = 100_000
"""So many disruptions are kept, some 1 kB each; the oldest go first."""

MOST_WAITING = 10_000
"""So many records wait for a disk that takes none; the oldest are lost first."""

_APPLICATION_ID = 0x706F6C67
_FORMAT = 1
_MAGIC = b"SQLite format 3\0"
_SPARE = 1_000
_LONGEST_RECORD = 100_000
_SECOND = 10**9
_RETRY_NS = 10 * _SECOND
_TABLES = """
CREATE TABLE disruptions (id INTEGER PRIMARY KEY, time REAL NOT NULL, record BLOB NOT NULL) STRICT;
CREATE TABLE dropped (number INTEGER NOT NULL) STRICT;
INSERT INTO dropped VALUES (0);
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a ledger holds: the records by their number, and how many earlier ones were let go."""

    records: tuple[Disruption, ...]
    dropped: int


class LedgerFile:
    """Writes records down as they come and change. ``on_problem`` is told what is wrong, once; "" when all is well.

    Records wait until `flush`; nothing is written where none have come.
    """

    def __init__(
        self,
        path: str,
        on_problem: Callable[[str], None] = lambda problem: None,
        *,
        most_records: int = MOST_RECORDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Open the file, or make it. Raises InputError for one that is damaged, or none."""
        self._path = path
        self._on_problem = on_problem
        self._most_records = most_records
        self._most_waiting = most_waiting
        self._waiting: dict[int, Disruption] = {}
        self._problem = ""
        self._retry_ns = 0
        self._connection = _opened(path)
        self.last_id, self._count = self._connection.execute(
            "SELECT coalesce(max(id), 0), count(*) FROM disruptions"
        ).fetchone()
        self.lost = 0
        """How many records could not be written down in time."""

    @property
    def has_waiting(self) -> bool:
        """Whether something is yet to be written down."""
        return bool(self._waiting)

    def put(self, record: Disruption) -> None:
        """A record has come, or has changed."""
        self._waiting.pop(record.id, None)
        self._waiting[record.id] = record
        if len(self._waiting) > self._most_waiting:
            del self._waiting[next(iter(self._waiting))]
            self.lost += 1

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

    def _write(self) -> None:
        rows = [(record.id, record.time, msgspec.json.encode(record)) for record in self._waiting.values()]
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            self._connection.executemany("INSERT OR REPLACE INTO disruptions VALUES (?, ?, ?)", rows)
            count = self._count + sum(record.id > self.last_id for record in self._waiting.values())
            excess = count - self._most_records
            if excess >= min(_SPARE, self._most_records):
                run("DELETE FROM disruptions WHERE id IN (SELECT id FROM disruptions ORDER BY id LIMIT ?)", (excess,))
                run("UPDATE dropped SET number = number + ?", (excess,))
                count -= excess
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        self._count = count
        self.last_id = max(self.last_id, *self._waiting)

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
        raise InputError(f"is damaged: disruption {number}: {error}", source=path) from None


def _opened(path: str) -> sqlite3.Connection:
    """A connection that writes. Raises InputError."""
    try:
        # For its owner alone, as all that lies in a data directory.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
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
    except sqlite3.Error as error:
        connection.close()
        raise InputError(
            f"is damaged, in use, or no ledger: {error}; move it away to begin anew", source=path
        ) from None
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for a database that is no ledger of this format."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise sqlite3.DatabaseError("it is a database, but not a ledger of Podium's")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != _FORMAT:
        raise sqlite3.DatabaseError(f"it is a ledger of format {found}, not {_FORMAT}")
