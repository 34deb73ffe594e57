"""Preemption under caps on how often schedulers may disrupt pods that have a budget.

A candidate whose victims take more than is left of a cap is held back. Where that leaves none, victims are looked for
that take nothing of what is partly used up; where there are none either, preemption is put off until enough is left.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.api.disruption_cap import CapBucket
from podium.api.disruption_policy import POLICY_NAME
from podium.api.times import format_time
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.trial_table import TrialTable
from podium.decide.preempting.trials import VictimFilter
from podium.decide.preempting.victims import budgeted
from podium.framework.status import Status, unschedulable

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class PutOff:
    """Why preemption has to wait: the fewest ``victims`` with a budget that it takes, and what a cap leaves for them.

    ``next_ns`` is when enough will be left.
    """

    bucket: CapBucket
    victims: int
    rate: str
    left: int
    next_ns: int

    @property
    def next_time(self) -> str:
        """When enough will be left, as people read it and not before it."""
        return format_time(-(-self.next_ns // _SECOND) * _SECOND)

    @property
    def cap(self) -> str:
        """What the cap leaves, in words."""
        return f"the cap of {self.rate} on {self.bucket} (DisruptionPolicy {POLICY_NAME}) leaves {self.left}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        found = {"victims": self.victims, "cap": self.rate, "left": self.left, "next": self.next_time}
        return {**found, "namespace": self.bucket.namespace} if self.bucket.namespace else found

    def __str__(self) -> str:
        pods = "a pod" if self.victims == 1 else f"{self.victims} pods"
        return f"it would disrupt {pods} with a budget, and {self.cap}; the next try is at {self.next_time}"


@dataclass(frozen=True, slots=True)
class CappedTable:
    """Trials whose candidates the caps allow. ``held`` are the rows held back, with the cap that does.

    ``put_off`` is None where some candidate is left, or there was none.
    """

    table: TrialTable
    held: Mapping[int, PutOff] = field(default_factory=dict)
    put_off: PutOff | None = None

    def held_back(self, names: Sequence[str]) -> dict[str, Status]:
        """Why each node held back is no candidate, by its name."""
        return {
            names[row]: unschedulable(f"{wait.victims} of the victims have a budget, and {wait.cap}")
            for row, wait in self.held.items()
        }


def is_capped(cluster: Cluster) -> bool:
    """Whether some candidates may need more of a cap than is left."""
    return bool(cluster.caps.limits) and bool(cluster.caps.used())


def within_cap(cluster: Cluster, table: TrialTable) -> CappedTable:
    """The trials with those candidates alone that need no more of any cap than is left.

    Where that leaves none, the one counts that can be had first: of several the one with the fewest victims that count.
    """
    if not is_capped(cluster):
        return CappedTable(table)
    candidates = table.candidates
    held: dict[int, PutOff] = {}
    for bucket, numbers in _victims_by_bucket(cluster, table):
        needed = np.minimum(numbers, cluster.caps.rate(bucket).count)
        for position in np.flatnonzero(needed > cluster.caps.left(bucket)).tolist():
            wait = put_off_by(cluster, bucket, int(numbers[position]))
            if position not in held or wait.next_ns > held[position].next_ns:
                held[position] = wait
    if not held:
        return CappedTable(table)
    allowed = np.ones(len(candidates), dtype=np.bool_)
    allowed[list(held)] = False
    put_off = None
    if not allowed.any():
        put_off = held[min(held, key=lambda position: (held[position].next_ns, held[position].victims, position))]
    by_row = {int(table.rows[candidates[position]]): held[position] for position in sorted(held)}
    return CappedTable(table.only(candidates[allowed]), by_row, put_off)


def put_off_for(cluster: Cluster, victims: Sequence[PodRecord]) -> PutOff | None:
    """The cap for which the disruption of some pods has to wait, of several the last to have enough; None for none."""
    slots = np.array([victim.slot for victim in victims], dtype=np.int64)
    held = []
    for bucket, counted in _counted(cluster, slots):
        number = int(counted.sum())
        if min(number, cluster.caps.rate(bucket).count) > cluster.caps.left(bucket):
            held.append(put_off_by(cluster, bucket, number))
    return max(held, key=lambda wait: wait.next_ns, default=None)


def put_off_by(cluster: Cluster, bucket: CapBucket, victims: int) -> PutOff:
    """What a cap has to say about the disruption of more pods with a budget than it leaves."""
    caps = cluster.caps
    return PutOff(bucket, victims, str(caps.rate(bucket)), caps.left(bucket), caps.next_ns(bucket, victims))


def without_budgets(cluster: Cluster, may_disrupt: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``may_disrupt`` does, and no pod that counts for a cap of which something is used."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        free = np.ones(len(slots), dtype=np.bool_)
        for _, counted in _counted(cluster, slots):
            free &= ~counted
        return free if may_disrupt is None else free & may_disrupt(pod, slots)

    return allowed


def _victims_by_bucket(cluster: Cluster, table: TrialTable) -> Iterator[tuple[CapBucket, Int64s]]:
    """Each bucket of which something is used, and ``[candidates]``: how many victims of each count for it."""
    victims = [table.victims(position) for position in table.candidates.tolist()]
    slots = np.array([slot for found in victims for slot in found], dtype=np.int64)
    owners = np.repeat(np.arange(len(victims)), [len(found) for found in victims])
    for bucket, counted in _counted(cluster, slots):
        numbers: Int64s = np.bincount(owners[counted], minlength=len(victims))
        yield bucket, numbers


def _counted(cluster: Cluster, slots: Int64s) -> Iterator[tuple[CapBucket, Bools]]:
    """Each bucket of which something is used, and ``[slots]``: the pods whose disruption takes of it."""
    counted, classes = budgeted(cluster, slots), cluster.pods.pod_class[slots]
    by_namespace: dict[str, list[int]] = {}
    for class_id in np.unique(classes[counted]).tolist():
        by_namespace.setdefault(cluster.classes[class_id].namespace, []).append(class_id)
    for bucket in cluster.caps.used():
        if not bucket.namespace:
            yield bucket, counted
        elif bucket.namespace in by_namespace:
            yield bucket, counted & np.isin(classes, by_namespace[bucket.namespace])
