"""Whom nobody may preempt, for its budget's sake or because it has not run for long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.decide.preempting.trials import VictimFilter, grouped
from podium.decide.preempting.victims import with_budgets


@dataclass(frozen=True, slots=True)
class Protection:
    """Pods that have run for less than ``minimum_running_ns`` are no victims; None: whoever has just started is, too.

    Where budgets are ``required``, no victims are more than their budgets allow.
    """

    minimum_running_ns: int | None = None
    required: bool = False

    def on(self, cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
        """Lets be victims whom ``further`` does (None: everybody), and who has run for long enough."""
        if self.minimum_running_ns is None:
            return further

        def allowed(pod: PodRecord, slots: Int64s) -> Bools:
            old: Bools = ~self._is_young(cluster, slots)
            return old if further is None else old & further(pod, slots)

        return allowed

    def next_ns(self, cluster: Cluster, pod: PodRecord) -> int | None:
        """When the first of the pods of lower priority that have run for too short a time has run for long enough.

        None where there is none. One that has not started is not waited for: that it starts is an event of its own.
        """
        if self.minimum_running_ns is None:
            return None
        pods = cluster.pods
        slots = np.flatnonzero((pods.row[: pods.count] != NO_ROW) & (pods.priority[: pods.count] < pod.priority))
        slots = slots[self._is_young(cluster, slots) & (pods.start_ns[slots] != NOT_STARTED_NS)]
        return int(pods.start_ns[slots].min()) + self.minimum_running_ns if len(slots) else None

    def _is_young(self, cluster: Cluster, slots: Int64s) -> Bools:
        """``[slots]``: whose start is too short a time ago, or yet to come."""
        oldest_ns = cluster.now - (self.minimum_running_ns or 0)
        is_young: Bools = cluster.pods.start_ns[slots] > oldest_ns
        return is_young


def within_budgets(cluster: Cluster, further: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``further`` does, and no more of them on a node than budgets allow.

    What a budget allows is given out on each node from the least important pod.
    """

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        found[found] = _within_budgets(cluster, slots[found])
        return found

    return allowed


def alone_within_budgets(cluster: Cluster, further: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``further`` does, and whose budgets would let each go if nobody else went."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        alone = np.arange(len(slots) + 1)
        unprotected: Bools = found & ~with_budgets(cluster, alone[:-1], alone, slots).violating
        return unprotected

    return allowed


def _within_budgets(cluster: Cluster, slots: Int64s) -> Bools:
    """``[slots]``: whom budgets let go. Those of one node stand together, the most important first."""
    backwards = slots[::-1]
    rows = cluster.pods.row[backwards].astype(np.int64)
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = rows[1:] != rows[:-1]
    some, starts = grouped(np.cumsum(fresh) - 1, int(fresh.sum()))
    within: Bools = ~with_budgets(cluster, rows[fresh][some], starts, backwards).violating
    return within[::-1]
