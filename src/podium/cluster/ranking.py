"""The preemptible pods of each node by importance, as a matrix.

Source: pkg/scheduler/util/utils.go (MoreImportantPod); pod-preemption.md, "Preemption order", for the QoS order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
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
_SLOT_OF = attrgetter("slot")
_DIGITS = re.compile(r"(\d+)", re.ASCII)
_QOS_RANK = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}
# The priority of empty places, above every pod's.
_NO_PRIORITY = np.iinfo(np.int64).max


# Up to so many changed rows are ranked one by one, more together in arrays.
_FEW_ROWS = 16
# The number of rows whose pods `below` keeps.
_MOST_KEPT = 1024
# Longer numbers do not fit 64 bits.
_MOST_DIGITS = 18

NaturalName = tuple[tuple[str, int], ...]


def natural(name: str) -> NaturalName:
    """Return a sort key in which runs of digits compare as numbers."""
    parts = [*_DIGITS.split(name), "-1"]
    return tuple(zip(parts[::2], map(int, parts[1::2]), strict=True))


def _ends_of_names(pods: Sequence[PodRecord]) -> tuple[Int64s, Int64s]:
    """``[pods]`` each: the number at the end of a pod's name, -1 without one, and a number for all before it.

    That is equal for equal names of equal namespaces, and -1 where the number at the end is too large.
    """
    # Built-in functions, since there may be hundreds of thousands of pods.
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


class PreemptionRanking:
    """The preemptible pods of each row by falling priority, then start (oldest first), then name.

    With the order ``QoS``, pods of equal priority are ranked by QoS class before their start: Guaranteed, Burstable,
    BestEffort. ``spare_mirrors`` excludes mirror pods: deleting one frees nothing, since its kubelet runs the pod from
    a file. ``slots`` and ``priorities`` are ``[rows, places]`` as of the last `refresh`; `below` is always current.
    """

    def __init__(
        self, cluster: Cluster, order: EqualPriorityOrder = "StartTime", *, spare_mirrors: bool = False
    ) -> None:
        self._cluster = cluster
        self._spare_mirrors = spare_mirrors
        self._by_qos = order == "QoS"
        # The position up to which the log of changes was read, and the rows since then that have not been ranked again.
        self._position = -1
        self._missed: set[int] = set()
        self._misses_all = True
        # For rows that have not changed, the slots of their pods by falling priority, and the negative priorities.
        self._on_row: dict[int, tuple[list[int], list[int]]] = {}
        self.slots: Int32s = np.full((0, 8), NO_ROW, dtype=np.int32)
        self.priorities: Int64s = np.full((0, 8), _NO_PRIORITY, dtype=np.int64)

    def refresh(self) -> None:
        """Rank the changed rows again."""
        self._note()
        nodes, missed = self._cluster.nodes, sorted(self._missed)
        if nodes.count > len(self.slots):
            self._resize(max(nodes.count, 2 * len(self.slots)), self.slots.shape[1])
        if self._misses_all or len(missed) > _FEW_ROWS:
            self._rank_together(None if self._misses_all else missed)
        else:
            for row in missed:
                pods = self._ranked(row)
                if len(pods) > self.slots.shape[1]:
                    self._resize(len(self.slots), 2 * len(pods))
                self.slots[row] = NO_ROW
                self.priorities[row] = _NO_PRIORITY
                if pods:
                    self.slots[row, : len(pods)] = [pod.slot for pod in pods]
                    self.priorities[row, : len(pods)] = [pod.priority for pod in pods]
        self._missed, self._misses_all = set(), False

    def below(self, row: int, priority: int) -> list[PodRecord]:
        """Return the current pods of lower priority on a row, the most important first."""
        self._note()
        known = self._on_row.get(row)
        if known is None:
            if len(self._on_row) == _MOST_KEPT:
                self._on_row = {}
            pods = self._ranked(row)
            known = self._on_row[row] = list(map(_SLOT_OF, pods)), [-pod.priority for pod in pods]
        slots, negative = known
        return list(map(self._cluster.pods.record, slots[bisect_right(negative, -priority) :]))

    def key(self, pod: PodRecord) -> tuple[int, int, int, NaturalName, str]:
        """Return a pod's sort key; the smallest is the most important.

        kube-scheduler orders pods of equal priority and start by first observation. Names in natural order (web-2
        before web-10) approximate that for numbered pods, and do not depend on the order of the input.
        """
        return (*self._rough_key(pod), natural(pod.name), pod.namespace)

    def _rough_key(self, pod: PodRecord) -> tuple[int, int, int]:
        """Return the key without the name."""
        return (-pod.priority, _QOS_RANK[pod.pod_class.qos] if self._by_qos else 0, pod.start_ns)

    def _note(self) -> None:
        """Read the changed rows from the log."""
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
            are_distinct = len(set(map(self._rough_key, pods))) == len(pods)
            pods.sort(key=self._rough_key if are_distinct else self.key)
        return pods

    def _rank_together(self, some: list[int] | None) -> None:
        """Rank all pods of some rows, which ascend, in arrays; None means all rows."""
        table = self._cluster.pods
        if some is None:
            placed = np.flatnonzero(table.row[: table.count] != NO_ROW)
            pods = self._records(placed)
        else:
            pods = [pod for row in some for pod in self._cluster.pods_on(row)]
            placed = np.array([pod.slot for pod in pods], dtype=np.int64)
        self.slots[slice(None) if some is None else some] = NO_ROW
        self.priorities[slice(None) if some is None else some] = _NO_PRIORITY
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
        """Return ``[slots]`` the QoS ranks that come before the start, if the order is ``QoS``."""
        if not self._by_qos:
            return ()
        records = map(self._cluster.pods.record, slots.tolist())
        return (np.fromiter((_QOS_RANK[pod.pod_class.qos] for pod in records), np.int64, len(slots)),)

    def _order_equals(self, slots: Int64s | Int32s, bounds: Int64s) -> None:
        """Sort by name the pods that are equal otherwise: those in ``slots`` between two successive ``bounds``.

        Most such names differ in their final number only, so that these are parsed once and compared in arrays.
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
        """Return the pods in used slots."""
        return cast("list[PodRecord]", list(map(self._cluster.pods.records.__getitem__, slots.tolist())))

    def _resize(self, rows: int, places: int) -> None:
        slots = np.full((rows, places), NO_ROW, dtype=np.int32)
        priorities = np.full((rows, places), _NO_PRIORITY, dtype=np.int64)
        old = self.slots.shape
        slots[: old[0], : old[1]] = self.slots
        priorities[: old[0], : old[1]] = self.priorities
        self.slots, self.priorities = slots, priorities
