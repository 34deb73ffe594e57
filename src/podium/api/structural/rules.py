"""The CEL rules of a schema (x-kubernetes-validations).

`self` is the value at the rule's location, `oldSelf` its value before an update; with `optionalOldSelf` an optional
value, so that the rule also applies to creations. A rule that does not compile has a `problem`; definitions with such
rules are refused, and those of an older journal are not enforced.

Source: apiextensions-apiserver (pkg/apiserver/schema/cel), apiserver (pkg/cel/escaping.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from podium.api.cel.compiler import Compiled, Compiler, CostExceededError, Declaration, Variables
from podium.api.cel.overloads import DYN
from podium.api.cel.syntax import parse
from podium.api.cel.values import NONE, CompileError, EvaluationError, Optional, Value
from podium.api.meta import Raw

if TYPE_CHECKING:
    from podium.api.structural.structural import Structural

COST_LIMIT = 1_000_000
"""The cost limit of all rules of one object: upstream's limit for one rule, and a tenth of that for an object."""

_ANY = Declaration(DYN)
# Texts that are times, durations and bytes in expressions.
_FORMATTED = ("byte", "date", "date-time", "duration")
_USES_OLD = re.compile(r"\boldSelf\b")
_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)

_ESCAPED = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_TEXT = 5 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """An expression that must be true, and the message if it is not.

    `place` is the faulty field, as a path relative to the rule's location. A transition rule is evaluated only if there
    is an old value.
    """

    text: str
    program: Compiled | None
    problem: str
    message: str
    message_program: Compiled | None
    reason: str
    place: str
    is_about_change: bool
    takes_optional: bool = False

    def broken(self, value: Value, old: Value | None, spent: Variables) -> str:
        """Return the message for a value that breaks the rule; "" for a valid one. `spent` accumulates the cost."""
        if self.program is None or (self.is_about_change and old is None):
            return ""
        before: Value = old
        if self.takes_optional:
            before = NONE if old is None else Optional(old)
        scope = Variables({"self": value, "oldSelf": before}, spent.limit - spent.cost)
        try:
            holds = self.program.evaluate(scope)
        except CostExceededError:
            return f"rule evaluation error: {self.text}: the rules of this object cost too much to evaluate"
        except EvaluationError as error:
            return f"rule evaluation error: {error} evaluating rule: {self.text}"
        finally:
            spent.cost += scope.cost
        return "" if holds is True else self._message(scope)

    def _message(self, scope: Variables) -> str:
        if self.message_program is not None:
            try:
                message = self.message_program.evaluate(scope)
            except EvaluationError:
                message = ""
            if isinstance(message, str) and message.strip() and len(message) <= _MAX_TEXT:
                return message.strip()
        return self.message or f"failed rule: {self.text}"


def read_rules(schema: Iterable[Raw], node: Structural, *, is_root: bool) -> tuple[Rule, ...]:
    """Return the rules at a location of a schema."""
    declared = _declaration(node, is_root=is_root)
    return tuple(_rule(each, declared) for each in schema)


def _rule(schema: Raw, declared: Declaration) -> Rule:
    text = str(schema.get("rule", "")).strip()
    takes_optional = bool(schema.get("optionalOldSelf"))
    variables = {"self": declared, "oldSelf": Declaration(DYN) if takes_optional else declared}
    program, problem = _compiled(text, variables)
    if program is not None and program.type not in ("bool", DYN):
        problem = "cel expression must evaluate to a bool"
        program = None
    message = str(schema.get("messageExpression", "")).strip()
    return Rule(
        text=text,
        program=program,
        problem=problem,
        message=str(schema.get("message", "")).strip(),
        message_program=_compiled(message, variables)[0] if message else None,
        reason=schema.get("reason") or "FieldValueInvalid",
        place=str(schema.get("fieldPath", "")),
        is_about_change=not takes_optional and _USES_OLD.search(text) is not None,
        takes_optional=takes_optional,
    )


def _compiled(text: str, variables: Mapping[str, Declaration]) -> tuple[Compiled | None, str]:
    """Return the program of an expression, or the reason why there is none."""
    try:
        return Compiler(text, variables).compile(parse(text)), ""
    except (CompileError, RecursionError) as error:
        return None, f"compilation failed: {error}"


_TYPES = {"boolean": "bool", "integer": "int", "number": "double", "string": "string"}
_MOST_BYTES = 3 * 1024 * 1024
# The least number of bytes of an item of a list, and of an entry of a map.
_ITEM_BYTES, _ENTRY_BYTES = 2, 8


def max_size(node: Structural) -> int:
    """Return the maximum length of a value: as its schema says, or as a request can hold."""
    if node.type == "string":
        return int(node.schema.get("maxLength", _MOST_BYTES))
    if node.type == "array":
        return int(node.schema.get("maxItems", _MOST_BYTES // _ITEM_BYTES))
    return int(node.schema.get("maxProperties", _MOST_BYTES // _ENTRY_BYTES)) if node.values is not None else 1


def _declaration(node: Structural, *, is_root: bool = False) -> Declaration:
    """Return what expressions know of a value."""
    size = max_size(node)
    if node.keeps_unknown or node.is_number_or_text or node.schema.get("format") in _FORMATTED:
        return Declaration(DYN, size=size)
    if node.type == "array":
        return Declaration("list", items=None if node.items is None else _declaration(node.items), size=size)
    if node.values is not None:
        return Declaration("map", items=_declaration(node.values), size=size) if not node.properties else _ANY
    if node.type != "object":
        return Declaration(_TYPES.get(node.type, DYN), size=size)
    fields = {escaped(name): _declaration(inner) for name, inner in node.properties.items()}
    if is_root or node.is_embedded:
        named = {"name": Declaration("string"), "generateName": Declaration("string")}
        text = Declaration("string")
        fields = {"apiVersion": text, "kind": text, **fields, "metadata": Declaration("object", named)}
    return Declaration("object", fields)


@lru_cache(maxsize=4_096)
def escaped(name: str) -> str:
    """Return a field name as escaped in expressions."""
    if name in _RESERVED:
        return f"__{name}__"
    written = name
    for letters, word in _ESCAPED:
        written = written.replace(letters, word)
    return written if _NAME.fullmatch(written) else name
