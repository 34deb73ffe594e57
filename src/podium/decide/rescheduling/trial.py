"""One proposal tried: its pods leave, their replacements go where their schedulers send them, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.landing import Landing, Landings, as_replacement
from podium.decide.rescheduling.likeness import unlike
from podium.decide.rescheduling.moved_claims import MovedClaims
from podium.decide.rescheduling.objectives import ROUNDING, Objectives
from podium.decide.rescheduling.plan import Move
from podium.decide.rescheduling.rooms import WaitingPods
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.framework.rescheduling.settings import Judgement, ReschedulerSettings


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What came of a trial: the moves and the sum of the objectives after them, or ``why`` there are none."""

    moves: tuple[Move, ...] = ()
    total: float = 0.0
    why: str = ""


class Trials:
    """Tries proposals on top of what is planned already. What is accepted stays in ``scratch``."""

    def __init__(
        self, scratch: Scratch, picture: Picture, objectives: Objectives, settings: ReschedulerSettings
    ) -> None:
        self._scratch = scratch
        self._picture = picture
        self._objectives = objectives
        self._settings = settings
        self._landings = Landings(scratch, picture, settings)
        self._claims = MovedClaims(scratch, picture)
        self._waiting = WaitingPods(scratch, picture, self._claims)
        # By owner, the rows that its pods have left.
        self._left_by: dict[str, set[int]] = {}

    def attempt(self, proposal: Proposal, before: float) -> Found:
        """Try a proposal where the sum of the objectives is ``before``; nothing has changed if there is a ``why``."""
        mark = self._scratch.mark()
        try:
            found = self._attempt(proposal.relocations, before)
        except BaseException:
            self._scratch.roll_back(mark)
            raise
        if found.why:
            self._scratch.roll_back(mark)
        return found

    def _attempt(self, relocations: Sequence[Relocation], before: float) -> Found:
        leaving = [_Leaver(relocation, self._row_of(relocation.pod)) for relocation in relocations]
        for leaver in leaving:
            self._landings.leave(leaver.row)
            self._scratch.take_off(leaver.pod.uid)
            self._claims.give_back(leaver.pod, as_replacement(leaver.pod, self._picture.now))
        if self._settings.judgement is Judgement.BLIND:
            blind = tuple(Move(leaver.pod, leaver.pod.node_name, None) for leaver in leaving)
            return self._judged(blind, before, self._objectives.total())
        left_by = {owner: set(rows) for owner, rows in self._left_by.items()}
        for leaver in leaving:
            left_by.setdefault(leaver.pod.owner_uid, set()).add(leaver.row)
        seats = self._waiting.seats({leaver.row for leaver in leaving}, min(leaver.pod.priority for leaver in leaving))
        moves = list[Move]()
        total = None
        for leaver in leaving:
            with self._waiting.seated(seats):
                landing = self._landings.find(
                    as_replacement(leaver.pod, self._picture.now),
                    leaver.row,
                    leaver.relocation,
                    left_by[leaver.pod.owner_uid],
                )
            if landing.why:
                return Found(why=landing.why if len(leaving) == 1 else f"{leaver.pod.key}: {landing.why}")
            row, is_sure, total = self._least(leaver.pod, landing)
            self._seat(leaver.pod, row)
            moves.append(Move(leaver.pod, leaver.pod.node_name, self._picture.node_name(row), is_sure))
        found = self._judged(tuple(moves), before, self._objectives.total() if total is None else total)
        if not found.why:
            self._waiting.keep(seats)
            self._left_by = left_by
        return found

    def _least(self, pod: PodRecord, landing: Landing) -> tuple[int, bool, float | None]:
        """Of the rows where a replacement may come to, the one that gains least; whether that is sure.

        And the sum of the objectives with it there, where that was asked.
        """
        rows, are_all = unlike(self._picture, landing.rows)
        is_sure = are_all and landing.is_sure
        if len(rows) == 1:
            return rows[0], is_sure, None
        worst, worst_total = rows[0], -1.0
        for row in rows:
            mark = self._scratch.mark()
            self._seat(pod, row)
            total = self._objectives.total()
            self._scratch.roll_back(mark)
            if total > worst_total:
                worst, worst_total = row, total
        return worst, is_sure, worst_total

    def _judged(self, moves: tuple[Move, ...], before: float, after: float) -> Found:
        """The moves, if the sum falls by the threshold for each of them."""
        gain, threshold = before - after, self._settings.threshold
        if gain >= threshold * len(moves) - ROUNDING:
            return Found(moves, after)
        where = "" if len(moves) > 1 or moves[0].target is None else f" on {moves[0].target}"
        each = "" if len(moves) == 1 else " for each of them"
        found = f"would make it better by {gain:.3g}"
        if gain <= ROUNDING:
            found = f"would make it worse by {-gain:.3g}" if gain < -ROUNDING else "would not make it better"
        return Found(why=f"a replacement{where} {found}, where {threshold:.3g}{each} is asked for")

    def _seat(self, pod: PodRecord, row: int) -> None:
        """Let the replacement of a pod be in a row, with the devices that it gets there."""
        replacement = as_replacement(pod, self._picture.now)
        self._claims.take(replacement, row)
        self._scratch.place(replacement, row)

    def _row_of(self, pod: PodRecord) -> int:
        return self._picture.cluster.placed[pod.uid].row


@dataclass(frozen=True, slots=True, eq=False)
class _Leaver:
    """A pod that is moved, and the row that it leaves."""

    relocation: Relocation
    row: int

    @property
    def pod(self) -> PodRecord:
        return self.relocation.pod
