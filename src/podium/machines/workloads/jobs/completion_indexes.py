"""Sets of completion indexes of Indexed Jobs, written as in "1,3-5,7".

Source: pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from podium.api.pod import Pod
from podium.api.requirement import parse_int64

INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod: its index."""


def index_of(pod: Pod, completions: int) -> int | None:
    """The pod's index; None where it has none, or none below ``completions``."""
    index = parse_int64(pod.metadata.annotations.get(INDEX, ""))
    return index if index is not None and 0 <= index < completions else None


def read_indexes(text: str, completions: int) -> set[int]:
    """The indexes of a text, as far as they are below ``completions`` and can be read."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = parse_int64(first), parse_int64(last or first)
        if low is not None and high is not None:
            indexes.update(range(max(0, low), min(high + 1, completions)))
    return indexes


def write_indexes(indexes: Iterable[int]) -> str:
    """The text, with each run of more than two as a range, and of two as both."""
    runs: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ",".join(_written(low, high) for low, high in runs)


def free_indexes(count: int, completions: int, taken: set[int]) -> list[int]:
    """The lowest ``count`` indexes that are not taken, fewer where there are not so many."""
    return list(islice((index for index in range(completions) if index not in taken), count))


def _written(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low},{high}" if high == low + 1 else f"{low}-{high}"
