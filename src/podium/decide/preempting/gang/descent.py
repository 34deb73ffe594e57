"""A candidate for a gang found greedily: each member goes where it costs least, beside those that went before."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import repeat
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.decide.preempting import criteria, eligibility, reprieve
from podium.decide.preempting.gang.gang import AffinityPartners, Gang, GangTransaction, MemberRow
from podium.decide.preempting.gang.units import VictimUnits, union
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.wide.wide_search import WideSettings, WideTrials
from podium.framework.handle import CycleState

# After this many useless options the options are computed again.
_MOST_MISSES = 4
# The number of cheapest options for which the members that they make room for are counted.
_MOST_WEIGHED = 256
# The number of first options that decide whether any option makes room for several members.
_FIRST_WEIGHED = 32
# Costs that several members share are divided into parts of this size.
_PARTS = 720


class MemberOption(NamedTuple):
    """A row for a member with the victims there; equally cheap ones are ordered by the hash of the node's name.

    No two options on one row have the same ``version``. The ``victims`` of version 0 are looked up when it is taken.
    """

    key: tuple[int, ...]
    name_hash: int
    row: int
    version: int
    victims: tuple[PodRecord, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class VictimSearch:
    """The search for victims of single members: the trials, the costs, and the filter of victims.

    ``spared`` pods (uids) are not evicted as dependents either. ``wide`` are further settings.
    """

    transaction: GangTransaction
    gang: Gang
    most_steps: int
    trials: Trials
    costs: criteria.SetCosts
    units: VictimUnits
    may_disrupt: eligibility.VictimFilter | None
    wide: WideSettings
    spared: frozenset[str] = frozenset()

    def with_dependents(self, pods: Sequence[PodRecord]) -> list[PodRecord] | None:
        """Return units and their present dependents that are on nodes; None if one of these may not be a victim."""
        closed = self.units.closed(pods)
        if closed is None or (self.units.has_dependents and any(pod.uid in self.spared for pod in closed)):
            return None
        return [pod for pod in closed if pod.uid in self.transaction.cluster.placed]


@dataclass(frozen=True, slots=True, eq=False)
class DescentMode:
    """The constraints on the placement of members.

    They go to the rows ``allowed``. ``floors`` is ``[criteria]``, the least that the victims cost. With ``makes_room``
    options for several members come first. If ``partners`` are to be kept, no member comes alone.
    """

    allowed: Bools
    floors: Int64s
    makes_room: bool = False
    partners: AffinityPartners | None = None


def asker_for(member: PodRecord, priority: int) -> PodRecord:
    """Return a member as it asks for victims: with the gang's priority, and nominated to no node."""
    return replace(member, priority=priority, nominated_node_name="")


class OptionTable:
    """All options for pods like one member, in the cluster as of creation.

    ``free`` are rows that accept such a pod without victims. The others are ``rows``, with ``keys``,
    ``[criteria, rows]``.
    """

    def __init__(self, search: VictimSearch, pod: PodRecord) -> None:
        self._search = search
        self._pod = pod
        self._asker = asker_for(pod, search.gang.priority)
        transaction, cluster = search.transaction, search.transaction.cluster
        self._needs_set_costs = search.units.go_along or search.costs.stated is not None
        self.are_sums = search.costs.are_sums
        self.name_hash = cluster.nodes.name_hash
        self._records = list(cluster.pods.records)
        _, self.free = transaction.fitting(pod)
        state, left = transaction.pre_filtered(self._asker)
        rows = cluster.nodes.all_rows() if left is None else left
        self._table = self._tried(state, np.setdiff1d(rows, self.free, assume_unique=True)).frozen()
        candidates = self._table.candidates
        self.rows: Int64s = self._table.rows[candidates]
        self.keys: Int64s = self._table.criteria[:, candidates]
        if self._needs_set_costs:
            # Count the dependents as well, and drop options with one that may not go.
            sets = {row: victims for row in self.rows.tolist() if (victims := self.victims_on(row))}
            self.rows = np.array(list(sets), dtype=np.int64)
            self.keys, _ = search.costs.of_pods(list(sets.values()))

    def victims_on(self, row: int) -> tuple[PodRecord, ...]:
        """Return the victims of the option on one of ``rows``, with their dependents."""
        found = [self._records[slot] for slot in self._table.victims_on[row]]
        return self._with_their_units([record for record in found if record is not None])

    def room_for(self, places: Int64s, most: int) -> Int64s:
        """Return ``[places]``: for how many pods like this one the options make room by requests, up to ``most``."""
        nodes, requests = self._search.transaction.cluster.nodes, self._pod.pod_class.requests
        wanted = sorted(resource for resource, amount in requests.items() if amount > 0)
        if not wanted:
            return np.full(len(places), most, dtype=np.int64)
        rows = self.rows[places]
        left: Int64s = nodes.allocatable[wanted][:, rows] - nodes.requested[wanted][:, rows]
        for index, row in enumerate(rows.tolist()):
            for victim in self.victims_on(row):
                if victim.row == row:
                    left[:, index] += [victim.pod_class.requests.get(resource, 0) for resource in wanted]
        amounts = np.array([requests[resource] for resource in wanted], dtype=np.int64)
        return np.asarray(np.clip((left // amounts[:, None]).min(axis=0), 1, most))

    def makes_room(self, allowed: Bools) -> bool:
        """Return whether some of the cheapest options on allowed rows make room for several members."""
        places = np.flatnonzero(allowed[self.rows])
        order = np.lexsort(self.keys[::-1, places])[:_FIRST_WEIGHED]
        return bool((self.room_for(places[order], 2) > 1).any())

    def now_on(self, row: int) -> tuple[tuple[int, ...], tuple[PodRecord, ...]] | None:
        """Return the cost and the victims of the option on a row in the present cluster; None if there is none."""
        only, transaction = np.array([row], dtype=np.int64), self._search.transaction
        if len(transaction.fitting(self._pod, only)[1]):
            return (), ()
        state, left = transaction.pre_filtered(self._asker)
        if left is not None and row not in left:
            return None
        table = self._tried(state, only)
        if not len(table.candidates):
            return None
        found = self._with_their_units(list(map(transaction.cluster.pods.record, table.victims(0))))
        if not found:
            return None
        keys = self._search.costs.of_pods([found])[0] if self._needs_set_costs else table.criteria
        return tuple(keys[:, 0].tolist()), found

    def _tried(self, state: CycleState, rows: Int64s) -> reprieve.TrialTable:
        """Return the trials of a pod with the gang's priority on some rows, ascending."""
        search = self._search
        search.transaction.count(len(rows))
        preemptor = reprieve.Preemptor(search.transaction.handle, state, self._asker)
        return search.trials.on(preemptor, rows, search.may_disrupt, search.costs.stated)

    def _with_their_units(self, victims: list[PodRecord]) -> tuple[PodRecord, ...]:
        """Return victims with their present dependents, by rank; () if one of these may not go."""
        units = self._search.units
        if not units.go_along:
            return tuple(victims)
        if not all(map(units.may_go, victims)):
            return ()
        return tuple(self._search.with_dependents(units.ordered(union(units.of(victims)))) or ())


class OptionTables:
    """The options for each class and priority of members in the cluster before members came or victims left.

    The search does not refer to them, so that it ends with its last user: a cycle would keep pods until Python's next
    garbage collection.
    """

    def __init__(self, search: VictimSearch) -> None:
        self.search = search
        self._tables: dict[tuple[PodClass, int], OptionTable] = {}

    def of(self, member: PodRecord) -> OptionTable:
        """Return the options for pods like a member; the first call must precede all changes."""
        key = member.pod_class, member.priority
        if key not in self._tables:
            self._tables[key] = OptionTable(self.search, member)
        return self._tables[key]


class MemberOptions:
    """A priority queue of the options of an `OptionTable` in a mode, updated as pods come and go.

    If the mode makes room, the cost of an option is shared by up to ``most`` members.
    """

    def __init__(self, table: OptionTable, mode: DescentMode, most: int) -> None:
        self._table = table
        self._mode = mode
        # A plan's victims cost at least the mode's floors.
        self._scale = np.where(table.are_sums, _PARTS, 1) if mode.makes_room else np.ones_like(mode.floors)
        self._version: dict[int, int] = {}
        # Options that are set aside until those on some rows change.
        self.useless: list[MemberOption] = []
        free = table.free[mode.allowed[table.free]]
        first = sorted(MemberOption((), table.name_hash.item(row), row, 0) for row in free.tolist())
        places = np.flatnonzero(mode.allowed[table.rows])
        keys = np.maximum(table.keys[:, places], mode.floors[:, None]) * self._scale[:, None]
        hashes = table.name_hash[table.rows[places]]
        order = np.lexsort((hashes, *keys[::-1]))
        if mode.makes_room and most:
            order = order[:_MOST_WEIGHED]
            keys[np.ix_(table.are_sums, order)] //= table.room_for(places[order], most)
            order = order[np.lexsort((hashes[order], *keys[::-1, order]))]
        costly = map(tuple, keys[:, order].T.tolist()), hashes[order].tolist(), table.rows[places[order]].tolist()
        # A sorted list is a heap.
        self._heap = [*first, *map(MemberOption, *costly, repeat(0))]

    def pop(self) -> MemberOption | None:
        """Remove and return the cheapest option."""
        while self._heap:
            option = heappop(self._heap)
            if self._version.get(option.row, 0) == option.version:
                is_complete = option.version or option.victims or not option.key
                return option if is_complete else option._replace(victims=self._table.victims_on(option.row))
        return None

    def update(self, rows: Iterable[int]) -> None:
        """Recompute the options on rows where pods came or left, and bring back those set aside."""
        for option in self.useless:
            heappush(self._heap, option)
        self.useless.clear()
        for row in rows:
            self._version[row] = version = self._version.get(row, 0) + 1
            found = self._table.now_on(row) if self._mode.allowed[row] else None
            if found is not None:
                cost, victims = found
                key = tuple((np.maximum(cost, self._mode.floors) * self._scale).tolist()) if cost else ()
                heappush(self._heap, MemberOption(key, self._table.name_hash.item(row), row, version, victims))


class Descent:
    """One greedy placement of a gang within a transaction. ``placements`` and ``victims`` are the result.

    ``in_doubt`` are the rows that victims left on which not all of them may be needed in the end. ``keys`` are the
    costs of the options that were taken, and ``makes_room`` is true if some options make room for several members.
    """

    def __init__(self, tables: OptionTables, mode: DescentMode) -> None:
        self.placements: list[MemberRow] = []
        self.victims: list[PodRecord] = []
        self.in_doubt: set[int] = set()
        self.keys: list[tuple[int, ...]] = []
        self.makes_room = False
        # The rows that victims left.
        self._left: set[int] = set()
        self._tables = tables
        self._search = tables.search
        self._transaction = tables.search.transaction
        self._mode = mode
        self._options: dict[tuple[PodClass, int], MemberOptions] = {}

    def run(self) -> bool:
        """Return whether as many members as are needed found a place."""
        gang = self._search.gang
        for number, member in enumerate(gang.members):
            if len(self.placements) == gang.needed:
                break
            if not self._place(member) and len(self.placements) + len(gang.members) - number - 1 < gang.needed:
                return False
        return True

    def _place(self, member: PodRecord) -> bool:
        """Place a member; as a last resort with victims on other nodes too."""
        is_local = self._transaction.are_row_local([member])
        misses = 0
        key = member.pod_class, member.priority
        if key not in self._options:
            table = OptionTable(self._search, member) if self.placements else self._tables.of(member)
            self._options[key] = self._options_of(table)
        options = self._options[key]
        while self._transaction.steps < self._search.most_steps:
            option = options.pop()
            if option is None and (is_local or misses < 0):
                return not is_local and self._place_widely(member)
            if option is not None and self._try(member, option.row, option.victims):
                self.keys.append(option.key)
                return True
            if option is not None:
                options.useless.append(option)
                misses += misses >= 0
            if option is None or misses > _MOST_MISSES:
                options = self._options[key] = self._options_of(OptionTable(self._search, member))
                misses = -1
        return False

    def _try(self, member: PodRecord, row: int, victims: Iterable[PodRecord]) -> bool:
        """Put a member on a row with victims gone, if it fits there then."""
        transaction = self._transaction
        fresh = [victim for victim in victims if victim.uid in transaction.cluster.placed]
        if fresh and self._search.units.has_dependents:
            closed = self._search.with_dependents([*self.victims, *fresh])
            if closed is None:
                return False
            fresh = closed
        partners = self._mode.partners
        left = {victim.row for victim in fresh}
        savepoint = transaction.savepoint()
        transaction.remove(fresh)
        if (partners is not None and partners.leave_alone(member, row)) or not transaction.try_member(member, row):
            transaction.roll_back(savepoint)
            return False
        if self._search.units.go_along or left != {row} or row in self._left:
            self.in_doubt |= left
        self._left |= left
        self.placements.append((member, row))
        self.victims += fresh
        for options in self._options.values():
            options.update(sorted({row, *left}))
        return True

    def _options_of(self, table: OptionTable) -> MemberOptions:
        mode = self._mode
        most = self._search.gang.needed - len(self.placements)
        self.makes_room |= most > 1 and table.makes_room(mode.allowed)
        return MemberOptions(table, mode, most)

    def _place_widely(self, member: PodRecord) -> bool:
        """Place a member with victims on any nodes."""
        transaction, search = self._transaction, self._search
        asker = asker_for(member, search.gang.priority)
        state, left = transaction.pre_filtered(asker)
        allowed = self._mode.allowed
        rows = np.flatnonzero(allowed) if left is None else left[allowed[left]]
        rest = search.most_steps - transaction.steps
        if not len(rows) or rest < 1:
            return False
        # Whole groups are handled by the units.
        settings = dataclasses.replace(search.wide, across=True, whole_groups=False, most_steps=rest)
        trials = WideTrials(transaction.cluster, search.trials, settings)
        preemptor = reprieve.Preemptor(transaction.handle, state, asker)
        table, effort = trials.on(preemptor, rows, search.may_disrupt, search.costs, detailed=False)
        transaction.steps += effort.steps
        found = table.candidates
        order = np.lexsort((transaction.cluster.nodes.name_hash[table.rows[found]], *table.criteria[::-1, found]))
        for position in found[order[:_MOST_MISSES]].tolist():
            victims = [transaction.cluster.pods.record(slot) for slot in table.victims(position)]
            if all(map(search.units.may_go, victims)):
                whole = [pod for pod in union(search.units.of(victims)) if pod.uid in transaction.cluster.placed]
                if self._try(member, int(table.rows[position]), whole):
                    return True
        return False
