"""Evaluation helpers of macros: nested scopes and short-circuit logic.

Source: cel-go interpreter (evalOr, evalAnd, evalFold).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.cel.compiler import Compiler, CostExceededError, Evaluate, Variables
from podium.api.cel.syntax import Ident, Node
from podium.api.cel.values import EvaluationError, Value


def truth(value: Value) -> bool:
    """Return a boolean value. Raises EvaluationError for any other type."""
    if not isinstance(value, bool):
        raise EvaluationError("no such overload")
    return value


def decided(scope: Variables, parts: Iterable[Evaluate], decisive: bool) -> bool:
    """Return whether some part has the decisive value; if so, errors in other parts are ignored."""
    failed: EvaluationError | None = None
    for part in parts:
        try:
            if truth(part(scope)) is decisive:
                return decisive
        except CostExceededError:
            raise
        except EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not decisive


def variable_name(compiler: Compiler, node: Node) -> str:
    """Return the name of a variable that a macro declares. Raises CompileError."""
    if not isinstance(node, Ident):
        raise compiler.error(node, "argument must be a simple name")
    return node.name


def with_variables(scope: Variables, variables: dict[str, Value], body: Evaluate) -> Value:
    """Return the value of a part of an expression with additional variables."""
    before = scope.variables
    scope.variables = before | variables
    try:
        return body(scope)
    finally:
        scope.variables = before
