"""How a workload's pods stand, for people."""

from __future__ import annotations

from collections import Counter

from podium.app.console.page import Cell, Page, counted, fitted, listed
from podium.app.explaining.workload import WorkloadExplanation

_MOST_PODS = 3


def write_workload(page: Page, answer: WorkloadExplanation) -> None:
    """Write where a workload's pods are, and about which of them the explanation is that follows."""
    pending = answer.pending
    placed = len(answer.pods) - len(pending)
    wanted = "" if answer.wanted is None else f" of {answer.wanted:,} wanted"
    style = "bad" if pending else "good"
    page.paragraph(Cell(f"{answer.kind} {answer.key}: {placed:,}{wanted} have a node", style), hanging=2)
    nodes = Counter(pod.spec.node_name for pod in answer.pods if pod.spec.node_name)
    if nodes:
        names = [f"{node} ({number})" if number > 1 else node for node, number in sorted(nodes.items())]
        page.paragraph(f"on {counted(len(nodes), 'node')}: {fitted(names, page.names_width)}", indent=2, hanging=2)
    if pending:
        page.paragraph(f"{counted(len(pending), 'pod')} pending: {listed(pending, _MOST_PODS)}", indent=2, hanging=2)
    page.line()
    if answer.is_next:
        page.paragraph("One more pod of it:", hanging=2)
