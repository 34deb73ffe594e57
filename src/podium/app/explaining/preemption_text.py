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
from podium.decide.preempting.preemption import Candidate, PreemptionPlan

_MOST_NODES = 5
_MOST_VICTIMS = 20
_HEADINGS = ("", "node", "violations", "priority", "victims", "")


def write_preemption(
    page: Page, explanation: Explanation, plan: PreemptionPlan, obstacles: Mapping[str, NodeObstacles]
) -> None:
    """Write the candidates, the victims on the node that is taken, and the nodes where preemption does not help."""
    if plan.chosen is None:
        page.title("Preemption", _no_way(explanation, plan))
    else:
        page.title("Preemption", _decision(page, plan))
        page.columns(_candidate_rows(plan, plan.chosen), indent=2, right=(2, 3, 4))
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
        key=lambda candidate: (_criteria(candidate), candidate.node_name != chosen.node_name, candidate.node_name),
    )
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    for candidate in order[:_MOST_NODES]:
        is_chosen = candidate.node_name == chosen.node_name
        style = "good" if is_chosen else ""
        node = Name(candidate.node_name, NODES, style)
        numbers = (candidate.budget_violations, candidate.victims[0].priority, len(candidate.victims))
        names = names_of([victim.key for victim in candidate.victims], PODS, "dim", most=1)
        rows.append([Cell("→" if is_chosen else "", style), node, *map(str, numbers), names])
    if len(order) > _MOST_NODES:
        rows.append(["", Cell(f"and {len(order) - _MOST_NODES:,} more", "dim")])
    return rows


def _criteria(candidate: Candidate) -> tuple[int, ...]:
    """The criteria of preemption in their order, smaller is better (`podium.decide.preempting.trials.CRITERIA`)."""
    victims = candidate.victims
    highest = victims[0].priority
    shifted = sum(victim.priority + 2**31 for victim in victims)
    started = min(victim.start_ns for victim in victims if victim.priority == highest)
    return candidate.budget_violations, highest, shifted, len(victims), -started


def _write_victims(page: Page, explanation: Explanation, chosen: Candidate, obstacles: NodeObstacles | None) -> None:
    page.title("Victims", f"on {chosen.node_name}, the most important first")
    shown = chosen.victims[:_MOST_VICTIMS]
    page.columns([_victim_row(explanation, victim, obstacles) for victim in shown], indent=2)
    if len(chosen.victims) > _MOST_VICTIMS:
        page.line(Cell(f"and {len(chosen.victims) - _MOST_VICTIMS} more", "dim"), indent=2)
    budgets = explanation.runner.cluster.budgets.covering(victim.pod_class for victim in chosen.victims)
    for budget in budgets:
        allowed = f"allows {counted(budget.disruptions_allowed, 'disruption')}"
        covered = sum(budget.covers(victim.pod_class) for victim in chosen.victims)
        page.paragraph(f"budget {budget.key} {allowed}, and covers {counted(covered, 'victim')}", indent=2, hanging=2)


def _victim_row(explanation: Explanation, victim: PodRecord, obstacles: NodeObstacles | None) -> list[Part]:
    found = victim_facts(explanation.runner.cluster, explanation.record, victim, obstacles)
    return [
        Name(victim.key, PODS, "bad"),
        f"priority {victim.priority}",
        Cell(victim.pod_class.qos, "dim"),
        ", ".join(found) + (" (terminating already)" if victim.terminating else ""),
    ]
