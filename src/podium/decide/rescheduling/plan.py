"""What a rescheduler decides to do, and what it left alone."""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A pod that is to leave its node ``source``, for ``target``; None where nobody has looked for one.

    ``is_sure``: of the nodes that the pod's scheduler likes equally, none would gain less than was counted on.
    ``has_ended``: the pod runs no more, and goes so that the pods of its controller keep off the node.
    """

    pod: PodRecord
    source: str
    target: str | None
    is_sure: bool = True
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class PartOf:
    """The whole of which some moves are a part: how many pods there are left to move, and what the whole gains."""

    pods: int
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMoves:
    """Moves that are made together, why, and by how much the sum of the objectives falls by them.

    Those that are only ``part_of`` a whole need not gain anything by themselves.
    """

    policy: str
    reason: str
    moves: tuple[Move, ...]
    gain: float
    avoid_for_ns: int | None = None
    part_of: PartOf | None = None

    def comes_after(self, move: Move) -> Move | None:
        """The first of them that takes the room which one of them leaves; None where nobody does.

        Of pods of one owner it is not known which of their replacements comes where.
        """
        return next(
            (
                other
                for other in self.moves
                if other.target == move.source and other.pod.owner_uid != move.pod.owner_uid
            ),
            None,
        )

    def is_awaited(self, move: Move) -> bool:
        """Whether one of them takes the room that another leaves."""
        return any(self.comes_after(other) is move for other in self.moves)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A proposal that came to nothing: its first pod, and why."""

    policy: str
    pod: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Moves in the order in which they were found, and what they come to.

    ``before`` and ``after`` are the objectives by policy, each by itself, as things stand and with all moves made.
    ``trials`` is how many moves were tried; ``is_cut``: more would have been, if the limit had been higher. ``stopped``
    says why nobody else was looked at, where a limit for all was reached. ``errors`` are those of policies that failed.
    """

    planned: tuple[PlannedMoves, ...]
    left_alone: tuple[LeftAlone, ...]
    before: dict[str, float]
    after: dict[str, float]
    trials: int
    is_cut: bool
    stopped: str = ""
    errors: tuple[str, ...] = ()
