"""The solver of the exact plans, HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.exact import optimal


class Highs:
    """Solves programs by HiGHS, on one thread, so that the same program has the same solution.

    ``most_nodes`` limits the examined branches of one program; beyond it, the solution is the best one found, with a
    bound for the optimal one.
    """

    def __init__(self, most_nodes: int = 100_000) -> None:
        self._highspy: Any = pytest.importorskip("highspy", reason="the optional solver is not installed")
        self._most_nodes = most_nodes

    def solve(self, program: optimal.LinearProgram) -> optimal.Solution:
        """Return the best solution, or the best within the limit. Raises RuntimeError if the program has none."""
        if not program.costs:
            return optimal.Solution((), program.offset, program.offset, is_proven=True)
        solver = self._highspy.Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "random_seed": 0,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 1e-7,
            "mip_max_nodes": self._most_nodes,
        }
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.passModel(self._model(program))
        solver.run()
        info, values = solver.getInfo(), solver.getSolution().col_value
        if info.primal_solution_status != self._highspy.SolutionStatus.kSolutionStatusFeasible:
            raise RuntimeError(f"HiGHS found no solution: {solver.modelStatusToString(solver.getModelStatus())}")
        is_proven = solver.getModelStatus() == self._highspy.HighsModelStatus.kOptimal
        cost = float(info.objective_function_value)
        bound = float(info.mip_dual_bound) if program.integers else cost
        return optimal.Solution(tuple(map(float, values)), cost, bound, is_proven)

    def _model(self, program: optimal.LinearProgram) -> Any:
        highspy, infinity = self._highspy, self._highspy.kHighsInf
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(program.costs), len(program.starts)
        model.offset_ = program.offset
        model.col_cost_ = np.array(program.costs, dtype=np.float64)
        model.col_lower_ = np.zeros(len(program.costs))
        model.col_upper_ = np.minimum(np.array(program.uppers, dtype=np.float64), infinity)
        model.row_lower_ = np.maximum(np.array(program.row_lowers, dtype=np.float64), -infinity)
        model.row_upper_ = np.minimum(np.array(program.row_uppers, dtype=np.float64), infinity)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([*program.starts, len(program.columns)], dtype=np.int32)
        model.a_matrix_.index_ = np.array(program.columns, dtype=np.int32)
        model.a_matrix_.value_ = np.array(program.values, dtype=np.float64)
        kinds = [highspy.HighsVarType.kContinuous] * len(program.costs)
        for number in program.integers:
            kinds[number] = highspy.HighsVarType.kInteger
        model.integrality_ = kinds
        return model
