"""How many pods are never moved as things are, and why: what a plan that moves nobody owes an explanation for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.cluster.pods import PodRecord

MOST_REASONS = 20
"""So many reasons are told, those of most pods."""


@dataclass(frozen=True, slots=True)
class Untouched:
    """Pods that may not be moved, among ``of`` in all.

    ``reasons`` are by how many pods they hold for, the most first, then by their words; ``others`` counts the pods of
    those beyond `MOST_REASONS`. A pod with several reasons counts for the first.
    """

    of: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    others: int = 0

    @property
    def pods(self) -> int:
        """How many they are."""
        return self.others + sum(number for _, number in self.reasons)


NOBODY = Untouched()


def untouched(pods: Iterable[PodRecord], why: Callable[[PodRecord], str]) -> Untouched:
    """Those of ``pods`` that ``why`` has a reason for, "" being none."""
    counted = Counter(map(why, pods))
    of = counted.total()
    counted.pop("", None)
    reasons = sorted(counted.items(), key=lambda reason: (-reason[1], reason[0]))
    return Untouched(of, tuple(reasons[:MOST_REASONS]), sum(number for _, number in reasons[MOST_REASONS:]))
