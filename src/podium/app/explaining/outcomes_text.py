"""All ways in which a decision may come out, for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.console.cells import NODES, WORKLOADS, Cell, Name, Part, counted, names_of
from podium.app.console.page import Page
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.outcomes import MOST_OUTCOMES, Outcome, outcomes_of

_MOST_NODES = 5


def write_outcomes(page: Page, explanation: Explanation) -> None:
    """Write who suffers on which nodes, for each way in which the decision may come out."""
    outcomes = outcomes_of(explanation)
    ways = sum(len(outcome.victims) for outcome in outcomes)
    if not outcomes:
        page.title("Outcomes", "one: it gets no node")
        return
    if ways == 1:
        page.title("Outcomes", "one: nothing is left to chance")
        return
    page.title("Outcomes", f"{ways:,} ways that are equal to kube-scheduler, which takes one by chance")
    page.columns([_row(outcome) for outcome in outcomes[:MOST_OUTCOMES]], indent=2)
    if len(outcomes) > MOST_OUTCOMES:
        page.line(Cell(f"and {len(outcomes) - MOST_OUTCOMES:,} more", "dim"), indent=2)


def _row(outcome: Outcome) -> list[Part]:
    nodes = names_of([node for node, _ in outcome.victims], NODES, most=_MOST_NODES)
    return [_suffering(outcome.suffering), counted(len(outcome.victims), "node"), nodes]


def _suffering(suffering: Sequence[tuple[str, int]]) -> Part:
    if not suffering:
        return Cell("nobody is preempted", "good")
    if len(suffering) == 1:
        ((workload, pods),) = suffering
        return Name(workload, WORKLOADS, "bad", after="" if pods == 1 else f": {pods} pods")
    pods = sum(number for _, number in suffering)
    return Cell(f"{counted(pods, 'pod')} of {', '.join(workload for workload, _ in suffering)}", "bad")
