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


def distinct(values: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """The different ones of some values from 0 up to below ``size``, ascending, and the place of each among them.

    They are marked, not sorted, which `numpy.unique` takes far longer for.
    """
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def stable_hash(text: str) -> int:
    """64 bits that depend on ``text`` alone: the same in every process and under every PYTHONHASHSEED."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
