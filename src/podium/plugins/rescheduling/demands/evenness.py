"""How many pods have to move until they are spread evenly enough over domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evenness:
    """How many moves it takes until no domain leads another by more than is allowed.

    It is the same number whether all domains are to hold at least ``lowest[0]`` pods, or ``lowest[1]`` and so on, and
    so many more at the most.
    """

    moves: int
    lowest: tuple[int, ...]


def evenness(domains: Mapping[int, int], max_skew: int) -> Evenness:
    """The least number of moves until the fullest domain leads the emptiest by at most ``max_skew``.

    ``domains`` says how many domains hold a number of pods, for each number. Where all are to hold from L to
    L + max_skew pods, those above have to give away so many, and those below need so many; the most of the two is
    enough, and L is chosen so that it is least. Each single move changes the answer by 1 at most.
    """
    if not domains:
        return Evenness(0, (0,))
    low, high = min(domains), max(domains)
    if high - low <= max_skew:
        return Evenness(0, (low,))
    # With L the need grows and the surplus falls: they meet at the least of their maximum.
    while low < high:
        middle = (low + high) // 2
        if needed(domains, middle) >= surplus(domains, middle + max_skew):
            high = middle
        else:
            low = middle + 1
    moves = {
        lowest: max(needed(domains, lowest), surplus(domains, lowest + max_skew))
        for lowest in (low - 1, low)
        if lowest >= 0
    }
    least = min(moves.values())
    return Evenness(least, tuple(lowest for lowest, number in moves.items() if number == least))


def needed(domains: Mapping[int, int], lowest: int) -> int:
    """How many pods all domains lack that are to hold ``lowest`` at least."""
    return sum([(lowest - pods) * number for pods, number in domains.items() if pods < lowest])


def surplus(domains: Mapping[int, int], highest: int) -> int:
    """How many pods there are beyond ``highest`` in each domain."""
    return sum([(pods - highest) * number for pods, number in domains.items() if pods > highest])
