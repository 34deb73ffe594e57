"""What would have to change, for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.console.cells import NODES
from podium.app.console.page import Cell, Page, Part, counted, listed, names_of
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import NodeObstacles
from podium.app.explaining.remedies import PodRemedy, ProtectionRemedy, Remedies, find_remedies
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING, NOT_ELIGIBLE_TERMINATING_ELSEWHERE

_MOST_ROWS = 6
_MOST_NAMES = 3


def write_remedies(page: Page, explanation: Explanation, obstacles: Sequence[NodeObstacles]) -> None:
    """Write what stands in the way on the nearest nodes, and what another priority or policy would bring."""
    remedies = find_remedies(explanation, obstacles)
    goal = " to run without preempting" if explanation.outcome == "preempts" else ""
    page.title(f"What would have to change{goal}", "each line is enough by itself")
    page.columns(_node_rows(remedies), indent=2)
    further = sum(len(node.nodes) for node in remedies.nodes[_MOST_ROWS:]) + remedies.further
    if further:
        page.line(Cell(f"{counted(further, 'more node')}, further away", "dim"), indent=2)
    if explanation.plan is not None and explanation.plan.reason == NOT_ELIGIBLE_TERMINATING:
        waiting = f"the pods that it preempted on {explanation.record.nominated_node_name} would have to end"
        page.paragraph(waiting, indent=2, hanging=2)
    if explanation.plan is not None and explanation.plan.reason == NOT_ELIGIBLE_TERMINATING_ELSEWHERE:
        waiting = (
            f"the pods that keep it off {explanation.record.nominated_node_name}, and terminate, would have to end"
        )
        page.paragraph(waiting, indent=2, hanging=2)
    if explanation.plan is not None and explanation.plan.put_off is not None:
        waits = f"at {explanation.plan.put_off.next_time} the cap on the scheduler's disruptions leaves enough"
        page.paragraph(waits, indent=2, hanging=2)
    if remedies.protection is not None:
        page.paragraph(_protection(remedies.protection), indent=2, hanging=2)
    if remedies.pod is not None:
        page.paragraph(_pod(remedies.pod), indent=2, hanging=2)


def _node_rows(remedies: Remedies) -> list[list[Part]]:
    return [[names_of(node.nodes, NODES, "bold"), "; ".join(node.obstacles)] for node in remedies.nodes[:_MOST_ROWS]]


def _protection(remedy: ProtectionRemedy) -> str:
    pods = listed([f"{pod.key} ({pod.preemption_policy})" for pod in remedy.pods], _MOST_NAMES)
    return f"without the preemptionPolicy of {pods} {_preempting(remedy.then)}"


def _preempting(then: Explanation) -> str:
    if then.plan is None or then.plan.chosen is None:
        return f"it would fit on {then.node}"
    victims = listed([victim.key for victim in then.plan.chosen.victims], _MOST_NAMES)
    return f"it would preempt {victims} on {then.node}"


def _pod(remedy: PodRemedy) -> str:
    conditions = []
    if remedy.from_never:
        conditions.append("preemptionPolicy PreemptLowerPriority")
    if remedy.priority is not None:
        conditions.append(f"priority {remedy.priority}")
    return f"with {' and '.join(conditions)} {_preempting(remedy.then)}"
