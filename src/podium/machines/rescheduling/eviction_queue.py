"""Evictions that were decided on, asked for one after the other.

Between two of them the cluster goes on: before each but the first it is found out whether the rest of its plan still
holds, and what does not is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from podium.decide.rescheduling.plan import Move as Planned
from podium.decide.rescheduling.plan import PlannedMoves
from podium.machines.parts.backoff import Backoff
from podium.machines.parts.deadlines import NEVER, Deadline, earliest

_SECOND = 10**9
_FIRST_WAIT_NS = 10 * _SECOND
_LONGEST_WAIT_NS = 300 * _SECOND
# A pod that was refused so often in a row is not expected to be let go the next time.
_STUCK_AFTER = 2


@dataclass(slots=True, eq=False)
class Ordered:
    """Moves that are made together, and those that are still to be begun, in this order."""

    planned: PlannedMoves
    left: list[Planned]

    @property
    def was_begun(self) -> bool:
        """Whether some pod of it has been asked to go."""
        return len(self.left) < len(self.planned.moves)


class EvictionQueue:
    """What is still to be asked for; ``asked`` is the move whose answer is awaited, with its plan."""

    def __init__(self) -> None:
        self._orders: deque[Ordered] = deque()
        self.asked: tuple[Planned, PlannedMoves] | None = None

    def __bool__(self) -> bool:
        """Whether there is something to ask for, or an answer to come."""
        return bool(self._orders) or self.asked is not None

    def put(self, planned: Iterable[PlannedMoves]) -> None:
        """These moves are to be made.

        Whoever finds its place last goes first: others may count on the room that it leaves, nobody on theirs.
        """
        self._orders.extend(Ordered(moves, list(reversed(moves.moves))) for moves in planned)

    def next(self) -> Ordered | None:
        """What is to be asked for next, None while an answer is awaited or nothing is left."""
        return self._orders[0] if self._orders and self.asked is None else None

    def sources(self) -> set[str]:
        """The nodes that pods are still to be evicted from."""
        return {move.source for order in self._orders for move in order.left}

    def ask(self) -> tuple[Planned, PlannedMoves]:
        """The next move is asked for; it, and with which others it is made."""
        order = self._orders[0]
        move = order.left.pop(0)
        if not order.left:
            self._orders.popleft()
        self.asked = move, order.planned
        return self.asked

    def skip(self) -> None:
        """The next moves are not made."""
        self._orders.popleft()

    def answered(self, *, is_done: bool) -> None:
        """An answer came; where that was a refusal, the rest of its moves is left."""
        if self.asked is None:
            raise ValueError("nothing was asked for")
        _, planned = self.asked
        self.asked = None
        if not is_done and self._orders and self._orders[0].planned is planned:
            self._orders.popleft()

    def clear(self) -> None:
        """Nothing more is asked for."""
        self._orders.clear()


class Refusals:
    """Pods whose evictions were refused, which are left alone until it is time for another try."""

    def __init__(self) -> None:
        self._backoff: Backoff[str] = Backoff(_FIRST_WAIT_NS, _LONGEST_WAIT_NS)
        self._until: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._until

    @property
    def uids(self) -> frozenset[str]:
        """The pods."""
        return frozenset(self._until)

    def refuse(self, uid: str, now: int, wait_ns: int) -> None:
        """A pod's eviction was refused; the server asks to wait for ``wait_ns``."""
        self._backoff.fail(uid, now, wait_ns)
        self._until[uid] = self._backoff.until(uid, now) or now

    def pass_time(self, now: int) -> None:
        """Let those go whose time has come."""
        for uid in [uid for uid, until_ns in self._until.items() if until_ns <= now]:
            del self._until[uid]

    def forget(self, uid: str) -> None:
        """A pod is gone, or going."""
        self._until.pop(uid, None)
        self._backoff.forget(uid)

    def deadline(self) -> Deadline:
        """When the next try may be; that it is refused once more is no news."""
        if not self._until:
            return NEVER
        is_hopeful = any(self._backoff.failures(uid) < _STUCK_AFTER for uid in self._until)
        return Deadline(earliest(self._until.values()), is_hopeful)
