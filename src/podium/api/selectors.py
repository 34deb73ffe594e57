"""Label, field and node selectors: as written in objects (meta/v1, core/v1), compiled, and their matching.

The rules are those of apimachinery's labels and fields packages and of component-helpers' nodeaffinity. Selectors have
one canonical form: those with the same requirements are equal and hash equal, however they are written.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from podium.api.errors import InputError, shown
from podium.api.meta import APIStruct, Int32
from podium.api.names import label_key_problem, label_value_problem


class LabelSelectorRequirement(APIStruct, frozen=True, kw_only=True):
    """A requirement on a label: key, operator and values."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(APIStruct, frozen=True, kw_only=True):
    """All equalities and all requirements must hold; the empty selector selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(APIStruct, frozen=True, kw_only=True):
    """A requirement on a node's label or field."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class NodeSelectorTerm(APIStruct, frozen=True, kw_only=True):
    """A conjunction of requirements; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(APIStruct, frozen=True, kw_only=True):
    """A disjunction of terms."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(APIStruct, frozen=True, kw_only=True):
    """A node selector term that adds `weight` (1 to 100) to the score of matching nodes."""

    weight: Int32
    preference: NodeSelectorTerm


class TopologySelectorLabelRequirement(APIStruct, frozen=True, kw_only=True):
    """A label key and the values that a storage class allows for it."""

    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(APIStruct, frozen=True, kw_only=True):
    """A conjunction of label requirements (core/v1 TopologySelectorTerm)."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


NAME_FIELD = "metadata.name"
"""The only node field that a node selector supports."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


@lru_cache(maxsize=65_536)
def parse_int64(text: str) -> int | None:
    """Return the integer as parsed by Go's strconv.ParseInt (base 10, 64 bits), or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(digits) > 64 or not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if _MIN_INT64 <= number <= _MAX_INT64 else None


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """A condition on a key; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt.

    `values` are sorted and unique. In without values matches nothing.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    def matches(self, value: str | None) -> bool:
        """Return whether the condition holds for the value; None means that the key is absent.

        NotIn and DoesNotExist hold for an absent key. Gt and Lt compare 64-bit integers and do not hold for other text.
        Raises ValueError for an unknown operator.
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
                number = None if value is None else parse_int64(value)
                bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
                if number is None or bound is None:
                    return False
                return number > bound if self.operator == "Gt" else number < bound
        raise ValueError(f"no such operator: {shown(self.operator)}")

    def _has(self, value: str) -> bool:
        values = self.values
        position = bisect_left(values, value)
        return position < len(values) and values[position] == value

    def __str__(self) -> str:
        """Return the condition in the syntax of kubectl's -l."""
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        symbol = {"In": "=", "NotIn": "!=", "Gt": ">", "Lt": "<"}[self.operator]
        if len(self.values) == 1:
            return f"{self.key}{symbol}{self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


def requirement_problem(key: str, operator: str, values: tuple[str, ...]) -> tuple[str, str] | None:
    """Return why a condition on a label is invalid, or None: the field (`key`, `values[2]`), and the problem.

    The rules of labels.NewRequirement.
    """
    problem = label_key_problem(key)
    if problem is not None:
        return "key", problem
    if operator in ("In", "NotIn"):
        problem = None if values else f"{operator} needs at least one value"
    elif operator in ("Exists", "DoesNotExist"):
        problem = f"{operator} takes no values" if values else None
    elif operator not in ("Gt", "Lt"):
        return "operator", f"{shown(operator)} is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt"
    elif len(values) != 1 or parse_int64(values[0]) is None:
        problem = f"{operator} needs exactly one value, a 64-bit integer"
    if problem is not None:
        return "values", problem
    wrong = ((f"values[{index}]", label_value_problem(value)) for index, value in enumerate(values))
    return next(((field, problem) for field, problem in wrong if problem is not None), None)


def field_requirement_problem(key: str, operator: str, values: tuple[str, ...]) -> tuple[str, str] | None:
    """Return why a condition on a node's field in a node selector term is invalid, like `requirement_problem`.

    The rules of nodeaffinity.go (component-helpers, scheduling/corev1) and of the API's validation.
    """
    if key != NAME_FIELD:
        return "key", f"{shown(key)} is not a field that nodes are selected by; the only one is {NAME_FIELD}"
    if operator not in ("In", "NotIn"):
        return "operator", f"{shown(operator)} is not one of In, NotIn"
    if len(values) != 1:
        return "values", f"{operator} on a field needs exactly one value"
    return None


def _canonical(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements)))


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of sorted, unique requirements; without any, it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", _canonical(self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet all requirements."""
        return all(requirement.matches(labels.get(requirement.key)) for requirement in self.requirements)

    def __str__(self) -> str:
        """Return the selector in the syntax of kubectl's -l: "" matches everything; `<nothing>` matches nothing."""
        return "<nothing>" if self == NOTHING else ",".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector((Requirement("", "In"),))


@dataclass(frozen=True, slots=True)
class FieldSelector(Selector):
    """Conditions on an object's fields, In or NotIn with one value each; an absent field counts as ""."""

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether the fields, named as in `metadata.name`, meet all conditions."""
        return all(requirement.matches(fields.get(requirement.key, "")) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A term of a node selector: a conjunction of requirements on a node's labels, and on its name."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _canonical(self.labels))
        object.__setattr__(self, "fields", _canonical(self.fields))

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and name matches; a term without requirements matches none."""
        if not self.labels and not self.fields:
            return False
        return all(label.matches(labels.get(label.key)) for label in self.labels) and all(
            field.matches(name) for field in self.fields
        )


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Return the compiled selector: None selects nothing, the empty selector everything.

    An invalid selector, which today's API server refuses but an older one may have stored, matches nothing, as in
    eviction and preemption.
    """
    if selector is None:
        return NOTHING
    requirements = (*_equalities(selector.match_labels), *_requirements(selector.match_expressions))
    is_invalid = any(requirement_problem(each.key, each.operator, each.values) for each in requirements)
    return NOTHING if is_invalid else Selector(requirements)


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector for objects with all of these labels; no labels select all (labels.SelectorFromSet)."""
    return Selector(_equalities(labels))


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in labels.items())


def _requirements(expressions: Iterable[LabelSelectorRequirement | NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, each.values) for each in expressions)


def parse_label_selector(text: str) -> Selector:
    """Return the selector of a text such as `app=web,tier in (a,b),!canary,cores>4`; "" selects everything.

    Raises InputError, which quotes the text.
    """
    if len(text) > _MAX_LENGTH:
        raise InputError(f"a label selector has at most {_MAX_LENGTH} characters")
    return Selector(_LabelParser(text).parse())


def parse_field_selector(text: str) -> FieldSelector:
    """Return the selector of a text such as `metadata.name=web,status.phase!=Running`; "" selects everything.

    The caller checks whether the fields are supported. Raises InputError, which quotes the text.
    """
    if len(text) > _MAX_LENGTH:
        raise InputError(f"a field selector has at most {_MAX_LENGTH} characters")
    requirements: list[Requirement] = []
    for part in filter(None, text.split(",")):
        symbol, operator = next((pair for pair in _FIELD_OPERATORS if pair[0] in part), ("=", "In"))
        field, found, value = part.partition(symbol)
        if not found or not field.strip() or "=" in value or "\\" in part:
            problem = f"{shown(part)} is not a condition; write field=value or field!=value"
            raise InputError(f"field selector {shown(text)}: {problem}")
        requirements.append(Requirement(field.strip(), operator, (value.strip(),)))
    return FieldSelector(tuple(requirements))


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Return the compiled term; one with an invalid requirement matches no node, as in nodeaffinity.go."""
    labels, fields = _requirements(term.match_expressions), _requirements(term.match_fields)
    if any(requirement_problem(label.key, label.operator, label.values) for label in labels) or any(
        field_requirement_problem(field.key, field.operator, field.values) for field in fields
    ):
        return NodeTerm()
    return NodeTerm(labels, fields)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Return the compiled terms in order, any of which must match; without terms no node matches."""
    return tuple(compile_node_term(term) for term in selector.node_selector_terms)


def node_selector_matches(terms: tuple[NodeTerm, ...], labels: Mapping[str, str], name: str) -> bool:
    """Return whether any of the terms matches a node with these labels and this name."""
    return any(term.matches(labels, name) for term in terms)


_MAX_LENGTH = 65_536
_SYMBOLS = frozenset("=!(),><")
_WORD = re.compile(r"[=!]=|[=!(),><]|[^ \t\r\n=!(),><]+")
_FIELD_OPERATORS = (("!=", "NotIn"), ("==", "In"), ("=", "In"))
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}


class _LabelParser:
    """A parser with tokens for identifiers and the symbols = == != ! ( ) , > <. The end is the token ""."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The next token is the last of the list.
        self.words: list[str] = ["", *reversed(_WORD.findall(text))]

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        while self.words[-1] or requirements:
            absent = self.words[-1] == "!"
            if absent:
                self.words.pop()
            key = self._take(_is_identifier, "a label key")
            operator, values = "DoesNotExist" if absent else "Exists", tuple[str, ...]()
            if self.words[-1] not in ("", ","):
                known, expected = ({}, "',' or the end") if absent else (_OPERATORS, "one of = == != in notin > <")
                word = self._take(known.__contains__, expected)
                operator = known[word]
                values = self._values() if word in ("in", "notin") else (self._value(),)
            problem = requirement_problem(key, operator, values)
            if problem is not None:
                raise InputError(f"label selector {shown(self.text)}: {problem[1]}")
            requirements.append(Requirement(key, operator, values))
            if not self.words[-1]:
                break
            self._take(",".__eq__, "','")
        return tuple(requirements)

    def _value(self) -> str:
        """Return the value after an operator such as =; an absent value is empty."""
        return "" if self.words[-1] in ("", ",") else self._take(_is_identifier, "a value")

    def _values(self) -> tuple[str, ...]:
        """Return a list in parentheses; nothing between commas is the empty value."""
        self._take("(".__eq__, "'('")
        values: list[str] = []
        while True:
            values.append(self.words.pop() if _is_identifier(self.words[-1]) else "")
            if self._take((",", ")").__contains__, "',' or ')'") == ")":
                return tuple(values)

    def _take(self, is_expected: Callable[[str], object], expected: str) -> str:
        """Return the next token. Raises InputError for one that is not expected."""
        word = self.words.pop()
        if not is_expected(word):
            found = shown(word) if word else "the end"
            raise InputError(f"label selector {shown(self.text)}: expected {expected}, but found {found}")
        return word


def _is_identifier(word: str) -> bool:
    return bool(word) and word[0] not in _SYMBOLS
