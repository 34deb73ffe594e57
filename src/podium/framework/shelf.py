"""Nodes with one total, so kept that the one in any place of their order is found without looking at all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import chain

from podium.cluster.name_order import NameOrder


class Shelf:
    """Some nodes, by their ranks in a `NameOrder`; ``total`` and ``cell`` are where the shelf stands in a ranking.

    Until somebody draws from it, it is a heap without order. From then on its ranks lie in blocks, sorted.
    """

    __slots__ = ("_blocks", "_counts", "_order", "_pile", "cell", "size", "total")

    def __init__(self, order: NameOrder, cell: tuple[int, ...], total: int, ranks: Iterable[int] = ()) -> None:
        self._order = order
        self._pile: set[int] | None = set(ranks)
        self._blocks: list[list[int]] = []
        self._counts: list[int] = []
        self.cell = cell
        self.total = total
        self.size = len(self._pile)

    def add(self, rank: int) -> None:
        """Put a node on the shelf that is not there."""
        self.size += 1
        if self._pile is not None:
            self._pile.add(rank)
            return
        number = rank >> self._order.shift
        block = self._blocks[number]
        insort(block, rank)
        self._counts[number] += 1

    def remove(self, rank: int) -> None:
        """Take a node off the shelf. Raises LookupError for one that is not there."""
        if self._pile is not None:
            self._pile.remove(rank)
        else:
            number = rank >> self._order.shift
            block = self._blocks[number]
            at = bisect_left(block, rank)
            if block[at] != rank:
                raise KeyError(rank)
            del block[at]
            self._counts[number] -= 1
        self.size -= 1

    def blocks(self) -> tuple[list[list[int]], list[int]]:
        """The ranks in sorted blocks, and how many there are in each."""
        if self._pile is not None:
            shift = self._order.shift
            self._blocks = [[] for _ in range(self._order.blocks)]
            for rank in sorted(self._pile):
                self._blocks[rank >> shift].append(rank)
            self._counts = [len(block) for block in self._blocks]
            self._pile = None
        return self._blocks, self._counts

    def first(self) -> int:
        """The row of the first node on the shelf, which must not be empty."""
        return nth([self], 0)


def nth(shelves: Sequence[Shelf], place: int) -> int:
    """The row of the node in a place, counted from 0, of the order of all nodes on some shelves of one ranking."""
    if len(shelves) == 1:
        blocks, counts = shelves[0].blocks()
        for number, count in enumerate(counts):
            if place < count:
                return shelves[0]._order.rows[blocks[number][place]]
            place -= count
        raise IndexError("there are fewer nodes on the shelf")
    laid_out = [shelf.blocks() for shelf in shelves]
    for number, lengths in enumerate(zip(*(counts for _, counts in laid_out), strict=True)):
        count = sum(lengths)
        if place < count:
            return shelves[0]._order.rows[sorted(chain(*(blocks[number] for blocks, _ in laid_out)))[place]]
        place -= count
    raise IndexError("there are fewer nodes on the shelves")
