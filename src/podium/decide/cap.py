"""Preemption under a cap on how often schedulers may disrupt pods that have a budget.

A candidate whose victims take more than is left of the cap is held back. Where that leaves none, victims without a
budget are looked for; where there are none either, preemption is put off until enough is left.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.api.disruption_policy import POLICY_NAME, SCHEDULER
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
    """Why preemption has to wait: the fewest ``victims`` with a budget that it takes, and what the cap leaves.

    ``next_ns`` is when enough will be left.
    """

    victims: int
    rate: str
    left: int
    next_ns: int

    @property
    def next_time(self) -> str:
        """When enough will be left, as people read it and not before it."""
        return format_time(-(-self.next_ns // _SECOND) * _SECOND)

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"victims": self.victims, "cap": self.rate, "left": self.left, "next": self.next_time}

    def __str__(self) -> str:
        pods = "a pod" if self.victims == 1 else f"{self.victims} pods"
        cap = _cap(self.rate, self.left)
        return f"it would disrupt {pods} with a budget, and {cap}; the next try is at {self.next_time}"


@dataclass(frozen=True, slots=True)
class CappedTable:
    """Trials whose candidates the cap allows. ``held`` are the rows held back, with how many budgeted victims each.

    ``put_off`` is None where some candidate is left, or there was none.
    """

    table: TrialTable
    held: Mapping[int, int] = field(default_factory=dict)
    put_off: PutOff | None = None
    cap: str = ""

    def held_back(self, names: Sequence[str]) -> dict[str, Status]:
        """Why each node held back is no candidate, by its name."""
        return {
            names[row]: unschedulable(f"{victims} of the victims have a budget, and {self.cap}")
            for row, victims in self.held.items()
        }


def is_capped(cluster: Cluster) -> bool:
    """Whether some candidates may need more of the cap than is left."""
    cap = cluster.cap
    return cap.rate is not None and not cap.allows(cap.rate.count)


def within_cap(cluster: Cluster, table: TrialTable) -> CappedTable:
    """The trials with those candidates alone that need no more of the cap than is left."""
    cap = cluster.cap
    if cap.rate is None or not is_capped(cluster):
        return CappedTable(table)
    candidates, numbers = table.candidates, _budgeted_victims(cluster, table)
    allowed = np.minimum(numbers, cap.rate.count) <= (cap.left or 0)
    if allowed.all():
        return CappedTable(table)
    held = dict(zip(table.rows[candidates[~allowed]].tolist(), numbers[~allowed].tolist(), strict=True))
    put_off = None
    if not allowed.any():
        put_off = put_off_by(cluster, int(numbers.min()))
    return CappedTable(table.only(candidates[allowed]), held, put_off, _cap(str(cap.rate), cap.left or 0))


def put_off_by(cluster: Cluster, victims: int) -> PutOff:
    """What the cap has to say about the disruption of more pods with a budget than it leaves."""
    cap = cluster.cap
    return PutOff(victims, str(cap.rate), cap.left or 0, cap.next_ns(victims))


def without_budgets(cluster: Cluster, may_disrupt: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``may_disrupt`` does, and no pod that counts for the cap."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        free: Bools = ~budgeted(cluster, slots)
        return free if may_disrupt is None else free & may_disrupt(pod, slots)

    return allowed


def _budgeted_victims(cluster: Cluster, table: TrialTable) -> Int64s:
    """``[candidates]``: how many victims of each have a budget."""
    victims = [table.victims(position) for position in table.candidates.tolist()]
    slots = np.array([slot for found in victims for slot in found], dtype=np.int64)
    owners = np.repeat(np.arange(len(victims)), [len(found) for found in victims])
    numbers: Int64s = np.bincount(owners[budgeted(cluster, slots)], minlength=len(victims))
    return numbers


def _cap(rate: str, left: int) -> str:
    return f"the cap of {rate} on component {SCHEDULER} (DisruptionPolicy {POLICY_NAME}) leaves {left}"
