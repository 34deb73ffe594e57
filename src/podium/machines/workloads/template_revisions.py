"""How StatefulSets and DaemonSets keep in mind which templates they have had: as ControllerRevisions.

Source: pkg/controller/history, pkg/controller/statefulset (getStatefulSetRevisions), pkg/controller/daemon/update.go.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.workloads import ControllerRevision, DaemonSet, PodTemplate, StatefulSet
from podium.machines.actions import Action, DeleteObject, PatchObject
from podium.machines.workloads.owned_objects import ObjectSighting, OwnedObjects
from podium.machines.workloads.rolling.template_hash import template_hash
from podium.machines.workloads.workload import Workload
from podium.machines.workloads.workload_controller import WorkloadController

REVISION_LABEL = "controller-revision-hash"
"""Label of a pod: which of its controller's templates it has. A pod without it counts as one of the present one."""

Revised = TypeVar("Revised", bound=StatefulSet | DaemonSet)


class RevisionedController(WorkloadController[Revised]):
    """Gives every template of its workloads a ControllerRevision before it makes pods of the template."""

    watches = WorkloadController.watches | {"ControllerRevision"}

    def __init__(self, type_: type[Revised]) -> None:
        super().__init__(type_)
        self._revisions: OwnedObjects[ControllerRevision] = OwnedObjects()

    def _see(self, object_: Kubernetes, raw: Raw) -> None:
        if isinstance(object_, ControllerRevision):
            self._see_revisions(self._revisions.see(Workload(object_, raw)))

    def _lose(self, object_: Kubernetes) -> None:
        if isinstance(object_, ControllerRevision):
            self._see_revisions(self._revisions.lose(object_))

    def _see_revisions(self, sightings: list[ObjectSighting[ControllerRevision]]) -> None:
        for sighting in sightings:
            owner_uid, meta = sighting.owner_uid, sighting.object.object.metadata
            if sighting.is_gone:
                self._expectations.see(owner_uid, meta.uid)
            else:
                self._see_named(owner_uid, "ControllerRevision", meta.name)
            self._queue.add(owner_uid)

    def _history(self, workload: Workload[Revised]) -> list[ControllerRevision]:
        """The workload's revisions, the newest last."""
        found = [revision.object for revision in self._revisions.of(workload.uid)]
        return sorted(found, key=lambda revision: (revision.revision, revision.metadata.name))

    @abstractmethod
    def _given_hash(self, workload: Workload[Revised]) -> str:
        """What the workload's status or its pods call the template of the observed generation, "" for nothing."""

    def _given_name(self, workload: Workload[Revised]) -> str:
        """What another controller has called the present template, "" where that is not known."""
        is_observed = workload.object.status.observed_generation >= workload.object.metadata.generation
        return self._given_hash(workload) if is_observed else ""

    def _present_revision(
        self, workload: Workload[Revised], history: list[ControllerRevision]
    ) -> ControllerRevision | None:
        """The newest revision of the present template, by what it says or by its name; None where there is none yet.

        What another version of the API server has filled in may differ, so that a name that is known counts too.
        """
        equal = (revision for revision in reversed(history) if template_of(revision) == workload.template)
        name = f"{workload.object.metadata.name}-{self._given_name(workload)}"
        return next(equal, None) or next((revision for revision in history if revision.metadata.name == name), None)

    def _begin_revision(self, workload: Workload[Revised], history: list[ControllerRevision], now: int) -> list[Action]:
        """Make the revision of the present template, which is not in the history."""
        if workload.is_deleted or not self._expectations.are_met(workload.uid) or not self._may_create(workload, now):
            return []
        meta = workload.object.metadata
        hash_ = self._given_name(workload) or template_hash(workload.template, workload.uid)
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{meta.name}-{hash_}",
                "namespace": meta.namespace,
                "labels": {**workload.template.get("metadata", {}).get("labels", {}), REVISION_LABEL: hash_},
                "ownerReferences": [workload.reference()],
            },
            "data": {"spec": {"template": {**workload.template, "$patch": "replace"}}},
            "revision": _next_number(history),
        }
        return [self._create_named(workload, revision, now)]

    def _renumber(
        self, workload: Workload[Revised], history: list[ControllerRevision], update: ControllerRevision
    ) -> list[Action]:
        """Make the revision of the present template the newest again."""
        if update is history[-1] or workload.is_deleted:
            return []
        patch = {
            "metadata": {"resourceVersion": update.metadata.resource_version},
            "revision": _next_number(history),
        }
        return [PatchObject("ControllerRevision", update.key, update.metadata.uid, patch, workload.label)]

    def _forget_history(
        self, workload: Workload[Revised], history: list[ControllerRevision], live: Callable[[], set[str]], now: int
    ) -> list[Action]:
        """Delete the oldest revisions beyond those to keep; ``live`` gives the names of those that are in use."""
        limit = workload.object.spec.revision_history_limit
        if len(history) <= limit:
            return []
        in_use = live()
        past = [revision for revision in history if revision.metadata.name not in in_use]
        actions: list[Action] = []
        for revision in past[: max(0, len(past) - limit)]:
            self._expectations.expect(workload.uid, revision.metadata.uid, now)
            actions.append(DeleteObject("ControllerRevision", revision.key, revision.metadata.uid, workload.label))
        return actions


def template_of(revision: ControllerRevision) -> Raw:
    """The wire form of a revision's pod template, empty where its data hold none.

    Kubernetes lets a revision hold anything: its controller alone knows what it means.
    """
    template = _object(revision.data, "spec", "template")
    try:
        msgspec.convert(template, PodTemplate)
    except msgspec.ValidationError:
        return {}
    return {name: value for name, value in template.items() if name != "$patch"}


def is_outdated(pod: Pod, present: str) -> bool:
    """Whether a pod says that its template is not the one whose label has the value ``present``."""
    return pod.metadata.labels.get(REVISION_LABEL, present) != present


def _next_number(history: list[ControllerRevision]) -> int:
    return history[-1].revision + 1 if history else 1


def _object(value: Any, *path: str) -> Raw:
    """The object at the path, empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
