"""How far a plan is from the best placement that could be reached within the same limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Name, Page, Part, counted
from podium.app.optimising.highs import Highs
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.budget_room import BudgetRoom
from podium.decide.rescheduling.exact.formulation import MoveLimit
from podium.decide.rescheduling.exact.optimal import ExactPlanError, ExactQuestion, OptimalPlan, plan_optimal
from podium.decide.rescheduling.plan import Plan
from podium.decide.rescheduling.standing import Standing
from podium.framework.rescheduling.linear import LinearObjective
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy
from podium.framework.rescheduling.settings import Limits, ReschedulerSettings
from podium.plugins.rescheduling.filter_rules import FILTER_RULES

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Comparison:
    """The best plan, and which share of what can be gained another one gains: 1 is all."""

    best: OptimalPlan
    share: float

    def to_dict(self) -> dict[str, Any]:
        """It as plain values."""
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
    plan: Plan,
    picture: Picture,
    policies: Sequence[tuple[Policy, float]],
    settings: ReschedulerSettings,
    standing: Standing,
) -> Comparison:
    """A plan held against the best one. Raises ExactPlanError where that cannot be found, or without the solver."""
    if not any(isinstance(policy, LinearObjective) for policy, _ in policies):
        names = ", ".join(policy.name for policy, _ in policies) or "none"
        raise ExactPlanError(
            f"the objective of no policy has a linear form, which the exact plan needs; on are: {names}"
        )
    limits = tuple(_limits(list(picture.movable_pods()), picture, settings, standing))
    question = ExactQuestion(settings.threshold, limits, FILTER_RULES)
    best = plan_optimal(picture, policies, question, Highs())
    moves = sum(not move.has_ended for planned in plan.planned for move in planned.moves)
    after = {name: plan.after.get(name, before) for name, before in best.before.items()}
    return Comparison(best, best.share_of(after, moves))


def write_comparison(page: Page, comparison: Comparison) -> None:
    """Write how far from the best the plan is."""
    best = comparison.best
    proven = "is" if best.is_proven else "is, as far as was found,"
    page.title("The best there is", f"{counted(len(best.moves), 'move')}; this plan gains {comparison.share:.0%} of it")
    page.paragraph(
        f"Within the same limits, and if every replacement went where it is best, the least that the sum and the price "
        f"of the moves can come to {proven} {best.cost:.2f}; as things stand it is {best.cost_before:.2f}.",
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
        page.paragraph(f"{pod} is held where it is: {why}", indent=2, hanging=2)


def _limits(
    pods: Sequence[PodRecord], picture: Picture, settings: ReschedulerSettings, standing: Standing
) -> Iterator[MoveLimit]:
    """What the plan keeps to as well: limits of moves under way, and what budgets leave."""
    room = BudgetRoom(standing, settings, picture.now)
    yield from _of_kinds(pods, settings.in_flight)
    yield from _of_kinds([pod for pod in pods if not room.is_protected(pod)], settings.without_budget)
    covered: dict[str, list[str]] = defaultdict(list)
    most: dict[str, int] = {}
    for pod in pods:
        for budget in standing.budgets.covering(pod):
            covered[budget.key].append(pod.uid)
            most[budget.key] = max(0, budget.allowed - room.reserve(budget))
    for key, uids in covered.items():
        yield MoveLimit(uids, most[key])


def _of_kinds(pods: Sequence[PodRecord], limits: Limits) -> Iterator[MoveLimit]:
    if limits.total is not None:
        yield MoveLimit([pod.uid for pod in pods], limits.total)
    for most, kind in ((limits.node, "node_name"), (limits.namespace, "namespace"), (limits.owner, "owner_uid")):
        if most is None:
            continue
        groups: dict[str, list[str]] = defaultdict(list)
        for pod in pods:
            groups[getattr(pod, kind)].append(pod.uid)
        for uids in groups.values():
            if len(uids) > most:
                yield MoveLimit(uids, most)
