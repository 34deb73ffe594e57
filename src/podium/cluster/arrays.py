"""The array types of the cluster, and how they grow."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

# Of which copies go on: that takes half as long as to begin anew.
_NOTHING_HASHED = blake2b(digest_size=8)
# What goes into a number that is not negative.
_BITS = 63
# Values of so small a range count as they are.
_FEW = 1 << 20


def grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    """A copy of ``array`` whose last axis holds ``capacity`` entries; new entries are zero."""
    larger: npt.NDArray[Any] = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger


def pieces(starts: Int64s, chosen: Int64s) -> tuple[Int64s, Int64s]:
    """Of lists that stand one after another, list ``i`` at ``starts[i]:starts[i + 1]``, some, in the order given.

    Returns where each begins when they stand alone, and the end; and the places of their entries.
    """
    lengths = np.diff(starts)[chosen]
    begins: Int64s = np.concatenate([[0], np.cumsum(lengths)])
    places: Int64s = np.repeat(starts[chosen] - begins[:-1], lengths) + np.arange(begins[-1])
    return begins, places


def in_order(keys: Int64s) -> Int64s:
    """The places of keys of up to 32 bits, none negative, by key; equal ones stay in order.

    Numbers are sorted in a fraction of the time that it takes to sort places by them.
    """
    bits = len(keys).bit_length()
    places: Int64s = np.sort((keys << bits) | np.arange(len(keys))) & ((1 << bits) - 1)
    return places


def in_order_of(*keys: Int64s) -> Int64s:
    """The places of some rows in the order of several keys, the first the weightiest; equal ones stay in order.

    It is `numpy.lexsort`, but that numbers are sorted where all keys of a row go into one.
    """
    size = len(keys[0])
    packed, bits = np.zeros(size, dtype=np.int64), size.bit_length()
    for key in keys if size else ():
        ranks, most = _ranks(key)
        bits += most.bit_length()
        if bits >= _BITS:
            return np.lexsort(keys[::-1])
        packed <<= most.bit_length()
        packed |= ranks
    # In place: memory that is touched first costs more than what is done in it.
    packed <<= size.bit_length()
    packed |= np.arange(size)
    packed.sort()
    packed &= (1 << size.bit_length()) - 1
    return packed


def _ranks(values: Int64s) -> tuple[Int64s, int]:
    """Numbers from 0 on, in the order of the values, and the largest of them."""
    least, most = int(values.min()), int(values.max())
    if most - least < _FEW:
        return values - least, most - least
    ascending = np.sort(values)
    levels = ascending[np.append(True, ascending[1:] != ascending[:-1])]
    return np.searchsorted(levels, values), len(levels) - 1


def distinct(values: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """The different ones of some values from 0 up to below ``size``, ascending, and the place of each among them.

    They are marked, not sorted, which `numpy.unique` takes far longer for.
    """
    found = occurring(values, size)
    places = np.empty(size, dtype=np.int64)
    places[found] = np.arange(len(found))
    return found, places[values]


def occurring(values: Int64s, size: int) -> Int64s:
    """The different ones alone."""
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs)


def stable_hash(text: str) -> int:
    """64 bits that depend on ``text`` alone: the same in every process and under every PYTHONHASHSEED."""
    hashed = _NOTHING_HASHED.copy()
    hashed.update(text.encode())
    return int.from_bytes(hashed.digest(), "little")
