"""The optional solver."""

from __future__ import annotations

import pytest

from tests.exact.highs import Highs
from tests.exact.optimal import LinearProgram


def test_a_program_is_solved_to_its_end_with_a_bound_that_is_its_cost() -> None:
    program = LinearProgram(offset=1.0)
    chosen = [program.count(1, -value) for value in (4.0, 3.0, 2.0)]
    rest = program.amount(10.0)
    program.row(dict(zip(chosen, (3.0, 2.0, 2.0), strict=True)) | {rest: -1.0}, 4.0)

    solution = Highs().solve(program)

    assert [round(solution.values[number]) for number in chosen] == [0, 1, 1]
    assert solution.cost == pytest.approx(-4.0)
    assert solution.bound == pytest.approx(-4.0)
    assert solution.is_proven


def test_a_program_without_a_solution_is_the_callers_mistake() -> None:
    program = LinearProgram()
    program.row({program.count(1): 1.0}, -1.0)

    with pytest.raises(RuntimeError, match="no solution: Infeasible"):
        Highs().solve(program)
