"""Macros: short-circuit logic, presence tests, and comprehensions.

Source: cel-go parser/macro.go and interpreter (evalOr, evalAnd, evalFold); ext/bindings.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.api.cel.compiler import Compiled, Compiler, Declaration, Evaluate, Variables
from podium.api.cel.overloads import DYN
from podium.api.cel.pair_loops import pair_loop_of
from podium.api.cel.scopes import decided, truth, variable_name, with_variables
from podium.api.cel.syntax import Call, Ident, Node, Select
from podium.api.cel.values import NONE, OPTIONAL, EvaluationError, Optional, Value, WithDefault

Macro = Callable[[Compiler, Call], Compiled]
_ITEM = Declaration(DYN)


def macro_of(call: Call) -> Macro | None:
    """Return the macro for a call, or None if it is an ordinary function call."""
    if call.target is None:
        return _ALONE.get((call.function, len(call.args))) or _LOGIC.get(call.function)
    if isinstance(call.target, Ident) and (call.target.name, call.function) == ("cel", "bind"):
        return _bind if len(call.args) == 3 else None
    return _LOOPS.get((call.function, len(call.args))) or pair_loop_of(call)


def _logic(decisive: bool) -> Macro:
    """Return the macro for || or &&: a part with the decisive value decides, regardless of errors in others."""

    def compile_logic(compiler: Compiler, call: Call) -> Compiled:
        parts = _booleans(compiler, call.args)

        def evaluate(scope: Variables) -> Value:
            return decided(scope, parts, decisive)

        return Compiled("bool", evaluate)

    return compile_logic


def _booleans(compiler: Compiler, nodes: Iterable[Node]) -> list[Evaluate]:
    found = []
    for node in nodes:
        compiled = compiler.compile(node)
        if compiled.type not in ("bool", DYN):
            raise compiler.error(node, f"expected type 'bool' but found '{compiled.type}'")
        found.append(compiled.evaluate)
    return found


def _choice(compiler: Compiler, call: Call) -> Compiled:
    (condition,) = _booleans(compiler, call.args[:1])
    yes, no = (compiler.compile(arg) for arg in call.args[1:])

    def evaluate(scope: Variables) -> Value:
        return (yes if truth(condition(scope)) else no).evaluate(scope)

    return Compiled(yes.type if yes.type == no.type else DYN, evaluate)


def _has(compiler: Compiler, call: Call) -> Compiled:
    (field,) = call.args
    if not isinstance(field, Select):
        raise compiler.error(call, "invalid argument to has() macro")
    compiler.compile(field)
    operand, name = compiler.compile(field.operand).evaluate, field.field

    def evaluate(scope: Variables) -> Value:
        value = operand(scope)
        value = value.value if isinstance(value, Optional) else value
        return isinstance(value, dict) and (name in value or isinstance(value, WithDefault))

    return Compiled("bool", evaluate)


def _bind(compiler: Compiler, call: Call) -> Compiled:
    name = variable_name(compiler, call.args[0])
    value = compiler.compile(call.args[1])
    body = compiler.within(name, compiler.declared(call.args[1]), call.args[2])

    def evaluate(scope: Variables) -> Value:
        return with_variables(scope, {name: value.evaluate(scope)}, body.evaluate)

    return Compiled(body.type, evaluate)


def _optional_map(*, wraps: bool) -> Macro:
    """Return the macro that maps an optional value, if present (`optMap`, `optFlatMap`)."""

    def compile_map(compiler: Compiler, call: Call) -> Compiled:
        if call.target is None:
            raise AssertionError("a method without a target")
        some, name = compiler.compile(call.target), variable_name(compiler, call.args[0])
        body = compiler.within(name, _ITEM, call.args[1]).evaluate

        def evaluate(scope: Variables) -> Value:
            value = some.evaluate(scope)
            if not isinstance(value, Optional):
                raise EvaluationError("no such overload")
            if not value.is_there:
                return NONE
            found = with_variables(scope, {name: value.value}, body)
            if wraps:
                return Optional(found)
            if not isinstance(found, Optional):
                raise EvaluationError("no such overload")
            return found

        return Compiled(OPTIONAL, evaluate)

    return compile_map


def _items(value: Value) -> Iterable[Value]:
    """Return the range of a comprehension: the items of a list, or the keys of a map."""
    if not isinstance(value, tuple | dict):
        raise EvaluationError("no such overload")
    return value


def _loop(
    finish: Callable[[Variables, Iterable[Value], Callable[[Value], list[Value]]], Value], gives: str, *, steps: int
) -> Macro:
    """Return a comprehension over a list or a map.

    ``finish`` receives the items, and a function that evaluates the parts for one of them.
    """

    def compile_loop(compiler: Compiler, call: Call) -> Compiled:
        if call.target is None:
            raise AssertionError("a loop without anything to go over")
        some, name = compiler.compile(call.target), variable_name(compiler, call.args[0])
        if some.type not in ("list", "map", DYN):
            problem = (
                f"expression of type '{some.type}' cannot be range of a comprehension (must be list, map, or dynamic)"
            )
            raise compiler.error(call, problem)
        bodies = [compiler.within(name, _ITEM, arg).evaluate for arg in call.args[1:]]

        def evaluate(scope: Variables) -> Value:
            def parts(item: Value) -> list[Value]:
                # The loop condition, and the accumulator.
                scope.spend(steps)
                return (
                    [with_variables(scope, {name: item}, bodies[0])]
                    if len(bodies) == 1
                    else _guarded(scope, name, item, bodies)
                )

            return finish(scope, _items(some.evaluate(scope)), parts)

        return Compiled(gives, evaluate)

    return compile_loop


def _guarded(scope: Variables, name: str, item: Value, bodies: list[Evaluate]) -> list[Value]:
    """Return the value of the second part if the first is true."""
    return (
        [with_variables(scope, {name: item}, bodies[1])]
        if truth(with_variables(scope, {name: item}, bodies[0]))
        else []
    )


def _quantifier(decisive: bool) -> Macro:
    def finish(scope: Variables, items: Iterable[Value], parts: Callable[[Value], list[Value]]) -> Value:
        def one(item: Value) -> Evaluate:
            return lambda _: parts(item)[0]

        return decided(scope, map(one, items), decisive)

    return _loop(finish, "bool", steps=3)


def _one(_: Variables, items: Iterable[Value], parts: Callable[[Value], list[Value]]) -> Value:
    return sum(truth(parts(item)[0]) for item in items) == 1


def _kept(_: Variables, items: Iterable[Value], parts: Callable[[Value], list[Value]]) -> Value:
    return tuple([item for item in items if truth(parts(item)[0])])


def _mapped(_: Variables, items: Iterable[Value], parts: Callable[[Value], list[Value]]) -> Value:
    return tuple([value for item in items for value in parts(item)])


_LOGIC: dict[str, Macro] = {"_||_": _logic(True), "_&&_": _logic(False), "_?_:_": _choice}
_ALONE: dict[tuple[str, int], Macro] = {("has", 1): _has}
_LOOPS: dict[tuple[str, int], Macro] = {
    ("all", 2): _quantifier(False),
    ("exists", 2): _quantifier(True),
    ("exists_one", 2): _loop(_one, "bool", steps=2),
    ("existsOne", 2): _loop(_one, "bool", steps=2),
    ("filter", 2): _loop(_kept, "list", steps=2),
    ("map", 2): _loop(_mapped, "list", steps=12),
    ("map", 3): _loop(_mapped, "list", steps=12),
    ("optFlatMap", 2): _optional_map(wraps=False),
    ("optMap", 2): _optional_map(wraps=True),
}
