"""Selectors as text: the grammars of kubectl's -l and --field-selector.

They are those of apimachinery's labels.Parse and fields.ParseSelector, without the latter's backslash
escapes, which no field's value needs. `selectors` holds the functions that callers use.
"""

from __future__ import annotations

from podium.api.errors import InputError, shown
from podium.api.requirement import Requirement, requirement_problem

_MAX_LENGTH = 65_536
_SPACE = frozenset(" \t\r\n")
_SYMBOLS = frozenset("=!(),><")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}


def label_requirements(text: str) -> tuple[Requirement, ...]:
    """The conditions of a label selector, in their order. Raises InputError."""
    if len(text) > _MAX_LENGTH:
        raise InputError(f"a label selector has at most {_MAX_LENGTH} characters")
    return _LabelParser(text).parse()


class _LabelParser:
    """Reads words: identifiers, and the symbols = == != ! ( ) , > <. The end is the word ""."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = _words(text)
        self.position = 0

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        while self._peek() or requirements:
            requirements.append(self._requirement())
            if not self._peek():
                break
            self._expect(",")
        return tuple(requirements)

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self.position += 1
        key = self._next()
        if not _is_identifier(key):
            raise self._error("a label key", key)
        if self._peek() in ("", ","):
            return self._valid(key, "DoesNotExist" if absent else "Exists", ())
        word = self._next()
        if absent or word not in _OPERATORS:
            raise self._error("',' or the end" if absent else "one of = == != in notin > <", word)
        values = self._values() if word in ("in", "notin") else (self._value(),)
        return self._valid(key, _OPERATORS[word], values)

    def _value(self) -> str:
        """The value behind = and its like; none at all is the empty value."""
        if self._peek() in ("", ","):
            return ""
        value = self._next()
        if not _is_identifier(value):
            raise self._error("a value", value)
        return value

    def _values(self) -> tuple[str, ...]:
        """A list in parentheses; nothing between commas is the empty value."""
        self._expect("(")
        values: list[str] = []
        while True:
            values.append(self._next() if _is_identifier(self._peek()) else "")
            word = self._next()
            if word == ")":
                return tuple(values)
            if word != ",":
                raise self._error("',' or ')'", word)

    def _valid(self, key: str, operator: str, values: tuple[str, ...]) -> Requirement:
        problem = requirement_problem(key, operator, values)
        if problem is not None:
            raise InputError(f"label selector {shown(self.text)}: {problem[1]}")
        return Requirement(key, operator, values)

    def _peek(self) -> str:
        return self.words[self.position] if self.position < len(self.words) else ""

    def _next(self) -> str:
        word = self._peek()
        self.position += 1
        return word

    def _expect(self, symbol: str) -> None:
        word = self._next()
        if word != symbol:
            raise self._error(f"'{symbol}'", word)

    def _error(self, expected: str, found: str) -> InputError:
        return InputError(
            f"label selector {shown(self.text)}: expected {expected}, but found {shown(found) if found else 'the end'}"
        )


def _is_identifier(word: str) -> bool:
    return bool(word) and word[0] not in _SYMBOLS


def _words(text: str) -> list[str]:
    words: list[str] = []
    position = 0
    while position < len(text):
        start = position
        position += 1
        if text[start] in _SPACE:
            continue
        if text[start] in _SYMBOLS:
            if text[start : start + 2] in ("==", "!="):
                position += 1
        else:
            while position < len(text) and text[position] not in _SPACE and text[position] not in _SYMBOLS:
                position += 1
        words.append(text[start:position])
    return words


def field_requirements(text: str) -> tuple[Requirement, ...]:
    """The conditions of a field selector, in their order. Raises InputError."""
    if len(text) > _MAX_LENGTH:
        raise InputError(f"a field selector has at most {_MAX_LENGTH} characters")
    return tuple(_field_requirement(part, text) for part in text.split(",") if part)


def _field_requirement(part: str, text: str) -> Requirement:
    for symbol, operator in (("!=", "NotIn"), ("==", "In"), ("=", "In")):
        field, found, value = part.partition(symbol)
        if found and field.strip() and "=" not in value and "\\" not in part:
            return Requirement(field.strip(), operator, (value.strip(),))
    raise InputError(
        f"field selector {shown(text)}: {shown(part)} is not a condition; write field=value or field!=value"
    )
