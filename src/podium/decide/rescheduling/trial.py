"""The trial of one proposal, and the rehearsal of all accepted ones: pods leave, replacements are placed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter

import numpy as np
from msgspec import Struct, structs

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.replacement_placement import (
    MovedClaims,
    MovingPod,
    PendingPodSeats,
    ReplacementArrival,
    ReplacementPlacer,
    ReplacementRows,
    Seats,
    as_replacement,
    bring_back,
)
from podium.decide.rescheduling.round_robin import ROUNDING, Objectives, PartOf, PlannedMove
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation
from podium.framework.rescheduling.settings import Guidance, MoveCriteria, ReschedulerSettings


class TrialResult(Struct, frozen=True, eq=False):
    """The result of a trial: the moves and the sum of the objectives after them, or ``why`` there are none.

    ``part_of`` is the whole, if only a part of it is made. ``arrivals`` are the replacements, and ``seats`` those of
    pending pods meanwhile.
    """

    moves: tuple[PlannedMove, ...] = ()
    total: float = 0.0
    why: str = ""
    part_of: PartOf | None = None
    arrivals: tuple[ReplacementArrival, ...] = ()
    seats: Seats = ()


class ProposalTrials:
    """Tries proposals on top of what is planned already. Accepted proposals remain in ``transaction``."""

    def __init__(
        self,
        transaction: ClusterTransaction,
        picture: Picture,
        objectives: Objectives,
        claims: MovedClaims,
        settings: ReschedulerSettings,
    ) -> None:
        self._transaction = transaction
        self._picture = picture
        self._objectives = objectives
        self._settings = settings
        self._placer = ReplacementPlacer(transaction, picture, settings)
        self._claims = claims
        self._waiting = PendingPodSeats(transaction, picture)
        self._likeness = NodeEquivalence(picture)
        # Pods that were evicted earlier and are still present.
        self.going: Sequence[MovingPod] = ()
        # The pods that leave by the plan so far, and the accepted proposals, each with the savepoint before it.
        self._leaving: list[MovingPod] = []
        self._accepted: list[tuple[int, TrialResult]] = []

    def attempt(self, proposal: Proposal, before: float, part: tuple[Relocation, ...] = ()) -> TrialResult:
        """Try a proposal when the sum of the objectives is ``before``; nothing has changed if the result has a ``why``.

        With a ``part`` the whole is tried and only that part is made.
        """
        savepoint = self._transaction.savepoint()
        try:
            found = self._attempt(proposal.relocations, before)
            if part and not found.why:
                self._transaction.roll_back(savepoint)
                found = self._attempt(part, before, PartOf(len(proposal.relocations), before - found.total))
        except BaseException:
            self._transaction.roll_back(savepoint)
            raise
        if found.why:
            self._transaction.roll_back(savepoint)
        else:
            self._waiting.keep(found.seats)
            self._leaving += [arrival.leaver for arrival in found.arrivals]
            self._accepted.append((savepoint, found))
        return found

    def close(self, row: int) -> None:
        """Mark a node as being emptied: no pod is placed there from now on."""
        self._placer.closed.add(row)

    def rehearse(self, before: float) -> tuple[int, str]:
        """Return how many accepted proposals hold when all are made concurrently, and why no more do.

        ``before`` is the sum of the objectives before all of them. The other proposals are rolled back.
        """
        reason = ""
        while sum(len(accepted.arrivals) for _, accepted in self._accepted) > 1:
            why, position = self._rehearsed(before)
            if not why:
                break
            reason = why
            # Later proposals, which build on the one that fails, are rolled back with it.
            self._transaction.roll_back(self._accepted[position][0])
            del self._accepted[position:]
        return len(self._accepted), reason

    def _rehearsed(self, before: float) -> tuple[str, int]:
        """Return why the accepted proposals do not hold together and the index of the first one to drop.

        "" if they hold.
        """
        accepted = [result for _, result in self._accepted]
        # Among pods that move together, the one that finds its place last is evicted first.
        arrivals = [arrival for result in accepted for arrival in reversed(result.arrivals)]
        # Parts gain nothing, except the last one.
        counted = sum(len(result.arrivals) for result in accepted if result.part_of is None)
        try:
            with self._transaction.temporarily():
                self._move_together(arrivals)
                gain = before - self._objectives.total()
        except RehearsalError as error:
            of = next(
                position
                for position, result in enumerate(accepted)
                if any(arrival.leaver is error.leaver for arrival in result.arrivals)
            )
            return f"{error.leaver.pod.key}: {error.why}", of or len(accepted) // 2
        if gain >= self._settings.threshold * counted - ROUNDING:
            return "", len(accepted)
        return "together with the moves before it, it would gain too little", len(accepted) // 2

    def _move_together(self, arrivals: Sequence[ReplacementArrival]) -> None:
        """Make all moves, which ``transaction`` holds as planned, at the same time. Raises RehearsalError.

        Pods that were evicted earlier are still present. If a scheduler may choose among several rows that include the
        planned one, the planned one is taken. A replacement that fits nowhere at first waits until all evicted pods are
        gone, as do replacements that are created no sooner.
        """
        queue = sorted(arrivals, key=lambda arrival: -arrival.pod.priority)
        leaving = [arrival.leaver for arrival in arrivals]
        for arrival in queue:
            self._transaction.take_off(arrival.pod.uid)
        there = [*self.going, *leaving]
        bring_back(self._transaction, there)
        late = [arrival for arrival in queue if arrival.leaver.ends_first]
        late += self._place((arrival for arrival in queue if not arrival.leaver.ends_first), leaving)
        for leaver in there:
            self._transaction.take_off(leaver.pod.uid)
        for arrival in self._place(late, leaving):
            raise RehearsalError(arrival.leaver, "no other node takes it once all moves are under way")

    def _place(self, arrivals: Iterable[ReplacementArrival], leaving: Sequence[MovingPod]) -> list[ReplacementArrival]:
        """Place replacements one after another; return those that fit nowhere."""
        waiting = []
        for arrival in arrivals:
            options = self._placer.find(arrival.pod, arrival.leaver, leaving, arrival.row)
            if not options.fits:
                waiting.append(arrival)
            elif options.why:
                raise RehearsalError(arrival.leaver, f"{options.why}, once all moves are under way")
            else:
                row = arrival.row if arrival.row in options.rows else self._likeness.first(options.rows)
                self._transaction.place(arrival.pod, row)
        return waiting

    def _attempt(self, relocations: Sequence[Relocation], before: float, whole: PartOf | None = None) -> TrialResult:
        placed = self._picture.cluster.placed
        leaving = [MovingPod(relocation, placed[relocation.pod.uid].row) for relocation in relocations]
        for leaver in leaving:
            self._placer.leave(leaver.row)
            self._transaction.take_off(leaver.pod.uid)
        if self._settings.judgement is MoveCriteria.BLIND:
            blind = tuple(PlannedMove(leaver.pod, leaver.pod.node_name, None) for leaver in leaving)
            return self._trial_result(TrialResult(blind, self._objectives.total()), before)
        seats = self._waiting.seats({leaver.row for leaver in leaving}, min(leaver.pod.priority for leaver in leaving))
        # The highest acceptable sum, if a single move decides it.
        needed = self._settings.threshold if whole is None else 0.0
        most = before - needed + ROUNDING if len(leaving) == 1 else None
        arrived, moves, total = list[ReplacementArrival](), list[PlannedMove](), None
        for leaver in leaving:
            replacement = as_replacement(leaver.pod, self._picture.now)
            self._claims.make(leaver.pod, replacement)
            choice = self._choice(replacement, leaver, leaving, seats, most)
            if isinstance(choice, str):
                return TrialResult(why=choice if len(leaving) == 1 else f"{leaver.pod.key}: {choice}")
            self._transaction.place(replacement, choice.row)
            arrived.append(ReplacementArrival(leaver, replacement, choice.row))
            target = self._picture.node_name(choice.row)
            moves.append(PlannedMove(leaver.pod, leaver.pod.node_name, target, choice.is_sure))
            total = choice.total
        after = self._objectives.total() if total is None else total
        return self._trial_result(TrialResult(tuple(moves), after, "", whole, tuple(arrived), seats), before)

    def _choice(
        self, replacement: PodRecord, leaver: MovingPod, leaving: Sequence[MovingPod], seats: Seats, most: float | None
    ) -> _Choice | str:
        """Return where a replacement lands in the worst case, whether the pods of ``leaving`` are gone by then or not.

        If it should not be created, return why instead. The search stops once the sum exceeds ``most``.
        """
        all_leaving = [*self._leaving, *leaving]
        with self._transaction.temporarily():
            # Seated for now, so that the arrival of pending pods is not counted as a gain of a move.
            for pod, row in seats:
                self._transaction.place(pod, row)
            options = self._placer.find(replacement, leaver, all_leaving)
        if options.why:
            return options.why
        choice = self._worst(replacement, options, most)
        # If the rescheduler binds replacements, no scheduler's choice counts.
        if self._settings.guidance is Guidance.BIND or _is_above(choice, most):
            return choice
        hinted = choice.row if self._placer.is_sent(replacement) else None
        present = [other for other in leaving if other is not leaver or not other.ends_first]
        with self._transaction.temporarily():
            bring_back(self._transaction, (*self.going, *present))
            either = options.or_else(self._placer.find(replacement, leaver, all_leaving, hinted))
        if either.why:
            return either.why
        return choice if np.array_equal(either.rows, options.rows) else self._worst(replacement, either, most)

    def _worst(self, replacement: PodRecord, options: ReplacementRows, most: float | None) -> _Choice:
        """Return the row with the lowest gain where a replacement may land, or the first one above ``most``."""
        if most is not None and len(options.rows) > 1:
            # Most proposals are rejected, and one node is enough for that.
            first = self._with_objectives(replacement, _Choice(self._likeness.first(options.rows), options.is_sure))
            if _is_above(first, most):
                return first
        rows, are_all = self._likeness.unlike(options.rows)
        choices = [_Choice(row, are_all and options.is_sure) for row in rows]
        # A pod that the rescheduler binds has no other choice, so that its trial goes on there.
        if len(rows) == 1 and (most is None or self._settings.guidance is Guidance.BIND):
            return choices[0]
        worst = self._with_objectives(replacement, choices[0])
        for choice in choices[1:]:
            if _is_above(worst, most):
                break
            worst = max(worst, self._with_objectives(replacement, choice), key=attrgetter("total"))
        return worst

    def _with_objectives(self, replacement: PodRecord, choice: _Choice) -> _Choice:
        """Return a choice with the sum of the objectives that results from it."""
        with self._transaction.temporarily():
            self._transaction.place(replacement, choice.row)
            return structs.replace(choice, total=self._objectives.total())

    def _trial_result(self, tried: TrialResult, before: float) -> TrialResult:
        """Return the result if the sum falls by the threshold for each of the moves, otherwise why it is none.

        For a part of a whole it is enough that the sum does not rise.
        """
        gain, threshold, moves = before - tried.total, self._settings.threshold, tried.moves
        if gain >= (0.0 if tried.part_of is not None else threshold * len(moves)) - ROUNDING:
            return tried
        if tried.part_of is not None:
            return TrialResult(why=f"a part of its moves alone would make it worse by {-gain:.3g}")
        where = "" if len(moves) > 1 or moves[0].target is None else f" on {moves[0].target}"
        each = "" if len(moves) == 1 else " for each of them"
        found = f"would make it better by {gain:.3g}"
        if gain <= ROUNDING:
            found = f"would make it worse by {-gain:.3g}" if gain < -ROUNDING else "would not make it better"
        return TrialResult(why=f"a replacement{where} {found}, and the threshold is {threshold:.3g}{each}")


class _Choice(Struct, frozen=True):
    """A row for a replacement, and the sum of the objectives with it there; None if it was not computed."""

    row: int
    is_sure: bool
    total: float | None = None


def _is_above(choice: _Choice, most: float | None) -> bool:
    return most is not None and choice.total is not None and choice.total > most


MOST_KINDS = 16
"""The most distinct nodes that are evaluated to find the one with the lowest gain."""

_MOST_ROWS = 256


class NodeEquivalence:
    """Distinguishes the nodes of a cluster while pods come and go.

    Two nodes are equivalent if they differ in their names only: they have equal capacity, requests, labels, taints and
    signals, and pods of the same classes and owners.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._nodes = picture.cluster.nodes

    def first(self, rows: Int64s) -> int:
        """Return the first of the rows that `unlike` returns."""
        return int(rows[self._nodes.name_hash[rows].argmin()])

    def unlike(self, rows: Int64s) -> tuple[list[int], bool]:
        """Return one row of each equivalence class, and whether these are all classes.

        Classes are ordered by the hash of node names.
        """
        if len(rows) == 1:
            return [int(rows[0])], True
        examined = rows[np.argsort(self._nodes.name_hash[rows], kind="stable")[:_MOST_ROWS]]
        kinds: dict[Hashable, int] = {}
        for row, amounts in zip(examined.tolist(), self._amounts(examined), strict=True):
            node = self._nodes.node(row)
            name = node.metadata.name
            labels = frozenset((key, value) for key, value in node.metadata.labels.items() if value != name)
            pods = self._picture.cluster.pods_on(row)
            classes = tuple(sorted([(pod.pod_class.id, pod.owner_uid) for pod in pods]))
            kinds.setdefault((amounts, labels, self._picture.signals.of_node(name), classes), row)
        found = list(kinds.values())
        return found[:MOST_KINDS], len(found) <= MOST_KINDS and len(rows) <= _MOST_ROWS

    def _amounts(self, rows: Int64s) -> list[tuple[int, ...]]:
        """Return the amounts of each row."""
        nodes = self._nodes
        amounts = (nodes.allocatable[:, rows], nodes.requested[:, rows], nodes.nonzero_requested[:, rows])
        numbers = (nodes.allowed_pods[rows], nodes.pod_count[rows], nodes.taint_group[rows])
        return [tuple(of_row) for of_row in np.concatenate([*amounts, numbers]).T.tolist()]


class RehearsalError(Exception):
    """A replacement would land on a wrong node or on none; the message names it and the reason."""

    def __init__(self, leaver: MovingPod, why: str) -> None:
        super().__init__(why)
        self.leaver = leaver
        self.why = why
