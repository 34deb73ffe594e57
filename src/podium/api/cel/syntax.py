"""The parser from an expression's text to its syntax tree.

Source: cel-go (parser/gen/CEL.g4, parser/parser.go), whose nodes have the same places in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from podium.api.cel import MAX_LENGTH
from podium.api.cel.values import MAX_INT, MAX_UINT, MIN_INT, CompileError, UInt, Value

MAX_DEPTH = 100
"""The maximum nesting of expressions; cel-go allows 250."""


class Literal(NamedTuple):
    """A literal value. The ``place`` of a node is its position in the text."""

    value: Value
    place: int


class Ident(NamedTuple):
    """A variable."""

    name: str
    place: int


class Select(NamedTuple):
    """A field of a value; one that ``is_optional`` may be absent (`value.?field`)."""

    operand: Node
    field: str
    place: int
    is_optional: bool


class Call(NamedTuple):
    """A call of a function, a method (with ``target``), or an operator under cel-go's name.

    `[]` makes a list of its arguments, and `{}` a map, of which they are keys and values in turn. `?` marks an optional
    item or value, which is left out if it is not there.
    """

    function: str
    args: tuple[Node, ...]
    target: Node | None
    place: int


Node = Literal | Ident | Select | Call

_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)"
    r"|(?P<float>(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU])?)"
    r'''|(?P<text>[bB]?[rR](?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\r\n]*"|'[^'\r\n]*')'''
    r'''|[bB]?(?:"""(?:\\[\s\S]|[^\\])*?"""|\'\'\'(?:\\[\s\S]|[^\\])*?\'\'\'|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'))'''
    r"|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)"
    r"|(?P<mark>&&|\|\||[<>=!]=|[-+*/%<>!?:.,(){}\[\]])"
)
# The binary operators by precedence; those of the first two levels form chains.
_LEVELS = {"||": 1, "&&": 2, **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3), "+": 4, "-": 4}
_LEVELS |= dict.fromkeys("*/%", 5)
_CHAINS = 2
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    "as break const continue else for function if import in let loop package namespace return var void while".split()
)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def parse(text: str) -> Node:
    """Return the tree of an expression. Raises CompileError."""
    if len(text) > MAX_LENGTH:
        raise CompileError(f"too long: {len(text)} characters; at most {MAX_LENGTH} are allowed")
    parser = _Parser(text)
    found = parser.expression(0)
    parser.take("<EOF>")
    return found


def error_text(text: str, place: int, problem: str) -> str:
    """Return a problem in cel-go's format: with the line, and a caret below it."""
    start = text.rfind("\n", 0, place) + 1
    line = text[start:].partition("\n")[0]
    number, column = text.count("\n", 0, place) + 1, place - start
    return f"ERROR: <input>:{number}:{column + 1}: {problem}\n | {line}\n | {'.' * column}^"


class _Parser:
    """A parser by recursive descent of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[_Token] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(position, f"Syntax error: token recognition error at: '{text[position]}'")
            kind = "int" if match.lastgroup == "unsigned" else str(match.lastgroup)
            if kind != "space":
                self._tokens.append(_Token(kind, match[0], position))
            position = match.end()
        self._tokens.append(_Token("mark", "<EOF>", position))
        self._next = 0

    def expression(self, depth: int) -> Node:
        """Return the expression that begins here. Raises CompileError."""
        found = self._binary(1, depth)
        if self._token.text != "?":
            return found
        place = self.take("?")
        chosen = self._binary(1, depth + 1)
        self.take(":")
        return Call("_?_:_", (found, chosen, self.expression(depth + 1)), None, place)

    def take(self, mark: str) -> int:
        """Go beyond a mark, and return its place. Raises CompileError for any other token."""
        token = self._token
        if token.text != mark:
            raise self._error(token.place, f"Syntax error: mismatched input '{token.text}' expecting '{mark}'")
        self._next += 1
        return token.place

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _has(self, mark: str) -> bool:
        """Go beyond the mark if it is next, and return whether it was."""
        found = self._tokens[self._next].text == mark
        self._next += found
        return found

    def _binary(self, least: int, depth: int) -> Node:
        """Return an expression of operators that bind as tightly as a level."""
        self._check_depth(depth)
        found = self._unary(depth)
        while (level := _LEVELS.get(self._token.text, 0)) >= least:
            operator, place = self._token.text, self._token.place
            function = "@in" if operator == "in" else f"_{operator}_"
            parts = [found]
            while self._has(operator):
                parts.append(self._binary(level + 1, depth + 1))
                if level > _CHAINS:
                    break
            found, depth = Call(function, tuple(parts), None, place), depth + (level > _CHAINS)
            self._check_depth(depth)
        return found

    def _unary(self, depth: int) -> Node:
        token = self._token
        if token.text not in ("!", "-"):
            return self._member(depth)
        count = 0
        while self._has(token.text):
            count += 1
        if token.text == "-" and count == 1 and self._token.kind in ("int", "float"):
            number = self._tokens[self._next]
            self._tokens[self._next] = number._replace(text=f"-{number.text}", place=token.place)
            return self._member(depth)
        found = self._member(depth)
        return Call(f"{token.text}_", (found,), None, token.place) if count % 2 else found

    def _member(self, depth: int) -> Node:
        found = self._primary(depth)
        while self._token.text in (".", "[", "{"):
            place, mark = self._token.place, self._token.text
            if mark == "{" and not isinstance(found, Ident | Select):
                break
            self._next += 1
            depth += 1
            self._check_depth(depth)
            if mark == "{":
                found = self._object(found, place, depth)
                continue
            is_optional = self._has("?")
            if mark == "[":
                found = Call("_[?_]" if is_optional else "_[_]", (found, self.expression(depth)), None, place)
                self.take("]")
                continue
            name, called = self._name(), self._token.place
            if not is_optional and self._has("("):
                found = Call(name, self._listed(")", depth), found, called)
            else:
                found = Select(found, name, place, is_optional)
        return found

    def _primary(self, depth: int) -> Node:
        kind, text, place = self._token
        self._next += 1
        if kind in _LITERALS:
            try:
                return Literal(_LITERALS[kind](text), place)
            except ValueError as error:
                raise self._error(place, str(error)) from None
        if kind == "name" and text in _WORDS:
            return Literal(_WORDS[text], place)
        if kind == "name" or text == ".":
            name, called = text if kind == "name" else self._name(), self._token.place
            if name in _RESERVED:
                raise self._error(place, f"reserved identifier: {name}")
            return Call(name, self._listed(")", depth), None, called) if self._has("(") else Ident(name, place)
        if text == "(":
            found = self.expression(depth + 1)
            self.take(")")
            return found
        if text == "[":
            return Call("[]", self._listed("]", depth), None, place)
        if text == "{":
            return Call("{}", self._listed("}", depth, lambda: self.expression(depth + 1)), None, place)
        raise self._error(place, f"Syntax error: mismatched input '{text}'")

    def _object(self, type_: Node, place: int, depth: int) -> Node:
        """Return an object of a mutation (`Object.spec{...}`, `JSONPatch{...}`) as a map."""
        root = type_
        while isinstance(root, Select):
            root = root.operand
        if not isinstance(root, Ident) or root.name not in ("Object", "JSONPatch"):
            raise self._error(
                root.place, f"undeclared reference to '{self._text[type_.place : place]}' (in container '')"
            )
        return Call("{}", self._listed("}", depth, lambda: Literal(self._name(), place)), None, place)

    def _listed(self, end: str, depth: int, key: Callable[[], Node] | None = None) -> tuple[Node, ...]:
        """Return the expressions, or keys and values, up to a bracket; a comma may be last, except in arguments."""
        found: list[Node] = []
        while not self._has(end):
            is_optional = end != ")" and self._has("?")
            if key is not None:
                found.append(key())
                self.take(":")
            value = self.expression(depth + 1)
            found.append(Call("?", (value,), None, value.place) if is_optional else value)
            if not self._has(","):
                self.take(end)
                break
            if end == ")" and self._token.text == end:
                raise self._error(self._token.place, f"Syntax error: extraneous input '{end}'")
        return tuple(found)

    def _name(self) -> str:
        kind, text, place = self._token
        if kind != "name" or text in _WORDS or text == "in":
            raise self._error(place, f"Syntax error: no viable alternative at input '.{text}'")
        self._next += 1
        return text

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._error(self._token.place, f"nests deeper than {MAX_DEPTH} levels")

    def _error(self, place: int, problem: str) -> CompileError:
        return CompileError(error_text(self._text, place, problem))


def _integer(text: str) -> Value:
    """Return the value of an integer literal. Raises ValueError."""
    is_unsigned, digits = text[-1] in "uU", text.rstrip("uU")
    value = int(digits, 16 if "x" in digits else 10)
    if is_unsigned and not 0 <= value <= MAX_UINT:
        raise ValueError("invalid uint literal")
    if not is_unsigned and not MIN_INT <= value <= MAX_INT:
        raise ValueError("invalid int literal")
    return UInt(value) if is_unsigned else value


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_PLAIN = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))


def unquoted(text: str) -> str | bytes:
    """Return the string or bytes of a literal. Raises ValueError."""
    prefix = ""
    while text[0] in "rRbB":
        prefix, text = prefix + text[0].lower(), text[1:]
    quote = text[:3] if text[:3] in ('"""', "'''") and len(text) >= 6 else text[0]
    body = text[len(quote) : -len(quote)]
    is_bytes = "b" in prefix
    if "r" not in prefix:
        body = _ESCAPE.sub(_unescaped_octet if is_bytes else _unescaped, body)
    return body.encode(errors="surrogateescape") if is_bytes else body


def _unescaped_octet(match: re.Match[str]) -> str:
    r"""Return what stands for an escape in a bytes literal, in which \x41 and \101 are single bytes."""
    octet = match[1] or match[4]
    return bytes([int(octet, 16 if match[1] else 8)]).decode(errors="surrogateescape") if octet else _unescaped(match)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(int(code, 16))
    if match[4]:
        return chr(int(match[4], 8))
    if match[5] not in _PLAIN:
        raise ValueError(f"unknown escape \\{match[5]}")
    return _PLAIN[match[5]]


_LITERALS: dict[str, Callable[[str], Value]] = {"float": float, "int": _integer, "text": unquoted}
