"""Compiled expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.cel.compiler import Compiled, Compiler, Declaration, Variables
from podium.api.cel.overloads import DYN
from podium.api.cel.syntax import parse
from podium.api.cel.values import CompileError, EvaluationError, Value, type_name


@dataclass(frozen=True, slots=True)
class Program:
    """A boolean expression."""

    text: str
    compiled: Compiled

    def is_true(self, variables: Mapping[str, Value], cost_limit: int) -> bool:
        """Return its value. Raises EvaluationError if it has none, or would cost more than the limit."""
        value = self.compiled.evaluate(Variables(dict(variables), cost_limit))
        if not isinstance(value, bool):
            raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")
        return value

    def cost(self, variables: Mapping[str, Value], cost_limit: int) -> int:
        """Return the cost of its evaluation. Raises EvaluationError as `is_true` does."""
        scope = Variables(dict(variables), cost_limit)
        self.compiled.evaluate(scope)
        return scope.cost


def compile_expression(text: str, variables: Mapping[str, Declaration]) -> Program:
    """Return the program of a boolean expression. Raises CompileError."""
    compiler = Compiler(text, variables)
    node = parse(text)
    compiled = compiler.compile(node)
    if compiled.type not in ("bool", DYN):
        raise CompileError(f"must evaluate to bool or the unknown type, not {compiled.type}")
    return Program(text, compiled)
