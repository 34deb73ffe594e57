"""Names for objects that have a `generateName` alone (apiserver's pkg/storage/names).

The API server draws five characters; here they follow from how many objects of the input were named so before, so that
the same input gives the same names, and no two of it the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 5
_MAX_PREFIX = 58
_NAMES = len(_LETTERS) ** _LENGTH
# Without a common factor with the number of names, so that each comes once; large, so that neighbours look different.
_STRIDE = 6_700_417


def generated_names() -> Callable[[str], str]:
    """A maker of names: each call answers with the next name of that prefix."""
    numbers = count(1)
    return lambda prefix: f"{prefix[:_MAX_PREFIX]}{_suffix(next(numbers))}"


def _suffix(number: int) -> str:
    rest, letters = number * _STRIDE % _NAMES, ""
    for _ in range(_LENGTH):
        rest, letter = divmod(rest, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters
