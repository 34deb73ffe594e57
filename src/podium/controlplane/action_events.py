"""The Events that controllers and kubelets record about their actions, for people.

They are derived from the actions, so controllers need not record them, and simulations do not pay for them. Source:
pkg/controller (controller_utils.go, deployment/sync.go, statefulset/stateful_pod_control.go, job, cronjob),
pkg/kubelet/kuberuntime/kuberuntime_container.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from podium.api import meta, pod, workloads
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.controllers import actions
from podium.store.store import Store
from podium.store.stored import Stored

_NORMAL, _WARNING = "Normal", "Warning"
_SET = "StatefulSet"
_MADE = {"Pod": "pod", "Job": "job"}
_ENDS = ("Complete", "Failed")


class ActionEvents(Struct, eq=False):
    """A generator of Events from the results of actions."""

    store: Store
    router: Router
    _written: meta.Raw | None = None

    def answer(self, request: Request, now: int) -> Response:
        """Answer as the router does."""
        response = self.router.answer(request, now)
        self._written = response.object
        return response

    def before(self, action: actions.Action) -> Stored | None:
        """Return the object of an action before it is carried out, if Events need it; otherwise None."""
        match action:
            case actions.DeleteObject(kind="Pod" | "Job", key=key, cause=cause) if " " in cause:
                return self.store.find(action.kind, key)
            case actions.PatchObject(kind="ReplicaSet", key=key, patch={"spec": {"replicas": _}}):
                return self.store.find("ReplicaSet", key)
            case actions.ReplaceStatus(raw={"kind": "Job", "metadata": {"namespace": namespace, "name": name}}):
                return self.store.find("Job", f"{namespace}/{name}")
        return None

    def events_of(self, action: actions.Action, before: Stored | None) -> Iterator[actions.Record]:
        """Yield the Events for an action that was carried out."""
        match action:
            case actions.CreateObject(raw=raw, cause=cause) if self._written is not None and " " in cause:
                yield from _created_events(raw, str(self._written["metadata"]["name"]), cause)
            case actions.DeleteObject(cause=cause) if before is not None:
                yield from _deleted(before, cause)
            case actions.PatchObject(patch=patch, cause=cause) if before is not None:
                yield from _scaled(before, patch["spec"]["replicas"], cause)
            case actions.ReplaceStatus(raw=raw, cause=cause) if before is not None:
                yield from _job_end_events(before, raw, cause)
            case actions.ReportStatus(kind="Pod", key=key, uid=uid, fields={"phase": "Running", "startTime": _}):
                stored = self.store.find("Pod", key)
                if stored is not None and isinstance(stored.object, pod.Pod):
                    for container in stored.object.spec.containers:
                        yield actions.Record(key, uid, _NORMAL, "Created", f"Created container: {container.name}")
                        yield actions.Record(key, uid, _NORMAL, "Started", f"Started container {container.name}")


def _created_events(raw: meta.Raw, name: str, cause: str) -> Iterator[actions.Record]:
    owners = raw["metadata"].get("ownerReferences")
    if not owners:
        return
    owner, kind = owners[0], raw["kind"]
    if owner["kind"] == "Deployment" and kind == "ReplicaSet":
        replicas = raw["spec"].get("replicas", 1)
        if replicas:
            yield _of(cause, owner["uid"], "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
    elif kind in _MADE:
        is_set = owner["kind"] == _SET
        message = f"create Pod {name} in StatefulSet {owner['name']} successful" if is_set else ""
        yield _of(cause, owner["uid"], "SuccessfulCreate", message or f"Created {_MADE[kind]}: {name}")


def _deleted(before: Stored, cause: str) -> Iterator[actions.Record]:
    owner, name = before.object.metadata.controller, before.object.metadata.name
    if owner is None or cause.partition(" ")[0] != owner.kind or before.object.metadata.deletion_timestamp is not None:
        return
    message = f"delete Pod {name} in StatefulSet {owner.name} successful" if owner.kind == _SET else ""
    yield _of(cause, owner.uid, "SuccessfulDelete", message or f"Deleted {_MADE[before.kind]}: {name}")


def _scaled(before: Stored, replicas: Any, cause: str) -> Iterator[actions.Record]:
    owner, object_ = before.object.metadata.controller, before.object
    if owner is None or owner.kind != "Deployment" or not isinstance(object_, workloads.ReplicaSet):
        return
    old = object_.spec.replicas
    if old != replicas:
        way = "up" if replicas > old else "down"
        message = f"Scaled {way} replica set {object_.metadata.name} from {old} to {replicas}"
        yield _of(cause, owner.uid, "ScalingReplicaSet", message)


def _job_end_events(before: Stored, raw: meta.Raw, cause: str) -> Iterator[actions.Record]:
    """Yield the Event of a Job that has ended: it has a new terminal condition."""
    known = {condition.get("type") for condition in before.raw.get("status", {}).get("conditions", ())}
    for condition in raw["status"].get("conditions", ()):
        type_ = condition.get("type")
        if type_ not in _ENDS or type_ in known or condition.get("status") != "True":
            continue
        if type_ == "Complete":
            yield _of(cause, before.uid, "Completed", "Job completed")
        else:
            reason, message = str(condition.get("reason") or "Failed"), str(condition.get("message", ""))
            yield actions.Record("", before.uid, _WARNING, reason, message, workload=cause)


def _of(workload: str, uid: str, reason: str, message: str) -> actions.Record:
    return actions.Record("", uid, _NORMAL, reason, message, workload=workload)
