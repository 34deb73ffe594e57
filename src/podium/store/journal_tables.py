"""The content of a journal in SQLite: a state of the objects, the events since, and checksums over all of it.

Each event's digest is a link of a chain, so that a change, a gap or a missing end is detected. The digests of objects
and of uids add up to totals in the table `state`, which has a separate checksum.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from podium.api.meta import Raw
from podium.store.revisions import Identities, JournalContent
from podium.store.watch_log import WatchEvent

DIGEST_SIZE = 16
FIRST_DIGEST = bytes(DIGEST_SIZE)

_SUMS = 1 << 8 * DIGEST_SIZE
# Each slot has its own sector, so that a torn write leaves the previous slot intact.
_SLOT_SIZE = 4_096
_VERSION_SIZE = 8
_SIZE = _VERSION_SIZE + 2 * DIGEST_SIZE


def check_identity(
    connection: sqlite3.Connection, application_id: int, format_: int, what: str, subject: str = ""
) -> None:
    """Raise sqlite3.DatabaseError, about a `subject`, for a database of another application or format."""
    found, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if found != application_id:
        raise sqlite3.DatabaseError(f"{subject}is a database, but not a {what} of Podium's")
    if version != format_:
        raise sqlite3.DatabaseError(f"{subject}is a {what} of format {version}, not {format_}")


def row_digest(*fields: str | int, after: bytes = b"") -> bytes:
    """Return the digest of a row; with ``after``, the digest of the row before, it becomes a link of a chain."""
    # No field contains a NUL: names cannot, and JSON escapes it.
    return blake2b("\0".join(map(str, fields)).encode(), digest_size=DIGEST_SIZE, key=after).digest()


def total(digests: Iterable[bytes], begin: bytes = FIRST_DIGEST, *, sign: int = 1) -> bytes:
    """Return one digest for a set of rows, independent of their order.

    ``begin`` is the total of other rows; with the sign -1, that of a set from which these rows are removed.
    """
    return ((int.from_bytes(begin) + sign * sum(map(int.from_bytes, digests))) % _SUMS).to_bytes(DIGEST_SIZE)


_SCHEMA = """
CREATE TABLE objects (
    kind TEXT, key TEXT, version INTEGER, object TEXT, digest BLOB, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TABLE events (version INTEGER PRIMARY KEY, type TEXT, kind TEXT, key TEXT, object TEXT, digest BLOB);
CREATE TABLE given_uids (uid TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE state (
    version INTEGER, digest BLOB, last_version INTEGER, last_digest BLOB,
    objects_total BLOB, uids_total BLOB, identities INTEGER, is_open INTEGER, checksum BLOB
)
"""
_COMPACTED = "(SELECT kind, key FROM events WHERE version <= ?)"
_OBJECT_DIGESTS = f"SELECT digest FROM objects WHERE (kind, key) IN {_COMPACTED}"  # noqa: S608 - made of constants
# The order matters: each version replaces the one before, and deleted objects are removed last.
_COMPACT = (
    "INSERT OR REPLACE INTO objects SELECT kind, key, version, object, row_digest(kind, key, version, object)"
    " FROM events WHERE version <= ? ORDER BY version",
    "DELETE FROM objects WHERE version IN (SELECT version FROM events WHERE type = 'DELETED' AND version <= ?)",
)


@dataclass(frozen=True, slots=True)
class StateRow:
    """The only row of `state`: the table's columns without its checksum.

    ``version`` and ``digest`` belong to the state of the objects, after which the events begin; ``last_version`` and
    ``last_digest`` belong to the last event.
    """

    version: int = 0
    digest: bytes = FIRST_DIGEST
    last_version: int = 0
    last_digest: bytes = FIRST_DIGEST
    objects_total: bytes = FIRST_DIGEST
    uids_total: bytes = FIRST_DIGEST
    identities: int = 0
    is_open: int = 0

    def checksum(self) -> bytes:
        return row_digest(*(value.hex() if isinstance(value, bytes) else value for value in astuple(self)))


class JournalTables:
    """Access to the content through a connection; raises sqlite3.DatabaseError if a checksum does not match."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.state = StateRow()
        """The row of the table `state`, once `read_state` has loaded it."""
        connection.create_function("row_digest", 4, row_digest, deterministic=True)

    def create(self) -> None:
        """Create the tables, within the caller's transaction."""
        for statement in _SCHEMA.split(";"):
            self._connection.execute(statement)
        values = (*astuple(self.state), self.state.checksum())
        self._connection.execute(f"INSERT INTO state VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608

    @property
    def last(self) -> Acknowledged:
        """The version and digest of the last event."""
        return Acknowledged(self.state.last_version, self.state.last_digest)

    def read_state(self) -> None:
        """Load the state row, which everything else needs."""
        names = ", ".join(field.name for field in fields(StateRow))
        rows = self._connection.execute(f"SELECT {names}, checksum FROM state").fetchall()  # noqa: S608
        if len(rows) != 1:
            raise sqlite3.DatabaseError(f"is damaged: {len(rows)} states instead of one")
        *values, checksum = rows[0]
        self.state = StateRow(*values)
        if not all(isinstance(value, int | bytes) for value in values) or self.state.checksum() != checksum:
            raise sqlite3.DatabaseError("is damaged: its state is not what was written")

    def mark(self, *, is_open: bool) -> None:
        """Record whether the journal is in use."""
        self.state = replace(self.state, is_open=int(is_open))

    def load(self) -> tuple[JournalContent, dict[int, bytes]]:
        """Return all content, each row checked against its checksum, and the digest of the chain at each version."""
        state, digests = self.state, {self.state.version: self.state.digest}
        events: list[tuple[Any, str, Raw]] = []
        for version, type_, kind, key, text, digest in self._rows("version, type, kind, key, object, digest", "events"):
            expected = state.version + len(events) + 1
            if version != expected:
                raise sqlite3.DatabaseError(f"is damaged: version {expected} is missing")
            if row_digest(version, type_, kind, key, text, after=digests[version - 1]) != digest:
                raise _changed(f"version {version}")
            digests[version] = digest
            events.append((type_, kind, json.loads(text)))
        if (state.last_version, state.last_digest) != (
            state.version + len(events),
            digests[state.version + len(events)],
        ):
            raise sqlite3.DatabaseError(f"is damaged: the versions after {state.version + len(events)} are missing")
        objects = self._objects()
        uids = [uid for (uid,) in self._rows("uid", "given_uids")]
        if total(map(row_digest, uids)) != state.uids_total:
            raise _changed("uids")
        return JournalContent(state.version, objects, events, state.identities, uids), digests

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Write the events of one transaction of the store, within the caller's transaction."""
        rows, digest = [], self.state.last_digest
        for event in events:
            stored = event.stored
            row = (event.version, event.type, stored.kind, stored.key, json.dumps(stored.raw))
            digest = row_digest(*row, after=digest)
            rows.append((*row, digest))
        created = (event.stored.uid for event in events if event.type == "ADDED")
        given = [uid for uid in created if uid in identities.given]
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO given_uids VALUES (?)", ((uid,) for uid in given))
        self.state = replace(
            self.state,
            last_version=events[-1].version,
            last_digest=digest,
            uids_total=total(map(row_digest, given), self.state.uids_total),
            identities=identities.count,
        )

    def compact(self, keep: int) -> None:
        """Merge all but the last ``keep`` events into the objects, within the caller's transaction."""
        until = self.state.last_version - keep
        if until <= self.state.version:
            return
        run = self._connection.execute
        rest = total(self._digests_of_objects(until), self.state.objects_total, sign=-1)
        for statement in _COMPACT:
            run(statement, (until,))
        objects_total = total(self._digests_of_objects(until), rest)
        (digest,) = run("SELECT digest FROM events WHERE version = ?", (until,)).fetchone()
        run("DELETE FROM events WHERE version <= ?", (until,))
        self.state = replace(self.state, version=until, digest=digest, objects_total=objects_total)

    def commit(self) -> None:
        """Write the state, and commit the caller's transaction."""
        columns = ", ".join(f"{field.name} = ?" for field in fields(StateRow))
        values = (*astuple(self.state), self.state.checksum())
        self._connection.execute(f"UPDATE state SET {columns}, checksum = ?", values)  # noqa: S608
        self._connection.execute("COMMIT")

    def _digests_of_objects(self, until: int) -> list[bytes]:
        """Return the digests of the objects that the events up to a version have changed."""
        return [digest for (digest,) in self._connection.execute(_OBJECT_DIGESTS, (until,))]

    def _objects(self) -> list[tuple[str, Raw]]:
        objects: list[tuple[str, Raw]] = []
        digests = []
        for kind, key, version, text, digest in self._rows("kind, key, version, object, digest", "objects"):
            if row_digest(kind, key, version, text) != digest:
                raise _changed(f"{kind} {key}")
            digests.append(digest)
            objects.append((kind, json.loads(text)))
        if total(digests) != self.state.objects_total:
            raise sqlite3.DatabaseError("is damaged: objects are missing")
        return objects

    def _rows(self, columns: str, table: str) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}")  # noqa: S608


def _changed(what: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"is damaged: {what} is not what was written")


class Acknowledged(Struct, frozen=True):
    """The last acknowledged version, and the digest of the chain of events there."""

    version: int
    digest: bytes

    def to_bytes(self) -> bytes:
        """Return the file format, which ends with a checksum."""
        checksum = row_digest(self.version, self.digest.hex())
        return self.version.to_bytes(_VERSION_SIZE) + self.digest + checksum


class AcknowledgementFile:
    """A file with the last two acknowledgements. All methods raise OSError if the disk does."""

    def __init__(self, path: str) -> None:
        """Open the file, or create it."""
        is_new = not os.path.exists(path)
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._next_slot = 0
        if is_new:
            _sync_folder(path)

    def read(self) -> Acknowledged | None:
        """Return the last acknowledgement; None if no slot is intact."""
        whole: list[tuple[int, int, Acknowledged]] = []
        for index in range(2):
            slot = os.pread(self._file, _SIZE, index * _SLOT_SIZE)
            version, digest = int.from_bytes(slot[:_VERSION_SIZE]), slot[_VERSION_SIZE : _VERSION_SIZE + DIGEST_SIZE]
            found = Acknowledged(version, digest)
            if slot == found.to_bytes():
                whole.append((version, index, found))
        if not whole:
            return None
        _, index, last = max(whole, key=lambda slot: slot[:2])
        self._next_slot = 1 - index
        return last

    def write(self, acknowledged: Acknowledged) -> None:
        """Overwrite the older of the two acknowledgements; return when the disk has the data."""
        os.pwrite(self._file, acknowledged.to_bytes(), self._next_slot * _SLOT_SIZE)
        os.fsync(self._file)
        self._next_slot = 1 - self._next_slot

    def remove(self) -> None:
        """Delete the file after the journal was closed properly."""
        os.unlink(self._path)
        _sync_folder(self._path)

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
