"""How many pods have to move until they are spread evenly enough over domains."""

from __future__ import annotations

from collections.abc import Mapping


def moves_needed(domains: Mapping[int, int], max_skew: int) -> int:
    """The least number of moves until the fullest domain leads the emptiest by at most ``max_skew``.

    ``domains`` says how many domains hold a number of pods, for each number. Where all are to hold from L to
    L + max_skew pods, those above have to give away so many, and those below need so many; the most of the two is
    enough, and L is chosen so that it is least. Each single move changes the answer by 1 at most.
    """
    if not domains:
        return 0
    low, high = min(domains), max(domains)
    if high - low <= max_skew:
        return 0
    # With L the need grows and the surplus falls: they meet at the least of their maximum.
    while low < high:
        middle = (low + high) // 2
        if _needed(domains, middle) >= surplus(domains, middle + max_skew):
            high = middle
        else:
            low = middle + 1
    return min(
        max(_needed(domains, lowest), surplus(domains, lowest + max_skew)) for lowest in (low, low - 1) if lowest >= 0
    )


def _needed(domains: Mapping[int, int], lowest: int) -> int:
    return sum([(lowest - pods) * number for pods, number in domains.items() if pods < lowest])


def surplus(domains: Mapping[int, int], highest: int) -> int:
    """How many pods there are beyond ``highest`` in each domain."""
    return sum([(pods - highest) * number for pods, number in domains.items() if pods > highest])
