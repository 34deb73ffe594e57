"""The picture of each answer, for `-o html`."""

from __future__ import annotations

from podium.app.accounting.account import LedgerAnswer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.on_node import NodeAnswer
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.live.decision import Decision
from podium.app.planning.answer import PlanAnswer
from podium.app.reporting.decision import picture_of_decision, picture_of_written
from podium.app.reporting.file import html_file
from podium.app.reporting.ledger import picture_of_ledger
from podium.app.reporting.picture import Picture
from podium.app.reporting.runs import SweepAnswer, picture_of_plan, picture_of_result, picture_of_sweep
from podium.sim.results.result import Result

Decided = Explanation | WorkloadExplanation | NodeAnswer | Decision
Answer = Result | PlanAnswer | Decided | SweepAnswer | LedgerAnswer


def report(answer: Answer) -> str:
    """Return an answer as an HTML file that needs nothing else. Raises TypeError for one that has no picture."""
    picture = picture_of(answer)
    return html_file(picture.headline, picture)


def picture_of(answer: Answer) -> Picture:
    """Return the picture of an answer. Raises TypeError for one that has none."""
    match answer:
        case Result():
            return picture_of_result(answer)
        case PlanAnswer():
            return picture_of_plan(answer)
        case Explanation() | WorkloadExplanation() | NodeAnswer():
            return picture_of_decision(answer)
        case Decision():
            return picture_of_written(answer)
        case LedgerAnswer():
            return picture_of_ledger(answer)
        case SweepAnswer():
            return picture_of_sweep(answer)
    raise TypeError(f"there is no picture of {type(answer).__name__}")
