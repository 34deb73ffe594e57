"""How much cpu the pods of each node want, and how many of them want more than they request.

Source: the kernel's fair scheduler: a pod gets what it requests, and shares the rest with others that want more.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s
from podium.framework.rescheduling.signals import Signals, predecessor, replacement
from podium.plugins.rescheduling.parts.row_changes import RowChanges

# A pod that hardly ever gets cpu may want any amount: what it uses is taken for a tenth of it at least.
_MOST_PRESSURE = 0.9
_MOST_MILLI = 10**9


class CPULoads:
    """By row, what the pods want altogether (``wanted``), and how many want more than they request (``eager``).

    A pod wants what it uses, and what it would have used had it not had to wait; what it requests where nobody
    measures. A replacement wants what its predecessor did.
    """

    def __init__(self) -> None:
        self._changes = RowChanges()
        self._picture: Picture | None = None
        # By uid, what those want that are measured.
        self._measured: dict[str, int] = {}
        self.wanted: Int64s = np.zeros(0, dtype=np.int64)
        self.eager: Int64s = np.zeros(0, dtype=np.int64)

    def look(self, picture: Picture) -> bool:
        """Take in what has changed; whether anything is measured at all."""
        if picture is not self._picture:
            self._changes.forget()
            self._picture = picture
            self._measured = _measured(picture.signals)
        if not self._measured:
            return False
        rows = self._changes.since_last(picture.cluster)
        if rows is None:
            self._begin(picture.cluster)
            return True
        for row in rows.tolist():
            wanted = eager = 0
            for pod in picture.cluster.pods_on(row):
                if not pod.terminating:
                    amount = self.wanted_by(pod)
                    wanted += amount
                    eager += amount > requested_by(pod)
            self.wanted[row], self.eager[row] = wanted, eager
        return True

    def wanted_by(self, pod: PodRecord) -> int:
        """What a pod wants."""
        measured = self._measured.get(pod.uid)
        if measured is None:
            measured = self._measured.get(predecessor(pod.uid))
        return requested_by(pod) if measured is None else measured

    def lacking(self, cluster: Cluster, utilization: float) -> Float64s:
        """``[rows]``: the share of what is wanted that is not there, where no more than that share is to be used."""
        count = cluster.nodes.count
        usable = utilization * cluster.nodes.allocatable[CPU, :count]
        lacking: Float64s = np.zeros(count)
        short = np.flatnonzero((self.wanted > usable) & cluster.nodes.present[:count])
        lacking[short] = 1 - usable[short] / self.wanted[short]
        return lacking

    def _begin(self, cluster: Cluster) -> None:
        """The same for all rows at once."""
        pods, count = cluster.pods, cluster.nodes.count
        wanted = cluster.classes.requests[CPU, pods.pod_class[: pods.count]].copy()
        requested = wanted.copy()
        slots, amounts = list[int](), list[int]()
        for uid, amount in self._measured.items():
            # Both are there while one is about to end and room is kept for the other.
            for pod in (cluster.placed.get(uid), cluster.placed.get(replacement(uid))):
                if pod is not None:
                    slots.append(pod.slot)
                    amounts.append(amount)
        wanted[slots] = amounts
        counted = (pods.row[: pods.count] >= 0) & ~pods.terminating[: pods.count]
        rows = pods.row[: pods.count][counted]
        # The sums are exact: they stay far below 2 ** 53.
        self.wanted = np.bincount(rows, wanted[counted], count).astype(np.int64)
        self.eager = np.bincount(rows, (wanted > requested)[counted], count).astype(np.int64)


def requested_by(pod: PodRecord) -> int:
    """The cpu that a pod requests, in thousandths."""
    return pod.pod_class.requests.get(CPU, 0)


def _measured(signals: Signals) -> dict[str, int]:
    return {
        uid: _wanted(told.cpu_used_milli, told.cpu_pressure)
        for uid, told in signals.pods.items()
        if told.cpu_used_milli is not None
    }


def _wanted(used_milli: int, pressure: float | None) -> int:
    used_milli = max(0, min(used_milli, _MOST_MILLI))
    # Whatever is no share of time is not believed.
    return round(used_milli / (1 - min(pressure, _MOST_PRESSURE))) if pressure and pressure > 0 else used_milli
