"""A plan of the rescheduler, for people: who would move from where to where and why, and who is left alone."""

from __future__ import annotations

from podium.api.times import format_time
from podium.app.console.basis_text import write_basis
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, listed
from podium.app.rescheduling.plan_report import PlanReport
from podium.decide.rescheduling.plan import Move, Plan, PlannedMoves
from podium.decide.rescheduling.untouched import Untouched

_MOST_REASONS = 20
_MOST_PODS = 3


def write_plan(page: Page, report: PlanReport) -> None:
    """Write the plan: what would be done."""
    plan, moves = report.plan, report.moves
    where = f"In {report.cluster}, " if report.cluster else ""
    if moves:
        what, style = f"{where}{counted(len(moves), 'pod')} would be moved", "good"
    else:
        what, style = f"{where}nothing would be moved", "bold"
    page.paragraph(Cell(f"{what[0].upper()}{what[1:]}  ({format_time(report.now)})", style), hanging=2)
    _write_moves(page, plan)
    _write_objectives(page, report)
    _write_left_alone(page, plan)
    _write_untouched(page, report.untouched)
    for problem in plan.errors:
        page.line("")
        page.paragraph(Cell(problem, "bad"), hanging=2)
    if report.comparison is not None:
        from podium.app.rescheduling.exact import write_comparison

        write_comparison(page, report.comparison)
    write_basis(page, report.caveats)


def _write_moves(page: Page, plan: Plan) -> None:
    for planned in plan.planned:
        page.title(planned.policy, _gain(planned))
        page.paragraph(planned.reason, indent=2, hanging=2)
        page.columns([_row(move) for move in planned.moves], indent=4)


def _gain(planned: PlannedMoves) -> str:
    if any(move.has_ended for move in planned.moves):
        return "keeps pods off a node"
    if planned.part_of is None:
        return f"gains {_number(planned.gain)}"
    return f"a part of {counted(planned.part_of.pods, 'move')}, which together gain {_number(planned.part_of.gain)}"


def _row(move: Move) -> list[Part]:
    pod = Name(move.pod.key, PODS)
    if move.has_ended:
        controller = move.pod.controller
        who = "its controller" if controller is None else f"{controller.kind} {controller.name}"
        return [pod, Name(move.source, NODES, before=f"has ended, and goes; {who} keeps off ")]
    if move.target is None:
        return [pod, Name(move.source, NODES, before="leaves ", after="; nobody asks where to")]
    doubt = "" if move.is_sure else "or to another that its scheduler likes as well"
    return [pod, Name(move.source, NODES), Name(move.target, NODES, before="-> "), doubt]


def _write_objectives(page: Page, report: PlanReport) -> None:
    rows = report.objectives()
    if not rows:
        return
    page.title("Objectives", "0 is as good as can be, 1 as bad as one pod in quite the wrong place")
    head = (Cell("policy", "dim"), Cell("now", "dim"), Cell("then", "dim"))
    body = [(name, _number(before), _number(after)) for name, before, after in rows]
    page.columns([head, *body], indent=2, right=[1, 2])


def _write_left_alone(page: Page, plan: Plan) -> None:
    if not plan.left_alone and not plan.stopped and not plan.is_cut:
        return
    page.title("Left alone")
    groups: dict[tuple[str, str], list[str]] = {}
    for left in plan.left_alone:
        groups.setdefault((left.policy, left.why), []).append(left.pod)
    for (policy, why), pods in list(groups.items())[:_MOST_REASONS]:
        page.paragraph(f"{listed(pods, _MOST_PODS)} ({policy}): {why}", indent=2, hanging=2)
    more = sum(len(pods) for pods in list(groups.values())[_MOST_REASONS:])
    if more:
        page.paragraph(f"{counted(more, 'more pod')}, for {len(groups) - _MOST_REASONS:,} other reasons", indent=2)
    if plan.stopped:
        page.paragraph(f"Nobody else was looked at: {plan.stopped}", indent=2, hanging=2)
    if plan.is_cut:
        page.paragraph(
            f"After {plan.trials} trials no more were made (maxTrials); there may be more to gain.", indent=2, hanging=2
        )


def _write_untouched(page: Page, untouched: Untouched) -> None:
    if not untouched.pods:
        return
    page.title("May not be moved", f"{untouched.pods:,} of {counted(untouched.of, 'pod')}")
    rows = [(f"{number:,}", why) for why, number in untouched.reasons]
    if untouched.others:
        rows.append((f"{untouched.others:,}", "for other reasons"))
    page.columns(rows, indent=2, right=[0])


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
