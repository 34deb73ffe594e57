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


def stable_hash(text: str) -> int:
    """64 bits that depend on ``text`` alone: the same in every process and under every PYTHONHASHSEED."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
