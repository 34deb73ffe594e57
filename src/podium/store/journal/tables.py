"""The content of a journal in SQLite: a state of the objects, the events since, and checksums over all of it.

Each event's digest is a link of a chain, so that a change, a gap or a missing end is noticed; those of objects and of
uids add up to totals that the table `state` holds, and `state` has a checksum of its own.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from podium.api.meta import Raw
from podium.store.identities import Identities
from podium.store.journal.acknowledgement import Acknowledged
from podium.store.journal.digest import FIRST_DIGEST, row_digest, total, without
from podium.store.journal.journal import Saved
from podium.store.log.watch_event import WatchEvent

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
# In this order: each version takes the place of the one before, and what was deleted last goes.
_COMPACT = (
    "INSERT OR REPLACE INTO objects SELECT kind, key, version, object, row_digest(kind, key, version, object)"
    " FROM events WHERE version <= ? ORDER BY version",
    "DELETE FROM objects WHERE version IN (SELECT version FROM events WHERE type = 'DELETED' AND version <= ?)",
)


@dataclass(frozen=True, slots=True)
class _State:
    """The only row of `state`: the table's columns but its checksum.

    ``version`` and ``digest`` are where the objects stand and the events begin, ``last_version`` and ``last_digest``
    where these end.
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
        """The digest of the row."""
        return row_digest(*(value.hex() if isinstance(value, bytes) else value for value in astuple(self)))


class JournalTables:
    """Reads and writes the content by a connection; raises sqlite3.DatabaseError where it is not what was written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._state = _State()
        connection.create_function("row_digest", 4, row_digest, deterministic=True)

    def create(self) -> None:
        """Make the tables, within the caller's transaction."""
        for statement in _SCHEMA.split(";"):
            self._connection.execute(statement)
        values = (*astuple(self._state), self._state.checksum())
        self._connection.execute(f"INSERT INTO state VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608

    @property
    def last(self) -> Acknowledged:
        """Where the events end."""
        return Acknowledged(self._state.last_version, self._state.last_digest)

    @property
    def was_left_open(self) -> bool:
        """Whether the content is that of a journal that has not been closed."""
        return bool(self._state.is_open)

    def read_state(self) -> None:
        """Take in the state, as everything else needs it."""
        names = ", ".join(field.name for field in fields(_State))
        rows = self._connection.execute(f"SELECT {names}, checksum FROM state").fetchall()  # noqa: S608
        if len(rows) != 1:
            raise sqlite3.DatabaseError(f"is damaged: {len(rows)} states instead of one")
        *values, checksum = rows[0]
        self._state = _State(*values)
        if not all(isinstance(value, int | bytes) for value in values) or self._state.checksum() != checksum:
            raise sqlite3.DatabaseError("is damaged: its state is not what was written")

    def mark(self, *, is_open: bool) -> None:
        """Note whether the journal is in use."""
        self._state = replace(self._state, is_open=int(is_open))

    def load(self) -> tuple[Saved, dict[int, bytes]]:
        """All content, each row compared with its checksum, and the digest of the chain at each version."""
        state, digests = self._state, {self._state.version: self._state.digest}
        events: list[tuple[Any, str, Raw]] = []
        for version, type_, kind, key, text, digest in self._rows("version, type, kind, key, object, digest", "events"):
            expected = state.version + len(events) + 1
            if version != expected:
                raise sqlite3.DatabaseError(f"is damaged: version {expected} is missing")
            if row_digest(version, type_, kind, key, text, after=digests[version - 1]) != digest:
                raise _changed(f"version {version}")
            digests[version] = digest
            events.append((type_, kind, _raw(text)))
        if (state.last_version, state.last_digest) != (
            state.version + len(events),
            digests[state.version + len(events)],
        ):
            raise sqlite3.DatabaseError(f"is damaged: the versions after {state.version + len(events)} are missing")
        return Saved(state.version, self._objects(), events, state.identities, self._uids()), digests

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Write the events of one transaction of the store, within the caller's transaction."""
        rows, digest = [], self._state.last_digest
        for event in events:
            stored = event.stored
            row = (event.version, event.type, stored.kind, stored.key, json.dumps(stored.raw))
            digest = row_digest(*row, after=digest)
            rows.append((*row, digest))
        created = (event.stored.uid for event in events if event.type == "ADDED")
        given = [uid for uid in created if identities.was_given(uid)]
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO given_uids VALUES (?)", ((uid,) for uid in given))
        self._state = replace(
            self._state,
            last_version=events[-1].version,
            last_digest=digest,
            uids_total=total(map(row_digest, given), self._state.uids_total),
            identities=identities.count,
        )

    def compact(self, keep: int) -> None:
        """Put all but the last ``keep`` events into the objects, within the caller's transaction."""
        until = self._state.last_version - keep
        if until <= self._state.version:
            return
        run = self._connection.execute
        rest = without(self._state.objects_total, self._digests_of_objects(until))
        for statement in _COMPACT:
            run(statement, (until,))
        objects_total = total(self._digests_of_objects(until), rest)
        (digest,) = run("SELECT digest FROM events WHERE version = ?", (until,)).fetchone()
        run("DELETE FROM events WHERE version <= ?", (until,))
        self._state = replace(self._state, version=until, digest=digest, objects_total=objects_total)

    def commit(self) -> None:
        """Write the state, and end the caller's transaction."""
        columns = ", ".join(f"{field.name} = ?" for field in fields(_State))
        values = (*astuple(self._state), self._state.checksum())
        self._connection.execute(f"UPDATE state SET {columns}, checksum = ?", values)  # noqa: S608
        self._connection.execute("COMMIT")

    def _digests_of_objects(self, until: int) -> list[bytes]:
        """The digests of those objects that the events up to a version are about."""
        return [digest for (digest,) in self._connection.execute(_OBJECT_DIGESTS, (until,))]

    def _objects(self) -> list[tuple[str, Raw]]:
        objects: list[tuple[str, Raw]] = []
        digests = []
        for kind, key, version, text, digest in self._rows("kind, key, version, object, digest", "objects"):
            if row_digest(kind, key, version, text) != digest:
                raise _changed(f"{kind} {key}")
            digests.append(digest)
            objects.append((kind, _raw(text)))
        if total(digests) != self._state.objects_total:
            raise sqlite3.DatabaseError("is damaged: objects are missing")
        return objects

    def _uids(self) -> list[str]:
        uids = [uid for (uid,) in self._rows("uid", "given_uids")]
        if total(map(row_digest, uids)) != self._state.uids_total:
            raise _changed("uids")
        return uids

    def _rows(self, columns: str, table: str) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}")  # noqa: S608


def _changed(what: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"is damaged: {what} is not what was written")


def _raw(text: str) -> Raw:
    raw: Raw = json.loads(text)
    return raw
