"""Nodes with one total, so kept that the one in any place of their order is found without looking at all."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.name_order import NameOrder

_RUN_BITS = 3
_RUN = 1 << _RUN_BITS


class Shelf:
    """Some nodes, by their ranks in a `NameOrder`; ``total`` and ``cell`` are where the shelf stands in a ranking.

    ``ranks`` ascend. Until somebody draws from it, it is a heap without order. From then on its ranks lie in blocks,
    sorted. How many there are is counted by block, and by runs of blocks: who looks for a place passes over runs first.
    """

    __slots__ = ("_blocks", "_counts", "_order", "_pile", "_runs", "_untouched", "cell", "size", "total")

    def __init__(self, order: NameOrder, cell: tuple[int, ...], total: int, ranks: Int64s) -> None:
        self._order = order
        # The ranks are in one of these: as they were given, in a heap, or in blocks.
        self._untouched: Int64s | None = ranks
        self._pile: set[int] | None = None
        # Arrays, since numbers that lie side by side are found in half the time: each of a list is somewhere else.
        self._blocks: list[array[int]] = []
        self._counts: list[int] = []
        self._runs: list[int] = []
        self.cell = cell
        self.total = total
        self.size = len(ranks)

    def add(self, rank: int) -> None:
        """Put a node on the shelf that is not there."""
        self.size += 1
        blocks = self._blocks
        if not blocks:
            self._on_pile().add(rank)
            return
        number = rank >> self._order.shift
        insort(blocks[number], rank)
        self._counts[number] += 1
        self._runs[number >> _RUN_BITS] += 1

    def remove(self, rank: int) -> None:
        """Take a node off the shelf. Raises LookupError for one that is not there."""
        blocks = self._blocks
        if blocks:
            number = rank >> self._order.shift
            block = blocks[number]
            at = bisect_left(block, rank)
            if block[at] != rank:
                raise KeyError(rank)
            del block[at]
            self._counts[number] -= 1
            self._runs[number >> _RUN_BITS] -= 1
        else:
            self._on_pile().remove(rank)
        self.size -= 1

    def blocks(self) -> tuple[list[array[int]], list[int]]:
        """The ranks in sorted blocks, and how many there are in each."""
        if not self._blocks:
            ranks = self._untouched
            if ranks is None:
                ranks = np.array(sorted(self._pile or ()), dtype=np.int64)
            ends = np.searchsorted(ranks, np.arange(self._order.blocks + 1) << self._order.shift).tolist()
            self._blocks = [array("q", ranks[start:end].tobytes()) for start, end in pairwise(ends)]
            self._counts = [len(block) for block in self._blocks]
            self._runs = [sum(self._counts[start : start + _RUN]) for start in range(0, len(self._counts), _RUN)]
            self._untouched = self._pile = None
        return self._blocks, self._counts

    def nth(self, place: int) -> int:
        """The row of the node in a place, counted from 0, of the order of the nodes on the shelf."""
        blocks = self._blocks or self.blocks()[0]
        number = 0
        for count in self._runs:
            if place < count:
                break
            place -= count
            number += _RUN
        for block in blocks[number : number + _RUN]:
            if place < len(block):
                return self._order.rows[block[place]]
            place -= len(block)
        raise IndexError("there are fewer nodes on the shelf")

    def _on_pile(self) -> set[int]:
        """The ranks, in no order, while they do not lie in blocks."""
        if self._pile is None:
            self._pile = set() if self._untouched is None else set(self._untouched.tolist())
            self._untouched = None
        return self._pile

    def first(self) -> int:
        """The row of the first node on the shelf, which must not be empty."""
        for block in self.blocks()[0]:
            if block:
                return self._order.rows[block[0]]
        raise IndexError("there is no node on the shelf")


def nth(shelves: Sequence[Shelf], place: int) -> int:
    """The row of the node in a place, counted from 0, of the order of all nodes on some shelves of one ranking."""
    if len(shelves) == 1:
        return shelves[0].nth(place)
    laid_out = [shelf.blocks() for shelf in shelves]
    for number, lengths in enumerate(zip(*(counts for _, counts in laid_out), strict=True)):
        count = sum(lengths)
        if place < count:
            return shelves[0]._order.rows[sorted(chain(*[blocks[number].tolist() for blocks, _ in laid_out]))[place]]
        place -= count
    raise IndexError("there are fewer nodes on the shelves")
