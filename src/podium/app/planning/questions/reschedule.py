"""`podium plan reschedule`: which pods a rescheduler would move, and what that does to their workloads."""

from __future__ import annotations

from podium.api.input.codec import Input
from podium.app.console.cells import NODES, PODS, Name, Part
from podium.app.planning.answer import Finding, PlanAnswer, Section
from podium.app.planning.answering import answer_of, outcome, pods
from podium.app.planning.question import Played, Question, step
from podium.app.rescheduling.offline import Question as Wish
from podium.app.rescheduling.offline import plan_once
from podium.app.rescheduling.plan_report import PlanReport
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import default_configuration
from podium.sim.run_options import RunOptions

_BY = "rescheduler"
_MOST_ROWS = 40


def report_of(read: Input, rescheduler: ReschedulerConfiguration, options: RunOptions) -> PlanReport:
    """What the rescheduler of a configuration would do. Raises InputError."""
    configuration = options.configuration or default_configuration()
    return plan_once(read, Wish(rescheduler, configuration, ignores_extenders=options.ignore_extenders))


def reschedule_question(report: PlanReport) -> Question:
    """The question what happens when the pods are evicted that the plan moves, one second after another.

    Their controllers avoid the nodes that they left, as they do where the rescheduler evicts.
    """
    steps = []
    for place, move in enumerate(report.moves):
        namespace, _, name = move.pod.key.partition("/")
        evicted = {"namespace": namespace, "name": name, "component": _BY, "avoidNode": True}
        steps.append(step("evict", evicted, f"{place}s"))
    return Question("reschedule", tuple(steps))


def reschedule_answer(report: PlanReport, played: Played | None) -> PlanAnswer:
    """The answer; without a run where nothing is moved."""
    sections = _sections(report)
    headline = f"the rescheduler moves {pods(len(report.moves))}"
    if played is None:
        findings = tuple(Finding("refused", error) for error in report.plan.errors)
        headline = "the rescheduler moves nothing"
        return PlanAnswer("reschedule", headline, findings, rests_on=report.caveats, sections=tuple(sections))
    gained = [f"{name} {before:.2g} -> {after:.2g}" for name, before, after in report.objectives() if before != after]
    better = f" ({', '.join(gained)})" if gained else ""
    return answer_of(played, f"{headline}{better}: {outcome(played.impact)}", sections=sections)


def _sections(report: PlanReport) -> list[Section]:
    rows: list[tuple[Part, ...]] = [
        (
            Name(move.pod.key, PODS),
            Name(move.source, NODES),
            Name(move.target, NODES, before="-> ") if move.target else "kept off" if move.has_ended else "-> nowhere",
            planned.reason,
        )
        for planned in report.plan.planned
        for move in planned.moves
    ]
    left = len(rows) - _MOST_ROWS
    shown = rows[:_MOST_ROWS] + ([(f"and {left:,} more",)] if left > 0 else [])
    data = report.to_dict()
    return [Section("moves", "Moves", tuple(shown), data=data)]
