"""The pods of each node by importance, as a matrix, for choosing whom to preempt.

Source: pkg/scheduler/util/utils.go (MoreImportantPod); pod-preemption.md, "Preemption order", for the QoS order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, repeat
from operator import attrgetter
from typing import Literal, cast

import numpy as np

from podium.api.policy import NEVER_PREEMPTED
from podium.cluster.arrays import Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord

EqualPriorityOrder = Literal["StartTime", "QoS"]
_TEN = "0123456789"
_DIGITS = re.compile(r"(\d+)", re.ASCII)
_QOS_RANK = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}
# What an empty place in the matrix has for a priority: above every pod's, so that it is never a lower-priority pod.
_NOBODY = np.iinfo(np.int64).max


# Up to how many changed rows are ranked one by one; more are ranked together, in arrays.
_FEW_ROWS = 16
# Of how many rows that were asked for one by one the pods are kept.
_MOST_KEPT = 1024
# Longer ones are not told by 64 bits.
_MOST_DIGITS = 18

NaturalName = tuple[tuple[str, int], ...]


def natural(name: str) -> NaturalName:
    """A sort key under which runs of digits compare as numbers."""
    parts = _DIGITS.split(name)
    return tuple((text, int(number)) for text, number in zip(parts[::2], [*parts[1::2], "-1"], strict=True))


def _ends_of_names(pods: Sequence[PodRecord]) -> tuple[Int64s, Int64s]:
    """``[pods]`` each: the number at the end of a pod's name, -1 without one, and a number for all before it.

    That is equal for equal names of equal namespaces, and -1 where the number at the end is too large.
    """
    # In functions of Python's own, since there may be some hundred thousand pods.
    names = [pod.name for pod in pods]
    stems = list(map(str.rstrip, names, repeat(_TEN)))
    tails = list(map(str.removeprefix, names, stems))
    namespaces = [pod.namespace for pod in pods]
    if len(set(namespaces)) > 1:
        stems = list(map("{}/{}".format, namespaces, stems))
    number_of = dict(zip(dict.fromkeys(stems), count()))
    numbers = np.array(list(map(number_of.__getitem__, stems)), dtype=np.int64)
    lengths = np.array(list(map(len, tails)), dtype=np.int64)
    numbers[lengths > _MOST_DIGITS] = -1
    for odd in np.flatnonzero((lengths == 0) | (lengths > _MOST_DIGITS)).tolist():
        tails[odd] = "-1"
    return np.array(list(map(int, tails)), dtype=np.int64), numbers


class Ranking:
    """The preemptible pods of each row, the most important first.

    They go by falling priority, then the one that runs longest comes first, then by name.

    With the order ``QoS`` pods of equal priority are told apart by QoS class before their start: Guaranteed, Burstable,
    BestEffort. With ``spare_mirrors`` mirror pods are left out: deleting one frees nothing, since its kubelet runs the
    pod from a file. ``slots`` and ``priorities`` are ``[rows, places]``; empty places hold `NO_ROW` and no priority at
    all. They are right as of the last `refresh`; who asks for the pods of one row needs none.
    """

    def __init__(
        self, cluster: Cluster, order: EqualPriorityOrder = "StartTime", *, spare_mirrors: bool = False
    ) -> None:
        self._cluster = cluster
        self._spare_mirrors = spare_mirrors
        self._by_qos = order == "QoS"
        # Up to there the log of changes was read, and of the rows that it named these are to be ranked again.
        self._position = -1
        self._missed: set[int] = set()
        self._misses_all = True
        # The slots of the pods on rows that were asked for one by one, and have not changed since as far as is known.
        self._on_row: dict[int, list[int]] = {}
        self.slots: Int32s = np.full((0, 8), NO_ROW, dtype=np.int32)
        self.priorities: Int64s = np.full((0, 8), _NOBODY, dtype=np.int64)

    def refresh(self) -> None:
        """Rank again the rows that changed since the last time."""
        self._note()
        nodes, missed = self._cluster.nodes, sorted(self._missed)
        if nodes.count > len(self.slots):
            self._resize(max(nodes.count, 2 * len(self.slots)), self.slots.shape[1])
        if self._misses_all:
            self._rank_all()
        elif len(missed) > _FEW_ROWS:
            self._rank_some(missed)
        else:
            for row in missed:
                self._rank(row)
        self._missed, self._misses_all = set(), False

    def on(self, row: int) -> list[PodRecord]:
        """The pods on a row as they are, the most important first."""
        self._note()
        known = self._on_row.get(row)
        if known is not None:
            return list(map(self._cluster.pods.record, known))
        if len(self._on_row) == _MOST_KEPT:
            self._on_row = {}
        pods = self._ranked(row)
        self._on_row[row] = [pod.slot for pod in pods]
        return pods

    def key(self, pod: PodRecord) -> tuple[int, int, int, NaturalName, str]:
        """What pods are ranked by; the smallest is the most important.

        kube-scheduler leaves pods that agree in priority and start in the order in which it saw them. Names in natural
        order (web-2 before web-10) come close for numbered pods, and do not depend on the order of the input.
        """
        return (*self._rough_key(pod), natural(pod.name), pod.namespace)

    def _rough_key(self, pod: PodRecord) -> tuple[int, int, int]:
        """The key without the name."""
        return (-pod.priority, _QOS_RANK[pod.pod_class.qos] if self._by_qos else 0, pod.start_ns)

    def _note(self) -> None:
        """Read in the log of changes what was missed."""
        changes = self._cluster.nodes.changes
        if self._position == changes.position:
            return
        missed = changes.entries_since(self._position)
        self._position = changes.position
        if missed is None:
            self._misses_all, self._on_row = True, {}
            return
        rows = set(missed)
        self._missed |= rows
        for row in rows & self._on_row.keys():
            del self._on_row[row]

    def _ranked(self, row: int) -> list[PodRecord]:
        pods = [pod for pod in self._cluster.pods_on(row) if pod.is_preemptible]
        if self._spare_mirrors:
            pods = [pod for pod in pods if not pod.is_mirror]
        if len(pods) > 1:
            are_told_apart = len(set(map(self._rough_key, pods))) == len(pods)
            pods.sort(key=self._rough_key if are_told_apart else self.key)
        return pods

    def _rank(self, row: int) -> None:
        pods = self._ranked(row)
        if len(pods) > self.slots.shape[1]:
            self._resize(len(self.slots), 2 * len(pods))
        self.slots[row] = NO_ROW
        self.priorities[row] = _NOBODY
        if pods:
            self.slots[row, : len(pods)] = [pod.slot for pod in pods]
            self.priorities[row, : len(pods)] = [pod.priority for pod in pods]

    def _rank_all(self) -> None:
        """The same for all rows at once."""
        table = self._cluster.pods
        placed = np.flatnonzero(table.row[: table.count] != NO_ROW)
        self.slots[:] = NO_ROW
        self.priorities[:] = _NOBODY
        self._rank_together(placed, self._records(placed))

    def _rank_some(self, rows: list[int]) -> None:
        """The same for some rows, ascending."""
        pods = [pod for row in rows for pod in self._cluster.pods_on(row)]
        self.slots[rows] = NO_ROW
        self.priorities[rows] = _NOBODY
        self._rank_together(np.array([pod.slot for pod in pods], dtype=np.int64), pods)

    def _rank_together(self, placed: Int64s, pods: list[PodRecord]) -> None:
        """Rank pods, which are all those on their rows, in arrays; their slots are ``placed``."""
        table = self._cluster.pods
        may_go = np.ones(len(pods), dtype=np.bool_)
        if not frozenset(NEVER_PREEMPTED).isdisjoint(map(attrgetter("preemption_policy"), pods)):
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
        self._order_equals(slots, np.flatnonzero(fresh))
        numbers = np.bincount(rows, minlength=len(self.slots))
        if numbers.max(initial=0) > self.slots.shape[1]:
            self._resize(len(self.slots), int(numbers.max()))
        places = np.arange(len(slots)) - (np.cumsum(numbers) - numbers)[rows]
        self.slots[rows, places], self.priorities[rows, places] = slots, table.priority[slots]

    def qos_ranks(self, slots: Int64s) -> tuple[Int64s, ...]:
        """By what pods of equal priority are told apart before their starts, as ``[slots]``; nothing where by none."""
        if not self._by_qos:
            return ()
        records = map(self._cluster.pods.record, slots.tolist())
        return (np.fromiter((_QOS_RANK[pod.pod_class.qos] for pod in records), np.int64, len(slots)),)

    def _order_equals(self, slots: Int64s | Int32s, bounds: Int64s) -> None:
        """Order by name what else agrees: the pods of a node in ``slots`` from one of ``bounds`` up to the next.

        Most such pods are told apart by the number at the end of their names alone, so that it is read once for each,
        and compared in arrays.
        """
        lengths = np.diff(bounds)
        among = np.flatnonzero(np.repeat(lengths > 1, lengths))
        if not len(among):
            return
        lengths = lengths[lengths > 1]
        firsts = np.cumsum(lengths) - lengths
        pods = self._records(slots[among])
        numbers, stems = _ends_of_names(pods)
        groups = np.repeat(np.arange(len(lengths)), lengths)
        some = slots[among]
        slots[among] = some[np.lexsort((some, numbers, groups))]
        alike = np.logical_and.reduceat((stems == stems[firsts][groups]) & (stems >= 0), firsts)
        for group in np.flatnonzero(~alike).tolist():
            start, end = int(firsts[group]), int(firsts[group] + lengths[group])
            slots[among[start:end]] = [pod.slot for pod in sorted(pods[start:end], key=self.key)]

    def _records(self, slots: Int64s | Int32s) -> list[PodRecord]:
        """The pods in slots that are in use."""
        return cast("list[PodRecord]", list(map(self._cluster.pods.records.__getitem__, slots.tolist())))

    def _resize(self, rows: int, places: int) -> None:
        slots = np.full((rows, places), NO_ROW, dtype=np.int32)
        priorities = np.full((rows, places), _NOBODY, dtype=np.int64)
        old = self.slots.shape
        slots[: old[0], : old[1]] = self.slots
        priorities[: old[0], : old[1]] = self.priorities
        self.slots, self.priorities = slots, priorities
