"""Two-variable comprehensions: index and item of a list, key and value of a map.

Source: cel-go ext/comprehensions.go (TwoVarComprehensions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from podium.api.cel.compiler import Compiled, Compiler, Declaration, Evaluate, Variables
from podium.api.cel.overloads import DYN
from podium.api.cel.scopes import decided, truth, variable_name, with_variables
from podium.api.cel.syntax import Call
from podium.api.cel.values import EvaluationError, Value, equal

PairLoop = Callable[[Compiler, Call], Compiled]
_Pair = tuple[Value, Value]
# A function that combines the pairs, with functions that evaluate the parts for one pair.
_Finish = Callable[[Variables, Iterable[_Pair], list[Callable[[_Pair], Value]]], Value]
_ITEM = Declaration(DYN)


def pair_loop_of(call: Call) -> PairLoop | None:
    """Return the comprehension for a call, or None."""
    return _LOOPS.get((call.function, len(call.args)))


def _pairs(value: Value) -> Iterable[_Pair]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, tuple):
        return enumerate(value)
    raise EvaluationError("no such overload")


def _loop(finish: _Finish, gives: str, *, steps: int) -> PairLoop:
    def compile_loop(compiler: Compiler, call: Call) -> Compiled:
        if call.target is None:
            raise AssertionError("a loop without anything to go over")
        some = compiler.compile(call.target)
        if some.type not in ("list", "map", DYN):
            problem = f"expression of type '{some.type}' cannot be range of a comprehension"
            raise compiler.error(call, f"{problem} (must be list, map, or dynamic)")
        first, second = (variable_name(compiler, arg) for arg in call.args[:2])
        bodies = [compiler.within_both(first, second, _ITEM, arg).evaluate for arg in call.args[2:]]

        def evaluate(scope: Variables) -> Value:
            def part(body: Evaluate) -> Callable[[_Pair], Value]:
                def evaluated(pair: _Pair) -> Value:
                    scope.spend(steps)
                    return with_variables(scope, {first: pair[0], second: pair[1]}, body)

                return evaluated

            return finish(scope, _pairs(some.evaluate(scope)), [part(body) for body in bodies])

        return Compiled(gives, evaluate)

    return compile_loop


def _quantifier(decisive: bool) -> PairLoop:
    def finish(scope: Variables, pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Value:
        def of(pair: _Pair) -> Evaluate:
            return lambda _: parts[0](pair)

        return decided(scope, map(of, pairs), decisive)

    return _loop(finish, "bool", steps=3)


def _exactly_one(_: Variables, pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Value:
    return sum(truth(parts[0](pair)) for pair in pairs) == 1


def _made(pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Iterator[tuple[_Pair, Value]]:
    """Yield the pairs for which the filter is true (if there is one), with the value of the last part."""
    for pair in pairs:
        if len(parts) == 1 or truth(parts[0](pair)):
            yield pair, parts[-1](pair)


def _list_of(_: Variables, pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Value:
    return tuple([made for _, made in _made(pairs, parts)])


def _map_of(_: Variables, pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Value:
    return {key: made for (key, _), made in _made(pairs, parts)}


def _map_of_entries(_: Variables, pairs: Iterable[_Pair], parts: list[Callable[[_Pair], Value]]) -> Value:
    found: dict[Value, Value] = {}
    for _pair, entry in _made(pairs, parts):
        if not isinstance(entry, dict):
            raise EvaluationError("no such overload")
        for key, value in entry.items():
            if any(equal(key, known) for known in found):
                raise EvaluationError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


_LOOPS: dict[tuple[str, int], PairLoop] = {
    ("all", 3): _quantifier(False),
    ("exists", 3): _quantifier(True),
    ("existsOne", 3): _loop(_exactly_one, "bool", steps=2),
    ("exists_one", 3): _loop(_exactly_one, "bool", steps=2),
    ("transformList", 3): _loop(_list_of, "list", steps=12),
    ("transformList", 4): _loop(_list_of, "list", steps=12),
    ("transformMap", 3): _loop(_map_of, "map", steps=12),
    ("transformMap", 4): _loop(_map_of, "map", steps=12),
    ("transformMapEntry", 3): _loop(_map_of_entries, "map", steps=12),
    ("transformMapEntry", 4): _loop(_map_of_entries, "map", steps=12),
}
