"""Basic validation checks; each raises InputError with the path that it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from functools import lru_cache
from typing import TypeVar

from podium.api.errors import InputError, MalformedError, field_path, shown
from podium.api.quantity import parse_quantity
from podium.api.times import parse_nonnegative_duration, parse_time

Parsed = TypeVar("Parsed")
Written = TypeVar("Written")

MAX_ENTRIES = 1_000
"""The maximum number of entries in lists that are compared with one another, so that no object stalls scheduling."""

_MAX_ANNOTATIONS_BYTES = 262_144


def check(problem: str | None, path: str) -> None:
    """Raise InputError with the problem, if there is one."""
    if problem is not None:
        raise InputError(problem, path=path)


def check_count(entries: Sized, path: str, most: int = MAX_ENTRIES) -> None:
    """Raise InputError for a list longer than `most`."""
    if len(entries) > most:
        raise InputError(f"has {len(entries)} entries; at most {most} are allowed", path=path)


def check_not_negative(number: int | None, path: str) -> None:
    """Raise InputError for a negative number; None is an absent value."""
    if number is not None and number < 0:
        raise InputError(f"{number} is negative; it must be 0 or more", path=path)


def parsed(parse: Callable[[Written], Parsed], written: Written, path: str) -> Parsed:
    """Return what was written as parsed by a function that raises ValueError. Raises InputError instead."""
    try:
        return parse(written)
    except ValueError as error:
        raise InputError(str(error), path=path) from None


def check_format(number: object, newest: int) -> None:
    """Raise InputError for the format of a file that a newer version of Podium wrote."""
    if isinstance(number, int) and number > newest:
        raise InputError(f"{number} is written by a newer Podium; this one reads {newest}", path=".format")


def check_time(text: str | None, path: str) -> None:
    """Raise InputError for an invalid time; None is an absent value."""
    if text is not None:
        parsed(parse_time, text, path)


def check_duration(written: str | int, path: str) -> None:
    """Raise InputError for an invalid or negative duration."""
    parsed(parse_nonnegative_duration, written, path)


def check_annotations(annotations: Mapping[str, str], path: str) -> None:
    """Raise InputError for annotations that exceed the total size limit."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        raise InputError(f"take {size} bytes together; at most {_MAX_ANNOTATIONS_BYTES} are allowed", path=path)


def check_share(amount: int | str | None, path: str, most_percent: int | None = 100) -> None:
    """Raise InputError unless it is a number of pods, or a percentage up to `most_percent`; None is an absent value."""
    if isinstance(amount, int):
        check_not_negative(amount, path)
    elif amount is not None:
        digits = amount.removesuffix("%")
        percent = digits != amount and len(digits) <= 16 and digits.isascii() and digits.isdigit()
        if not percent or (most_percent is not None and int(digits) > most_percent):
            limit = "" if most_percent is None else f' up to "{most_percent}%"'
            raise InputError(f"{shown(amount)} is neither a number nor a percentage{limit}", path=path)


def check_amounts(amounts: Mapping[str, str | int | float], path: str) -> None:
    """Check amounts by resource, for any resource name."""
    for name, amount in amounts.items():
        if _amount_error(amount) is not None:
            check_amount(amount, field_path(path, name))


def check_amount(amount: str | int | float | None, path: str) -> None:
    """Raise InputError for a negative amount, MalformedError for an invalid quantity; None is an absent value."""
    error = None if amount is None else _amount_error(amount)
    if error is not None:
        raise error[0](error[1], path=path)


@lru_cache(maxsize=65_536)
def _amount_error(amount: str | int | float) -> tuple[type[InputError], str] | None:
    try:
        is_negative = parse_quantity(amount) < 0
    except ValueError as error:
        return MalformedError, str(error)
    return (InputError, f"{shown(amount)} is negative; it must be 0 or more") if is_negative else None
