"""Array types, fast array helpers, and logs of changed rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Key = TypeVar("Key")
Place = TypeVar("Place")

# Copies of this object continue from its state, in half the time that a new one takes.
_NOTHING_HASHED = blake2b(digest_size=8)
# The bits of a non-negative int64.
_BITS = 63
# Values within so small a range are used as ranks directly.
_FEW = 1 << 20


def add_count(counts: dict[Key, int], key: Key, number: int) -> bool:
    """Add a number to the count of a key, which is left out at 0; return whether the key appears or disappears."""
    before = counts.pop(key, 0)
    if before + number:
        counts[key] = before + number
    return not before or not before + number


def take_out(places: dict[Place, dict[Key, Any]], place: Place, key: Key) -> None:
    """Remove a key at a place, and the place with its last key. Raises KeyError if the key is not there."""
    at_place = places[place]
    del at_place[key]
    if not at_place:
        del places[place]


def discard(places: dict[Place, dict[Key, Any]], place: Place, key: Key) -> None:
    """Do the same if the key is there."""
    if key in places.get(place, ()):
        take_out(places, place, key)


def grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    """Return a copy of ``array`` whose last axis holds ``capacity`` entries; new entries are zero."""
    larger: npt.NDArray[Any] = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger


def offsets(lengths: Int64s | Bools | Sequence[int]) -> Int64s:
    """Return where lists of these lengths begin if they are stored one after another, and the end."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.add.accumulate(lengths, dtype=np.int64, out=starts[1:])
    return starts


def runs(*columns: npt.NDArray[Any]) -> Int64s:
    """Return where runs of entries begin that are equal in all columns, and the end."""
    size = len(columns[0])
    begins = np.ones(size + 1, dtype=np.bool_)
    begins[1:-1] = False
    for column in columns:
        begins[1:-1] |= column[1:] != column[:-1]
    return np.flatnonzero(begins)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of numbers in one array: ``entries[starts[i]:starts[i + 1]]`` is list ``i``."""

    starts: Int64s
    entries: Int64s

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Int64s:
        """``[lists]``: the number of entries of each."""
        return self.starts[1:] - self.starts[:-1]

    @property
    def owners(self) -> Int64s:
        """``[entries]``: the list of each."""
        return np.arange(len(self)).repeat(self.lengths)

    def places_of(self, lists: Int64s | Int32s) -> tuple[Int64s, Int64s]:
        """Return `offsets` of some lists among themselves, and the indices of their entries."""
        lengths = self.lengths[lists]
        begins = offsets(lengths)
        return begins, (self.starts[lists] - begins[:-1]).repeat(lengths) + np.arange(begins[-1])

    def sums(self, values: Int64s | Bools) -> Int64s:
        """Return ``[lists]``: the sums of numbers of ``[entries]``."""
        sums = offsets(values)
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])

    def largest(self, values: Int64s) -> Int64s:
        """Return ``[lists]``: the largest of the numbers of ``[entries]``; no list may be empty."""
        return np.asarray(np.maximum.reduceat(values, self.starts[:-1])) if len(self) else np.empty(0, dtype=np.int64)


def lexsort(*keys: Int64s) -> Int64s:
    """Return the stable order of rows by several keys, the most significant first.

    Like `numpy.lexsort`, but the keys of a row are packed into one number if they fit.
    """
    size = len(keys[0])
    packed, bits = np.zeros(size, dtype=np.int64), size.bit_length()
    for key in keys if size else ():
        # Non-negative numbers in the order of the key, and the largest of them.
        least = int(key.min())
        ranks, most = key - least, int(key.max()) - least
        if most >= _FEW:
            ascending = np.sort(key)
            levels = ascending[np.append(True, ascending[1:] != ascending[:-1])]
            ranks, most = np.searchsorted(levels, key), len(levels) - 1
        bits += most.bit_length()
        if bits >= _BITS:
            return np.lexsort(keys[::-1])
        packed <<= most.bit_length()
        packed |= ranks
    # In place, since touching new memory costs more than the operations.
    packed <<= size.bit_length()
    packed |= np.arange(size)
    packed.sort()
    packed &= (1 << size.bit_length()) - 1
    return packed


def distinct(values: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Return the distinct values (from 0 to below ``size``), ascending, and the index of each value among them.

    Marks values instead of sorting them, which is much faster than `numpy.unique`.
    """
    found = distinct_values(values, size)
    places = np.empty(size, dtype=np.int64)
    places[found] = np.arange(len(found))
    return found, places[values]


def distinct_values(values: Int64s, size: int) -> Int64s:
    """Return the distinct values (from 0 to below ``size``), ascending."""
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs)


def column_ranks(table: npt.NDArray[Any]) -> Int64s:
    """Return the rank of each column among the distinct columns, in lexicographic order.

    Sorts numbers row by row, which is much faster than `numpy.unique` of whole columns.
    """
    ranks = np.zeros(table.shape[1], dtype=np.int64)
    for row in table:
        values, places = np.unique(row, return_inverse=True)
        ranks = np.unique(ranks * len(values) + places, return_inverse=True)[1]
    return ranks


def stable_hash(text: str) -> int:
    """Return 64 bits that depend on ``text`` alone, not on the process or PYTHONHASHSEED."""
    hashed = _NOTHING_HASHED.copy()
    hashed.update(text.encode())
    return int.from_bytes(hashed.digest(), "little")


Entry = TypeVar("Entry")


class BoundedLog(Generic[Entry]):
    """An append-only log that keeps at least its last ``limit`` entries, and at most twice as many.

    A reader keeps its position, and requests the entries after it.
    """

    def __init__(self, limit: int) -> None:
        self._entries: list[Entry] = []
        self._base = 0
        self._limit = limit
        # The position at which the oldest entries are dropped.
        self._full_at = 2 * limit + 1
        self.position = 0
        """The position after the newest entry."""

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.position += 1
        if self.position == self._full_at:
            del self._entries[: self._limit]
            self._base += self._limit
            self._full_at += self._limit

    def entries_since(self, position: int) -> list[Entry] | None:
        """Return the entries after ``position``; None if the log no longer reaches back so far."""
        return None if position < self._base else self._entries[position - self._base :]


class ChangeLog(BoundedLog[int]):
    """A log of changed rows."""

    def __init__(self, limit: int = 4096) -> None:
        super().__init__(limit)
        # The positions after the entries that filters and scores cannot see.
        self._reranked: list[int] = []

    touch = BoundedLog[int].append
    """Record that a row changed."""

    def rerank(self, row: int) -> None:
        """Record a change of a row that affects only preemption's ranking."""
        self.append(row)
        self._reranked.append(self.position)
        if self._reranked[0] <= self._base:
            del self._reranked[: bisect_right(self._reranked, self._base)]

    def visible_since(self, position: int) -> list[int] | None:
        """Return the entries after ``position`` but for those of `rerank`; None if the log begins later."""
        missed, reranked = self.entries_since(position), self._reranked
        if missed is None or not reranked or reranked[-1] <= position:
            return missed
        are_visible = bytearray(b"\x01") * len(missed)
        for after in reranked[bisect_right(reranked, position) :]:
            are_visible[after - position - 1] = 0
        return list(compress(missed, are_visible))

    def since(self, position: int) -> Int64s | None:
        """Return the distinct rows changed after ``position``, ascending; None if the log begins later."""
        missed = self.entries_since(position)
        if missed is None:
            return None
        if len(missed) < 2:
            return np.array(missed, dtype=np.int64)
        return np.array(sorted(set(missed)), dtype=np.int64)
