"""What would have to change, for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.explain import Explanation
from podium.app.obstacles import NodeObstacles
from podium.app.page import Cell, Page, Part, counted, fitted, listed
from podium.app.remedies import PodRemedy, Remedies, find_remedies
from podium.decide.preemption import NOT_ELIGIBLE_TERMINATING

_MOST_ROWS = 6
_MOST_NAMES = 3


def write_remedies(page: Page, explanation: Explanation, obstacles: Sequence[NodeObstacles]) -> None:
    """Write what stands in the way on the nearest nodes, and what another priority or policy would bring."""
    remedies = find_remedies(explanation, obstacles)
    goal = " to run without preempting" if explanation.outcome == "preempts" else ""
    page.title(f"What would have to change{goal}", "each line is enough by itself")
    page.columns(_node_rows(page, remedies), indent=2)
    further = sum(len(one.nodes) for one in remedies.nodes[_MOST_ROWS:]) + remedies.further
    if further:
        page.line(Cell(f"{counted(further, 'more node')}, further away", "dim"), indent=2)
    if explanation.plan is not None and explanation.plan.reason == NOT_ELIGIBLE_TERMINATING:
        waiting = f"the pods that it preempted on {explanation.record.nominated_node_name} would have to end"
        page.paragraph(waiting, indent=2, hanging=2)
    if remedies.pod is not None:
        page.paragraph(_pod(remedies.pod), indent=2, hanging=2)


def _node_rows(page: Page, remedies: Remedies) -> list[list[Part]]:
    return [
        [Cell(fitted(one.nodes, page.name_width), "bold"), "; ".join(one.obstacles)]
        for one in remedies.nodes[:_MOST_ROWS]
    ]


def _pod(remedy: PodRemedy) -> str:
    conditions = []
    if remedy.from_never:
        conditions.append("preemptionPolicy PreemptLowerPriority")
    if remedy.priority is not None:
        conditions.append(f"priority {remedy.priority}")
    then = remedy.then
    if then.plan is None or then.plan.chosen is None:
        return f"with {' and '.join(conditions)} it would fit on {then.node}"
    victims = listed([victim.key for victim in then.plan.chosen.victims], _MOST_NAMES)
    return f"with {' and '.join(conditions)} it would preempt {victims} on {then.node}"
