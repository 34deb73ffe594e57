"""One proposal tried: its pods leave, their replacements go where their schedulers send them, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.kept_room import Seats, WaitingPods
from podium.decide.rescheduling.landing import Landing, Landings, as_replacement
from podium.decide.rescheduling.likeness import Likeness
from podium.decide.rescheduling.moments import Arrival, Leaver, still_there
from podium.decide.rescheduling.moved_claims import MovedClaims
from podium.decide.rescheduling.objectives import ROUNDING, Objectives
from podium.decide.rescheduling.plan import Move, PartOf
from podium.decide.rescheduling.rehearsal import Rehearsal, RehearsalError
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.framework.rescheduling.settings import Judgement, ReschedulerSettings


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What came of a trial: the moves and the sum of the objectives after them, or ``why`` there are none.

    ``part_of`` is the whole, where only a part of it is made.
    """

    moves: tuple[Move, ...] = ()
    total: float = 0.0
    why: str = ""
    part_of: PartOf | None = None


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
        self._likeness = Likeness(picture)
        # Pods that were evicted before, and are still there.
        self.going: Sequence[Leaver] = ()
        # Of what is planned already: who leaves, and what there is to know by proposal.
        self._leaving: list[Leaver] = []
        self._accepted: list[_Accepted] = []

    def attempt(self, proposal: Proposal, before: float, part: tuple[Relocation, ...] = ()) -> Found:
        """Try a proposal where the sum of the objectives is ``before``; nothing has changed if there is a ``why``.

        With a ``part`` it is tried whole, and only that part is made.
        """
        mark = self._scratch.mark()
        try:
            found = self._attempt(proposal.relocations, before)
            if part and not found.found.why:
                self._scratch.roll_back(mark)
                whole = PartOf(len(proposal.relocations), before - found.found.total)
                found = self._attempt(part, before, whole)
        except BaseException:
            self._scratch.roll_back(mark)
            raise
        if found.found.why:
            self._scratch.roll_back(mark)
        else:
            self._accept(mark, found)
        return found.found

    def close(self, row: int) -> None:
        """A node is being emptied: nobody comes there from now on."""
        self._landings.closed.add(row)

    def rehearse(self, before: float) -> tuple[int, str]:
        """How many of the accepted proposals hold together when all are made at once, and why no more do.

        ``before`` is the sum of the objectives before all of them. The others are taken back.
        """
        reason = ""
        while sum(len(accepted.arrivals) for accepted in self._accepted) > 1:
            why, position = self._rehearsed(before)
            if not why:
                break
            reason = why
            # What stood on the one that fails goes with it.
            self._scratch.roll_back(self._accepted[position].mark)
            del self._accepted[position:]
        return len(self._accepted), reason

    def _rehearsed(self, before: float) -> tuple[str, int]:
        """Why the accepted proposals do not hold together, and which of them is the first to go; or "", and none."""
        # Of pods that move together, the one that finds its place last is evicted first.
        everybody = [arrival for accepted in self._accepted for arrival in reversed(accepted.arrivals)]
        # Parts gain nothing, until the last of them.
        counted = sum(len(accepted.arrivals) for accepted in self._accepted if not accepted.is_part)
        mark = self._scratch.mark()
        try:
            Rehearsal(self._scratch, self._picture, self._landings, everybody, self.going).play()
            gain = before - self._objectives.total()
        except RehearsalError as error:
            of = next(
                position
                for position, accepted in enumerate(self._accepted)
                if any(arrival.leaver is error.leaver for arrival in accepted.arrivals)
            )
            return f"{error.leaver.pod.key}: {error.why}", of or len(self._accepted) // 2
        finally:
            self._scratch.roll_back(mark)
        if gain >= self._settings.threshold * counted - ROUNDING:
            return "", len(self._accepted)
        return "together with the moves before it, it would gain too little", len(self._accepted) // 2

    def _accept(self, mark: int, tried: _Tried) -> None:
        """What was tried stands."""
        self._waiting.keep(tried.seats)
        self._leaving += [arrival.leaver for arrival in tried.arrivals]
        self._accepted.append(_Accepted(mark, tried.arrivals, tried.found.part_of is not None))

    def _attempt(self, relocations: Sequence[Relocation], before: float, whole: PartOf | None = None) -> _Tried:
        leaving = [Leaver(relocation, self._row_of(relocation.pod)) for relocation in relocations]
        for leaver in leaving:
            self._landings.leave(leaver.row)
            self._scratch.take_off(leaver.pod.uid)
        if self._settings.judgement is Judgement.BLIND:
            blind = tuple(Move(leaver.pod, leaver.pod.node_name, None) for leaver in leaving)
            return _Tried(self._judged(blind, before, self._objectives.total(), None))
        seats = self._waiting.seats({leaver.row for leaver in leaving}, min(leaver.pod.priority for leaver in leaving))
        # What the sum may come to at most, where one move decides it.
        needed = self._settings.threshold if whole is None else 0.0
        most = before - needed + ROUNDING if len(leaving) == 1 else None
        arrived, moves, total = list[Arrival](), list[Move](), None
        for leaver in leaving:
            replacement = as_replacement(leaver.pod, self._picture.now)
            self._claims.make(leaver.pod, replacement)
            choice = self._choice(replacement, leaver, leaving, seats, most)
            if isinstance(choice, str):
                return _Tried(Found(why=choice if len(leaving) == 1 else f"{leaver.pod.key}: {choice}"))
            self._scratch.place(replacement, choice.row)
            arrived.append(Arrival(leaver, replacement, choice.row))
            target = self._picture.node_name(choice.row)
            moves.append(Move(leaver.pod, leaver.pod.node_name, target, choice.is_sure))
            total = choice.total
        after = self._objectives.total() if total is None else total
        return _Tried(self._judged(tuple(moves), before, after, whole), tuple(arrived), seats)

    def _choice(
        self, replacement: PodRecord, leaver: Leaver, leaving: Sequence[Leaver], seats: Seats, most: float | None
    ) -> _Choice | str:
        """Where a replacement comes to, of where it may: whether those ``leaving`` with it are gone by then or not.

        Or why it should not. Nobody looks any further once the sum is above ``most``.
        """
        everybody = [*self._leaving, *leaving]
        with self._waiting.seated(seats):
            landing = self._landings.find(replacement, leaver, everybody)
        if landing.why:
            return landing.why
        choice = self._worst(replacement, landing, most)
        if self._landings.is_bound or _is_above(choice, most):
            return choice
        hinted = choice.row if self._landings.is_sent(replacement) else None
        present = [other for other in leaving if other is not leaver or not other.ends_first]
        with still_there(self._scratch, (*self.going, *present)):
            either = landing.or_else(self._landings.find(replacement, leaver, everybody, hinted))
        if either.why:
            return either.why
        return choice if np.array_equal(either.rows, landing.rows) else self._worst(replacement, either, most)

    def _worst(self, replacement: PodRecord, landing: Landing, most: float | None) -> _Choice:
        """Of the rows where a replacement may come to, the one that gains least; or the first one above ``most``."""
        if most is not None and len(landing.rows) > 1:
            # Most proposals come to nothing, for which one node is enough.
            first = _Choice(self._likeness.first(landing.rows), landing.is_sure, None)
            first = self._measured(replacement, first)
            if _is_above(first, most):
                return first
        rows, are_all = self._likeness.unlike(landing.rows)
        choices = [_Choice(row, are_all and landing.is_sure, None) for row in rows]
        if len(rows) == 1 and most is None:
            return choices[0]
        worst = self._measured(replacement, choices[0])
        for choice in choices[1:]:
            if _is_above(worst, most):
                break
            worst = max(worst, self._measured(replacement, choice), key=attrgetter("total"))
        return worst

    def _measured(self, replacement: PodRecord, choice: _Choice) -> _Choice:
        """A choice, and what the sum comes to by it."""
        mark = self._scratch.mark()
        self._scratch.place(replacement, choice.row)
        total = self._objectives.total()
        self._scratch.roll_back(mark)
        return replace(choice, total=total)

    def _judged(self, moves: tuple[Move, ...], before: float, after: float, whole: PartOf | None) -> Found:
        """The moves, if the sum falls by the threshold for each of them; or does not rise, by a part of a whole."""
        gain, threshold = before - after, self._settings.threshold
        if whole is not None:
            if gain >= -ROUNDING:
                return Found(moves, after, part_of=whole)
            return Found(why=f"a part of its moves alone would make it worse by {-gain:.3g}")
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


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """What came of a trial, who comes, and where waiting pods sit meanwhile."""

    found: Found
    arrivals: tuple[Arrival, ...] = ()
    seats: Seats = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Accepted:
    """What is planned, and what ``scratch`` was like before."""

    mark: int
    arrivals: tuple[Arrival, ...]
    is_part: bool


@dataclass(frozen=True, slots=True)
class _Choice:
    """A row for a replacement, and the sum of the objectives with it there, None where that was not asked."""

    row: int
    is_sure: bool
    total: float | None


def _is_above(choice: _Choice, most: float | None) -> bool:
    return most is not None and choice.total is not None and choice.total > most
