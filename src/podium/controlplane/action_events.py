"""The Events that controllers and kubelets record about their actions, for people.

They are derived from the actions, so controllers need not record them, and simulations do not pay for them. Source:
pkg/controller (controller_utils.go, daemon, deployment/sync.go, statefulset/stateful_pod_control.go, job, cronjob),
pkg/kubelet/kuberuntime/kuberuntime_container.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from podium.api import meta, pod, workloads
from podium.controllers import actions
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.workloads.stateful_sets import ordinal_of
from podium.store.store import Store
from podium.store.stored import Stored, is_true

_NORMAL, _WARNING = "Normal", "Warning"
_SET = "StatefulSet"
_MADE = {"Pod": "pod:", "Job": "job"}
_ENDS = ("Complete", "Failed")
# By controller and phase of an ended pod: type, reason and message of the Event about its replacement.
_REPLACED = {
    (_SET, "Failed"): "Warning RecreatingFailedPod StatefulSet {owner} is recreating failed Pod {name}",
    (_SET, "Succeeded"): "Normal RecreatingTerminatedPod StatefulSet {owner} is recreating terminated Pod {name}",
    ("DaemonSet", "Failed"): "Warning FailedDaemonPod Found failed {pod}, will try to kill it",
    ("DaemonSet", "Succeeded"): "Normal SucceededDaemonPod Found succeeded {pod}, will try to delete it",
}
_COUNTED = ("Job", "CronJob")


class ActionEvents(Struct, eq=False):
    """A generator of Events from the results of actions."""

    store: Store

    def before(self, action: actions.Action) -> Stored | None:
        """Return the object of an action before it is carried out, if Events need it; otherwise None."""
        match action:
            case actions.DeleteObject(kind="Pod" | "Job", key=key, cause=cause) if " " in cause:
                return self.store.find(action.kind, key)
            case actions.PatchObject(kind="ReplicaSet", key=key, patch={"spec": {"replicas": _}}):
                return self.store.find("ReplicaSet", key)
            case actions.ReplaceStatus(raw={"kind": kind, "metadata": {"namespace": namespace, "name": name}}):
                return self.store.find(kind, f"{namespace}/{name}") if kind in _COUNTED else None
        return None

    def events_of(self, finished: ActionFinished, before: Stored | None) -> Iterator[actions.Record]:
        """Yield the Events for an action that was carried out, and for a refused deletion."""
        action, problem = finished.action, finished.problem
        match action:
            case actions.DeleteObject(cause=cause) if before is not None and finished.answer is not Answer.GONE:
                yield from self._deleted(before, cause, "" if problem is None else problem.message)
            case _ if problem is not None:
                return
            case actions.CreateObject(raw=raw, cause=cause) if finished.written is not None and " " in cause:
                yield from self._created(raw["kind"], finished.written["metadata"]["name"], raw, cause)
            case actions.PatchObject(patch=patch, cause=cause) if before is not None:
                yield from _scaled(before, patch["spec"]["replicas"], cause)
            case actions.ReplaceStatus(raw=raw, cause=cause) if before is not None:
                yield from (_job_events if before.kind == "Job" else self._left_jobs)(before, raw, cause)
            case actions.ReportStatus(kind="Pod", key=key, uid=uid, fields={"phase": "Running", "startTime": _}):
                stored = self.store.find("Pod", key)
                if stored is not None and isinstance(stored.object, pod.Pod):
                    for container in stored.object.spec.containers:
                        yield actions.Record(key, uid, _NORMAL, "Created", f"Created container: {container.name}")
                        yield actions.Record(key, uid, _NORMAL, "Started", f"Started container {container.name}")

    def _created(self, kind: str, name: str, raw: meta.Raw, cause: str) -> Iterator[actions.Record]:
        by, key = cause.split(" ", 1)
        owner = self.store.find(by, key)
        if owner is None:
            return
        owner_name = owner.object.metadata.name
        if kind == "ReplicaSet" and (replicas := raw["spec"].get("replicas", 1)):
            yield _of(cause, owner.uid, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
        elif by == _SET and kind == "PersistentVolumeClaim":
            pod_name = f"{owner_name}-{name.rpartition('-')[2]}"
            message = f"create Claim {name} Pod {pod_name} in StatefulSet {owner_name} success"
            yield _of(cause, owner.uid, "SuccessfulCreate", message)
        elif kind in _MADE:
            message = f"create Pod {name} in StatefulSet {owner_name} successful" if by == _SET else ""
            yield _of(cause, owner.uid, "SuccessfulCreate", message or f"Created {_MADE[kind]} {name}")

    def _left_jobs(self, before: Stored, raw: meta.Raw, cause: str) -> Iterator[actions.Record]:
        """Yield the Events about Jobs that were active, and have ended or do not exist."""
        active = {job["uid"] for job in raw["status"].get("active", ())}
        for job in before.raw.get("status", {}).get("active", ()):
            name, found = job["name"], self.store.find("Job", f"{job['namespace']}/{job['name']}")
            if job["uid"] in active:
                continue
            if found is None:
                yield _of(cause, before.uid, "MissingJob", f"Active job went missing: {name}")
                continue
            for end in (end for end in _ENDS if is_true(found.raw.get("status", {}).get("conditions"), end)):
                yield _of(cause, before.uid, "SawCompletedJob", f"Saw completed job: {name}, condition: {end}")

    def _deleted(self, before: Stored, cause: str, problem: str = "") -> Iterator[actions.Record]:
        """Yield the Events about a deletion; ``problem`` is why it was refused."""
        object_ = before.object
        owner, name = object_.metadata.controller, object_.metadata.name
        if owner is None or cause.partition(" ")[0] != owner.kind or object_.metadata.deletion_timestamp is not None:
            return
        if isinstance(object_, pod.Pod):
            yield from self._ended_pod(object_, cause)
        message = f"delete Pod {name} in StatefulSet {owner.name}" if owner.kind == _SET else ""
        if problem:
            message = f"{message} failed error: {problem}" if message else f"Error deleting: {problem}"
            yield actions.Record("", owner.uid, _WARNING, "FailedDelete", message, workload=cause)
        else:
            message = f"{message} successful" if message else f"Deleted {_MADE[before.kind]} {name}"
            yield _of(cause, owner.uid, "SuccessfulDelete", message)

    def _ended_pod(self, gone: pod.Pod, cause: str) -> Iterator[actions.Record]:
        """Yield the Event about an ended pod that is deleted; none if a StatefulSet has no replica for it any more."""
        kind, key = cause.split(" ", 1)
        owner, name = self.store.get(kind, key), gone.metadata.name
        if isinstance(owner.object, workloads.StatefulSet):
            ordinal, spec = ordinal_of(owner.object.metadata.name, name), owner.object.spec
            if ordinal not in range(spec.ordinals.start, spec.ordinals.start + spec.replicas):
                return
        if text := _REPLACED.get((kind, gone.status.phase)):
            place = f"daemon pod {gone.key} on node {gone.spec.node_name}"
            type_, reason, message = text.format(owner=key, name=name, pod=place).split(" ", 2)
            yield actions.Record("", owner.uid, type_, reason, message, workload=cause)


def _scaled(before: Stored, replicas: Any, cause: str) -> Iterator[actions.Record]:
    owner, object_ = before.object.metadata.controller, before.object
    if owner is None or owner.kind != "Deployment" or not isinstance(object_, workloads.ReplicaSet):
        return
    old = object_.spec.replicas
    if old != replicas:
        way = "up" if replicas > old else "down"
        message = f"Scaled {way} replica set {object_.metadata.name} from {old} to {replicas}"
        yield _of(cause, owner.uid, "ScalingReplicaSet", message)


def _job_events(before: Stored, raw: meta.Raw, cause: str) -> Iterator[actions.Record]:
    """Yield the Events of a Job that was suspended, resumes, or has ended: a condition has changed."""
    known = {one.get("type"): one.get("status") for one in before.raw.get("status", {}).get("conditions", ())}
    for condition in raw["status"].get("conditions", ()):
        type_, status = condition.get("type"), condition.get("status")
        if known.get(type_) == status:
            continue
        if type_ == "Suspended":
            reason = "Suspended" if status == "True" else "Resumed"
            yield _of(cause, before.uid, reason, f"Job {reason.lower()}")
        elif type_ == "Complete" and status == "True":
            yield _of(cause, before.uid, "Completed", "Job completed")
        elif type_ == "Failed" and status == "True":
            reason, message = str(condition.get("reason") or "Failed"), str(condition.get("message", ""))
            yield actions.Record("", before.uid, _WARNING, reason, message, workload=cause)


def _of(workload: str, uid: str, reason: str, message: str) -> actions.Record:
    return actions.Record("", uid, _NORMAL, reason, message, workload=workload)
