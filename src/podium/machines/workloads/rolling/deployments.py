"""The controller of Deployments: a ReplicaSet for each template, and the pods move from the old ones to the new one.

Source: pkg/controller/deployment. What becomes of pods is known from the status of ReplicaSets. Proportional scaling is
left out.
"""

from __future__ import annotations

from podium.api.meta import Kubernetes, Raw
from podium.api.requirement import parse_int64
from podium.api.workloads import Deployment, ReplicaSet
from podium.machines.actions import Action, DeleteObject, PatchObject
from podium.machines.workloads.owned_objects import ObjectSighting, OwnedObjects
from podium.machines.workloads.owned_pods import Sighting
from podium.machines.workloads.rolling.progress import progress
from podium.machines.workloads.rolling.rollouts import Size, most_unavailable, plan
from podium.machines.workloads.rolling.template_hash import template_hash
from podium.machines.workloads.status_writes import status_with
from podium.machines.workloads.workload import Workload
from podium.machines.workloads.workload_controller import WorkloadController
from podium.store.conditions import with_condition

HASH_LABEL = "pod-template-hash"
"""Label of a ReplicaSet and its pods: which of a Deployment's templates they have."""

REVISION = "deployment.kubernetes.io/revision"
"""Annotation of a ReplicaSet, and of its Deployment: the number of the template, the highest for the newest."""

_Set = Workload[ReplicaSet]


class Deployments(WorkloadController[Deployment]):
    """Makes ReplicaSets and scales them.

    Each step waits until the one before it is seen, so that what is allowed beyond or below the pods wanted holds
    whatever a watch leaves out. ReplicaSets without a controller are not adopted.
    """

    watches = WorkloadController.watches | {"Deployment", "Pod", "ReplicaSet"}

    def __init__(self, *, reports_all: bool = False) -> None:
        """With `reports_all` Deployments say how their rollouts get on, which clients look for."""
        super().__init__(Deployment, pod_owners=("ReplicaSet",))
        self._reports_all = reports_all
        self._sets: OwnedObjects[ReplicaSet] = OwnedObjects()
        # The generation of each ReplicaSet, by uid, on which it was scaled.
        self._scaled_on: dict[str, int] = {}

    def _see(self, object_: Kubernetes, raw: Raw) -> None:
        if isinstance(object_, ReplicaSet):
            self._see_sets(self._sets.see(Workload(object_, raw)))

    def _lose(self, object_: Kubernetes) -> None:
        if isinstance(object_, ReplicaSet):
            self._see_sets(self._sets.lose(object_))

    def _see_sets(self, sightings: list[ObjectSighting[ReplicaSet]]) -> None:
        for sighting in sightings:
            owner_uid, meta = sighting.owner_uid, sighting.object.object.metadata
            if not sighting.is_gone:
                self._see_named(owner_uid, "ReplicaSet", meta.name)
            if sighting.is_gone or meta.generation > self._scaled_on.get(meta.uid, -1):
                self._scaled_on.pop(meta.uid, None)
                self._expectations.see(owner_uid, meta.uid)
            self._queue.add(owner_uid)

    def _see_pod(self, sighting: Sighting, now: int) -> None:
        """Only Recreate waits for pods to be gone."""
        pod = sighting.after or sighting.before
        owner = pod.pod.metadata.controller if pod is not None else None
        set_ = self._sets.named(f"{pod.pod.metadata.namespace}/{owner.name}") if pod and owner else None
        parent = set_.object.metadata.controller if set_ is not None else None
        workload = self._workloads.get(parent.uid) if parent is not None else None
        if workload is not None and workload.object.spec.strategy.type == "Recreate":
            self._queue.add(workload.uid)

    def _sync(self, workload: Workload[Deployment], now: int) -> list[Action]:
        sets = sorted((set_ for set_ in self._sets.of(workload.uid) if not set_.is_deleted), key=_age)
        new = next((set_ for set_ in sets if _without_hash(set_.template) == workload.template), None)
        old = [set_ for set_ in sets if set_ is not new]
        collides = new is None and self._is_taken(workload)
        actions: list[Action] = []
        if not workload.is_deleted and not collides and self._expectations.are_met(workload.uid):
            actions += self._roll(workload, new, old, now)
        status = _status(workload, new, old, now)
        if self._reports_all and not workload.is_deleted:
            self._report_progress(workload, new, status, now)
        if collides:
            status["collisionCount"] = workload.object.status.collision_count + 1
        actions += self._statuses.write(workload, status)
        if not actions and new is not None and not workload.is_deleted:
            return _number(workload, new)
        return actions

    def _report_progress(self, workload: Workload[Deployment], new: _Set | None, status: Raw, now: int) -> None:
        """Say in the status whether the rollout gets on, and look again when it would be late."""
        name = "" if new is None else new.object.metadata.name
        condition, late_ns = progress(workload.spec, name, workload.status, status, now)
        if condition not in status["conditions"]:
            status["conditions"] = with_condition(status["conditions"], condition, now)
        if late_ns is not None:
            self._retry_times.append(late_ns)

    def _is_taken(self, workload: Workload[Deployment]) -> bool:
        """Whether the next ReplicaSet's name is that of one that is not this template's."""
        found = self._sets.named(f"{workload.object.metadata.namespace}/{_set_name(workload)}")
        if found is None:
            return False
        owner = found.object.metadata.controller
        is_own = owner is not None and owner.uid == workload.uid
        return not (is_own and _without_hash(found.template) == workload.template)

    def _roll(self, workload: Workload[Deployment], new: _Set | None, old: list[_Set], now: int) -> list[Action]:
        has_old_pods = any(
            set_.object.status.replicas or any(not pod.pod.is_terminal for pod in self._pods.of(set_.uid).all.values())
            for set_ in old
        )
        current = None if new is None else _size(new)
        step = plan(workload.object.spec, current, [_size(set_) for set_ in old], has_old_pods=has_old_pods)
        revision = max((_revision(set_) for set_ in old), default=0) + 1
        if new is None:
            actions = self._create_set(workload, step.new, revision, now)
        else:
            actions = self._keep_alike(workload, new, revision) or self._scale(workload, new, step.new, now)
        for set_, replicas in zip(old, step.old, strict=True):
            actions += self._scale(workload, set_, replicas, now)
        if not actions and new is not None and _is_complete(workload, new, old):
            actions = self._forget_history(workload, old, now)
        return actions

    def _create_set(
        self, workload: Workload[Deployment], replicas: int | None, revision: int, now: int
    ) -> list[Action]:
        if replicas is None or not self._may_create(workload, now):
            return []
        return [self._create_named(workload, _new_set(workload, replicas, revision), now)]

    def _keep_alike(self, workload: Workload[Deployment], new: _Set, revision: int) -> list[Action]:
        """Give the ReplicaSet of the Deployment's template the newest number, and what else it takes over."""
        patch: Raw = {}
        if _revision(new) < revision:
            patch["metadata"] = {"annotations": {REVISION: str(revision)}}
        seconds = workload.object.spec.min_ready_seconds
        if new.object.spec.min_ready_seconds != seconds:
            patch["spec"] = {"minReadySeconds": seconds}
        return [_patch(workload, new, patch)] if patch else []

    def _scale(self, workload: Workload[Deployment], set_: _Set, replicas: int | None, now: int) -> list[Action]:
        if replicas is None or replicas == set_.object.spec.replicas:
            return []
        self._scaled_on[set_.uid] = set_.object.metadata.generation
        self._expectations.expect(workload.uid, set_.uid, now)
        return [_patch(workload, set_, {"spec": {"replicas": replicas}})]

    def _forget_history(self, workload: Workload[Deployment], old: list[_Set], now: int) -> list[Action]:
        """Delete the oldest templates beyond those to keep, where they have no pods any more."""
        surplus = len(old) - workload.object.spec.revision_history_limit
        actions: list[Action] = []
        for set_ in sorted(old, key=_revision)[: max(0, surplus)]:
            status, meta = set_.object.status, set_.object.metadata
            if not status.replicas and not set_.object.spec.replicas and status.observed_generation >= meta.generation:
                self._expectations.expect(workload.uid, set_.uid, now)
                actions.append(DeleteObject("ReplicaSet", set_.object.key, set_.uid, workload.label))
        return actions


def _set_name(workload: Workload[Deployment]) -> str:
    return f"{workload.object.metadata.name}-{_hash(workload)}"


def _hash(workload: Workload[Deployment]) -> str:
    collisions = workload.object.status.collision_count
    return template_hash(workload.template, str(collisions) if collisions else "")


def _new_set(workload: Workload[Deployment], replicas: int, revision: int) -> Raw:
    template, selector, meta = workload.template, workload.spec.get("selector", {}), workload.object.metadata
    hashed = {HASH_LABEL: _hash(workload)}
    labels = {**template.get("metadata", {}).get("labels", {}), **hashed}
    seconds = workload.object.spec.min_ready_seconds
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": _set_name(workload),
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [workload.reference()],
        },
        "spec": {
            "replicas": replicas,
            **({"minReadySeconds": seconds} if seconds else {}),
            "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), **hashed}},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }


def _without_hash(template: Raw) -> Raw:
    metadata = template.get("metadata", {})
    labels = metadata.get("labels", {})
    if HASH_LABEL not in labels:
        return template
    kept = {name: value for name, value in labels.items() if name != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": kept}}


def _patch(workload: Workload[Deployment], set_: _Set, patch: Raw) -> PatchObject:
    metadata = {**patch.get("metadata", {}), "resourceVersion": set_.version}
    return PatchObject("ReplicaSet", set_.object.key, set_.uid, {**patch, "metadata": metadata}, workload.label)


def _number(workload: Workload[Deployment], new: _Set) -> list[Action]:
    """Let the Deployment say the number of its template, as `kubectl rollout undo` counts on."""
    meta, revision = workload.object.metadata, new.object.metadata.annotations.get(REVISION, "")
    if not revision or meta.annotations.get(REVISION) == revision:
        return []
    metadata = {"annotations": {REVISION: revision}, "resourceVersion": workload.version}
    return [PatchObject("Deployment", workload.object.key, workload.uid, {"metadata": metadata}, workload.label)]


def _age(set_: _Set) -> tuple[str, str]:
    return set_.object.metadata.creation_timestamp or "", set_.object.metadata.name


def _size(set_: _Set) -> Size:
    return Size(set_.object.spec.replicas, set_.object.status.available_replicas)


def _revision(set_: _Set) -> int:
    return parse_int64(set_.object.metadata.annotations.get(REVISION, "0")) or 0


def _is_complete(workload: Workload[Deployment], new: _Set, old: list[_Set]) -> bool:
    """Whether all pods wanted are available and of the new template, and no others are left."""
    status, wanted = new.object.status, workload.object.spec.replicas
    return status.replicas == status.available_replicas == wanted and not any(
        set_.object.status.replicas for set_ in old
    )


def _status(workload: Workload[Deployment], new: _Set | None, old: list[_Set], now: int) -> Raw:
    sets = [*old, *([new] if new is not None else [])]
    available = sum(set_.object.status.available_replicas for set_ in sets)
    counts: Raw = {
        "observedGeneration": workload.object.metadata.generation,
        "replicas": sum(set_.object.status.replicas for set_ in sets),
        "updatedReplicas": new.object.status.replicas if new is not None else 0,
        "readyReplicas": sum(set_.object.status.ready_replicas for set_ in sets),
        "availableReplicas": available,
        # What this controller does not count is not left as somebody else has counted it.
        "terminatingReplicas": None,
        "unavailableReplicas": max(0, sum(set_.object.spec.replicas for set_ in sets) - available),
        "conditions": _conditions(workload, available, now),
    }
    return status_with(workload.status, counts)


def _conditions(workload: Workload[Deployment], available: int, now: int) -> list[Raw]:
    """The conditions, in which Available says whether no more pods are missing than may be."""
    listed: list[Raw] = workload.status.get("conditions", [])
    spec = workload.object.spec
    is_available = available >= spec.replicas - most_unavailable(spec)
    status, reason = ("True", "MinimumReplicasAvailable") if is_available else ("False", "MinimumReplicasUnavailable")
    for condition in listed:
        if (
            condition.get("type") == "Available"
            and condition.get("status") == status
            and condition.get("reason") == reason
        ):
            return listed
    message = f"{available} of {spec.replicas} pods are available"
    return with_condition(listed, {"type": "Available", "status": status, "reason": reason, "message": message}, now)
