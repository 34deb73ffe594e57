"""Preemption under caps on how often schedulers may disrupt pods that have a budget.

Candidates whose victims exceed a cap are held back. If none is left, victims that do not count for these caps are
looked for; otherwise preemption waits until the caps allow it.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from podium.api.disruption_policy import POLICY_NAME, CapBucket
from podium.api.times import SECOND, format_time
from podium.cluster.arrays import Bools, Int64s, Lists
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.eligibility import VictimFilter, both_allow, budgeted
from podium.decide.preempting.reprieve import TrialTable
from podium.framework.verdicts import Status, unschedulable


class CapDelay(Struct, frozen=True):
    """The reason why preemption waits: the fewest ``victims`` with a budget, and the rest of a cap.

    ``next_ns`` is when it allows them.
    """

    bucket: CapBucket
    victims: int
    rate: str
    left: int
    next_ns: int

    @property
    def next_time(self) -> str:
        """The time when the cap allows the victims, rounded up to seconds."""
        return format_time(-(-self.next_ns // SECOND) * SECOND)

    @property
    def cap(self) -> str:
        """The remaining disruptions of the cap, in words."""
        return f"the cap of {self.rate} on {self.bucket} (DisruptionPolicy {POLICY_NAME}) leaves {self.left}"

    def to_dict(self) -> dict[str, Any]:
        found = {"victims": self.victims, "cap": self.rate, "left": self.left, "next": self.next_time}
        return {**found, "namespace": self.bucket.namespace} if self.bucket.namespace else found

    def __str__(self) -> str:
        pods = "a pod" if self.victims == 1 else f"{self.victims} pods"
        return f"it would disrupt {pods} with a budget, and {self.cap}; the next try is at {self.next_time}"


class CappedTable(Struct, frozen=True):
    """Trials whose candidates the caps allow. ``held`` are the rows held back, with the cap that does.

    ``put_off`` is None if some candidate is left, or there was none.
    """

    table: TrialTable
    held: Mapping[int, CapDelay] = {}
    put_off: CapDelay | None = None

    def held_back(self, names: Sequence[str]) -> dict[str, Status]:
        """Return why each node held back is no candidate, by its name."""
        return {
            names[row]: unschedulable(f"{wait.victims} of the victims have a budget, and {wait.cap}")
            for row, wait in self.held.items()
        }


def is_capped(cluster: Cluster) -> bool:
    """Return whether some candidates may exceed a cap."""
    return cluster.caps.limits and bool(cluster.caps.used())


def within_cap(cluster: Cluster, table: TrialTable) -> CappedTable:
    """Return the trials with only those candidates that exceed no cap.

    If none is left, ``put_off`` is of the candidate that is allowed first; of several, the one with the fewest victims.
    """
    if not is_capped(cluster):
        return CappedTable(table)
    candidates = table.candidates
    held = _delays(cluster, table.victim_lists(candidates))
    if not held:
        return CappedTable(table)
    allowed = np.ones(len(candidates), dtype=np.bool_)
    allowed[list(held)] = False
    put_off = None
    if not allowed.any():
        put_off = held[min(held, key=lambda position: (held[position].next_ns, held[position].victims, position))]
    by_row = {int(table.rows[candidates[position]]): held[position] for position in sorted(held)}
    return CappedTable(table.only(candidates[allowed]), by_row, put_off)


def capped_trials(
    cluster: Cluster, table: TrialTable, trials: Callable[[VictimFilter], TrialTable], may_disrupt: VictimFilter | None
) -> CappedTable:
    """Return the trials of ``table`` within the caps.

    If victims with a budget would have to wait, ``trials`` tries others, which are taken if they suffice.
    """
    capped = within_cap(cluster, table)
    if capped.put_off is not None:
        others = trials(without_budgets(cluster, may_disrupt))
        if len(others.candidates):
            return CappedTable(others)
    return capped


def put_off_for(cluster: Cluster, victims: Sequence[PodRecord]) -> CapDelay | None:
    """Return the cap that delays the disruption of some pods longest; None for none."""
    slots = np.array([victim.slot for victim in victims], dtype=np.int64)
    return _delays(cluster, Lists(np.array([0, len(slots)], dtype=np.int64), slots)).get(0)


def _delays(cluster: Cluster, victims: Lists) -> dict[int, CapDelay]:
    """Return the caps that delay the disruption of lists of pods (slots) longest, without lists that none delays."""
    held: dict[int, CapDelay] = {}
    for bucket, counted in _counted(cluster, victims.entries):
        numbers = victims.sums(counted)
        needed = np.minimum(numbers, cluster.caps.rate(bucket).count)
        for position in np.flatnonzero(needed > cluster.caps.tokens_left(bucket)).tolist():
            wait = put_off_by(cluster, bucket, int(numbers[position]))
            if position not in held or wait.next_ns > held[position].next_ns:
                held[position] = wait
    return held


def put_off_by(cluster: Cluster, bucket: CapBucket, victims: int) -> CapDelay:
    """Return the delay of a disruption of more pods with a budget than a cap leaves."""
    caps = cluster.caps
    return CapDelay(bucket, victims, str(caps.rate(bucket)), caps.tokens_left(bucket), caps.next_ns(bucket, victims))


def without_budgets(cluster: Cluster, may_disrupt: VictimFilter | None) -> VictimFilter:
    """Extend a filter: pods that count for a cap that is partly used are no victims."""

    def allowed(_pod: PodRecord, slots: Int64s) -> Bools:
        free = np.ones(len(slots), dtype=np.bool_)
        for _, counted in _counted(cluster, slots):
            free &= ~counted
        return free

    return both_allow(may_disrupt, allowed)


def _counted(cluster: Cluster, slots: Int64s) -> Iterator[tuple[CapBucket, Bools]]:
    """Yield each partly used bucket, and ``[slots]``: the pods whose disruption counts for it."""
    counted, classes = budgeted(cluster, slots), cluster.pods.pod_class[slots]
    by_namespace: dict[str, list[int]] = {}
    for class_id in np.unique(classes[counted]).tolist():
        by_namespace.setdefault(cluster.classes[class_id].namespace, []).append(class_id)
    for bucket in cluster.caps.used():
        if not bucket.namespace:
            yield bucket, counted
        elif bucket.namespace in by_namespace:
            yield bucket, counted & np.isin(classes, by_namespace[bucket.namespace])
