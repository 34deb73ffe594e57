"""A way out found member by member: each goes where it costs least, beside those that went before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.openings import Ground, Openings, Taking
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.units import union
from podium.decide.preempting.wide.wide_settings import Wanted
from podium.decide.preempting.wide.wide_trials import WideTrials

Step = tuple[PodRecord, int]
"""A member, and its row."""

# After so many openings that were of no use it is worked out anew which there are.
_MOST_MISSES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """How members are led to their places.

    They go to the rows ``allowed``. ``floors`` is ``[criteria]``, what the victims cost at least, and with
    ``makes_room`` openings for several members come first. Where ``partners`` are to be kept none comes alone.
    """

    allowed: Bools
    floors: Int64s
    makes_room: bool = False
    partners: Partners | None = None


class Grounds:
    """The openings for each class of members as things were before anybody came or went."""

    def __init__(self, play: Play, taking: Taking, gang: Gang) -> None:
        self._play = play
        self._taking = taking
        self._priority = gang.priority
        self._found: dict[tuple[PodClass, int], Ground] = {}

    def of(self, member: PodRecord) -> Ground:
        """Those for pods like a member; asked for first when nothing has changed."""
        key = member.pod_class, member.priority
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self.anew(member)
        return found

    def anew(self, member: PodRecord) -> Ground:
        """Those as things are."""
        return Ground(self._play, self._taking, member, asker_for(member, self._priority))


def asker_for(member: PodRecord, priority: int) -> PodRecord:
    """A member as it asks for victims: with the gang's priority, and nominated to no node."""
    return replace(member, priority=priority, nominated_node_name="")


class Descent:
    """One way down, in the play's scratch. ``steps`` and ``victims`` are what it came to."""

    def __init__(
        self, play: Play, taking: Taking, gang: Gang, grounds: Grounds, manner: Manner, most_steps: int
    ) -> None:
        self.steps: list[Step] = []
        self.victims: list[PodRecord] = []
        # The rows that victims left, and those of them on which not all of these may be needed in the end.
        self._left: set[int] = set()
        self.in_doubt: set[int] = set()
        # What the openings cost that were taken, and whether some of those looked at make room for several members.
        self.keys: list[tuple[int, ...]] = []
        self.makes_room = False
        self._play = play
        self._taking = taking
        self._gang = gang
        self._grounds = grounds
        self._manner = manner
        self._most_steps = most_steps
        self._openings: dict[tuple[PodClass, int], Openings] = {}

    def run(self) -> bool:
        """Whether as many members as are needed found a place."""
        gang = self._gang
        for number, member in enumerate(gang.members):
            if len(self.steps) == gang.needed:
                break
            if not self._place(member) and len(self.steps) + len(gang.members) - number - 1 < gang.needed:
                return False
        return True

    def _place(self, member: PodRecord) -> bool:
        """Lead a member to its place; as a last resort with victims on other nodes too."""
        is_local = self._play.handle.is_row_local(self._play.asked(member)[0])
        misses = 0
        openings = self._of(member)
        while self._play.steps < self._most_steps:
            opening = openings.take()
            if opening is None and not is_local and misses >= 0:
                openings, misses = self._anew(member), -1
                continue
            if opening is None:
                return not is_local and self._place_widely(member)
            if self._go(member, opening.row, opening.victims):
                self.keys.append(opening.key)
                return True
            openings.refused(opening)
            misses += misses >= 0
            if misses > _MOST_MISSES:
                openings, misses = self._anew(member), -1
        return False

    def _go(self, member: PodRecord, row: int, victims: Iterable[PodRecord]) -> bool:
        """Let a member be on a row with victims gone, if it fits there then."""
        play = self._play
        fresh = self._with_dependents([victim for victim in victims if victim.uid in play.cluster.placed])
        if fresh is None:
            return False
        partners = self._manner.partners
        left = {victim.row for victim in fresh}
        mark = play.mark()
        play.take(fresh)
        if (partners is not None and partners.leave_alone(member, row)) or not play.put(member, row):
            play.roll_back(mark)
            return False
        if self._taking.units.go_along or left != {row} or row in self._left:
            self.in_doubt |= left
        self._left |= left
        self.steps.append((member, row))
        self.victims += fresh
        for openings in self._openings.values():
            openings.changed(sorted({row, *left}))
        return True

    def _with_dependents(self, fresh: list[PodRecord]) -> list[PodRecord] | None:
        """Victims with all who then go along that are there yet; None where one of these may not be a victim."""
        units = self._taking.units
        if not (fresh and units.has_dependents):
            return fresh
        closed = units.closed([*self.victims, *fresh])
        if closed is None or any(pod.uid in self._taking.spared for pod in closed):
            return None
        return [pod for pod in closed if pod.uid in self._play.cluster.placed]

    def _of(self, member: PodRecord) -> Openings:
        key = member.pod_class, member.priority
        if key not in self._openings:
            ground = self._grounds.of(member) if not self.steps else self._grounds.anew(member)
            self._openings[key] = self._on(ground)
        return self._openings[key]

    def _anew(self, member: PodRecord) -> Openings:
        found = self._openings[member.pod_class, member.priority] = self._on(self._grounds.anew(member))
        return found

    def _on(self, ground: Ground) -> Openings:
        manner = self._manner
        most = self._gang.needed - len(self.steps)
        self.makes_room |= most > 1 and ground.makes_room(manner.allowed)
        return Openings(ground, manner.allowed, manner.floors, makes_room=manner.makes_room, most=most)

    def _place_widely(self, member: PodRecord) -> bool:
        """The same where victims may be on any nodes."""
        play, taking = self._play, self._taking
        asker = asker_for(member, self._gang.priority)
        state, left = play.asked(asker)
        rows = np.flatnonzero(self._manner.allowed) if left is None else left[self._manner.allowed[left]]
        rest = self._most_steps - play.steps
        if not len(rows) or rest < 1:
            return False
        trials = WideTrials(play.cluster, taking.trials, taking.settings(rest))
        wanted = Wanted(taking.may_disrupt, taking.cost, taking.costing.requires_budgets)
        table, search = trials.on(play.handle, state, asker, rows, wanted)
        play.steps += search.steps
        found = table.candidates
        order = np.lexsort((play.cluster.nodes.name_hash[table.rows[found]], *table.criteria[::-1, found]))
        for position in found[order[:_MOST_MISSES]].tolist():
            victims = [play.cluster.pods.record(slot) for slot in table.victims(position)]
            if all(map(taking.units.may_go, victims)):
                whole = [pod for pod in union(taking.units.of(victims)) if pod.uid in play.cluster.placed]
                if self._go(member, int(table.rows[position]), whole):
                    return True
        return False
