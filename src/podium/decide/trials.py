"""What preempting on each node would come to, tried for many rows at once and kept where nothing changed.

Source: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import EqualPriorityOrder, Ranking
from podium.decide.victims import PotentialVictims, Victims, choose_victims, with_budgets
from podium.framework.class_cache import KeptByClass
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.status import Code, Status, unresolvable
from podium.framework.verdicts import Decoders, Outcome

CRITERIA = (
    "fewest budget violations",
    "lowest priority of the most important victim",
    "smallest sum of victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)
_VICTIMS = CRITERIA.index("fewest victims")
# Shifts priorities, which may be negative, so that fewer victims always weigh less than more of them.
_PRIORITY_SHIFT = 2**31
_KEPT_CLASSES = 64

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_WITHOUT_VICTIMS = -2
# A filter that refuses the node as it is, and accepts it with every pod given back.
NOBODY_IN_THE_WAY = Status(Code.ERROR, ("expected at least one victim pod on node",))
_NOBODY_IN_THE_WAY = -3
_EXPLAINED = {_WITHOUT_VICTIMS: NO_VICTIMS, _NOBODY_IN_THE_WAY: NOBODY_IN_THE_WAY}

# Which of the lower-priority pods in some slots the preemptor may disrupt: ``[slots]``.
VictimFilter = Callable[[PodRecord, Int64s], Bools]


# The slots of the victims on each row, most important first.
SlotsByRow = dict[int, Int64s]


@dataclass(slots=True, eq=False)
class TrialTable:
    """The trials on some rows, ascending.

    ``refused`` is ``[rows]``: 0 where the preemptor fits once the victims are gone, otherwise what `status` explains.
    ``criteria`` is ``[5, rows]``, in the order of `CRITERIA`, smaller is better. ``slots`` holds, by row, the victims,
    most important first; rows in ``own_slots`` are looked up there.
    """

    rows: Int64s
    refused: Int64s
    criteria: Int64s
    slots: SlotsByRow
    decoders: Decoders
    own_slots: SlotsByRow = field(default_factory=dict)
    limited_to: Int64s | None = None

    @property
    def candidates(self) -> Int64s:
        """The positions where preemption would work."""
        return np.flatnonzero(self.refused == 0) if self.limited_to is None else self.limited_to

    @property
    def failures(self) -> Int64s:
        """The positions where it would not."""
        return np.flatnonzero(self.refused != 0)

    def frozen(self) -> TrialTable:
        """A copy that later trials do not change."""
        return replace(self, slots=dict(self.slots), decoders=dict(self.decoders))

    def only(self, positions: Int64s) -> TrialTable:
        """The same trials with fewer candidates."""
        return replace(self, limited_to=positions)

    def victims(self, position: int) -> list[int]:
        """The slots of a candidate's victims."""
        row = int(self.rows[position])
        slots: list[int] = (self.own_slots[row] if row in self.own_slots else self.slots[row]).tolist()
        return slots

    def status(self, position: int) -> Status:
        """Why a position is no candidate."""
        return self._explained(int(self.refused[position]))

    def tally(self) -> list[tuple[Status, int]]:
        """Each reason why rows are no candidates, with their number."""
        values, counts = np.unique(self.refused[self.failures], return_counts=True)
        return [(self._explained(int(v)), int(n)) for v, n in zip(values, counts, strict=True)]

    def _explained(self, refused: int) -> Status:
        return _EXPLAINED.get(refused) or Outcome.of(self.refused, self.decoders).status_of(refused)


@dataclass(slots=True)
class _Kept:
    """The trials of a class and priority on every row, right as of a position of the change log."""

    position: int = -1
    budgets: int = -1
    refused: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    criteria: Int64s = field(default_factory=lambda: np.empty((len(CRITERIA), 0), dtype=np.int64))
    slots: SlotsByRow = field(default_factory=dict)
    decoders: Decoders = field(default_factory=dict)


class Trials:
    """Tries preemption, and keeps the outcome for rows that did not change.

    A trial is kept where it depends on its own row alone: the filters that speak about the pod do, the budgets of the
    pods there are as they were, and the pod has no nomination of its own there.
    """

    def __init__(self, cluster: Cluster, order: EqualPriorityOrder, *, spare_mirrors: bool = False) -> None:
        self._cluster = cluster
        self.ranking = Ranking(cluster, order, spare_mirrors=spare_mirrors)
        self._kept: KeptByClass[_Kept] = KeptByClass(_KEPT_CLASSES)

    def on(
        self, runner: Handle, state: CycleState, pod: PodRecord, rows: Int64s, may_disrupt: VictimFilter | None
    ) -> TrialTable:
        """The trials on ``rows``, ascending."""
        if may_disrupt is not None or not runner.is_row_local(state):
            return self._try(runner, state, pod, rows, may_disrupt)
        kept = self._refreshed(runner, state, pod)
        refused, criteria = kept.refused[rows], kept.criteria[:, rows]
        table = TrialTable(rows, refused, criteria, kept.slots, kept.decoders)
        own = self._cluster.nodes.row_of.get(pod.nominated_node_name, -1)
        at = int(np.searchsorted(rows, own))
        if own >= 0 and at < len(rows) and rows[at] == own:
            again = self._try(runner, state, pod, rows[at : at + 1], None)
            refused[at], criteria[:, at] = again.refused[0], again.criteria[:, 0]
            table.own_slots, table.decoders = again.slots, {**kept.decoders, **again.decoders}
        return table

    def _refreshed(self, runner: Handle, state: CycleState, pod: PodRecord) -> _Kept:
        """The kept trials of the pod's class and priority, brought up to date; its own nomination counts in them."""
        cluster = self._cluster
        kept = self._kept.get(pod.pod_class, (pod.priority, frozenset(state.skip_filter)), _Kept)
        count = cluster.nodes.count
        rows = self._changed(kept) if len(kept.refused) == count and kept.position >= 0 else None
        kept.position, kept.budgets = cluster.nodes.changes.position, cluster.budgets.position
        if rows is None:
            rows = np.arange(count, dtype=np.int64)
            kept.refused = np.zeros(count, dtype=np.int64)
            kept.criteria = np.zeros((len(CRITERIA), count), dtype=np.int64)
            kept.slots, kept.decoders = {}, {}
        if len(rows):
            table = self._try(runner, state, pod, rows, None, own_uid="")
            kept.refused[rows], kept.criteria[:, rows] = table.refused, table.criteria
            kept.slots.update(table.slots)
            kept.decoders.update(table.decoders)
        return kept

    def _changed(self, kept: _Kept) -> Int64s | None:
        """The rows to try again, ascending: those that changed, and those of pods whose budgets did; None for all."""
        rows = self._cluster.nodes.changes.since(kept.position)
        budgets = self._cluster.budgets.since(kept.budgets)
        if rows is None or budgets is None:
            return None
        return np.union1d(rows, self._cluster.rows_of(budgets)) if budgets else rows

    def _try(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        own_uid: str | None = None,
    ) -> TrialTable:
        """Try the rows; ``own_uid`` is whose nomination does not count (None: the pod's own)."""
        potential = self._potential_victims(pod, rows, may_disrupt)
        if not len(potential.rows):
            return self.tabulated(rows, None)
        victims = choose_victims(runner, state, pod, potential, pod.uid if own_uid is None else own_uid)
        return self.tabulated(rows, victims)

    def _potential_victims(self, pod: PodRecord, rows: Int64s, may_disrupt: VictimFilter | None) -> PotentialVictims:
        """The lower-priority pods on ``rows``; rows that have none are left out."""
        ranking = self.ranking
        ranking.refresh()
        places = ranking.priorities[rows] < pod.priority
        slots = ranking.slots[rows][places].astype(np.int64)
        owners = np.repeat(np.arange(len(rows)), places.sum(axis=1))
        if may_disrupt is not None and len(slots):
            allowed = may_disrupt(pod, slots)
            slots, owners = slots[allowed], owners[allowed]
        some, starts = grouped(owners, len(rows))
        return with_budgets(self._cluster, rows[some], starts, slots)

    def tabulated(self, rows: Int64s, victims: Victims | None) -> TrialTable:
        """The trials on ``rows``, ascending. Those that ``victims`` leaves out (None: all) had no potential victims."""
        refused = np.full(len(rows), _WITHOUT_VICTIMS, dtype=np.int64)
        criteria = np.zeros((len(CRITERIA), len(rows)), dtype=np.int64)
        slots: SlotsByRow = {}
        if victims is None:
            return TrialTable(rows, refused, criteria, slots, {})
        refused[np.searchsorted(rows, victims.potential.rows)] = victims.outcome.refused
        self._write(rows, victims, criteria, slots)
        refused[(refused == 0) & (criteria[_VICTIMS] == 0)] = _NOBODY_IN_THE_WAY
        return TrialTable(rows, refused, criteria, slots, dict(victims.outcome.decoders))

    def _write(self, rows: Int64s, victims: Victims, criteria: Int64s, slots: SlotsByRow) -> None:
        """Work out the criteria and the victims of every row where the preemptor fits."""
        potential, table = victims.potential, self._cluster.pods
        index = np.flatnonzero(victims.chosen)
        owners = potential.owners[index]
        if not len(owners):
            return
        firsts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        chosen = potential.slots[index]
        priority = table.priority[chosen]
        lengths = np.diff(np.concatenate([firsts, [len(index)]]))
        most_important = priority == np.repeat(priority[firsts], lengths)
        start = np.where(most_important, table.start_ns[chosen], np.iinfo(np.int64).max)
        found = potential.rows[owners[firsts]]
        at = np.searchsorted(rows, found)
        criteria[0, at] = np.add.reduceat(potential.violating[index].astype(np.int64), firsts)
        criteria[1, at] = priority[firsts]
        criteria[2, at] = np.add.reduceat(priority + _PRIORITY_SHIFT, firsts)
        criteria[3, at] = lengths
        criteria[4, at] = -np.minimum.reduceat(start, firsts)
        ends = (firsts + lengths).tolist()
        slots.update(
            (row, chosen[first:end]) for row, first, end in zip(found.tolist(), firsts.tolist(), ends, strict=True)
        )


def grouped(positions: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """The positions below ``count`` that occur, and where each begins in ``positions``, ascending; and the end."""
    numbers = np.bincount(positions, minlength=count)
    some = np.flatnonzero(numbers)
    return some, np.concatenate([[0], np.cumsum(numbers[some])])
