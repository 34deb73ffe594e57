"""The controller of ReplicaSets and ReplicationControllers.

Source: pkg/controller/replicaset (syncReplicaSet, manageReplicas, getPodsToDelete, calculateStatus).
"""

from __future__ import annotations

from podium.api.meta import Kubernetes, Raw, object_at
from podium.api.pod import Pod
from podium.api.workloads import ReplicaSet, ReplicationController
from podium.controllers.actions import Action, CreateObject
from podium.controllers.indexes import MultiMap
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.workloads.owned_pods import OwnerPods, WorkloadObject, first_to_go, status_with
from podium.controllers.workloads.workload_controller import FAILED_CREATE, WorkloadController
from podium.store.stored import condition_of, with_conditions

_Workload = WorkloadObject[ReplicaSet | ReplicationController]
_FAILURE = "ReplicaFailure"


class ReplicaSets(WorkloadController[ReplicaSet | ReplicationController]):
    """Creates missing pods, and deletes surplus ones.

    With ``counts_terminating``, the status of ReplicaSets has the number of terminating pods. With ``adopts``, they
    adopt and release pods, and count those with all labels of the template.
    """

    watches = WorkloadController.watches | {"Pod", "ReplicaSet", "ReplicationController"}

    def __init__(self, *, counts_terminating: bool = False, adopts: bool = False) -> None:
        super().__init__(ReplicaSet, ReplicationController, adopts=(Pod,) if adopts else ())
        self._counts_terminating = counts_terminating
        # By the uid of a controller of ReplicaSets, its ReplicaSets.
        self._siblings: MultiMap[str, str] = MultiMap()
        # Why the last creation of a workload was refused.
        self._refusals: dict[str, str] = {}

    def _may_own(self, workload: _Workload, object_: Kubernetes) -> bool:
        """Return whether a pod is active."""
        return isinstance(object_, Pod) and not object_.is_terminal and not object_.is_terminating

    def _put(self, workload: _Workload) -> None:
        super()._put(workload)
        if (parent := workload.object.metadata.controller) is not None:
            self._siblings.add(parent.uid, workload.uid)

    def _remove(self, uid: str) -> None:
        workload = self._workloads.get(uid)
        super()._remove(uid)
        self._refusals.pop(uid, None)
        parent = workload.object.metadata.controller if workload is not None else None
        if parent is not None:
            self._siblings.discard(parent.uid, uid)

    def _sync(self, workload: _Workload, now: int) -> list[Action]:
        pods = self._pods.of(workload.uid)
        actions: list[Action] = []
        if not workload.is_deleted and self._expectations.are_met(workload.uid):
            actions += self._manage(workload, pods, now)
        return actions + self._write_status(workload, self._status(workload, pods, now))

    def _manage(self, workload: _Workload, pods: OwnerPods, now: int) -> list[Action]:
        missing = workload.object.spec.replicas - len(pods.active)
        if missing <= 0:
            self._refusals.pop(workload.uid, None)
        if missing < 0:
            # The related pods are those of all ReplicaSets with the same controller; without one, there are none.
            parent = workload.object.metadata.controller
            uids = self._siblings[parent.uid] if parent is not None else ()
            related = (pod for uid in uids for pod in self._pods.of(uid).active.values())
            chosen = first_to_go(pods.active.values(), -missing, related, now)
            return [self._delete(workload, pod.pod, now) for pod in chosen]
        if missing == 0 or not self._may_create(workload, now):
            return []
        count = 1 if workload.uid in self._waits.refused else missing
        self._expectations.expect_creations(workload.uid, count, now)
        pod = workload.new_pod(workload.template, {"generateName": f"{workload.object.metadata.name}-"}, {})
        return [CreateObject(pod, workload.label) for _ in range(count)]

    def _on_created(self, workload: _Workload, raw: Raw, finished: ActionFinished, now: int) -> None:
        super()._on_created(workload, raw, finished, now)
        if finished.problem is None:
            self._refusals.pop(workload.uid, None)
        elif finished.answer is not Answer.UNKNOWN:
            self._refusals.setdefault(workload.uid, finished.problem.message)

    def _status(self, workload: _Workload, pods: OwnerPods, now: int) -> Raw:
        available, seconds = len(pods.ready), workload.object.spec.min_ready_seconds
        if seconds:
            coming = [time for pod in pods.ready.values() if (time := pod.available_ns(seconds) or 0) > now]
            self._times += coming
            available -= len(coming)
        # ReplicaFailure is a condition while the last creation was refused.
        conditions, message = workload.conditions, self._refusals.get(workload.uid)
        if message is None:
            conditions = [condition for condition in conditions if condition.get("type") != _FAILURE]
        elif not condition_of(conditions, _FAILURE):
            failure = {"type": _FAILURE, "status": "True", "reason": FAILED_CREATE, "message": message}
            conditions = with_conditions(conditions, (failure,), now)
        counts_terminating = self._counts_terminating and isinstance(workload.object, ReplicaSet)
        ending = (each for each in pods.all.values() if each.pod.is_terminating and not each.pod.is_terminal)
        labels = object_at(workload.template, "metadata", "labels").items()
        labelled = (labels <= each.pod.metadata.labels.items() for each in pods.active.values())
        counts: Raw = {
            "replicas": len(pods.active),
            "readyReplicas": len(pods.ready),
            "availableReplicas": available,
            "observedGeneration": workload.object.metadata.generation,
            # Only clients read it.
            "fullyLabeledReplicas": sum(labelled) if self._orphans else None,
            "terminatingReplicas": len(list(ending)) if counts_terminating else None,
            "conditions": conditions,
        }
        always = ("replicas", "terminatingReplicas") if counts_terminating else ("replicas",)
        return status_with(workload.status, counts, always=always)
