"""The controller of ReplicaSets and ReplicationControllers: each has as many active pods as it wants.

Source: pkg/controller/replicaset (syncReplicaSet, manageReplicas, getPodsToDelete, calculateStatus).
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.meta import Raw
from podium.api.workloads import ReplicaSet, ReplicationController
from podium.machines.actions import Action, CreateObject
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.workloads.owned_pods import OwnedPod, OwnerPods
from podium.machines.workloads.pod_ranking import first_to_go
from podium.machines.workloads.status_writes import status_with
from podium.machines.workloads.workload import Workload
from podium.machines.workloads.workload_controller import WorkloadController
from podium.store.conditions import with_condition

_Replicated = ReplicaSet | ReplicationController
_FAILURE = "ReplicaFailure"


class ReplicaSets(WorkloadController[_Replicated]):
    """Makes pods that are missing, and deletes those that are too many."""

    watches = WorkloadController.watches | {"Pod", "ReplicaSet", "ReplicationController"}

    def __init__(self) -> None:
        super().__init__(ReplicaSet, ReplicationController)
        # By the uid of a controller of ReplicaSets, those of its ReplicaSets.
        self._siblings: dict[str, dict[str, None]] = {}
        # Why the last creation of a workload was refused.
        self._refusals: dict[str, str] = {}

    def _put(self, workload: Workload[_Replicated]) -> None:
        super()._put(workload)
        parent = workload.object.metadata.controller
        if parent is not None:
            self._siblings.setdefault(parent.uid, {})[workload.uid] = None

    def _remove(self, uid: str) -> None:
        workload = self._workloads.get(uid)
        super()._remove(uid)
        self._refusals.pop(uid, None)
        parent = workload.object.metadata.controller if workload is not None else None
        if parent is not None:
            siblings = self._siblings[parent.uid]
            siblings.pop(uid, None)
            if not siblings:
                del self._siblings[parent.uid]

    def _sync(self, workload: Workload[_Replicated], now: int) -> list[Action]:
        pods = self._pods.of(workload.uid)
        actions: list[Action] = []
        if not workload.is_deleted and self._expectations.are_met(workload.uid):
            actions += self._manage(workload, pods, now)
        return actions + self._statuses.write(workload, self._status(workload, pods, now))

    def _manage(self, workload: Workload[_Replicated], pods: OwnerPods, now: int) -> list[Action]:
        missing = workload.object.spec.replicas - len(pods.active)
        if missing <= 0:
            self._refusals.pop(workload.uid, None)
        if missing < 0:
            chosen = first_to_go(pods.active.values(), -missing, self._related(workload), now)
            return [self._delete(workload, pod, now) for pod in chosen]
        if missing == 0 or not self._may_create(workload, now):
            return []
        count = 1 if self._waits.is_refused(workload.uid, workload.object.metadata.namespace) else missing
        self._expectations.expect_creations(workload.uid, count, now)
        name = f"{workload.object.metadata.name}-"
        return [CreateObject(workload.new_pod(workload.template, {"generateName": name}, {}), workload.label)] * count

    def _related(self, workload: Workload[_Replicated]) -> Iterator[OwnedPod]:
        """The active pods of all ReplicaSets that have the same controller."""
        parent = workload.object.metadata.controller
        for uid in self._siblings[parent.uid] if parent is not None else (workload.uid,):
            yield from self._pods.of(uid).active.values()

    def _created(self, workload: Workload[_Replicated], raw: Raw, answered: Answered, now: int) -> None:
        super()._created(workload, raw, answered, now)
        if answered.problem is None:
            self._refusals.pop(workload.uid, None)
        elif answered.answer is not Answer.UNKNOWN:
            self._refusals.setdefault(workload.uid, answered.problem.message)

    def _status(self, workload: Workload[_Replicated], pods: OwnerPods, now: int) -> Raw:
        counts: Raw = {
            "replicas": len(pods.active),
            "readyReplicas": len(pods.ready),
            "availableReplicas": self._available(workload, pods, now),
            "observedGeneration": workload.object.metadata.generation,
            # What this controller does not count is not left as somebody else has counted it.
            "fullyLabeledReplicas": None,
            "terminatingReplicas": None,
            "conditions": self._conditions(workload, now),
        }
        return status_with(workload.status, counts, always=("replicas",))

    def _available(self, workload: Workload[_Replicated], pods: OwnerPods, now: int) -> int:
        seconds = workload.object.spec.min_ready_seconds
        if not seconds:
            return len(pods.ready)
        times = [time for pod in pods.ready.values() if (time := pod.available_ns(seconds)) is not None]
        self._times.extend(time for time in times if time > now)
        return sum(time <= now for time in times)

    def _conditions(self, workload: Workload[_Replicated], now: int) -> list[Raw]:
        """The conditions with ReplicaFailure while the last creation was refused, and without it else."""
        listed: list[Raw] = workload.status.get("conditions", [])
        has_failure = any(condition.get("type") == _FAILURE for condition in listed)
        message = self._refusals.get(workload.uid)
        if message is None:
            return [condition for condition in listed if condition.get("type") != _FAILURE]
        if has_failure:
            return listed
        return with_condition(
            listed, {"type": _FAILURE, "status": "True", "reason": "FailedCreate", "message": message}, now
        )
