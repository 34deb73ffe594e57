"""One condition of a selector: a key, an operator and values.

The rules are those of apimachinery's labels package (labels/selector.go).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from podium.api.errors import shown
from podium.api.names import label_key_problem, label_value_problem

NAME_FIELD = "metadata.name"
"""The one field of a node that a node selector may name."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


@lru_cache(maxsize=65_536)
def parse_int64(text: str) -> int | None:
    """The integer that the text is to Go's strconv.ParseInt (base 10, 64 bits), or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(digits) > 64 or not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if _MIN_INT64 <= number <= _MAX_INT64 else None


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """A condition on a key; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt.

    `values` are kept sorted, once each. In without values matches nothing.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    def matches(self, value: str | None) -> bool:
        """Whether the condition holds for the value; None means that the key is absent.

        NotIn and DoesNotExist hold for an absent key. Gt and Lt compare 64-bit integers and do not hold for
        other text. Raises ValueError for an unknown operator.
        """
        match self.operator:
            case "In":
                return value is not None and self._has(value)
            case "NotIn":
                return value is None or not self._has(value)
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        raise ValueError(f"no such operator: {shown(self.operator)}")

    def _has(self, value: str) -> bool:
        values = self.values
        position = bisect_left(values, value)
        return position < len(values) and values[position] == value

    def _compares(self, value: str) -> bool:
        number = parse_int64(value)
        bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound

    def __str__(self) -> str:
        """The condition as kubectl's -l takes it."""
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        symbol = {"In": "=", "NotIn": "!=", "Gt": ">", "Lt": "<"}[self.operator]
        if len(self.values) == 1:
            return f"{self.key}{symbol}{self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


def requirement_problem(key: str, operator: str, values: tuple[str, ...]) -> tuple[str, str] | None:
    """What makes a condition on a label invalid, or None: the field (`key`, `values[2]`), and the problem.

    The rules of labels.NewRequirement.
    """
    problem = label_key_problem(key)
    if problem is not None:
        return "key", problem
    wrong = _values_problem(operator, values)
    if wrong is not None:
        return wrong
    for index, value in enumerate(values):
        problem = label_value_problem(value)
        if problem is not None:
            return f"values[{index}]", problem
    return None


def _values_problem(operator: str, values: tuple[str, ...]) -> tuple[str, str] | None:
    match operator:
        case "In" | "NotIn":
            return None if values else ("values", f"{operator} needs at least one value")
        case "Exists" | "DoesNotExist":
            return ("values", f"{operator} takes no values") if values else None
        case "Gt" | "Lt":
            if len(values) == 1 and parse_int64(values[0]) is not None:
                return None
            return "values", f"{operator} needs exactly one value, a 64-bit integer"
    return "operator", f"{shown(operator)} is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt"


def field_requirement_problem(key: str, operator: str, values: tuple[str, ...]) -> tuple[str, str] | None:
    """As `requirement_problem`, for a condition on a node's field in a node selector term.

    The rules of nodeaffinity.go (component-helpers, scheduling/corev1) and of the API's validation.
    """
    if key != NAME_FIELD:
        return "key", f"{shown(key)} is not a field that nodes are selected by; the only one is {NAME_FIELD}"
    if operator not in ("In", "NotIn"):
        return "operator", f"{shown(operator)} is not one of In, NotIn"
    if len(values) != 1:
        return "values", f"{operator} on a field needs exactly one value"
    return None
