"""What preemption found, for people: the candidates with their victims, and the nodes that are none."""

from __future__ import annotations

from collections.abc import Mapping

from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, fitted, listed, names_of
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import NodeObstacles
from podium.app.explaining.reasons import write_by_reason
from podium.app.explaining.remedies import protected_pods
from podium.app.explaining.victim_facts import victim_facts
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.criteria import Column
from podium.decide.preempting.preemption_plan import Candidate, PreemptionPlan

_MOST_NODES = 5
_MOST_VICTIMS = 20
HEADINGS = ("violations", "priority", "victims")
"""What is shown of a candidate where no cost is stated."""

_HOUR = 3_600


def write_preemption(
    page: Page, explanation: Explanation, plan: PreemptionPlan, obstacles: Mapping[str, NodeObstacles]
) -> None:
    """Write the candidates, the victims on the node that is taken, and the nodes where preemption does not help."""
    if plan.chosen is None:
        page.title("Preemption", _no_way(explanation, plan))
    else:
        page.title("Preemption", _decision(page, plan))
        rows = _candidate_rows(plan, plan.chosen)
        page.columns(rows, indent=2, right=tuple(range(2, len(rows[0]) - 1)))
        _write_victims(page, explanation, plan.chosen, obstacles.get(plan.chosen.node_name))
    if plan.rejected:
        page.title("Not candidates")
        write_by_reason(page, plan.rejected)


def _no_way(explanation: Explanation, plan: PreemptionPlan) -> str:
    """Why nobody is preempted: because of a cap or of pods' policies, or because it would be of no use."""
    if plan.put_off is not None:
        return f"put off: {plan.put_off}"
    protected = protected_pods(explanation)
    if not protected:
        return "no way: on no node would removing pods of lower priority be enough"
    names = listed([pod.key for pod in protected], 1)
    may_not = f"{names}, whose preemptionPolicy forbids it" if len(protected) > 1 else f"{names}: its policy forbids it"
    return f"no way: on no node would removing pods of lower priority be enough, without {may_not}"


def _decision(page: Page, plan: PreemptionPlan) -> str:
    equals = "of pods of its own priority, for fairer shares; " if plan.is_exchange else ""
    if len(plan.candidates) == 1:
        return f"{equals}the only candidate"
    tied = (
        f"{len(plan.selected):,} are equal: {fitted(plan.selected, page.names_width)}" if len(plan.selected) > 1 else ""
    )
    decided = f"decided by the {plan.criterion}" if plan.criterion else ""
    return equals + "; ".join(part for part in (counted(len(plan.candidates), "candidate"), decided, tied) if part)


def _candidate_rows(plan: PreemptionPlan, chosen: Candidate) -> list[list[Part]]:
    """The best candidates by the criteria, the one that is taken first."""
    order = sorted(
        plan.candidates.values(),
        key=lambda candidate: (candidate.cost, candidate.node_name != chosen.node_name, candidate.node_name),
    )
    headings = [criterion.heading for criterion in plan.criteria] or HEADINGS
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in ("", "node", *headings, "")]]
    for candidate in order[:_MOST_NODES]:
        is_chosen = candidate.node_name == chosen.node_name
        style = "good" if is_chosen else ""
        node = Name(candidate.node_name, NODES, style)
        names = names_of([victim.key for victim in candidate.victims], PODS, "dim", most=1)
        rows.append([Cell("→" if is_chosen else "", style), node, *costs_of(plan, candidate), names])
    if len(order) > _MOST_NODES:
        rows.append(["", Cell(f"and {len(order) - _MOST_NODES:,} more", "dim")])
    return rows


def costs_of(plan: PreemptionPlan, candidate: Candidate) -> list[str]:
    """What a candidate costs, a text for each heading."""
    if not plan.criteria:
        return [str(candidate.budget_violations), str(candidate.victims[0].priority), str(len(candidate.victims))]
    return [cost_text(criterion, value) for criterion, value in zip(plan.criteria, candidate.cost, strict=True)]


def cost_text(criterion: Column, value: int) -> str:
    """What a criterion says of victims, with its unit."""
    found = criterion.shown(value)
    if found is None:
        return "none"
    if criterion.unit == "node-seconds" and isinstance(found, float):
        return f"{found / _HOUR:,.1f} node-hours" if found >= _HOUR else f"{found:,.0f} node-seconds"
    number = found if isinstance(found, str) else f"{found:,.1f}" if isinstance(found, float) else f"{found:,}"
    return f"{number} {criterion.unit}" if len(criterion.unit) > 1 else f"{number}{criterion.unit}"


def _write_victims(page: Page, explanation: Explanation, chosen: Candidate, obstacles: NodeObstacles | None) -> None:
    nodes = {victim.node_name for victim in chosen.victims}
    where = f"on {chosen.node_name}" if nodes == {chosen.node_name} else f"for {chosen.node_name}"
    page.title("Victims", f"{where}, the most important first")
    shown = chosen.victims[:_MOST_VICTIMS]
    page.columns([_victim_row(explanation, chosen, victim, obstacles) for victim in shown], indent=2)
    if len(chosen.victims) > _MOST_VICTIMS:
        page.line(Cell(f"and {len(chosen.victims) - _MOST_VICTIMS} more", "dim"), indent=2)
    budgets = explanation.runner.cluster.budgets.covering(victim.pod_class for victim in chosen.victims)
    for budget in budgets:
        allowed = f"allows {counted(budget.disruptions_allowed, 'disruption')}"
        covered = sum(budget.covers(victim.pod_class) for victim in chosen.victims)
        page.paragraph(f"budget {budget.key} {allowed}, and covers {counted(covered, 'victim')}", indent=2, hanging=2)


def _victim_row(
    explanation: Explanation, chosen: Candidate, victim: PodRecord, obstacles: NodeObstacles | None
) -> list[Part]:
    """The victim; where some are on other nodes, its node; and why it has to go."""
    reason = chosen.reasons.get(victim.uid, "")
    if victim.node_name == chosen.node_name:
        found = victim_facts(explanation.runner.cluster, explanation.record, victim, obstacles)
        reason = reason if reason.startswith("requires") else ""
    else:
        found = []
    found += [reason] if reason else []
    where: list[Part] = [Name(victim.node_name, NODES)] if chosen.elsewhere else []
    return [
        Name(victim.key, PODS, "bad"),
        *where,
        f"priority {victim.priority}",
        Cell(victim.pod_class.qos, "dim"),
        ", ".join(found) + (" (terminating already)" if victim.terminating else ""),
    ]
