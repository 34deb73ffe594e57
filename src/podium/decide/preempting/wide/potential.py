"""Who may be a victim for a pod on each node, wherever it is, and who of them has to go in any case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s, in_order, in_order_of
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import Ranking
from podium.decide.preempting.trials import VictimFilter
from podium.framework.reach import ANYWHERE, Effect, Reach, Reaches

NOBODY = -1

# What is known of a row and a pod, as bits of one number.
_WANTED, _FORCED, _PARTNER, _OWN = 1, 2, 4, 8
_BITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Takeable:
    """The pods that a preemptor may take anywhere, the most important first: their slots and rows.

    They go by falling priority, then as `Ranking` has it; of equals on different nodes, by the hash of the node's name.
    ``index_of`` is ``[slots]``: a pod's place here, `NOBODY` for others.
    """

    slots: Int64s
    rows: Int64s
    priority: Int64s
    index_of: Int64s

    def __len__(self) -> int:
        return len(self.slots)


def takeable(cluster: Cluster, ranking: Ranking, pod: PodRecord, may_disrupt: VictimFilter | None) -> Takeable:
    """The pods of lower priority that ``pod`` may take."""
    ranking.refresh()
    rows, places = np.nonzero(ranking.priorities < pod.priority)
    slots = ranking.slots[rows, places].astype(np.int64)
    if may_disrupt is not None and len(slots):
        allowed = may_disrupt(pod, slots)
        rows, places, slots = rows[allowed], places[allowed], slots[allowed]
    table, node_ranks = cluster.pods, cluster.nodes.name_order().ranks
    priority = table.priority[slots]
    on_nodes = node_ranks[rows] * ranking.slots.shape[1] + places
    order = in_order_of(-priority, *ranking.qos_ranks(slots), table.start_ns[slots], on_nodes)
    slots = slots[order]
    index_of = np.full(table.count, NOBODY, dtype=np.int64)
    index_of[slots] = np.arange(len(slots))
    return Takeable(slots, rows[order].astype(np.int64), priority[order], index_of)


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """Pods by domain: ``members[starts[code]:starts[code + 1]]`` of a `Takeable`; ``codes`` are those of all rows.

    Rows of code 0 are in no domain.
    """

    codes: Int32s | Int64s
    members: Int64s
    starts: Int64s
    effect: Effect | None = None

    @classmethod
    def of(cls, codes: Int32s | Int64s, take: Takeable, members: Int64s, effect: Effect | None = None) -> Domains:
        """Group members by the codes of their rows."""
        theirs = codes[take.rows[members]].astype(np.int64)
        numbers = np.bincount(theirs, minlength=int(codes.max(initial=0)) + 1)
        starts = np.concatenate([[0], np.cumsum(numbers)])
        return cls(codes, members[in_order(theirs)], starts, effect)

    def numbers(self, rows: Int64s) -> Int64s:
        """``[rows]``: how many members there are in the domain of each."""
        codes = self.codes[rows]
        return np.where(codes != 0, self.starts[codes + 1] - self.starts[codes], 0)

    def pairs(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Each of ``rows``, by position, with each member in its domain."""
        numbers = self.numbers(rows)
        owners = np.repeat(np.arange(len(rows)), numbers)
        firsts = np.repeat(self.starts[self.codes[rows]] - (np.cumsum(numbers) - numbers), numbers)
        return owners, self.members[firsts + np.arange(len(owners))]

    def sets(self) -> tuple[Int64s, Int64s]:
        """The members of each domain that rows are in, by code, and where each one's begin; and the end."""
        outside = self.starts[1]
        return np.maximum(self.starts - outside, 0), self.members[outside:]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows with those whom a preemptor there may take: ``owners`` are positions in ``rows``, ascending.

    ``members`` are of a `Takeable`, ascending for each row. ``forced``: it has to go for the pod to fit there, whoever
    else goes. ``partner``: the pod requires to be near such pods. ``own``: it is on the row itself.
    """

    rows: Int64s
    owners: Int64s
    members: Int64s
    forced: Bools
    partner: Bools
    own: Bools

    def only(self, positions: Int64s) -> Pairs:
        """The same for some of the rows, given by their positions, ascending."""
        at = np.full(len(self.rows), NOBODY, dtype=np.int64)
        at[positions] = np.arange(len(positions))
        owners = at[self.owners]
        kept = owners != NOBODY
        return Pairs(
            self.rows[positions],
            owners[kept],
            self.members[kept],
            self.forced[kept],
            self.partner[kept],
            self.own[kept],
        )

    def without(self, left_out: Bools) -> Pairs:
        """The same without some of the pairs."""
        kept = ~left_out
        return Pairs(
            self.rows, self.owners[kept], self.members[kept], self.forced[kept], self.partner[kept], self.own[kept]
        )


class Potential:
    """All who may be victims for a pod, by where it would go."""

    def __init__(self, cluster: Cluster, take: Takeable, reaches: Reaches, *, across: bool) -> None:
        """Without ``across`` nobody but those on the pod's own node may be."""
        self.take = take
        self._all = np.arange(len(take))
        self._cluster = cluster
        on_row = Domains.of(cluster.nodes.all_rows() + 1, take, self._all)
        self._found = [on_row]
        for reach in reaches.found:
            if across or reach.effect != "SomeGone":
                self._found.append(self._domains(reach))
        if across and not reaches.is_known:
            everywhere = np.ones(cluster.nodes.count, dtype=np.int64)
            self._found.append(Domains.of(everywhere, take, self._all))
        self._across = across

    def numbers(self, rows: Int64s) -> Int64s:
        """``[rows]``: as many as may be victims there, or more."""
        wanted = self._found if self._across else self._found[:1]
        return sum((domains.numbers(rows) for domains in wanted if domains.effect != "Stay"), np.zeros_like(rows))

    def forced(self, rows: Int64s) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
        """Sets of those who have to go in any case: where each begins, and the end; who; and ``[rows]``: the row's."""
        for domains in self._found:
            if domains.effect == "AllGone" and self._across:
                yield *domains.sets(), domains.codes[rows].astype(np.int64)

    def pairs(self, rows: Int64s) -> Pairs:
        """Those for some rows."""
        shift = len(self.take).bit_length()
        found = []
        for place, domains in enumerate(self._found):
            owners, members = domains.pairs(rows)
            found.append((((owners << shift) | members) << _BITS) | self._bits(place, domains))
        marked = np.sort(np.concatenate(found))
        keys, bits = marked >> _BITS, marked & ((1 << _BITS) - 1)
        fresh = np.ones(len(keys), dtype=np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        if not fresh.all():
            firsts = np.flatnonzero(fresh)
            keys, bits = keys[firsts], np.bitwise_or.reduceat(bits, firsts)
        if not (wanted := bits & _WANTED != 0).all():
            keys, bits = keys[wanted], bits[wanted]
        return Pairs(
            rows,
            keys >> shift,
            keys & ((1 << shift) - 1),
            forced=bits & _FORCED != 0,
            partner=bits & _PARTNER != 0,
            own=bits & _OWN != 0,
        )

    def _bits(self, place: int, domains: Domains) -> int:
        """What the domains at a place say of their members."""
        bits = 0 if place else _OWN
        if domains.effect == "AllGone":
            bits |= _FORCED
        if domains.effect == "Stay":
            bits |= _PARTNER
        elif self._across or not place:
            bits |= _WANTED
        return bits

    def _domains(self, reach: Reach) -> Domains:
        classes = self._cluster.pods.pod_class[self.take.slots]
        matching = self._cluster.matcher(reach.predicate).matching(classes)
        if reach.predicate.live_only:
            matching &= ~self._cluster.pods.terminating[self.take.slots]
        nodes = self._cluster.nodes
        codes: Int32s | Int64s
        if reach.key == ANYWHERE:
            codes = np.ones(nodes.count, dtype=np.int64)
        else:
            codes = nodes.labels(reach.key).codes[: nodes.count]
        members = np.flatnonzero(matching)
        return Domains.of(codes, self.take, members[codes[self.take.rows[members]] != 0], reach.effect)
