"""How many pods each workload wants."""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from podium.store.watch_log import WatchEvent


class Scales:
    """The scale of each controller; that of a Deployment's ReplicaSet is the Deployment's."""

    def __init__(self) -> None:
        self._workloads: dict[str, Deployment | ReplicaSet | ReplicationController | StatefulSet] = {}

    def observe(self, object_: Kubernetes, event: WatchEvent) -> bool:
        """Take in a change; whether it was one of a workload that has a scale."""
        if not isinstance(object_, Deployment | ReplicaSet | ReplicationController | StatefulSet):
            return False
        if event.type == "DELETED":
            self._workloads.pop(object_.metadata.uid, None)
        else:
            self._workloads[object_.metadata.uid] = object_
        return True

    def of(self, uid: str) -> tuple[str, int] | None:
        """The uid of the workload that scales the controller `uid`, and its wanted number of pods; None if unknown."""
        workload = self._workloads.get(uid)
        if workload is None:
            return None
        parent = workload.metadata.controller
        if isinstance(workload, ReplicaSet) and parent is not None:
            return self.of(parent.uid)
        return uid, workload.spec.replicas
