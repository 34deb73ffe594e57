"""Why a preemption took the victims that it takes, in the words of `podium explain`."""

from __future__ import annotations

from typing import Any

from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.machines.grounds import Grounds


def preemption_grounds(plan: Any) -> Grounds | None:
    """The grounds of a plan that has a way out; None where another plugin than Podium's own proposed the victims."""
    if not isinstance(plan, PreemptionPlan) or plan.chosen is None:
        return None
    chosen, choice = plan.chosen, plan.choice
    number = len(chosen.victims)
    others = tuple([name for name in choice.equals if name != chosen.node_name])
    what = f"{number:,} victim{'' if number == 1 else 's'} for room on {chosen.node_name}"
    if chosen.budget_violations:
        what += f", {chosen.budget_violations:,} beyond their budgets"
    return Grounds(_rule(plan), what, chosen.node_name, choice.candidates, others)


def _rule(plan: PreemptionPlan) -> str:
    found = "fairer shares among equals: " if plan.is_exchange else ""
    if plan.choice.candidates == 1:
        return f"{found}the only candidate"
    if plan.choice.criterion:
        return f"{found}{plan.choice.criterion}"
    if plan.criteria:
        return f"{found}{', '.join(criterion.words for criterion in plan.criteria)}"
    return f"{found}kube-scheduler's order of candidates"
