"""Optional values.

Source: cel-go cel/library.go (OptionalTypes), common/types/optional.go.
"""

from __future__ import annotations

from typing import NoReturn

from podium.api.cel.overloads import DYN
from podium.api.cel.table import Table
from podium.api.cel.values import NONE, OPTIONAL, EvaluationError, Optional, UInt, Value, number

__all__ = ["NONE", "OPTIONAL", "Optional", "fill"]


def fill(table: Table) -> None:
    """Add optional values; `optMap` and `optFlatMap` are macros."""
    both = (OPTIONAL, OPTIONAL)
    table.function("optional.of", (DYN,), OPTIONAL, Optional)
    table.function("optional.none", (), OPTIONAL, lambda: NONE)
    table.function("optional.ofNonZeroValue", (DYN,), OPTIONAL, lambda a: NONE if _is_zero(a) else Optional(a))
    table.method("hasValue", (OPTIONAL,), "bool", lambda a: a.is_there)
    table.method("value", (OPTIONAL,), DYN, lambda a: a.value if a.is_there else _raise())
    table.method("or", both, OPTIONAL, lambda a, b: a if a.is_there else b)
    table.method("orValue", (OPTIONAL, DYN), DYN, lambda a, b: a.value if a.is_there else b)


def _is_zero(value: Value) -> bool:
    if isinstance(value, int | float | UInt):
        return not number(value)
    return value is None or (isinstance(value, str | bytes | tuple | dict) and not value)


def _raise() -> NoReturn:
    raise EvaluationError("optional.none() dereference")
