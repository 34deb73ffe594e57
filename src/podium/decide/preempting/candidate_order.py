"""Candidates in the order of the criteria, kept as single ones come, change and go.

Asked for the best, nobody looks at the others: those that were there at first are sorted once, in arrays, and made up
into buckets of equals only when their turn comes; those that came later are in buckets from the start.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from itertools import repeat

import numpy as np

from podium.cluster.arrays import Bools, Int64s, UInt64s

Key = tuple[int, ...]
"""The criteria of a candidate, the first the weightiest; smaller is better."""

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1
# How many keys without candidates the heap may hold besides as many as there are others.
_SPARE_KEYS = 64


class CandidateOrder:
    """Rows by their keys; equals by the hashes of their nodes' names, then by row.

    It holds at most eight numbers for each candidate that it began with, and an entry in a bucket for each that came
    later or whose turn came. A row has one key at a time.
    """

    def __init__(self, rows: Int64s, criteria: Int64s, name_hashes: UInt64s) -> None:
        """Begin with candidates ``rows``, ascending: ``criteria`` is ``[criteria, rows]``, ``name_hashes`` ``[rows]``.

        Changes of the arrays afterwards are not seen: pass copies.
        """
        order = np.lexsort((name_hashes, *criteria[::-1]))
        self._rows = rows[order]
        self._hashes = name_hashes[order]
        criteria = criteria[:, order]
        fresh = np.ones(len(rows), dtype=np.bool_)
        fresh[1:] = (criteria[:, 1:] != criteria[:, :-1]).any(axis=0)
        # Where each group of equals begins, and the end; and their keys.
        self._starts: Int64s = np.concatenate([np.flatnonzero(fresh), [len(rows)]])
        self._criteria = criteria[:, fresh]
        self._next = 0
        self._next_key: Key | None = None
        self._is_sorted: Bools = np.zeros(int(rows[-1]) + 1 if len(rows) else 0, dtype=np.bool_)
        self._is_sorted[rows] = True
        # By key, the entries of equals, ascending: the name's hash, then the row, in one number.
        self._buckets: dict[Key, list[int]] = {}
        self._keys: list[Key] = []
        self._entry_of: dict[int, tuple[Key, int]] = {}
        self._advance()

    def put(self, row: int, key: Key, name_hash: int) -> None:
        """Give a row, which is in no place, the one that its key says."""
        if row in self._entry_of or (row < len(self._is_sorted) and self._is_sorted[row]):
            raise ValueError(f"row {row} has a place already")
        entry = name_hash << _ROW_BITS | row
        self._entry_of[row] = key, entry
        insort(self._bucket(key), entry)

    def drop(self, row: int) -> None:
        """Take a row out; nothing where it is in no place."""
        if row < len(self._is_sorted) and self._is_sorted[row]:
            self._is_sorted[row] = False
            return
        found = self._entry_of.pop(row, None)
        if found is not None:
            key, entry = found
            bucket = self._buckets[key]
            del bucket[bisect_left(bucket, entry)]

    def draw(self, lot: int, most: int) -> tuple[int, tuple[int, ...]] | None:
        """The row of the best key, or of those that have it the one in place ``lot``, counted round and round.

        With the first rows that have it, as many as ``most``. None where there is no candidate.
        """
        bucket = self._best()
        if bucket is None:
            return None
        return bucket[lot % len(bucket)] & _ROW_MASK, tuple([entry & _ROW_MASK for entry in bucket[:most]])

    def _bucket(self, key: Key) -> list[int]:
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._keys) > 2 * len(self._entry_of) + _SPARE_KEYS:
                self._sweep()
            bucket = self._buckets[key] = []
            heappush(self._keys, key)
        return bucket

    def _best(self) -> list[int] | None:
        """The bucket of the best key; None where there is no candidate."""
        while True:
            while self._keys and not self._buckets[self._keys[0]]:
                del self._buckets[heappop(self._keys)]
            if self._next_key is None or (self._keys and self._keys[0] < self._next_key):
                return self._buckets[self._keys[0]] if self._keys else None
            self._make_up(self._next_key)

    def _make_up(self, key: Key) -> None:
        """Put those of the next group that are still in their sorted place into a bucket."""
        some = slice(*self._starts[self._next : self._next + 2].tolist())
        left = self._is_sorted[self._rows[some]]
        rows, hashes = self._rows[some][left].tolist(), self._hashes[some][left].tolist()
        self._is_sorted[rows] = False
        entries = [name_hash << _ROW_BITS | row for row, name_hash in zip(rows, hashes, strict=True)]
        self._entry_of.update(zip(rows, zip(repeat(key), entries), strict=True))
        if entries:
            bucket = self._bucket(key)
            bucket += entries
            bucket.sort()
        self._next += 1
        self._advance()

    def _advance(self) -> None:
        """Find the next group, if there is one."""
        is_over = self._next + 1 == len(self._starts)
        self._next_key = None if is_over else tuple(self._criteria[:, self._next].tolist())

    def _sweep(self) -> None:
        """Forget keys without candidates."""
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if bucket}
        self._keys = list(self._buckets)
        heapify(self._keys)
