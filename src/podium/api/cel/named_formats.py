"""Named formats (`format.dns1123Label()`), and formatted strings (`"%d".format([1])`).

Source: apiserver/pkg/cel/library/format.go, cel-go ext (strings.go, formatting.go).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from podium.api.cel.moments import Timestamp
from podium.api.cel.network import Url
from podium.api.cel.overloads import Table, tenth, traversal
from podium.api.cel.values import NONE, OPTIONAL, EvaluationError, Optional, Value, number, reads, size_of, type_name
from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem

FORMAT = "kubernetes.NamedFormat"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DIRECTIVE = re.compile(r"%(?:%|(?:\.(\d{1,3}))?([a-zA-Z]))", re.ASCII)
_MOST_WRITTEN = 100_000


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format: a function that returns the problem of a text, None if it is valid."""

    cel_type: ClassVar[str] = FORMAT
    name: str
    problem_of: Callable[[str], str | None]

    def validate(self, text: str) -> Optional:
        """Return the problems of a text, or none."""
        problem = self.problem_of(text)
        return NONE if problem is None else Optional((problem,))


def _prefix(problem_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Return a function for the problem of a name prefix, which may end in a dash."""
    return lambda text: problem_of(f"{text[:-1]}a" if text.endswith("-") else text)


def _label_1035_problem(text: str) -> str | None:
    if len(text) <= 63 and _LABEL_1035.fullmatch(text):
        return None
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )


def _readable(problem: str, read: Callable[[str], object]) -> Callable[[str], str | None]:
    return lambda text: None if reads(read, text) else problem


def _date(text: str) -> Timestamp:
    if _DATE.fullmatch(text) is None:
        raise EvaluationError("no date")
    return Timestamp.of(f"{text}T00:00:00Z")


_FORMATS: Mapping[str, NamedFormat] = {
    name: NamedFormat(name, problem_of)
    for name, problem_of in (
        ("byte", _readable("invalid base64", lambda text: base64.b64decode(text, validate=True))),
        ("date", _readable("invalid date", _date)),
        ("datetime", _readable("invalid datetime", Timestamp.of)),
        ("dns1035Label", _label_1035_problem),
        ("dns1035LabelPrefix", _prefix(_label_1035_problem)),
        ("dns1123Label", label_name_problem),
        ("dns1123LabelPrefix", _prefix(label_name_problem)),
        ("dns1123Subdomain", subdomain_problem),
        ("dns1123SubdomainPrefix", _prefix(subdomain_problem)),
        ("labelValue", label_value_problem),
        ("qualifiedName", label_key_problem),
        ("uri", _readable("invalid URI", Url.of)),
        ("uuid", lambda text: None if _UUID.fullmatch(text) else "does not match the UUID format"),
    )
}


def fill(table: Table) -> None:
    """Add the formats."""
    table.function("format.named", ("string",), OPTIONAL, lambda a: Optional(_FORMATS[a]) if a in _FORMATS else NONE)
    for name, found in _FORMATS.items():
        table.function(f"format.{name}", (), FORMAT, lambda found=found: found)
    table.method("validate", (FORMAT, "string"), OPTIONAL, lambda a, b: a.validate(b), traversal(1))
    table.method("format", ("string", "list"), "string", _formatted, _of_formatting)
    table.function("strings.quote", ("string",), "string", _quoted, traversal(0))


def _of_formatting(text: str, items: tuple[Value, ...]) -> int:
    return tenth(size_of(text) + sum(size_of(item) for item in items)) + 1


def _formatted(text: str, items: tuple[Value, ...]) -> str:
    """Return the text with an item for each directive. Raises EvaluationError for missing or mismatched items."""
    parts: list[str] = []
    position = used = 0
    for match in _DIRECTIVE.finditer(text):
        parts.append(_literal(text[position : match.start()]))
        position = match.end()
        if match[0] == "%%":
            parts.append("%")
            continue
        if used >= len(items):
            raise EvaluationError(f"index {used} out of range")
        parts.append(_directive(match[2], match[1], items[used]))
        used += 1
    parts.append(_literal(text[position:]))
    return "".join(parts)


def _literal(text: str) -> str:
    if "%" in text:
        raise EvaluationError(f"could not parse formatting clause: {text[:40]!r}")
    return text


def _directive(kind: str, precision: str | None, value: Value) -> str:
    if kind == "s":
        return _shown(value)
    digits = 6 if precision is None else int(precision)
    found = type_name(value)
    if kind == "d" and found in ("int", "uint"):
        return str(number(value))
    if kind in ("f", "e") and found in ("double", "int", "uint"):
        return f"{float(number(value)):.{digits}{kind}}"
    if kind in ("b", "o", "x", "X") and found in ("int", "uint", "bool"):
        return format(int(value) if isinstance(value, bool) else int(number(value)), kind)
    if kind in ("x", "X") and found in ("string", "bytes"):
        written = (value.encode() if isinstance(value, str) else value).hex()
        return written.upper() if kind == "X" else str(written)
    raise EvaluationError(f"error during formatting: %{kind} can not be used on {found}")


def _shown(value: Value) -> str:
    """Return a value in the format %s: strings unchanged, lists and maps with their content."""
    if isinstance(value, tuple):
        return _bounded(f"[{', '.join(map(_shown, value))}]")
    if isinstance(value, dict):
        entries = sorted((_shown(key), _shown(inner)) for key, inner in value.items())
        return _bounded(f"{{{', '.join(f'{key}: {inner}' for key, inner in entries)}}}")
    write = _WRITERS.get(type(value))
    return str(getattr(value, "value", value)) if write is None else write(value)


def _shown_number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value)


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    bytes: lambda value: value.decode(errors="replace"),
    float: _shown_number,
    type(None): lambda _: "null",
}


def _bounded(text: str) -> str:
    if len(text) > _MOST_WRITTEN:
        raise EvaluationError("error during formatting: the text is too long")
    return text


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _quoted(text: str) -> str:
    inner = "".join(_ESCAPES.get(letter, f"\\{letter}" if letter in '"\\' else letter) for letter in text)
    return f'"{inner}"'
