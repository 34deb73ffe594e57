"""The comparison of a plan with the best placement within the same limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Name, Page, Part, counted
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling import optimal
from podium.decide.rescheduling.guards import BudgetRoom, PlanInputs
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.framework.rescheduling.linear_forms import LinearObjective
from podium.framework.rescheduling.policy import Picture, Policy
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings
from podium.plugins.rescheduling.filter_rules import FILTER_RULES

MISSING = "the exact plan needs the solver HiGHS, which is not installed: pip install 'podium[exact]'"


class Highs:
    """Solves programs by HiGHS, on one thread, so that the same program has the same solution.

    ``most_nodes`` limits the examined branches of one program; beyond it, the solution is the best one found, with a
    bound for the optimal one.
    """

    def __init__(self, most_nodes: int = 100_000) -> None:
        try:
            import highspy
        except ImportError:
            raise optimal.ExactPlanError(MISSING) from None
        self._highspy: Any = highspy
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


_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Comparison:
    """The best plan, and the share of its improvement that another plan reaches; 1 is all."""

    best: optimal.OptimalPlan
    share: float

    def to_dict(self) -> dict[str, Any]:
        best = self.best
        return {
            "moves": [{"pod": move.pod.key, "from": move.source, "to": move.target} for move in best.moves],
            "objectives": [
                {"policy": name, "before": round(before, _DIGITS), "after": round(best.after[name], _DIGITS)}
                for name, before in best.before.items()
            ],
            "share": round(self.share, _DIGITS),
            "isProven": best.is_proven,
            "leftOut": {name: list(what) for name, what in best.left_out.items()},
            "held": dict(best.held),
        }


def compared(
    plan: ReschedulingPlan,
    picture: Picture,
    policies: Sequence[tuple[Policy, float]],
    settings: ReschedulerSettings,
    inputs: PlanInputs,
) -> Comparison:
    """Compare a plan with the best one. Raises ExactPlanError if that cannot be found or no solver is installed."""
    if not any(isinstance(policy, LinearObjective) for policy, _ in policies):
        names = ", ".join(policy.name for policy, _ in policies) or "none"
        raise optimal.ExactPlanError(
            f"the objective of no policy has a linear form, which the exact plan needs; on are: {names}"
        )
    limits = tuple(limits_of(list(picture.movable_pods()), picture, settings, inputs))
    question = optimal.ExactQuestion(settings.threshold, limits, FILTER_RULES)
    best = optimal.plan_optimal(picture, policies, question, Highs())
    moves = sum(not move.has_ended for planned in plan.planned for move in planned.moves)
    after = {name: plan.after.get(name, before) for name, before in best.before.items()}
    return Comparison(best, best.share_of(after, moves))


def write_comparison(page: Page, comparison: Comparison) -> None:
    """Write the comparison of the plan with the best one."""
    best = comparison.best
    least = "" if best.is_proven else " found so far"
    page.title("The optimal plan", f"{counted(len(best.moves), 'move')}; this plan gains {comparison.share:.0%} of it")
    page.paragraph(
        f"The minimum{least} of the objective plus the cost of the moves is {best.cost:.2f}, within the same limits "
        f"and if every replacement goes to its best node; without moves it is {best.cost_before:.2f}.",
        indent=2,
    )
    rows: list[list[Part]] = [
        [Name(move.pod.key, PODS), Name(move.source, NODES), Name(move.target or "", NODES, before="-> ")]
        for move in best.moves
    ]
    page.columns(rows, indent=4)
    for name, what in best.left_out.items():
        how = "not counted whole" if name in best.before else "not counted here"
        page.paragraph(f"{name} is {how}: {'; '.join(what)}", indent=2, hanging=2)
    for pod, why in best.held.items():
        page.paragraph(f"{pod} is not moved: {why}", indent=2, hanging=2)


def limits_of(
    pods: Sequence[PodRecord], picture: Picture, settings: ReschedulerSettings, inputs: PlanInputs
) -> Iterator[optimal.MoveLimit]:
    """Yield the limits that the plan also respects: moves in flight and disruption budgets."""
    room = BudgetRoom(inputs, settings, picture.now)
    yield from _of_kinds(pods, settings.in_flight)
    yield from _of_kinds([pod for pod in pods if not room.is_protected(pod)], settings.without_budget)
    covered: dict[str, list[str]] = defaultdict(list)
    most: dict[str, int] = {}
    for pod in pods:
        for budget in inputs.budgets.covering(pod):
            covered[budget.key].append(pod.uid)
            most[budget.key] = max(0, budget.allowed - room.reserve(budget))
    for key, uids in covered.items():
        yield optimal.MoveLimit(uids, most[key])


def _of_kinds(pods: Sequence[PodRecord], limits: MoveLimitSettings) -> Iterator[optimal.MoveLimit]:
    if limits.total is not None:
        yield optimal.MoveLimit([pod.uid for pod in pods], limits.total)
    for most, kind in ((limits.node, "node_name"), (limits.namespace, "namespace"), (limits.owner, "owner_uid")):
        if most is None:
            continue
        groups: dict[str, list[str]] = defaultdict(list)
        for pod in pods:
            groups[getattr(pod, kind)].append(pod.uid)
        for uids in groups.values():
            if len(uids) > most:
                yield optimal.MoveLimit(uids, most)
