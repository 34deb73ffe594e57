"""Whether a gang fits without some victims, wherever its members may go: all ways to place them are tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.shapes import Shape, Shapes, shape_of
from podium.decide.preempting.gang.world import World
from podium.framework.cycle_state import CycleState

_Placed = frozenset[tuple[tuple[int, int], int]]
# Room is counted in such parts of what a node offers.
_PARTS = 10_000


def first_packing(
    play: Play, shapes: Shapes, worlds: Sequence[World], most_steps: int
) -> tuple[World | None, list[Step], bool]:
    """The first world in which enough members fit as things are, and where each goes; the play is as it was before.

    None where there is none; and whether the steps were not enough to try all ways before that.
    """
    is_cut = False
    for world in worlds:
        packing = Packing(play, shapes, world.allowed, most_steps)
        steps = packing.run()
        play.roll_back(play.base)
        if steps is not None:
            return world, steps, is_cut
        is_cut |= packing.is_cut
    return None, [], is_cut


class Packing:
    """Places as many members as are needed, in the play's scratch, on the rows ``allowed``.

    Members of one class and priority, for whom nothing is reserved, are alike: which of them is where tells nothing
    apart. Each goes first where it leaves the least room. Where their order is free, the largest come first. Where
    ``partners`` are to be kept none comes alone. ``is_cut``: the steps were not enough to try all ways.
    """

    def __init__(
        self,
        play: Play,
        shapes: Shapes,
        allowed: Bools,
        most_steps: int,
        partners: Partners | None = None,
    ) -> None:
        self.is_cut = False
        self._play = play
        self._gang = shapes.gang
        self._shapes = shapes
        self._allowed = allowed
        self._most_steps = most_steps
        self._partners = partners
        self._steps: list[Step] = []
        self._failed: set[tuple[int, _Placed]] = set()
        self._counter: Counter[tuple[int, int]] = Counter()
        # By shape, ``[rows]``: which take such a member as things are. Kept where each row answers for itself.
        self._fits: dict[Shape, Bools] = {}

    def run(self) -> list[Step] | None:
        """Where members go, in their order; None where too few find a place. They stay there, or are on no node."""
        if self._shapes.is_apart and not self._shapes.any_place_will_do:
            self._fits = {shape: self._fitting(member) for shape, member in self._shapes.members.items()}
        if not self._descend(0):
            return None
        place = {member.uid: number for number, member in enumerate(self._gang.members)}
        return sorted(self._steps, key=lambda step: place[step[0].uid])

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
        member = self._shapes.in_order[number]
        state, rows = self._rows_of(member)
        for row in self._ordered(member, rows).tolist():
            if self._partners is not None and self._partners.leave_alone(member, row):
                continue
            mark = play.mark()
            if play.put_asked(state, member, row) and self._with(member, row, number):
                return True
            play.roll_back(mark)
            if self._shapes.any_place_will_do or self.is_cut:
                return False
        if self._descend(number + 1):
            return True
        self._failed.add(key)
        return False

    def _with(self, member: PodRecord, row: int, number: int) -> bool:
        """Go on with a member that has its place."""
        place = member.pod_class.id if not member.made_claims else -2 - number, row
        before = {shape: bool(fits[row]) for shape, fits in self._fits.items()}
        for shape, fits in self._fits.items():
            only = np.array([row], dtype=np.int64)
            fits[row] = bool(len(self._play.fitting(self._shapes.members[shape], only)[1]))
        self._steps.append((member, row))
        self._counter[place] += 1
        if self._descend(number + 1):
            return True
        self._steps.pop()
        self._counter[place] -= 1
        if not self._counter[place]:
            del self._counter[place]
        for shape, fits in self._fits.items():
            fits[row] = before[shape]
        return False

    def _fitting(self, member: PodRecord) -> Bools:
        fits = np.zeros(len(self._allowed), dtype=np.bool_)
        fits[self._play.fitting(member)[1]] = True
        return fits

    def _rows_of(self, member: PodRecord) -> tuple[CycleState, Int64s]:
        """The rows that take a member as things are, and what plugins have prepared for it."""
        fits = self._fits.get(shape_of(member))
        if fits is None:
            return self._play.fitting(member)
        return self._play.asked(member)[0], np.flatnonzero(fits)

    def _ordered(self, member: PodRecord, rows: Int64s) -> Int64s:
        """The rows that are allowed: those first where it leaves the least room, then by the hashes of their names."""
        rows = rows[self._allowed[rows]]
        nodes, requests = self._play.cluster.nodes, member.pod_class.requests
        wanted = sorted(resource for resource, amount in requests.items() if amount > 0)
        amounts = np.array([requests[resource] for resource in wanted], dtype=np.int64)
        offered: Int64s = nodes.allocatable[wanted][:, rows]
        free = offered - nodes.requested[wanted][:, rows] - amounts[:, None]
        room = np.zeros(len(rows), dtype=np.int64)
        if wanted:
            room = (free * _PARTS // np.maximum(offered, 1)).sum(axis=0)
        ordered: Int64s = rows[np.lexsort((nodes.name_hash[rows], room))]
        return ordered
