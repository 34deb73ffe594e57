"""Macros: short-circuit logic, presence tests, and comprehensions.

Source: cel-go parser/macro.go and interpreter (evalOr, evalAnd, evalFold); ext/bindings.go, ext/comprehensions.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from podium.api.cel.compiler import (
    Compiled,
    Compiler,
    Declaration,
    Evaluate,
    Variables,
    decided,
    typed,
    variable_name,
    with_variables,
)
from podium.api.cel.syntax import Call, Ident, Select
from podium.api.cel.values import DYN, NONE, OPTIONAL, EvaluationError, Optional, Value, WithDefault, equal

Macro = Callable[[Compiler, Call], Compiled]
_ITEM = Declaration(DYN)


def macro_of(call: Call) -> Macro | None:
    """Return the macro for a call, or None if it is an ordinary function call."""
    if call.target is None:
        return _ALONE.get((call.function, len(call.args))) or _LOGIC.get(call.function)
    if isinstance(call.target, Ident) and (call.target.name, call.function) == ("cel", "bind"):
        return _bind if len(call.args) == 3 else None
    return _LOOPS.get((call.function, len(call.args)))


def _logic(decisive: bool) -> Macro:
    """Return the macro for || or &&: a part with the decisive value decides, regardless of errors in others."""

    def compile_logic(compiler: Compiler, call: Call) -> Compiled:
        compiled = [compiler.of_type(arg, "bool") for arg in call.args]
        parts = [part.evaluate for part in compiled]

        def evaluate(scope: Variables) -> Value:
            return decided(parts, lambda part: part(scope), decisive)

        return Compiled("bool", evaluate, sum(part.cost for part in compiled))

    return compile_logic


def _choice(compiler: Compiler, call: Call) -> Compiled:
    condition = compiler.of_type(call.args[0], "bool")
    yes, no = (compiler.compile(arg) for arg in call.args[1:])

    def evaluate(scope: Variables) -> Value:
        return (yes if typed(condition.evaluate(scope), bool) else no).evaluate(scope)

    cost = condition.cost + max(yes.cost, no.cost)
    return Compiled(yes.type if yes.type == no.type else DYN, evaluate, cost, max(yes.size, no.size))


def _has(compiler: Compiler, call: Call) -> Compiled:
    (field,) = call.args
    if not isinstance(field, Select):
        raise compiler.error(call, "invalid argument to has() macro")
    cost = compiler.compile(field).cost
    operand, name = compiler.compile(field.operand).evaluate, field.field

    def evaluate(scope: Variables) -> Value:
        value = operand(scope)
        value = value.value if isinstance(value, Optional) else value
        return isinstance(value, dict) and (name in value or isinstance(value, WithDefault))

    return Compiled("bool", evaluate, cost)


def _bind(compiler: Compiler, call: Call) -> Compiled:
    name = variable_name(compiler, call.args[0])
    value = compiler.compile(call.args[1])
    body = compiler.within([name], Declaration(value.type, value.fields, value.items, value.size), call.args[2])

    def evaluate(scope: Variables) -> Value:
        return with_variables(scope, {name: value.evaluate(scope)}, body.evaluate)

    return Compiled(body.type, evaluate, value.cost + body.cost, body.size)


def _optional_map(*, wraps: bool) -> Macro:
    """Return the macro that maps an optional value, if present (`optMap`, `optFlatMap`)."""

    def compile_map(compiler: Compiler, call: Call) -> Compiled:
        if call.target is None:
            raise AssertionError("a method without a target")
        some, name = compiler.compile(call.target), variable_name(compiler, call.args[0])
        compiled = compiler.within([name], _ITEM, call.args[1])
        body = compiled.evaluate

        def evaluate(scope: Variables) -> Value:
            value = typed(some.evaluate(scope), Optional)
            if not value.is_there:
                return NONE
            found = with_variables(scope, {name: value.value}, body)
            return Optional(found) if wraps else typed(found, Optional)

        return Compiled(OPTIONAL, evaluate, some.cost + compiled.cost, compiled.size)

    return compile_map


# A function that combines the items, with functions that evaluate the parts for one item.
_Part = Callable[[Any], Value]
_Finish = Callable[[Iterable[Any], list[_Part]], Value]


def _loop(finish: _Finish | None, gives: str, *, steps: int, has_pairs: bool = False, decisive: bool = False) -> Macro:
    """Return a comprehension over a list or a map; without ``finish``, the items until one has the decisive value.

    With one variable, it is an item of a list, or a key of a map; with two, they are index and item, or key and value.
    ``steps`` is the cost of an item: the loop condition, and the accumulator.
    """

    def compile_loop(compiler: Compiler, call: Call) -> Compiled:
        if call.target is None:
            raise AssertionError("a loop without anything to go over")
        some = compiler.compile(call.target)
        names = [variable_name(compiler, arg) for arg in call.args[: 1 + has_pairs]]
        name = names[0]
        if some.type not in ("list", "map", DYN):
            problem = f"expression of type '{some.type}' cannot be range of a comprehension"
            raise compiler.error(call, f"{problem} (must be list, map, or dynamic)")
        item = _ITEM if has_pairs or some.type != "list" else some.items or _ITEM
        compiled = [compiler.within(names, item, arg) for arg in call.args[len(names) :]]
        first, *rest = (part.evaluate for part in compiled)
        # With two variables, an item that a filter lets pass costs twice.
        bodies = [(first, steps), *((body, steps if has_pairs else 0) for body in rest)]

        def evaluate(scope: Variables) -> Value:
            def part(body: Evaluate, cost: int) -> _Part:
                def evaluated(item: Any) -> Value:
                    scope.spend(cost)
                    variables = {name: item[0], names[1]: item[1]} if has_pairs else {name: item}
                    return with_variables(scope, variables, body)

                return evaluated

            items = typed(some.evaluate(scope), dict | tuple)
            if has_pairs:
                items = items.items() if isinstance(items, dict) else enumerate(items)
            parts = [part(*body) for body in bodies]
            return decided(items, parts[0], decisive) if finish is None else finish(items, parts)

        cost = some.cost + some.size * (steps + sum(part.cost for part in compiled))
        return Compiled(gives, evaluate, cost, some.size)

    return compile_loop


def _made(items: Iterable[Any], parts: list[_Part]) -> Iterator[tuple[Any, Value]]:
    """Yield the items for which the filter is true (if there is one), with the value of the last part."""
    for item in items:
        if len(parts) == 1 or typed(parts[0](item), bool):
            yield item, parts[-1](item)


def _one(items: Iterable[Any], parts: list[_Part]) -> Value:
    return sum(typed(parts[0](item), bool) for item in items) == 1


def _list_of(items: Iterable[Any], parts: list[_Part]) -> Value:
    return tuple([made for _, made in _made(items, parts)])


def _map_of_entries(pairs: Iterable[Any], parts: list[_Part]) -> Value:
    found: dict[Value, Value] = {}
    for _, entry in _made(pairs, parts):
        for key, value in typed(entry, dict).items():
            if any(equal(key, known) for known in found):
                raise EvaluationError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


_LOGIC: dict[str, Macro] = {"_||_": _logic(True), "_&&_": _logic(False), "_?_:_": _choice}
_ALONE: dict[tuple[str, int], Macro] = {("has", 1): _has}
_LOOPS: dict[tuple[str, int], Macro] = {
    ("filter", 2): _loop(
        lambda items, parts: tuple([item for item in items if typed(parts[0](item), bool)]), "list", steps=2
    ),
    ("map", 2): _loop(_list_of, "list", steps=12),
    ("map", 3): _loop(_list_of, "list", steps=12),
    ("optFlatMap", 2): _optional_map(wraps=False),
    ("optMap", 2): _optional_map(wraps=True),
    **{
        (name, 2 + has_pairs): _loop(finish, "bool", steps=steps, has_pairs=has_pairs, decisive=name == "exists")
        for name, finish, steps in (
            ("all", None, 3),
            ("exists", None, 3),
            ("exists_one", _one, 2),
            ("existsOne", _one, 2),
        )
        for has_pairs in (False, True)
    },
    **{
        (name, arguments): _loop(finish, gives, steps=12, has_pairs=True)
        for name, finish, gives in (
            ("transformList", _list_of, "list"),
            ("transformMap", lambda pairs, parts: {key: made for (key, _), made in _made(pairs, parts)}, "map"),
            ("transformMapEntry", _map_of_entries, "map"),
        )
        for arguments in (3, 4)
    },
}
