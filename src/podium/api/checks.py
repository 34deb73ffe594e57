"""The checks that all validation is made of; each raises InputError with the path that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sized

from podium.api.errors import InputError, shown
from podium.api.times import parse_time

MAX_ENTRIES = 1_000
"""How many entries lists may have that are compared with one another, so that no object stalls scheduling."""

MAX_VALUES = 10_000
"""How many values one condition of a selector may list: enough to name every node of a large cluster."""

_MAX_ANNOTATIONS_BYTES = 262_144


def check(problem: str | None, path: str) -> None:
    """Raises InputError with the problem, if there is one."""
    if problem is not None:
        raise InputError(problem, path=path)


def check_count(entries: Sized, path: str, most: int = MAX_ENTRIES) -> None:
    """Refuses a list longer than `most`."""
    if len(entries) > most:
        raise InputError(f"has {len(entries)} entries; at most {most} are taken", path=path)


def check_weight(weight: int, path: str) -> None:
    """The weight of a preference is 1 to 100."""
    if not 1 <= weight <= 100:
        raise InputError(f"{weight} is out of range; it must be 1 to 100", path=f"{path}.weight")


def check_one_of(value: str, allowed: tuple[str, ...], path: str) -> None:
    """Refuses a value that is not one of those allowed."""
    if value not in allowed:
        raise InputError(f"{shown(value)} is not one of {', '.join(allowed)}", path=path)


def check_not_negative(number: int | None, path: str) -> None:
    """Refuses a negative number; None is a number not given."""
    if number is not None and number < 0:
        raise InputError(f"{number} is negative; it must be 0 or more", path=path)


def check_time(text: str | None, path: str) -> None:
    """A point in time; None is one not given."""
    if text is None:
        return
    try:
        parse_time(text)
    except ValueError as error:
        raise InputError(str(error), path=path) from None


def check_annotations(annotations: Mapping[str, str], path: str) -> None:
    """How much annotations take together."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        raise InputError(f"take {size} bytes together; at most {_MAX_ANNOTATIONS_BYTES} are taken", path=path)


def check_share(amount: int | str | None, path: str, most_percent: int | None = 100) -> None:
    """A number of pods, or a percentage of them up to `most_percent`; None is an amount not given."""
    if isinstance(amount, int):
        check_not_negative(amount, path)
    elif amount is not None:
        digits = amount.removesuffix("%")
        percent = digits != amount and len(digits) <= 16 and digits.isascii() and digits.isdigit()
        if not percent or (most_percent is not None and int(digits) > most_percent):
            limit = "" if most_percent is None else f' up to "{most_percent}%"'
            raise InputError(f"{shown(amount)} is neither a number nor a percentage{limit}", path=path)
