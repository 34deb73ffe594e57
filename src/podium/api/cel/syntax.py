"""From the text of an expression to its syntax tree.

cel-python's parser reads the text; what it gives is brought into the few shapes that compiling needs. Its evaluator is
not used: it counts no cost, and words errors in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from podium.api.cel.strings import unquoted, without_marks
from podium.api.cel.values import MAX_INT, MAX_UINT, MIN_INT, CompileError, UInt, Value

if TYPE_CHECKING:
    from lark import Token, Tree

MAX_LENGTH = 10 * 1024
"""The longest expression that is read (resource.k8s.io CELSelectorExpressionMaxLength)."""

MAX_DEPTH = 100
"""How deep expressions may nest; cel-go takes 250."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the text something stands, counted from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written."""

    value: Value
    place: Place = dataclass_field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable."""

    name: str
    place: Place = dataclass_field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a value; one that ``is_optional`` need not be there (`value.?field`)."""

    operand: Node
    field: str
    place: Place = dataclass_field(default=Place(), compare=False)
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (with ``target``), or an operator under cel-go's name for it."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None
    place: Place = dataclass_field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list as written."""

    items: tuple[Node, ...]
    place: Place = dataclass_field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map as written."""

    entries: tuple[tuple[Node, Node], ...]
    place: Place = dataclass_field(default=Place(), compare=False)


Node = Literal | Ident | Select | Call | ListOf | MapOf

_BINARY = {
    "addition_add": "_+_",
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": "_==_",
    "relation_ne": "_!=_",
    "relation_in": "@in",
}
_LOGIC = {"conditionalor": "_||_", "conditionaland": "_&&_"}


def parse(text: str) -> Node:
    """The tree of an expression. Raises CompileError."""
    if len(text) > MAX_LENGTH:
        raise CompileError(f"too long: {len(text)} characters; at most {MAX_LENGTH} are taken")
    # Loaded with the first expression: most inputs have none.
    from celpy.celparser import CELParseError, CELParser  # noqa: PLC0415

    plain, optional = without_marks(text)
    try:
        tree = CELParser().parse(plain)
    except CELParseError as error:
        raise CompileError(error_text(text, Place(error.line or 1, error.column or 1), "Syntax error")) from None
    reader = _Reader(text, optional)
    found = reader.node(tree, 0)
    if reader.optional:
        raise CompileError(error_text(text, Place(), "optional entries of lists and maps are not known here"))
    return found


def error_text(text: str, place: Place, problem: str) -> str:
    """A problem as cel-go tells it: with the line, and a mark below it."""
    lines = text.splitlines() or [""]
    line = lines[min(place.line, len(lines)) - 1]
    mark = "." * (place.column - 1)
    return f"ERROR: <input>:{place.line}:{place.column}: {problem}\n | {line}\n | {mark}^"


class _Reader:
    """Turns the parser's tree, a level for each precedence, into nodes."""

    def __init__(self, text: str, optional: set[int]) -> None:
        self._text = text
        # Where the names and indexes begin that need not be there; those that were read are taken out.
        self.optional = optional

    def node(self, tree: Any, depth: int) -> Node:
        tree = _without_chain(tree)
        if depth > MAX_DEPTH:
            raise self._error(tree, f"nests deeper than {MAX_DEPTH} levels")
        rule: str = tree.data
        if rule == "literal":
            return self._literal(tree.children[0])
        if rule in _LOGIC:
            return self._logic(tree, depth)
        if rule in ("relation", "addition", "multiplication"):
            left, right = tree.children
            return Call(_BINARY[left.data], self._all((left.children[0], right), depth), None, _place(tree))
        if rule == "expr":
            return Call("_?_:_", self._all(tree.children, depth), None, _place(tree))
        if rule == "unary":
            operator = "!_" if tree.children[0].data == "unary_not" else "-_"
            return Call(operator, self._all(tree.children[1:], depth), None, _place(tree))
        return self._member(tree, depth)

    def _member(self, tree: Tree[Token], depth: int) -> Node:
        place, children = _place(tree), tree.children
        match str(tree.data):
            case "ident" | "dot_ident":
                return Ident(str(children[0]), place)
            case "ident_arg" | "dot_ident_arg":
                return Call(str(children[0]), self._listed(children[1:], depth), None, place)
            case "member_dot":
                operand = self.node(children[0], depth + 1)
                return Select(operand, str(children[1]), place, self._is_optional(_start(children[1])))
            case "member_dot_arg":
                target = self.node(children[0], depth + 1)
                return Call(str(children[1]), self._listed(children[2:], depth), target, place)
            case "member_index":
                is_optional = self._is_optional(_start(children[1]))
                return Call("_[?_]" if is_optional else "_[_]", self._all(children, depth), None, place)
            case "list_lit":
                return ListOf(self._listed(children, depth), place)
            case "map_lit":
                flat = self._listed(children, depth)
                return MapOf(tuple(zip(flat[::2], flat[1::2], strict=True)), place)
        raise self._error(tree, "is not known here")

    def _logic(self, tree: Tree[Token], depth: int) -> Node:
        """A chain of || or of &&, which grows to the left: read without nesting."""
        function = _LOGIC[str(tree.data)]
        parts = []
        while tree.data in _LOGIC and _LOGIC[tree.data] == function and len(tree.children) == 2:
            rest, last = tree.children
            parts.append(self.node(last, depth + 1))
            tree = _below(rest, str(tree.data))
        parts.append(self.node(tree, depth + 1))
        return Call(function, tuple(reversed(parts)), None, _place(tree))

    def _is_optional(self, position: int | None) -> bool:
        if position not in self.optional:
            return False
        self.optional.discard(position)
        return True

    def _all(self, trees: Any, depth: int) -> tuple[Node, ...]:
        return tuple(self.node(tree, depth + 1) for tree in trees)

    def _listed(self, rest: Any, depth: int) -> tuple[Node, ...]:
        return self._all(rest[0].children, depth) if rest else ()

    def _literal(self, token: Token) -> Literal:
        place = Place(token.line or 1, token.column or 1)
        try:
            return Literal(_value(token.type, str(token)), place)
        except ValueError as error:
            raise CompileError(error_text(self._text, place, str(error))) from None

    def _error(self, tree: Tree[Token], problem: str) -> CompileError:
        return CompileError(error_text(self._text, _place(tree), problem))


def _without_chain(tree: Any) -> Any:
    """The first rule below that says something: levels of precedence with a single part do not."""
    while len(tree.children) == 1 and tree.data in _TRANSPARENT:
        tree = tree.children[0]
    return tree


_TRANSPARENT = frozenset(
    (
        *("expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication"),
        *("unary", "member", "primary", "paren_expr"),
    )
)


def _below(tree: Any, rule: str) -> Any:
    """The next link of a chain of ``rule``, or what the chain begins with."""
    while len(tree.children) == 1 and tree.data in _TRANSPARENT and tree.data != "paren_expr":
        tree = tree.children[0]
    return tree


def _place(tree: Any) -> Place:
    return Place() if tree.meta.empty else Place(tree.meta.line, tree.meta.column)


def _start(part: Any) -> int | None:
    """Where a part of the text begins: a name, or an expression."""
    found: int | None = part.meta.start_pos if hasattr(part, "meta") else part.start_pos
    return found


def _value(kind: str, text: str) -> Value:
    """The value of a literal. Raises ValueError."""
    if kind == "BOOL_LIT":
        return text == "true"
    if kind == "NULL_LIT":
        return None
    if kind == "FLOAT_LIT":
        return float(text)
    if kind == "UINT_LIT":
        unsigned = int(text[:-1], 0) if "x" in text else int(text[:-1])
        if not 0 <= unsigned <= MAX_UINT:
            raise ValueError("invalid uint literal")
        return UInt(unsigned)
    if kind == "INT_LIT":
        signed = int(text, 0) if "x" in text else int(text)
        if not MIN_INT <= signed <= MAX_INT:
            raise ValueError("invalid int literal")
        return signed
    return unquoted(text)
