"""The pods of each node by importance, as a matrix, for choosing whom to preempt.

Source: pkg/scheduler/util/utils.go (MoreImportantPod); pod-preemption.md, "Preemption order", for the QoS order.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

import numpy as np

from podium.cluster.arrays import Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord

EqualPriorityOrder = Literal["StartTime", "QoS"]
_TEN = "0123456789"
_DIGITS = re.compile(r"(\d+)", re.ASCII)
_QOS_RANK = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}
# What an empty place in the matrix has for a priority: above every pod's, so that it is never a lower-priority pod.
_NOBODY = np.iinfo(np.int64).max


NaturalName = tuple[tuple[str, int], ...]


def natural(name: str) -> NaturalName:
    """A sort key under which runs of digits compare as numbers."""
    parts = _DIGITS.split(name)
    return tuple((text, int(number)) for text, number in zip(parts[::2], [*parts[1::2], "-1"], strict=True))


class Ranking:
    """The preemptible pods of each row, the most important first.

    They go by falling priority, then the one that runs longest comes first, then by name.

    With the order ``QoS`` pods of equal priority are told apart by QoS class before their start: Guaranteed, Burstable,
    BestEffort. With ``spare_mirrors`` mirror pods are left out: deleting one frees nothing, since its kubelet runs the
    pod from a file. ``slots`` and ``priorities`` are ``[rows, places]``; empty places hold `NO_ROW` and no priority at
    all.
    """

    def __init__(
        self, cluster: Cluster, order: EqualPriorityOrder = "StartTime", *, spare_mirrors: bool = False
    ) -> None:
        self._cluster = cluster
        self._spare_mirrors = spare_mirrors
        self._by_qos = order == "QoS"
        self._position = -1
        self.slots: Int32s = np.full((0, 8), NO_ROW, dtype=np.int32)
        self.priorities: Int64s = np.full((0, 8), _NOBODY, dtype=np.int64)

    def refresh(self) -> None:
        """Rank again the rows that changed since the last time."""
        nodes = self._cluster.nodes
        changed = nodes.changes.since(self._position) if self._position >= 0 else None
        self._position = nodes.changes.position
        if nodes.count > len(self.slots):
            self._resize(max(nodes.count, 2 * len(self.slots)), self.slots.shape[1])
        if changed is None:
            self._rank_all()
        else:
            for row in changed.tolist():
                self._rank(row)

    def on(self, row: int) -> list[tuple[int, int]]:
        """The slots of the pods on a row with their priorities, the most important first."""
        slots, priorities = self.slots[row].tolist(), self.priorities[row].tolist()
        return [(slot, priority) for slot, priority in zip(slots, priorities, strict=True) if slot != NO_ROW]

    def key(self, pod: PodRecord) -> tuple[int, int, int, NaturalName, str]:
        """What pods are ranked by; the smallest is the most important.

        kube-scheduler leaves pods that agree in priority and start in the order in which it saw them. Names in natural
        order (web-2 before web-10) come close for numbered pods, and do not depend on the order of the input.
        """
        return (*self._rough_key(pod), natural(pod.name), pod.namespace)

    def _rough_key(self, pod: PodRecord) -> tuple[int, int, int]:
        """The key without the name."""
        return (-pod.priority, _QOS_RANK[pod.pod_class.qos] if self._by_qos else 0, pod.start_ns)

    def _rank(self, row: int) -> None:
        pods = [pod for pod in self._cluster.pods_on(row) if self._may_go(pod)]
        if len(pods) > 1:
            pods.sort(key=self._rough_key)
            if any(self._rough_key(one) == self._rough_key(other) for one, other in pairwise(pods)):
                pods.sort(key=self.key)
        if len(pods) > self.slots.shape[1]:
            self._resize(len(self.slots), 2 * len(pods))
        self.slots[row] = NO_ROW
        self.priorities[row] = _NOBODY
        if pods:
            self.slots[row, : len(pods)] = [pod.slot for pod in pods]
            self.priorities[row, : len(pods)] = [pod.priority for pod in pods]

    def _rank_all(self) -> None:
        """The same for all rows at once; only pods that their names alone tell apart are looked at one by one."""
        table = self._cluster.pods
        placed = np.flatnonzero(table.row[: table.count] != NO_ROW)
        pods = list(map(table.record, placed.tolist()))
        may_go = np.array([pod.is_preemptible for pod in pods], dtype=np.bool_)
        if self._spare_mirrors:
            may_go &= np.array([not pod.is_mirror for pod in pods], dtype=np.bool_)
        slots = placed[may_go]
        ranked: list[Int64s | Int32s] = [table.start_ns[slots], *self.qos_ranks(slots), -table.priority[slots]]
        columns = (*ranked, table.row[slots])
        order = np.lexsort(columns)
        slots, rows = slots[order], columns[-1][order]
        fresh = np.ones(len(slots) + 1, dtype=np.bool_)
        fresh[1:-1] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
        bounds = np.flatnonzero(fresh)
        equals = np.flatnonzero(np.diff(bounds) > 1)
        for start, end in zip(bounds[equals].tolist(), bounds[equals + 1].tolist(), strict=True):
            slots[start:end] = self._by_name(slots[start:end].tolist())
        numbers = np.bincount(rows, minlength=len(self.slots))
        self._resize(len(self.slots), max(self.slots.shape[1], int(numbers.max(initial=0))))
        places = np.arange(len(slots)) - (np.cumsum(numbers) - numbers)[rows]
        self.slots[:] = NO_ROW
        self.priorities[:] = _NOBODY
        self.slots[rows, places], self.priorities[rows, places] = slots, table.priority[slots]

    def qos_ranks(self, slots: Int64s) -> tuple[Int64s, ...]:
        """By what pods of equal priority are told apart before their starts, as ``[slots]``; nothing where by none."""
        if not self._by_qos:
            return ()
        records = map(self._cluster.pods.record, slots.tolist())
        return (np.fromiter((_QOS_RANK[pod.pod_class.qos] for pod in records), np.int64, len(slots)),)

    def _by_name(self, slots: list[int]) -> list[int]:
        """The slots of pods on a node that agree in all but their names, in order."""
        pods = list(map(self._cluster.pods.record, slots))
        stem = pods[0].name.rstrip(_TEN)
        namespace = pods[0].namespace
        tails = [pod.name[len(stem) :] for pod in pods if pod.namespace == namespace and pod.name.startswith(stem)]
        if len(tails) == len(pods) and not "".join(tails).strip(_TEN):
            # Nothing but the last number tells them apart.
            numbers = [int(tail or -1) for tail in tails]
            return [slot for _, slot in sorted(zip(numbers, slots, strict=True))]
        return [pod.slot for pod in sorted(pods, key=self.key)]

    def _may_go(self, pod: PodRecord) -> bool:
        return pod.is_preemptible and not (self._spare_mirrors and pod.is_mirror)

    def _resize(self, rows: int, places: int) -> None:
        slots = np.full((rows, places), NO_ROW, dtype=np.int32)
        priorities = np.full((rows, places), _NOBODY, dtype=np.int64)
        old = self.slots.shape
        slots[: old[0], : old[1]] = self.slots
        priorities[: old[0], : old[1]] = self.priorities
        self.slots, self.priorities = slots, priorities
