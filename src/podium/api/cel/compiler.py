"""The compiler from a syntax tree to a program of nested functions; names and types are checked once.

Types are known where the environment declares them; all others are dyn and checked at evaluation, as cel-go does for
values of type any. Evaluation stops at its cost limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from podium.api.cel import values
from podium.api.cel.functions import FUNCTIONS, METHODS
from podium.api.cel.syntax import Call, Ident, Literal, Node, Select, error_text, parse

_LIST_COST, _MAP_COST = 10, 30
_PLAIN_TYPES = ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
_TIMES = {name: values.TypeValue(f"google.protobuf.{name}") for name in ("Duration", "Timestamp")}
_TYPES = {name: values.TypeValue(name) for name in _PLAIN_TYPES} | {"google": {"protobuf": _TIMES}}


class Variables(Struct):
    """The variables of one evaluation, and its cost so far."""

    variables: dict[str, values.Value]
    limit: int
    cost: int = 0

    def spend(self, cost: int) -> None:
        """Add a cost. Raises EvaluationError beyond the limit."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceededError("operation cancelled: actual cost limit exceeded")


class CostExceededError(values.EvaluationError):
    """An error for an evaluation beyond its cost limit; logical operators do not absorb it."""


Evaluate = Callable[[Variables], values.Value]


class Compiled(Struct, frozen=True):
    """A compiled expression, or a part of one, with its type.

    `cost` and `size` bound the cost of its evaluation and the length of its value; `fields` and `items` are declared.
    """

    type: str
    evaluate: Evaluate
    cost: int = 1
    size: int = 1
    fields: Mapping[str, Declaration] | None = None
    items: Declaration | None = None

    def is_true(self, variables: Mapping[str, values.Value], cost_limit: int) -> bool:
        """Return the boolean value. Raises EvaluationError if it has none, or would cost more than the limit."""
        value = self.evaluate(Variables(dict(variables), cost_limit))
        if not isinstance(value, bool):
            raise values.EvaluationError(f"CEL result of type {values.type_name(value)} could not be converted to bool")
        return value


class Declaration(Struct, frozen=True):
    """A variable or a field.

    ``fields`` are those of an object, by name; ``items`` is the element type of a map or list. ``size`` is the maximum
    length of the value.
    """

    type: str
    fields: Mapping[str, Declaration] | None = None
    items: Declaration | None = None
    size: int = 1


_UNKNOWN = Declaration(values.DYN)
# The value of an optional item or entry that is not there.
_LEFT_OUT: values.Value = object()


class Compiler:
    """A compiler of one expression in an environment of declared variables."""

    def __init__(self, text: str, variables: Mapping[str, Declaration]) -> None:
        self._text = text
        self._declared: dict[str, Declaration] = dict(variables)

    def compile(self, node: Node) -> Compiled:
        """Return the program of a node. Raises CompileError."""
        match node:
            case Literal():
                value = node.value
                return Compiled(values.type_name(value), lambda scope: value, 0, values.size_of(value))
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)

    def of_type(self, node: Node, type_: str) -> Compiled:
        """Return the program of a node whose value may have a type. Raises CompileError for any other node."""
        compiled = self.compile(node)
        if compiled.type not in (type_, values.DYN):
            raise self.error(node, f"expected type '{type_}' but found '{compiled.type}'")
        return compiled

    def error(self, node: Node, problem: str) -> values.CompileError:
        return values.CompileError(error_text(self._text, node.place, problem))

    def within(self, names: Sequence[str], declaration: Declaration, body: Node) -> Compiled:
        """Return a compiled part with more variables. Raises CompileError if their names are equal."""
        if len({*names}) < len(names):
            raise self.error(body, f"the variables of a loop must differ: {names[0]} is used twice")
        before = self._declared
        self._declared = before | dict.fromkeys(names, declaration)
        try:
            return self.compile(body)
        finally:
            self._declared = before

    def _ident(self, node: Ident) -> Compiled:
        declaration = self._declared.get(node.name)
        if declaration is None and node.name in _TYPES:
            return self.compile(Literal(_TYPES[node.name], node.place))
        if declaration is None:
            raise self.error(node, f"undeclared reference to '{node.name}' (in container '')")
        name = node.name

        def evaluate(scope: Variables) -> values.Value:
            scope.spend(1)
            return scope.variables[name]

        return Compiled(declaration.type, evaluate, 1, declaration.size, declaration.fields, declaration.items)

    def _select(self, node: Select) -> Compiled:
        operand = self.compile(node.operand)
        declared = operand.items or _UNKNOWN
        if operand.fields is not None:
            if node.field not in operand.fields:
                raise self.error(node, f"undefined field '{node.field}'")
            declared = operand.fields[node.field]
        elif operand.type not in (values.DYN, "map", "object", values.OPTIONAL):
            raise self.error(node, f"type '{operand.type}' does not support field selection")
        evaluate, field, look = operand.evaluate, node.field, optional_entry if node.is_optional else required_entry

        def select(scope: Variables) -> values.Value:
            value = evaluate(scope)
            scope.spend(1)
            return look(value, field)

        type_ = values.OPTIONAL if node.is_optional else declared.type
        return Compiled(type_, select, operand.cost + 1, declared.size, declared.fields, declared.items)

    def _list(self, node: Call) -> Compiled:
        parts = [self.compile(item) for item in node.args]
        items = [part.evaluate for part in parts]

        def build(scope: Variables) -> values.Value:
            scope.spend(_LIST_COST)
            return tuple([found for item in items if (found := item(scope)) is not _LEFT_OUT])

        return Compiled("list", build, sum(part.cost for part in parts) + _LIST_COST, len(parts))

    def _map(self, node: Call) -> Compiled:
        parts = [self.compile(part).evaluate for part in node.args]

        def build(scope: Variables) -> values.Value:
            found: dict[values.Value, values.Value] = {}
            for key, value in zip(parts[::2], parts[1::2], strict=True):
                name = key(scope)
                if values.type_name(name) not in ("string", "int", "uint", "bool"):
                    raise values.EvaluationError(f"unsupported key type: {values.type_name(name)}")
                if any(values.equal(name, member) for member in found):
                    raise values.EvaluationError(f"Failed with repeated key: {name}")
                if (entry := value(scope)) is not _LEFT_OUT:
                    found[name] = entry
            scope.spend(_MAP_COST)
            return found

        return Compiled("map", build)

    def _optional(self, node: Call) -> Compiled:
        part = self.of_type(node.args[0], values.OPTIONAL)

        def evaluate(scope: Variables) -> values.Value:
            found = typed(part.evaluate(scope), values.Optional)
            return found.value if found.is_there else _LEFT_OUT

        return Compiled(values.DYN, evaluate, part.cost)

    def _call(self, node: Call) -> Compiled:
        # A module of its own compiles macros, and uses this one for their parts.
        from podium.api.cel.macros import macro_of  # noqa: PLC0415

        macro = macro_of(node)
        if macro is not None:
            return macro(self, node)
        parts = {"[]": self._list, "{}": self._map, "?": self._optional, "_[_]": self._index, "_[?_]": self._index}
        return parts.get(node.function, self._function)(node)

    def _index(self, node: Call) -> Compiled:
        operand, index = (self.compile(arg) for arg in node.args)
        function = FUNCTIONS["_[_]"]
        if operand.type not in (values.DYN, "map", "list", values.OPTIONAL):
            raise self.error(node, f"found no matching overload for '_[_]' applied to '({operand.type}, {index.type})'")
        of, at = operand.evaluate, index.evaluate

        def evaluate(scope: Variables) -> values.Value:
            value, key = of(scope), at(scope)
            scope.spend(1)
            if is_optional:
                return optional_entry(value, key)
            if isinstance(value, tuple):
                return function.of_values((value, key)).call(value, key)
            return required_entry(value, key)

        is_optional = node.function == "_[?_]"
        declared, cost = operand.items or _UNKNOWN, operand.cost + index.cost + 1
        type_ = values.OPTIONAL if is_optional else declared.type
        return Compiled(type_, evaluate, cost, declared.size, declared.fields, declared.items)

    def _function(self, node: Call) -> Compiled:
        function, parts = self._resolve_function(node)
        compiled = [self.compile(part) for part in parts]
        types = tuple("map" if argument.type == "object" else argument.type for argument in compiled)
        possible = [overload for overload in function.overloads if overload.accepts(types)]
        if not possible:
            applied = f"{types[0]}.({', '.join(types[1:])})" if node.target else f"({', '.join(types)})"
            raise self.error(node, f"found no matching overload for '{function.name}' applied to '{applied}'")
        gives = {overload.gives for overload in possible}
        arguments = [argument.evaluate for argument in compiled]
        # CEL's type of a value follows from its type in Python.
        known: dict[tuple[type, ...], values.Overload] = {}

        def evaluate(scope: Variables) -> values.Value:
            given = tuple([argument(scope) for argument in arguments])
            overload = known.get(tuple(map(type, given)))
            if overload is None:
                overload = known[tuple(map(type, given))] = function.of_values(given)
            scope.spend(overload.cost(*given))
            return overload.call(*given)

        sizes = [_Sized(part.size) for part in compiled]
        cost = sum(part.cost for part in compiled) + max(overload.cost(*sizes) for overload in possible)
        size = sum(part.size for part in compiled)
        return Compiled(gives.pop() if len(gives) == 1 else values.DYN, evaluate, cost, size)

    def _resolve_function(self, node: Call) -> tuple[values.Function, tuple[Node, ...]]:
        """Return the function that a call names, and its arguments."""
        target = node.target
        if isinstance(target, Ident) and target.name not in self._declared:
            named = FUNCTIONS.get(f"{target.name}.{node.function}")
            if named is not None:
                return named, node.args
        known = FUNCTIONS if target is None else METHODS
        if node.function not in known:
            raise self.error(node, f"undeclared reference to '{node.function}' (in container '')")
        return known[node.function], node.args if target is None else (target, *node.args)


class _Sized(str):
    """A text of a length, for functions of costs."""

    _size: int

    def __new__(cls, size: int) -> _Sized:
        made = super().__new__(cls)
        made._size = size
        return made

    def __len__(self) -> int:
        return self._size


def required_entry(value: values.Value, key: values.Value) -> values.Value:
    """Return the entry of a map; that of an optional map is optional. Raises EvaluationError."""
    if isinstance(value, values.Optional):
        return optional_entry(value, key)
    if isinstance(value, dict):
        try:
            return value[key]
        except (KeyError, TypeError):
            if isinstance(value, values.WithDefault):
                return {}
    raise values.EvaluationError(f"no such key: {key}")


def optional_entry(value: values.Value, key: values.Value) -> values.Optional:
    """Return the optional entry of a map or a list. Raises EvaluationError for values without entries."""
    if isinstance(value, values.Optional):
        return optional_entry(value.value, key) if value.is_there else values.NONE
    if isinstance(value, tuple) and values.is_number(key):
        return values.Optional(value[key]) if type(key) is int and 0 <= key < len(value) else values.NONE
    try:
        return values.Optional(value[key]) if key in typed(value, dict) else values.NONE
    except TypeError:
        return values.NONE


def typed(value: values.Value, kind: Any) -> Any:
    """Return a value of a type. Raises EvaluationError for any other type."""
    if not isinstance(value, kind):
        raise values.EvaluationError("no such overload")
    return value


def decided(items: Iterable[Any], part: Callable[[Any], values.Value], decisive: bool) -> bool:
    """Return whether the part has the decisive value for some item; if so, errors for other items are ignored."""
    failed: values.EvaluationError | None = None
    for item in items:
        try:
            if typed(part(item), bool) == decisive:
                return decisive
        except CostExceededError:
            raise
        except values.EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not decisive


def variable_name(compiler: Compiler, node: Node) -> str:
    """Return the name of a variable that a macro declares. Raises CompileError."""
    if not isinstance(node, Ident):
        raise compiler.error(node, "argument must be a simple name")
    return node.name


def with_variables(scope: Variables, variables: dict[str, values.Value], body: Evaluate) -> values.Value:
    """Return the value of a part of an expression with additional variables."""
    before = scope.variables
    scope.variables = before | variables
    try:
        return body(scope)
    finally:
        scope.variables = before


def compile_expression(text: str, variables: Mapping[str, Declaration]) -> Compiled:
    """Return a compiled boolean expression. Raises CompileError."""
    compiled = Compiler(text, variables).compile(parse(text))
    if compiled.type not in ("bool", values.DYN):
        raise values.CompileError(f"must evaluate to bool or the unknown type, not {compiled.type}")
    return compiled
