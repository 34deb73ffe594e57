"""Where one more member may go, and whom it takes there: the cheapest first, as members and victims come and go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.units import Units, union
from podium.decide.preempting.trial_table import TrialTable
from podium.decide.preempting.trials import Trials, VictimFilter
from podium.decide.preempting.wide.wide_settings import WideSettings
from podium.framework.cycle_state import CycleState

# Of so many openings, the cheapest, it is worked out how many members they make room for.
_MOST_WEIGHED = 256
# As many tell whether there are any such.
_FIRST_WEIGHED = 32
# Costs that several members share are counted in such parts.
_PARTS = 720


class Opening(NamedTuple):
    """A row with the victims there; of as cheap ones the first by the hash of the node's name."""

    key: tuple[int, ...]
    name_hash: int
    row: int
    # Of openings on one row no two have the same.
    version: int
    victims: tuple[PodRecord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Taking:
    """How victims of single members are found: by whose trials, at which cost, and who may be one at all.

    Those who are ``spared`` (uids) go along with nobody either. ``wide`` says what else holds.
    """

    trials: Trials
    costing: Costing
    units: Units
    may_disrupt: VictimFilter | None
    wide: WideSettings
    spared: frozenset[str] = frozenset()

    @property
    def cost(self) -> VictimCost | None:
        """The criteria that are stated, None for kube-scheduler's."""
        return self.costing.stated

    def settings(self, most_steps: int) -> WideSettings:
        """How victims are looked for on other nodes than the member's; whole groups are seen to elsewhere."""
        return replace(self.wide, across=True, whole_groups=False, most_steps=most_steps)


class Ground:
    """The openings for pods like one member, as things are when this is made: those without victims, and the others.

    ``free`` are rows that take such a pod as they are. The others are ``rows``, with ``keys``, ``[criteria, rows]``.
    """

    def __init__(self, play: Play, taking: Taking, pod: PodRecord, asker: PodRecord) -> None:
        """``asker`` is the pod with the gang's priority."""
        self._play = play
        self._taking = taking
        self._pod = pod
        self._asker = asker
        self._costs_anew = taking.units.go_along or taking.cost is not None
        self.are_sums = taking.costing.are_sums
        self.name_hash = play.cluster.nodes.name_hash
        self._records = list(play.cluster.pods.records)
        _, self.free = play.fitting(pod)
        state, left = play.asked(asker)
        nodes = play.cluster.nodes
        rows = nodes.all_rows() if left is None else left
        rows = np.setdiff1d(rows, self.free, assume_unique=True)
        self._table = _tried(play, taking, state, asker, rows)
        candidates = self._table.candidates
        self.rows: Int64s = self._table.rows[candidates]
        self.keys: Int64s = self._table.criteria[:, candidates]
        self._at = candidates
        if self._costs_anew:
            self._cost_anew()

    def victims(self, place: int) -> tuple[PodRecord, ...]:
        """Those of the opening at a place in ``rows``, with whoever goes along."""
        found = [self._records[slot] for slot in self._table.victims(int(self._at[place]))]
        return _with_their_units(self._play, self._taking, (record for record in found if record is not None))

    def room_for(self, places: Int64s, most: int) -> Int64s:
        """``[places]``: for how many pods like this one the openings make room by their requests, up to ``most``."""
        nodes, requests = self._play.cluster.nodes, self._pod.pod_class.requests
        wanted = sorted(resource for resource, amount in requests.items() if amount > 0)
        if not wanted:
            return np.full(len(places), most, dtype=np.int64)
        rows = self.rows[places]
        left: Int64s = nodes.allocatable[wanted][:, rows] - nodes.requested[wanted][:, rows]
        for index, place in enumerate(places.tolist()):
            for victim in self.victims(place):
                if victim.row == rows[index]:
                    left[:, index] += [victim.pod_class.requests.get(resource, 0) for resource in wanted]
        amounts = np.array([requests[resource] for resource in wanted], dtype=np.int64)
        numbers: Int64s = np.clip((left // amounts[:, None]).min(axis=0), 1, most)
        return numbers

    def makes_room(self, allowed: Bools) -> bool:
        """Whether some of the cheapest openings on rows that are allowed make room for several."""
        places = np.flatnonzero(allowed[self.rows])
        order = np.lexsort(self.keys[::-1, places])[:_FIRST_WEIGHED]
        return bool((self.room_for(places[order], 2) > 1).any())

    def again(self, row: int) -> tuple[tuple[int, ...], tuple[PodRecord, ...]] | None:
        """The cost and the victims of the opening on a row as things are; None where there is none any more."""
        if len(self._play.fitting(self._pod, np.array([row], dtype=np.int64))[1]):
            return (), ()
        state, left = self._play.asked(self._asker)
        if left is not None and row not in left:
            return None
        table = _tried(self._play, self._taking, state, self._asker, np.array([row], dtype=np.int64))
        if not len(table.candidates):
            return None
        found = _with_their_units(self._play, self._taking, map(self._play.cluster.pods.record, table.victims(0)))
        if not found:
            return None
        if not self._costs_anew:
            return tuple(table.criteria[:, 0].tolist()), found
        keys, _ = self._taking.costing.of([found])
        return tuple(keys[:, 0].tolist()), found

    def _cost_anew(self) -> None:
        """Count those who go along as well, and leave out where somebody may not."""
        sets = [self.victims(place) for place in range(len(self.rows))]
        some = np.array([place for place, victims in enumerate(sets) if victims], dtype=np.int64)
        keys, _ = self._taking.costing.of([sets[place] for place in some.tolist()])
        self.rows, self._at, self.keys = self.rows[some], self._at[some], keys


class Openings:
    """The openings of a `Ground` on the rows ``allowed``, to be taken one after the other.

    ``floors`` is ``[criteria]``: a plan's victims cost at least that much, of those criteria that go by the largest.
    With ``makes_room`` the cost of an opening is shared by all of up to ``most`` members that it makes room for.
    """

    def __init__(self, ground: Ground, allowed: Bools, floors: Int64s, *, makes_room: bool, most: int) -> None:
        self._ground = ground
        self._hashes = ground.name_hash
        self._floors = floors
        self._scale = np.where(ground.are_sums, _PARTS, 1) if makes_room else np.ones(len(floors), dtype=np.int64)
        self._allowed = allowed
        self._version: dict[int, int] = {}
        self._heap: list[Opening] = []
        self._refused: list[Opening] = []
        for row in ground.free[allowed[ground.free]].tolist():
            heappush(self._heap, Opening((), self._hashes.item(row), row, 0, ()))
        self._places, self._keys = self._ordered(np.flatnonzero(allowed[ground.rows]), most if makes_room else 0)
        self._next = 0

    def take(self) -> Opening | None:
        """The cheapest that is left, which is not there any more after that."""
        while True:
            opening = self._head()
            if opening is None or self._version.get(opening.row, 0) == opening.version:
                return opening

    def refused(self, opening: Opening) -> None:
        """The opening is of no use before something changes."""
        self._refused.append(opening)

    def changed(self, rows: Iterable[int]) -> None:
        """Members or victims came or went on some rows: look at these again, and at those that were of no use."""
        for opening in self._refused:
            heappush(self._heap, opening)
        self._refused.clear()
        for row in rows:
            self._version[row] = version = self._version.get(row, 0) + 1
            found = self._ground.again(row) if self._allowed[row] else None
            if found is not None:
                cost, victims = found
                key = tuple((np.maximum(cost, self._floors) * self._scale).tolist()) if cost else ()
                heappush(self._heap, Opening(key, self._hashes.item(row), row, version, victims))

    def _ordered(self, places: Int64s, most: int) -> tuple[Int64s, Int64s]:
        """The places in their order, and their keys; with ``most`` shared by up to so many members."""
        ground = self._ground
        keys = np.maximum(ground.keys[:, places], self._floors[:, None]) * self._scale[:, None]
        hashes = self._hashes[ground.rows[places]]
        order = np.lexsort((hashes, *keys[::-1]))
        if most:
            some = order[:_MOST_WEIGHED]
            room = ground.room_for(places[some], most)
            shared = keys[:, some]
            shared[ground.are_sums] //= room
            order = some[np.lexsort((hashes[some], *shared[::-1]))]
            keys[:, some] = shared
        return places[order], keys[:, order]

    def _head(self) -> Opening | None:
        while self._next < len(self._places) and self._version.get(int(self._ground.rows[self._places[self._next]])):
            self._next += 1
        if self._next == len(self._places):
            return heappop(self._heap) if self._heap else None
        place = int(self._places[self._next])
        row = int(self._ground.rows[place])
        key = tuple(self._keys[:, self._next].tolist())
        if self._heap and self._heap[0][:3] < (key, self._hashes.item(row), row):
            return heappop(self._heap)
        self._next += 1
        return Opening(key, self._hashes.item(row), row, 0, self._ground.victims(place))


def _tried(play: Play, taking: Taking, state: CycleState, asker: PodRecord, rows: Int64s) -> TrialTable:
    """The trials of a pod with the gang's priority on some rows, ascending."""
    play.count(len(rows))
    return taking.trials.on(play.handle, state, asker, rows, taking.may_disrupt, taking.cost).frozen()


def _with_their_units(play: Play, taking: Taking, victims: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
    """Victims with whoever goes along and is there yet, as they are ranked; () where one of these may not go."""
    units, found = taking.units, list(victims)
    if not units.go_along:
        return tuple(found)
    if not all(map(units.may_go, found)):
        return ()
    closed = units.closed(units.ordered(union(units.of(found))))
    if closed is None or (units.has_dependents and any(pod.uid in taking.spared for pod in closed)):
        return ()
    return tuple(pod for pod in closed if pod.uid in play.cluster.placed)
