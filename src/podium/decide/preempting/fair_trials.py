"""What it would come to on each node if a pod took room from pods of its own priority; see `fair_shares`."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.worlds import Worlds
from podium.decide.preempting.fair_shares import FairShares
from podium.decide.preempting.trial_table import TrialTable
from podium.decide.preempting.trials import Trials, VictimFilter, grouped
from podium.decide.preempting.victims import PotentialVictims, SlotsAt, choose_victims, with_budgets
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle


class FairTrials:
    """Tries on each node to make room by less important pods and, as far as that is fair, by equals.

    Nobody's disruption violates a budget for mere fairness: such pods are no potential victims here. Pods that leave
    their node anyway count as gone. Nothing is kept, since each trial depends on the pods of all nodes.
    """

    def __init__(self, cluster: Cluster, trials: Trials) -> None:
        self._cluster = cluster
        self._trials = trials
        self._shares = FairShares(cluster)

    def on(
        self, runner: Handle, state: CycleState, pod: PodRecord, rows: Int64s, may_disrupt: VictimFilter | None
    ) -> TrialTable | None:
        """The trials on ``rows``, ascending. None where nobody needs to make room: some node will have it anyway."""
        leaving = self._leaving(pod)
        gone = self._at(rows, leaving)
        if self._fits_without(runner, state, pod, rows, gone):
            return None
        potential = self._potential_victims(pod, rows, leaving, may_disrupt)
        if not len(potential.rows):
            return self._trials.tabulated(rows, None)
        among = self._at(potential.rows, leaving)
        return self._trials.tabulated(rows, choose_victims(runner, state, pod, potential, pod.uid, among))

    def _leaving(self, pod: PodRecord) -> list[PodRecord]:
        """The pods that leave their nodes: they terminate, or are victims of preemptions that have just begun."""
        table, placed, nominations = self._cluster.pods, self._cluster.placed, self._cluster.nominations
        count = table.count
        terminating = np.flatnonzero(table.terminating[:count] & (table.row[:count] != NO_ROW))
        found = {record.uid: record for record in map(table.record, terminating.tolist())}
        for preemptor, uids in nominations.victims():
            if preemptor != pod.uid:
                found |= {uid: placed[uid] for uid in uids if uid in placed and placed[uid].row != NO_ROW}
        return sorted(found.values(), key=lambda record: (record.row, record.slot))

    def _at(self, rows: Int64s, pods: list[PodRecord]) -> SlotsAt:
        """Where among ``rows`` pods are, sorted by row; pods on other rows are left out."""
        of = np.array([record.row for record in pods], dtype=np.int64)
        slots = np.array([record.slot for record in pods], dtype=np.int64)
        at = np.minimum(np.searchsorted(rows, of), len(rows) - 1)
        here = rows[at] == of
        return at[here], slots[here]

    def _fits_without(self, runner: Handle, state: CycleState, pod: PodRecord, rows: Int64s, gone: SlotsAt) -> bool:
        """Whether the pod will fit some node when those who leave are gone."""
        positions, starts = grouped(gone[0], len(rows))
        if not len(positions):
            return False
        worlds = Worlds(self._cluster, rows[positions])
        worlds.remove(np.repeat(np.arange(len(positions)), np.diff(starts)), gone[1])
        return bool((runner.filter_worlds(state, pod, worlds, pod.uid).refused == 0).any())

    def _potential_victims(
        self, pod: PodRecord, rows: Int64s, leaving: list[PodRecord], may_disrupt: VictimFilter | None
    ) -> PotentialVictims:
        """The pods on ``rows`` that ``pod`` may take; rows without an equal among them are left out.

        What budgets allow is given out from the least important pod on each node.
        """
        ranking = self._trials.ranking
        ranking.refresh()
        # [rows, places], the least important first.
        slots, priorities = ranking.slots[rows][:, ::-1], ranking.priorities[rows][:, ::-1]
        stays = np.ones(self._cluster.pods.count + 1, dtype=np.bool_)
        stays[[record.slot for record in leaving]] = False
        equal = (priorities == pod.priority) & stays[slots]
        positions = np.nonzero(equal)[0]
        equal[equal] = self._shares.takeable(pod, positions, slots[equal].astype(np.int64), leaving)
        places = equal | ((priorities < pod.priority) & stays[slots] & equal.any(axis=1)[:, None])
        wanted = slots[places].astype(np.int64)
        places[places] = self._unprotected(pod, np.nonzero(places)[0], wanted, leaving, may_disrupt)
        backwards = places[:, ::-1]
        some, starts = grouped(np.nonzero(backwards)[0], len(rows))
        found = slots[:, ::-1][backwards].astype(np.int64)
        return PotentialVictims(rows[some], starts, found, np.zeros(len(found), dtype=np.bool_))

    def _unprotected(
        self,
        pod: PodRecord,
        positions: Int64s,
        slots: Int64s,
        leaving: list[PodRecord],
        may_disrupt: VictimFilter | None,
    ) -> Bools:
        """``[slots]``: whom no budget and no rate protects, and the preemptor may disrupt."""
        some, starts = grouped(positions, int(positions.max(initial=-1)) + 1)
        begun = [record for record in leaving if not record.terminating]
        unprotected: Bools = ~with_budgets(self._cluster, some, starts, slots, begun).violating
        if may_disrupt is not None:
            unprotected &= may_disrupt(pod, slots)
        return unprotected
