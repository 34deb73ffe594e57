"""One proposal tried: its pods leave, their replacements go where their schedulers send them, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.landing import Landing, Landings, as_replacement
from podium.decide.rescheduling.likeness import unlike
from podium.decide.rescheduling.moments import Arrival, Leaver, still_there
from podium.decide.rescheduling.moved_claims import MovedClaims
from podium.decide.rescheduling.objectives import ROUNDING, Objectives
from podium.decide.rescheduling.plan import Move
from podium.decide.rescheduling.rehearsal import Rehearsal, RehearsalError
from podium.decide.rescheduling.rooms import Seats, WaitingPods
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
        self,
        scratch: Scratch,
        picture: Picture,
        objectives: Objectives,
        claims: MovedClaims,
        settings: ReschedulerSettings,
    ) -> None:
        self._scratch = scratch
        self._picture = picture
        self._objectives = objectives
        self._settings = settings
        self._landings = Landings(scratch, picture, settings)
        self._claims = claims
        self._waiting = WaitingPods(scratch, picture)
        # Of what is planned already: who leaves, and by proposal, who comes and what ``scratch`` was like before.
        self._leaving: list[Leaver] = []
        self._accepted: list[tuple[int, list[Arrival]]] = []

    def attempt(self, proposal: Proposal, before: float) -> Found:
        """Try a proposal where the sum of the objectives is ``before``; nothing has changed if there is a ``why``."""
        mark = self._scratch.mark()
        try:
            found = self._attempt(proposal.relocations, before, mark)
        except BaseException:
            self._scratch.roll_back(mark)
            raise
        if found.why:
            self._scratch.roll_back(mark)
        return found

    def rehearse(self, before: float) -> tuple[int, str]:
        """How many of the accepted proposals hold together when all are made at once, and why no more do.

        ``before`` is the sum of the objectives before all of them. The others are taken back.
        """
        reason = ""
        while sum(len(arrivals) for _, arrivals in self._accepted) > 1:
            why, position = self._rehearsed(before)
            if not why:
                break
            reason = why
            # What stood on the one that fails goes with it.
            self._scratch.roll_back(self._accepted[position][0])
            del self._accepted[position:]
        return len(self._accepted), reason

    def _rehearsed(self, before: float) -> tuple[str, int]:
        """Why the accepted proposals do not hold together, and which of them is the first to go; or "", and none."""
        everybody = [arrival for _, arrivals in self._accepted for arrival in arrivals]
        mark = self._scratch.mark()
        try:
            Rehearsal(self._scratch, self._picture, self._landings, everybody).play()
            gain = before - self._objectives.total()
        except RehearsalError as error:
            of = next(
                position
                for position, (_, arrivals) in enumerate(self._accepted)
                if any(arrival.leaver is error.leaver for arrival in arrivals)
            )
            return f"{error.leaver.pod.key}: {error.why}", of or len(self._accepted) // 2
        finally:
            self._scratch.roll_back(mark)
        if gain >= self._settings.threshold * len(everybody) - ROUNDING:
            return "", len(self._accepted)
        return "together with the moves before it, it would gain too little", len(self._accepted) // 2

    def _attempt(self, relocations: Sequence[Relocation], before: float, mark: int) -> Found:
        leaving = [Leaver(relocation, self._row_of(relocation.pod)) for relocation in relocations]
        for leaver in leaving:
            self._landings.leave(leaver.row)
            self._scratch.take_off(leaver.pod.uid)
        if self._settings.judgement is Judgement.BLIND:
            blind = tuple(Move(leaver.pod, leaver.pod.node_name, None) for leaver in leaving)
            return self._judged(blind, before, self._objectives.total())
        seats = self._waiting.seats({leaver.row for leaver in leaving}, min(leaver.pod.priority for leaver in leaving))
        everybody = [*self._leaving, *leaving]
        arrived, moves, total = list[Arrival](), list[Move](), None
        for leaver in leaving:
            replacement = as_replacement(leaver.pod, self._picture.now)
            self._claims.make(leaver.pod, replacement)
            landing = self._landing(replacement, leaver, everybody, seats)
            if landing.why:
                return Found(why=landing.why if len(leaving) == 1 else f"{leaver.pod.key}: {landing.why}")
            row, is_sure, total = self._least(replacement, landing)
            self._scratch.place(replacement, row)
            arrived.append(Arrival(leaver, replacement, row))
            moves.append(Move(leaver.pod, leaver.pod.node_name, self._picture.node_name(row), is_sure))
        found = self._judged(tuple(moves), before, self._objectives.total() if total is None else total)
        if not found.why:
            self._waiting.keep(seats)
            self._leaving = everybody
            self._accepted.append((mark, arrived))
        return found

    def _landing(self, replacement: PodRecord, leaver: Leaver, leaving: Sequence[Leaver], seats: Seats) -> Landing:
        """Where a replacement may come to, whether those that leave are gone by then or not."""
        with self._waiting.seated(seats):
            landing = self._landings.find(replacement, leaver, leaving)
        if landing.why or self._landings.is_bound:
            return landing
        hinted = int(landing.rows[0]) if self._landings.is_sent(replacement) else None
        with still_there(self._scratch, (other for other in leaving if other is not leaver or not other.ends_first)):
            return landing.or_else(self._landings.find(replacement, leaver, leaving, hinted))

    def _least(self, replacement: PodRecord, landing: Landing) -> tuple[int, bool, float | None]:
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
            self._scratch.place(replacement, row)
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

    def _row_of(self, pod: PodRecord) -> int:
        return self._picture.cluster.placed[pod.uid].row
