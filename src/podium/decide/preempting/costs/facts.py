"""What criteria ask of pods and their cluster, each thing worked out once for one question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property

import numpy as np

from podium.cluster.arrays import Bools, Int64s, occurring
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.framework.handle import Handle

PodNumbers = Callable[["Facts", Int64s], Int64s]
"""``[slots]``: a number for each of the pods in some slots."""


class Facts:
    """Facts hold as long as the cluster does not change."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._known: dict[PodNumbers, tuple[Int64s, Bools]] = {}
        self._places: dict[tuple[int, int], Int64s] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster that the pods are in."""
        return self.handle.cluster

    def of(self, numbers: PodNumbers, slots: Int64s) -> Int64s:
        """``[slots]``: numbers of pods; those that were asked for before are kept."""
        known = self._known.get(numbers)
        if known is None:
            size = self.cluster.pods.count
            known = self._known[numbers] = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        values, is_known = known
        missing = slots[~is_known[slots]]
        if len(missing):
            missing = occurring(missing, len(values))
            values[missing] = numbers(self, missing)
            is_known[missing] = True
        found: Int64s = values[slots]
        return found

    def of_records(self, value: Callable[[PodRecord], int], slots: Int64s) -> Int64s:
        """``[slots]``: a number for each, worked out from the pod's record."""
        records = map(self.cluster.pods.record, slots.tolist())
        return np.fromiter(map(value, records), dtype=np.int64, count=len(slots))

    def has_other_place(self, pod: PodRecord) -> bool:
        """Whether some node but its own could take another pod such as this one, as things are."""
        key = pod.pod_class.id, pod.priority
        rows = self._places.get(key)
        if rows is None:
            rows = self._places[key] = self.handle.feasible_rows(pod)
        return len(rows) > 1 or (len(rows) == 1 and int(rows[0]) != pod.row)

    @cached_property
    def owners(self) -> tuple[dict[str, int], Int64s]:
        """The owners of placed pods, numbered, by uid; and how many placed pods each has."""
        pods = self.cluster.pods.records
        counts = Counter(record.owner_uid for record in pods if record is not None and record.row != NO_ROW)
        return {uid: number for number, uid in enumerate(counts)}, np.array(list(counts.values()), dtype=np.int64)

    @cached_property
    def shares_of_namespaces(self) -> dict[str, float]:
        """The largest part that the placed pods of each namespace request of any resource of all nodes together."""
        pods, nodes, classes = self.cluster.pods, self.cluster.nodes, self.cluster.classes
        placed = pods.pod_class[: pods.count][pods.row[: pods.count] != NO_ROW]
        numbers = np.bincount(placed, minlength=classes.requests.shape[1])
        has = nodes.allocatable[:, : nodes.count] * nodes.present[: nodes.count]
        total = has.sum(axis=1)[: len(classes.requests)]
        requested: dict[str, Int64s] = {}
        for class_id in np.flatnonzero(numbers).tolist():
            amounts = classes.requests[:, class_id] * numbers[class_id]
            namespace = classes[class_id].namespace
            requested[namespace] = requested[namespace] + amounts if namespace in requested else amounts
        return {
            name: float(np.divide(amounts, total, out=np.zeros(len(total)), where=total > 0).max(initial=0.0))
            for name, amounts in requested.items()
        }
