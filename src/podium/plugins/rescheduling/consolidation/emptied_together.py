"""Which hardly used nodes to empty together, so that most are freed with the fewest moves.

To empty one node after another, the one with the fewest pods first, is not best: its pods may go to the one that would
have been next, and then keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Float64s
from podium.plugins.rescheduling.consolidation.packing import Packing

_MOST_STEPS = 4_000
"""So many pods are given a place in thought, over all sets of nodes; a set without room counts its nodes.

Where there are many nodes to choose from it counts once for each ``_HOMES_A_STEP`` of them.
"""

_HOMES_A_STEP = 1_000

MOST_PODS = 1_000
"""So many pods the candidates may have in all, so that several sets can be looked at."""


@dataclass(frozen=True, slots=True)
class Emptied:
    """The rows of nodes to empty together, and a home for each of their pods, a row by uid."""

    rows: frozenset[int] = frozenset()
    homes: Mapping[str, int] = field(default_factory=dict)


class EmptiedTogether:
    """Searches among ``candidates``, rows with their pods, of the fewest pods first.

    Sets of as many nodes as the room of all others might allow are looked at first, of the fewest pods first, of equals
    by the candidates' order; then sets of one less. The first whose pods all find a home is taken. Each number of nodes
    may use up half of the steps that are left, so that there are some for the next; after the last nothing is found.
    """

    def __init__(self, packing: Packing, candidates: Sequence[tuple[int, Sequence[PodRecord]]]) -> None:
        self._packing = packing
        self._rows = [row for row, _ in candidates]
        self._guests = [len(pods) for _, pods in candidates]
        self._room: Float64s = np.maximum(packing.room, 0).sum(axis=1, dtype=np.float64)
        self._takes = self._taken(candidates)
        self._left = _MOST_STEPS // (1 + len(packing.homes) // _HOMES_A_STEP)

    def search(self) -> Emptied:
        """The best that was found; nothing, where nothing was."""
        for size in range(self._most(), 0, -1):
            allowed = self._left - self._left // 2
            for chosen in _sets(self._guests, size):
                if allowed <= 0:
                    break
                has_room = bool((self._takes[list(chosen)].sum(axis=0) <= self._room).all())
                steps = sum(self._guests[index] for index in chosen) if has_room else size
                allowed -= steps
                self._left -= steps
                found = self._emptied(chosen) if has_room else None
                if found is not None:
                    return found
        return Emptied()

    def _emptied(self, chosen: tuple[int, ...]) -> Emptied | None:
        rows = frozenset(self._rows[index] for index in chosen)
        homes = self._packing.places(rows)
        return None if homes is None else Emptied(rows, homes)

    def _taken(self, candidates: Sequence[tuple[int, Sequence[PodRecord]]]) -> Float64s:
        """``[candidates, resources]``: what each takes of the room of all: what its pods ask for, and its own room."""
        packing = self._packing
        index_of = {row: index for index, row in enumerate(packing.homes.tolist())}
        takes = np.zeros((len(candidates), len(self._room)))
        for number, (row, pods) in enumerate(candidates):
            takes[number] = np.maximum(packing.room[:, index_of[row]], 0)
            for pod in pods:
                takes[number] += packing.need(pod)
        return takes

    def _most(self) -> int:
        """No set of more nodes than this can be emptied: those that take least of each resource alone take too much."""
        least = np.sort(self._takes, axis=0).cumsum(axis=0)
        return int((least <= self._room).all(axis=1).sum())


def _sets(guests: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many indices, of the fewest guests first, of equals by the indices; ``guests`` are in order."""
    first = tuple(range(size))
    heap = [(sum(guests[:size]), first)]
    seen = {first}
    while heap:
        number, chosen = heappop(heap)
        yield chosen
        for position, index in enumerate(chosen):
            after = index + 1
            if after == len(guests) or (position + 1 < size and chosen[position + 1] == after):
                continue
            other = (*chosen[:position], after, *chosen[position + 1 :])
            if other not in seen:
                seen.add(other)
                heappush(heap, (number - guests[index] + guests[after], other))
