"""Pods that have joined or left worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True)
class Change:
    """Pods that joined (sign 1) or left (sign -1) the worlds ``ids``. All arrays and ``pods`` are ``[changes]``.

    ``rows`` is None where they are on the worlds' own rows, and otherwise says where they are. What is known of a
    change is shared by the worlds that it is told of and all parts of these.
    """

    ids: Int64s
    pods: Sequence[PodRecord] | Int64s
    classes: Int32s
    sign: int
    rows: Int64s | None = None
    _matching: dict[Predicate, Int64s] = field(default_factory=dict)

    def pod(self, cluster: Cluster, index: int) -> PodRecord:
        """The pod at an index."""
        pod = self.pods[index]
        return pod if isinstance(pod, PodRecord) else cluster.pods.record(int(pod))

    def terminating(self, cluster: Cluster) -> Bools:
        """``[changes]``: which of the pods terminate."""
        if isinstance(self.pods, np.ndarray):
            terminating: Bools = cluster.pods.terminating[self.pods]
            return terminating
        return np.array([pod.terminating for pod in self.pods], dtype=np.bool_)

    def matching(self, cluster: Cluster, predicate: Predicate) -> Int64s:
        """Which of the pods match, as the cluster counts them."""
        known = self._matching.get(predicate)
        if known is None:
            matching = cluster.matcher(predicate).matching(self.classes)
            if predicate.live_only and matching.any():
                matching = matching & ~self.terminating(cluster)
            known = self._matching[predicate] = np.flatnonzero(matching)
        return known
