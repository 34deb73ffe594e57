"""The answer about a pod or a workload, for people."""

from __future__ import annotations

from podium.app.console.page import Page
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.on_node import NodeAnswer
from podium.app.explaining.on_node_text import write_on_node
from podium.app.explaining.text import write_explanation
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.explaining.workload_text import write_workload


def write_answer(
    page: Page,
    answer: Explanation | WorkloadExplanation,
    on_node: NodeAnswer | None,
    *,
    all_nodes: bool,
    outcomes: bool = False,
) -> None:
    """Write how a workload's pods stand, then what is decided: about one node where one is asked about, or all."""
    explanation = answer
    if isinstance(answer, WorkloadExplanation):
        write_workload(page, answer)
        explanation = answer.explanation
    if on_node is not None:
        write_on_node(page, on_node)
    elif isinstance(explanation, Explanation):
        write_explanation(page, explanation, all_nodes=all_nodes, outcomes=outcomes)
