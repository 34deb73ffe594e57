"""Whether a gang fits without some victims, wherever its members may go: all ways to place them are tried."""

from __future__ import annotations

from collections import Counter

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play

_Placed = frozenset[tuple[tuple[int, int], int]]


class Packing:
    """Places as many members as are needed, in the play's scratch, on the rows ``allowed``.

    Members of one class and priority, for whom nothing is reserved, are alike: which of them is where tells nothing
    apart. Where ``partners`` are to be kept none comes alone. ``is_cut``: the steps were not enough to try all ways.
    """

    def __init__(
        self, play: Play, gang: Gang, allowed: Bools, most_steps: int, partners: Partners | None = None
    ) -> None:
        self.is_cut = False
        self._play = play
        self._gang = gang
        self._allowed = allowed
        self._most_steps = most_steps
        self._partners = partners
        self._steps: list[Step] = []
        self._failed: set[tuple[int, _Placed]] = set()
        self._any_will_do = any_place_will_do(play, gang)
        self._counter: Counter[tuple[int, int]] = Counter()

    def run(self) -> list[Step] | None:
        """Where members go, in their order; None where too few find a place. They stay there, or are on no node."""
        return list(self._steps) if self._descend(0) else None

    def _descend(self, number: int) -> bool:
        gang, play = self._gang, self._play
        if len(self._steps) == gang.needed:
            return True
        if len(self._steps) + len(gang.members) - number < gang.needed:
            return False
        key = number, frozenset(self._counter.items())
        if key in self._failed:
            return False
        if play.steps >= self._most_steps:
            self.is_cut = True
            return False
        member = gang.members[number]
        state, rows = play.fitting(member)
        for row in self._ordered(rows).tolist():
            if self._partners is not None and self._partners.leave_alone(member, row):
                continue
            mark = play.mark()
            if play.put_asked(state, member, row) and self._with(member, row, number):
                return True
            play.roll_back(mark)
            if self._any_will_do or self.is_cut:
                return False
        if self._descend(number + 1):
            return True
        self._failed.add(key)
        return False

    def _with(self, member: PodRecord, row: int, number: int) -> bool:
        """Go on with a member that has its place."""
        place = member.pod_class.id if not member.made_claims else -2 - number, row
        self._steps.append((member, row))
        self._counter[place] += 1
        if self._descend(number + 1):
            return True
        self._steps.pop()
        self._counter[place] -= 1
        if not self._counter[place]:
            del self._counter[place]
        return False

    def _ordered(self, rows: Int64s) -> Int64s:
        """The rows that are allowed, by the hashes of their names."""
        rows = rows[self._allowed[rows]]
        ordered: Int64s = rows[np.argsort(self._play.cluster.nodes.name_hash[rows], kind="stable")]
        return ordered


def any_place_will_do(play: Play, gang: Gang) -> bool:
    """Whether it is all the same for the others to which of the nodes that take it each member goes.

    So it is where members are alike, filters answer for each row by that row, and nothing but room is reserved. Then as
    many find a place as ever can.
    """
    first = gang.members[0]
    alike = all(member.pod_class is first.pod_class and member.priority == first.priority for member in gang.members)
    return alike and play.handle.is_row_local(play.asked(first)[0]) and not play.reserves(gang.members)
