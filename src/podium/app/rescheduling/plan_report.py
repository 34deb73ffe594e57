"""A plan of the rescheduler, as it is shown to people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.times import format_exact_time
from podium.decide.rescheduling.plan import Move, Plan, PlannedMoves
from podium.decide.rescheduling.untouched import NOBODY, Untouched
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

    plan: Plan
    settings: ReschedulerSettings
    now: int
    cluster: str = ""
    caveats: tuple[Caveat, ...] = ()
    untouched: Untouched = NOBODY
    comparison: Comparison | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in their order, without those of pods that have ended."""
        return tuple(move for planned in self.plan.planned for move in planned.moves if not move.has_ended)

    def objectives(self) -> list[tuple[str, float, float]]:
        """By policy: its name, and its objective before and after."""
        return [(name, before, self.plan.after.get(name, before)) for name, before in self.plan.before.items()]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
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
            "restsOn": [caveat.to_dict() for caveat in self.caveats],
        }


def same_moves(plan: Plan, other: Plan) -> bool:
    """Whether two plans say the same to people: the same moves, and the same left alone."""
    return _said(plan) == _said(other)


def _said(plan: Plan) -> tuple[object, ...]:
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


def _untouched(untouched: Untouched) -> dict[str, Any]:
    reasons = [{"why": why, "pods": number} for why, number in untouched.reasons]
    return {"pods": untouched.pods, "of": untouched.of, "reasons": reasons, "others": untouched.others}


def _move(move: Move) -> dict[str, Any]:
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
