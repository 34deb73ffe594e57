"""Whom pods belong to in the end, as answers name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord

DAEMON_SET = "DaemonSet"
# A CronJob has Jobs, a Deployment ReplicaSets.
_MOST_OWNERS = 2


class Workloads:
    """The workloads of the pods of a cluster: those on nodes when this is made, and those that are ``pending``."""

    def __init__(self, objects: Sequence[Kubernetes], cluster: Cluster, pending: Iterable[PodRecord]) -> None:
        self._objects = objects
        self._cluster = cluster
        self._records = (*cluster.placed.values(), *pending)

    def of(self, pod: PodRecord) -> str:
        """Who the pod belongs to in the end, as in `Deployment shop/web`; the pod itself where nobody makes it."""
        controller = pod.controller
        if controller is None:
            return f"Pod {pod.key}"
        label = f"{controller.kind} {pod.namespace}/{controller.name}"
        for _ in range(_MOST_OWNERS):
            label = self._tops.get(label, label)
        return label

    def whose(self, pods: Sequence[PodRecord]) -> str:
        """The workload of pods of one kind; pods that nobody makes may be alike, and are counted."""
        workloads = list(dict.fromkeys(map(self.of, pods)))
        return workloads[0] if len(workloads) == 1 else f"{workloads[0]} and {len(workloads) - 1:,} like it"

    def placed(self, workload: str) -> list[PodRecord]:
        """The pods of a workload that have a node, by key."""
        placed = self._cluster.placed
        found = (placed.get(uid) for uid in self._uids.get(workload, ()))
        return sorted(filter(None, found), key=lambda record: record.key)

    @cached_property
    def daemons(self) -> tuple[PodRecord, ...]:
        """A pod of each DaemonSet, by its key: what one more node gets."""
        found: dict[str, PodRecord] = {}
        for record in sorted(self._cluster.placed.values(), key=lambda record: record.key):
            if record.controller is not None and record.controller.kind == DAEMON_SET:
                found.setdefault(record.owner_uid, record)
        return tuple(record.without_node() for record in found.values())

    @cached_property
    def _tops(self) -> Mapping[str, str]:
        """By what makes pods and belongs to something else, such as a Deployment's ReplicaSet, whom it belongs to."""
        found: dict[str, str] = {}
        for item in self._objects:
            controller = None if isinstance(item, Pod) else item.metadata.controller
            if controller is not None:
                label = f"{item.kind} {item.key}"
                found[label] = f"{controller.kind} {item.metadata.namespace}/{controller.name}"
        return found

    @cached_property
    def _uids(self) -> Mapping[str, dict[str, None]]:
        """By workload, the uids of its pods."""
        found: dict[str, dict[str, None]] = {}
        for record in self._records:
            found.setdefault(self.of(record), {})[record.uid] = None
        return found
