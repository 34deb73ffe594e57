"""The parser from an expression's text to its syntax tree.

cel-python's parser parses the text; its tree is converted into the few node types that the compiler needs. Its
evaluator is not used: it does not count costs, and its error messages differ.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.api.cel import MAX_LENGTH
from podium.api.cel.values import MAX_INT, MAX_UINT, MIN_INT, CompileError, UInt, Value

if TYPE_CHECKING:
    from lark import Token, Tree

MAX_DEPTH = 100
"""The maximum nesting of expressions; cel-go allows 250."""


class TextPosition(NamedTuple):
    """A position in the text; line and column count from 1."""

    line: int = 1
    column: int = 1


class Literal(NamedTuple):
    """A literal value."""

    value: Value
    place: TextPosition


class Ident(NamedTuple):
    """A variable."""

    name: str
    place: TextPosition


class Select(NamedTuple):
    """A field of a value; one that ``is_optional`` may be absent (`value.?field`)."""

    operand: Node
    field: str
    place: TextPosition
    is_optional: bool


class Call(NamedTuple):
    """A call of a function, a method (with ``target``), or an operator under cel-go's name.

    `[]` makes a list of its arguments, and `{}` a map, of which they are keys and values in turn.
    """

    function: str
    args: tuple[Node, ...]
    target: Node | None
    place: TextPosition


Node = Literal | Ident | Select | Call

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
    """Return the tree of an expression. Raises CompileError."""
    if len(text) > MAX_LENGTH:
        raise CompileError(f"too long: {len(text)} characters; at most {MAX_LENGTH} are taken")
    # Imported with the first expression: most inputs have none.
    from celpy.celparser import CELParseError, CELParser  # noqa: PLC0415

    # The parser does not know the markers of optional access (`.?`, `[?`), so spaces replace them.
    optional: set[int] = set()
    plain = list(text)
    for match in _TOKEN.finditer(text):
        if match["mark"] is not None:
            plain[match.end("mark") - 1] = " "
            optional.add(match.end())
    try:
        tree = CELParser().parse("".join(plain))
    except CELParseError as error:
        raise CompileError(error_text(text, TextPosition(error.line or 1, error.column or 1), "Syntax error")) from None
    reader = _Reader(text, optional)
    found = reader.node(tree, 0)
    if reader.optional:
        raise CompileError(error_text(text, TextPosition(), "optional entries of lists and maps are not known here"))
    return found


def error_text(text: str, place: TextPosition, problem: str) -> str:
    """Return a problem in cel-go's format: with the line, and a caret below it."""
    lines = text.splitlines() or [""]
    line = lines[min(place.line, len(lines)) - 1]
    mark = "." * (place.column - 1)
    return f"ERROR: <input>:{place.line}:{place.column}: {problem}\n | {line}\n | {mark}^"


class _Reader:
    """A converter of the parser's tree, which has a level for each precedence, into nodes."""

    def __init__(self, text: str, optional: set[int]) -> None:
        self._text = text
        # The start positions of optional names and indexes; those that were read are removed.
        self.optional = optional

    def node(self, tree: Any, depth: int) -> Node:
        # Precedence levels with a single part are skipped.
        while len(tree.children) == 1 and tree.data in _TRANSPARENT:
            tree = tree.children[0]
        if depth > MAX_DEPTH:
            raise self._error(tree, f"nests deeper than {MAX_DEPTH} levels")
        rule: str = tree.data
        if rule == "literal":
            return self._literal(tree.children[0])
        if rule in _LOGIC:
            # The chain is left-recursive, and read without recursion.
            function = _LOGIC[rule]
            parts = []
            while tree.data in _LOGIC and _LOGIC[tree.data] == function and len(tree.children) == 2:
                rest, last = tree.children
                parts.append(self.node(last, depth + 1))
                # The next link of the chain, or its first element.
                while len(rest.children) == 1 and rest.data in _TRANSPARENT and rest.data != "paren_expr":
                    rest = rest.children[0]
                tree = rest
            parts.append(self.node(tree, depth + 1))
            return Call(function, tuple(reversed(parts)), None, _place(tree))
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
                return Call("[]", self._listed(children, depth), None, place)
            case "member_object":
                return self._object(tree, depth)
            case "map_lit":
                return Call("{}", self._listed(children, depth), None, place)
        raise self._error(tree, "is not known here")

    def _object(self, tree: Tree[Token], depth: int) -> Node:
        """Return an object of a mutation (`Object.spec{...}`, `JSONPatch{...}`) as a map."""
        root: Any = tree.children[0]
        rest: Any = tree.children[1:]
        while hasattr(root, "children"):
            root = root.children[0]
        if str(root) not in ("Object", "JSONPatch"):
            raise self._error(tree, f"undeclared reference to '{root}' (in container '')")
        entries = rest[0].children if rest else []
        names = [Literal(str(name), _place(tree)) for name in entries[::2]]
        values = self._all(entries[1::2], depth)
        return Call("{}", tuple(chain.from_iterable(zip(names, values, strict=True))), None, _place(tree))

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
        place = TextPosition(token.line or 1, token.column or 1)
        try:
            return Literal(_value(token.type, str(token)), place)
        except ValueError as error:
            raise CompileError(error_text(self._text, place, str(error))) from None

    def _error(self, tree: Tree[Token], problem: str) -> CompileError:
        return CompileError(error_text(self._text, _place(tree), problem))


_TRANSPARENT = frozenset(
    "expr conditionalor conditionaland relation addition multiplication unary member primary paren_expr".split()
)


def _place(tree: Any) -> TextPosition:
    return TextPosition() if tree.meta.empty else TextPosition(tree.meta.line, tree.meta.column)


def _start(part: Any) -> int | None:
    """Return the start position of a name or an expression."""
    found: int | None = part.meta.start_pos if hasattr(part, "meta") else part.start_pos
    return found


def _value(kind: str, text: str) -> Value:
    """Return the value of a literal. Raises ValueError."""
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


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEPT = frozenset("\\\"'`?")


def unquoted(text: str) -> str | bytes:
    """Return the string or bytes of a literal. Raises ValueError."""
    prefix = ""
    while text[0] in "rRbB":
        prefix, text = prefix + text[0].lower(), text[1:]
    quote = text[:3] if text[:3] in ('"""', "'''") and len(text) >= 6 else text[0]
    body = text[len(quote) : -len(quote)]
    is_bytes = "b" in prefix
    if "r" in prefix:
        return body.encode() if is_bytes else body
    if not is_bytes:
        return _ESCAPE.sub(_unescaped, body)
    found = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        found += body[position : match.start()].encode()
        # \x41 and \101 are single bytes in a bytes literal.
        octet = match[1] or match[4]
        found += bytes([int(octet, 16 if match[1] else 8)]) if octet else _unescaped(match).encode()
        position = match.end()
    return bytes(found + body[position:].encode())


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(int(code, 16))
    if match[4]:
        return chr(int(match[4], 8))
    if match[5] in _KEPT:
        return match[5]
    if match[5] not in _PLAIN:
        raise ValueError(f"unknown escape \\{match[5]}")
    return _PLAIN[match[5]]


_TOKEN = re.compile(
    r'''(?P<text>[bB]?[rR]?(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))'''
    r"|//[^\n]*|(?P<mark>[.\[]\s*\?)\s*"
)
