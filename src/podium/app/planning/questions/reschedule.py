"""`podium plan reschedule`: which pods a rescheduler would move, and what that does to their workloads."""

from __future__ import annotations

from podium.app.console.cells import NODES, PODS, Name, Part, counted
from podium.app.console.page import Section
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.impact import PlanFinding, impact_text
from podium.app.planning.question import PlanQuestion, PlanRun
from podium.app.planning.scenarios import step
from podium.app.rescheduling.certificates import certificate_section, number_text
from podium.app.rescheduling.offline import PlanSettings, plan_once
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import default_configuration

_MAX_ROWS = 40


def reschedule(run: PlanRun, rescheduler: ReschedulerConfiguration) -> PlanAnswer:
    """Answer which pods a rescheduler would move, and what that does; without a run if it moves none.

    The pods are evicted one per second, and their controllers avoid the nodes that they left, as with the rescheduler's
    own evictions. Raises InputError.
    """
    options = run.options
    configuration = options.configuration or default_configuration()
    question = PlanSettings(
        rescheduler, configuration, ignores_extenders=options.ignore_extenders, release=options.release
    )
    report = plan_once(run.read, question)
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
    sections = [Section("moves", "Moves", tuple(rows), data=report.to_dict(), most=_MAX_ROWS)]
    best = ""
    if report.certificate is not None and report.certificate.ever.covered:
        sections.append(certificate_section(report.certificate))
        best = f", within {report.certificate.within_limits.gap:.1%} of the best possible"
    if not report.moves:
        findings = tuple(PlanFinding("refused", error) for error in report.plan.errors)
        headline = f"the rescheduler moves nothing{best}"
        return PlanAnswer("reschedule", headline, findings, caveats=report.caveats, sections=tuple(sections))
    steps = []
    for place, move in enumerate(report.moves):
        namespace, _, name = move.pod.key.partition("/")
        evicted = {"namespace": namespace, "name": name, "component": "rescheduler", "avoidNode": True}
        steps.append(step("evict", evicted, f"{place}s"))
    played = run.play(PlanQuestion("reschedule", tuple(steps)))
    objectives = ((name, number_text(before), number_text(after)) for name, before, after in report.objectives())
    gained = [f"{name} {before} -> {after}" for name, before, after in objectives if before != after]
    if report.plan.costs is not None:
        now, then = report.plan.costs
        gained.append(f"nodes {now.amount:,.2f} -> {then.amount:,.2f} a month")
    better = f" ({', '.join(gained)})" if gained else ""
    headline = f"the rescheduler moves {counted(len(report.moves), 'pod')}{better}{best}: {impact_text(played.impact)}"
    return played.answer(headline, sections=tuple(sections))
