"""The answers of filters for many nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Int64s
from podium.framework.status import SUCCESS, Code, Status


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One filter's answer for each position of a view.

    ``codes`` is ``[n]`` non-negative; 0 means that the pod fits. ``status`` turns any other code into its reasons, so
    that text is made only for the codes that somebody looks at. Codes stay below 2**32. ``has_errors``: some of these
    may be errors, which end the attempt, and not refusals.
    """

    codes: Int64s
    status: Callable[[int], Status]
    has_errors: bool = False

    @classmethod
    def none(cls, size: int) -> Verdicts:
        """Refuse nothing."""
        return cls(np.zeros(size, dtype=np.int64), lambda _: SUCCESS)

    @classmethod
    def where(cls, refused: npt.NDArray[np.bool_], status: Status) -> Verdicts:
        """Refuse, with one status, where ``refused`` is true."""
        return cls(refused.astype(np.int64), lambda _: status)

    @classmethod
    def choose(cls, codes: npt.NDArray[Any], statuses: tuple[Status, ...]) -> Verdicts:
        """Code k means ``statuses[k]``; ``statuses[0]`` is success."""
        return cls(codes.astype(np.int64), statuses.__getitem__)


_UNSCHEDULABLE = Code.UNSCHEDULABLE
_NO_POSITIONS: Int64s = np.empty(0, dtype=np.int64)

Decoders = dict[int, tuple[str, Callable[[int], Status]]]


class Counted:
    """What outcomes with the same entries share: on how many rows each stands, and what was worked out of that.

    ``numbers`` is None where nobody has counted; then it is worked out for one outcome alone.
    """

    __slots__ = ("numbers", "refusals", "statuses", "tally")

    def __init__(self, numbers: Mapping[int, int] | None = None) -> None:
        self.numbers = numbers
        self.tally: list[tuple[int, int]] | None = None
        self.refusals: list[tuple[Status, int]] | None = None
        # Answers that were asked for before, by the entry and who explains it.
        self.statuses: dict[tuple[int, Callable[[int], Status]], Status] = {}


class Outcome:
    """All filters' answers together: for each position of a view, the first plugin that refused, with its reasons.

    ``refused`` is ``[n]``: 0 where the pod fits, otherwise a number that `status_of` understands. The plugin's place in
    the profile (from 1) is its upper half, so the smallest number belongs to the first plugin that refused. `ABSENT`
    marks rows without a node. ``position`` is a place in the log of changes to rows: where two outcomes for one pod
    class, priority and set of filters have one, an entry differs only if its row changed between them, or if one of the
    pods is nominated to it. It is -1 where that does not hold.
    """

    __slots__ = ("_counted", "decoders", "has_errors", "position", "refused")

    SHIFT = 32
    ABSENT = -1

    def __init__(self, size: int) -> None:
        self.refused: Int64s = np.zeros(size, dtype=np.int64)
        self.decoders: Decoders = {}
        self.has_errors = False
        self.position = -1
        self._counted = Counted()

    @classmethod
    def of(cls, refused: Int64s, decoders: Decoders, counted: Counted | None = None) -> Outcome:
        """An outcome that was worked out before; ``counted`` is what it shares with others, if its entries are counted.

        With that, ``refused`` is not to be written to.
        """
        outcome = cls.__new__(cls)
        outcome.refused, outcome.decoders = refused, decoders
        outcome.has_errors, outcome.position = False, -1
        outcome._counted = Counted() if counted is None else counted
        return outcome

    def add(self, index: int, plugin: str, verdicts: Verdicts) -> None:
        """Take in the answer of the plugin at ``index`` (counted from 1, in the profile's order)."""
        if not verdicts.codes.any():
            return
        self.decoders[index] = (plugin, verdicts.status)
        self.has_errors |= verdicts.has_errors
        self.merge(np.where(verdicts.codes != 0, verdicts.codes + (index << self.SHIFT), 0))

    def merge(self, refused: Int64s) -> None:
        """Take in refusals that were worked out before; of two for one position the first plugin's stands."""
        mine = self.refused
        np.copyto(mine, refused, where=(mine == 0) | ((refused != 0) & (refused < mine)))

    def override(self, positions: Int64s, other: Outcome) -> None:
        """Where ``other``, an outcome for ``positions``, refused, its answer stands."""
        refused = other.refused != 0
        self.refused[positions[refused]] = other.refused[refused]
        self.decoders.update(other.decoders)
        self.has_errors |= other.has_errors

    def refuse_all(self, status: Status, present: npt.NDArray[np.bool_]) -> None:
        """Refuse every node that is ``present`` with one status, given before any filter was asked."""
        self.refused = np.where(present, 1, Outcome.ABSENT)
        self.decoders[0] = (status.plugin, lambda _: status)

    def undecided(self, index: int) -> Int64s:
        """The positions that no plugin before ``index`` refused."""
        return np.flatnonzero((self.refused == 0) | (self.refused >> self.SHIFT > index))

    def tally(self) -> list[tuple[int, int]]:
        """Each different refusal with the number of rows that got it, in the order of plugins; worked out once."""
        counted = self._counted
        if counted.tally is None:
            if counted.numbers is not None:
                found = [(refused, number) for refused, number in counted.numbers.items() if refused > 0]
            else:
                values, counts = np.unique(self.refused[self.refused > 0], return_counts=True)
                found = list(zip(values.tolist(), counts.tolist(), strict=True))
            counted.tally = sorted(found)
        return counted.tally

    def refusals(self) -> list[tuple[Status, int]]:
        """Each different refusal as `tally` has it, with its reasons; worked out once."""
        counted = self._counted
        if counted.refusals is None:
            counted.refusals = [(self.status_of(refused), number) for refused, number in self.tally()]
        return counted.refusals

    def error(self) -> Status | None:
        """What went wrong on the first of the nodes on which something did, by row; None where nothing did."""
        if not self.has_errors:
            return None
        positions = np.flatnonzero(self.refused > 0).tolist()
        found = (self.status(position) for position in positions)
        return next((status for status in found if status.code is Code.ERROR), None)

    def resolvable(self) -> Int64s:
        """The positions whose refusal preemption might lift, ascending: Unschedulable, and not Unresolvable."""
        hopeful = np.zeros(len(self.refused), dtype=np.bool_)
        for refused, _ in self.tally():
            if self.status_of(refused).code is _UNSCHEDULABLE:
                hopeful |= self.refused == refused
        return np.flatnonzero(hopeful)

    def is_resolvable(self, position: int) -> bool:
        """Whether preemption might lift the refusal at a position."""
        refused: int = self.refused.item(position)
        return refused > 0 and self.status_of(refused).code is _UNSCHEDULABLE

    @property
    def looked_at(self) -> int:
        """How many nodes there are at the positions."""
        numbers = self._counted.numbers
        if numbers is None:
            return int((self.refused != Outcome.ABSENT).sum())
        return sum(numbers.values()) - numbers.get(Outcome.ABSENT, 0)

    @property
    def feasible(self) -> Int64s:
        """The positions where the pod fits, ascending."""
        numbers = self._counted.numbers
        if numbers is not None and 0 not in numbers:
            return _NO_POSITIONS
        return np.flatnonzero(self.refused == 0)

    def status(self, position: int) -> Status:
        """The answer at a position."""
        return self.status_of(self.refused.item(position))

    def status_of(self, refused: int) -> Status:
        """The answer that an entry of ``refused`` stands for. Raises KeyError for a row without a node."""
        if refused == 0:
            return SUCCESS
        _, status = self.decoders[refused >> self.SHIFT]
        statuses = self._counted.statuses
        known = statuses.get((refused, status))
        if known is None:
            known = statuses[refused, status] = decoded(refused, self.decoders)
        return known


def decoded(refused: int, decoders: Decoders) -> Status:
    """The answer that an entry of an outcome stands for, where that is a refusal."""
    plugin, status = decoders[refused >> Outcome.SHIFT]
    return status(refused & ((1 << Outcome.SHIFT) - 1)).by(plugin)
