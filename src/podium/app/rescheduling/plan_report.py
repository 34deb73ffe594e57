"""A plan of the rescheduler, as it is shown to people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.times import format_exact_time, format_time
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, listed
from podium.decide.rescheduling.round_robin import (
    NONE_EXCLUDED,
    ExcludedPods,
    PlannedMove,
    PlannedMoves,
    ReschedulingPlan,
)
from podium.framework.rescheduling.settings import ReschedulerSettings

if TYPE_CHECKING:
    from podium.app.rescheduling.exact import Comparison

VERSION = 1
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan made at ``now``, by which settings, and what it rests on.

    ``cluster`` is what was looked at, ``untouched`` who could not be moved, and ``comparison`` how far from the best
    the plan is, where that was asked.
    """

    plan: ReschedulingPlan
    settings: ReschedulerSettings
    now: int
    cluster: str = ""
    caveats: tuple[Caveat, ...] = ()
    untouched: ExcludedPods = NONE_EXCLUDED
    comparison: Comparison | None = None

    @property
    def moves(self) -> tuple[PlannedMove, ...]:
        """All moves, in their order, without those of pods that have ended."""
        return tuple(move for planned in self.plan.planned for move in planned.moves if not move.has_ended)

    def objectives(self) -> list[tuple[str, float, float]]:
        """By policy: its name, and its objective before and after."""
        return [(name, before, self.plan.after.get(name, before)) for name, before in self.plan.before.items()]

    def to_dict(self) -> dict[str, Any]:
        plan, comparison = self.plan, self.comparison
        return {
            **({} if comparison is None else {"best": comparison.to_dict()}),
            "version": VERSION,
            "time": format_exact_time(self.now),
            "cluster": self.cluster,
            "planned": [_planned(planned) for planned in plan.planned],
            "leftAlone": [{"policy": left.policy, "pod": left.pod, "why": left.why} for left in plan.left_alone],
            "untouched": _untouched(self.untouched),
            "objectives": [
                {"policy": name, "before": _rounded(before), "after": _rounded(after)}
                for name, before, after in self.objectives()
            ],
            "trials": plan.trials,
            "isCut": plan.is_cut,
            "stopped": plan.stopped,
            "errors": list(plan.errors),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def same_moves(plan: ReschedulingPlan, other: ReschedulingPlan) -> bool:
    """Whether two plans say the same to people: the same moves, and the same left alone."""
    return _said(plan) == _said(other)


def _said(plan: ReschedulingPlan) -> tuple[object, ...]:
    moves = [
        (planned.policy, planned.reason, [(move.pod.uid, move.source, move.target) for move in planned.moves])
        for planned in plan.planned
    ]
    return moves, plan.left_alone, plan.stopped, plan.errors


def _planned(planned: PlannedMoves) -> dict[str, Any]:
    return {
        "policy": planned.policy,
        "reason": planned.reason,
        "gain": _rounded(planned.gain),
        "partOf": None
        if planned.part_of is None
        else {"pods": planned.part_of.pods, "gain": _rounded(planned.part_of.gain)},
        "moves": [_move(move) for move in planned.moves],
    }


def _untouched(untouched: ExcludedPods) -> dict[str, Any]:
    reasons = [{"why": why, "pods": number} for why, number in untouched.reasons]
    return {"pods": untouched.pods, "of": untouched.of, "reasons": reasons, "others": untouched.others}


def _move(move: PlannedMove) -> dict[str, Any]:
    pod = move.pod
    controller = pod.controller
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "controller": "" if controller is None else f"{controller.kind} {controller.name}",
        "from": move.source,
        "to": move.target,
        "isSure": move.is_sure,
        "hasEnded": move.has_ended,
    }


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


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
    page.caveats(report.caveats)


def _write_moves(page: Page, plan: ReschedulingPlan) -> None:
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


def _row(move: PlannedMove) -> list[Part]:
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


def _write_left_alone(page: Page, plan: ReschedulingPlan) -> None:
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


def _write_untouched(page: Page, untouched: ExcludedPods) -> None:
    if not untouched.pods:
        return
    page.title("May not be moved", f"{untouched.pods:,} of {counted(untouched.of, 'pod')}")
    rows = [(f"{number:,}", why) for why, number in untouched.reasons]
    if untouched.others:
        rows.append((f"{untouched.others:,}", "for other reasons"))
    page.columns(rows, indent=2, right=[0])


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
