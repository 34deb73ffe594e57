"""`-o html`: which picture an answer is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.app.reporting.decision import picture_of_decision
from podium.app.reporting.file import html_file
from podium.app.reporting.ledger import picture_of_ledger
from podium.app.reporting.picture import Picture
from podium.app.reporting.plan import picture_of_plan
from podium.app.reporting.runs import picture_of_result, picture_of_sweep
from podium.app.reporting.written_decision import picture_of_written

if TYPE_CHECKING:
    from podium.app.accounting.answer import LedgerAnswer
    from podium.app.explaining.explanation import Explanation
    from podium.app.explaining.on_node import NodeAnswer
    from podium.app.explaining.workload import WorkloadExplanation
    from podium.app.live.decision import Decision
    from podium.app.planning.answer import PlanAnswer
    from podium.app.reporting.runs import SweepAnswer
    from podium.sim.results.result import Result

    Decided = Explanation | WorkloadExplanation | NodeAnswer | Decision
    Answer = Result | PlanAnswer | Decided | SweepAnswer | LedgerAnswer


def report(answer: Answer) -> str:
    """The answer as an HTML file that needs nothing else. Raises TypeError for what there is no picture of."""
    picture = picture_of(answer)
    return html_file(picture.headline, picture)


def picture_of(answer: Answer) -> Picture:
    """What a page shows of an answer, whatever it answers. Raises TypeError for what there is no picture of."""
    from podium.app.accounting.answer import LedgerAnswer
    from podium.app.explaining.explanation import Explanation
    from podium.app.explaining.on_node import NodeAnswer
    from podium.app.explaining.workload import WorkloadExplanation
    from podium.app.live.decision import Decision
    from podium.app.planning.answer import PlanAnswer
    from podium.app.reporting.runs import SweepAnswer
    from podium.sim.results.result import Result

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
