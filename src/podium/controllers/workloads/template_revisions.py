"""The template revisions of StatefulSets and DaemonSets, stored as ControllerRevisions.

Source: pkg/controller/history, pkg/controller/statefulset (getStatefulSetRevisions), pkg/controller/daemon/update.go.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from hashlib import blake2b
from typing import TypeVar

import msgspec

from podium.api.meta import Raw, value_at
from podium.api.pod import Pod
from podium.api.workloads import ControllerRevision, DaemonSet, PodTemplate, StatefulSet
from podium.controllers.actions import Action, owned_object, versioned_patch
from podium.controllers.workloads.owned_pods import WorkloadObject
from podium.controllers.workloads.workload_controller import WorkloadController

REVISION_LABEL = "controller-revision-hash"
"""Label of a pod: its template's revision. A pod without it counts as current."""

Revised = TypeVar("Revised", bound=StatefulSet | DaemonSet)


class RevisionedController(WorkloadController[Revised]):
    """A controller that creates a ControllerRevision for each template before it creates pods of it."""

    watches = WorkloadController.watches | {"ControllerRevision"}
    hash_label = REVISION_LABEL
    """The label of a ControllerRevision that has the hash of its template."""

    def __init__(self, type_: type[Revised], *, adopts: bool = False) -> None:
        super().__init__(type_, owns=ControllerRevision, adopts=(Pod, ControllerRevision) if adopts else ())

    @abstractmethod
    def _sync_revision(
        self, workload: WorkloadObject[Revised], history: list[ControllerRevision], update: ControllerRevision, now: int
    ) -> list[Action]:
        """Return the actions for a workload whose current template has the revision ``update``."""

    def _sync(self, workload: WorkloadObject[Revised], now: int) -> list[Action]:
        mine = (revision.object for revision in self._owned.of(workload.uid))
        # The newest comes last.
        history = sorted(mine, key=lambda one: (one.revision, one.metadata.creation_timestamp or "", one.metadata.name))
        # A name counts as well as the content, because another version of the API server may have set other defaults.
        update = next((each for each in reversed(history) if template_of(each) == workload.template), None)
        if update is None:
            name = f"{workload.object.metadata.name}-{self._given_name(workload)}"
            update = next((revision for revision in history if revision.metadata.name == name), None)
        if update is None:
            return self._begin_revision(workload, history, now)
        actions: list[Action] = []
        if update is not history[-1] and not workload.is_deleted:
            # The revision of the current template is the newest again.
            actions.append(versioned_patch(update, {"revision": _next_number(history)}, workload.label))
        return actions + self._sync_revision(workload, history, update, now)

    @abstractmethod
    def _given_hash(self, workload: WorkloadObject[Revised]) -> str:
        """Return the name of the current template's revision in the workload's status or its pods, "" for none."""

    def _given_name(self, workload: WorkloadObject[Revised]) -> str:
        """Return the name that another controller gave the current template, "" if unknown."""
        is_observed = workload.object.status.observed_generation >= workload.object.metadata.generation
        return self._given_hash(workload) if is_observed else ""

    def _begin_revision(
        self, workload: WorkloadObject[Revised], history: list[ControllerRevision], now: int
    ) -> list[Action]:
        """Create the revision of the current template."""
        if workload.is_deleted or not self._expectations.are_met(workload.uid) or not self._may_create(workload, now):
            return []
        meta = workload.object.metadata
        hash_ = self._given_name(workload) or template_hash(workload.template, workload.uid)
        metadata = {
            "name": f"{meta.name}-{hash_}",
            "labels": {**workload.template.get("metadata", {}).get("labels", {}), self.hash_label: hash_},
            **({"annotations": dict(meta.annotations)} if meta.annotations else {}),
        }
        # Clients compare the bytes of the data (daemon.Match), so fields are sorted at all depths.
        text = json.dumps({"spec": {"template": {**workload.template, "$patch": "replace"}}}, sort_keys=True)
        content = {"data": json.loads(text), "revision": _next_number(history)}
        revision = owned_object(workload.object, ControllerRevision, metadata, **content)
        return [self._create_named(workload, revision, now)]

    def _forget_history(
        self, workload: WorkloadObject[Revised], history: list[ControllerRevision], used: Iterable[str], now: int
    ) -> list[Action]:
        """Delete the oldest revisions beyond the limit; those of pods and the ``used`` ones (names) stay."""
        limit, name = workload.object.spec.revision_history_limit, workload.object.metadata.name
        if len(history) <= limit:
            return []
        labels = (pod.pod.metadata.labels.get(REVISION_LABEL, "") for pod in self._pods.of(workload.uid).all.values())
        # The label is the name of a StatefulSet's revision, and the hash of a DaemonSet's.
        in_use = {*used, *(revision for label in labels for revision in (label, f"{name}-{label}"))}
        past = [revision for revision in history if revision.metadata.name not in in_use]
        return [self._delete(workload, revision, now) for revision in past[: max(0, len(past) - limit)]]


def template_of(revision: ControllerRevision) -> Raw:
    """Return the wire form of a revision's pod template; empty if its data have none."""
    template = value_at(revision.data, "spec", "template")
    try:
        msgspec.convert(template, PodTemplate)
    except msgspec.ValidationError:
        return {}
    return {name: value for name, value in template.items() if name != "$patch"}


def is_outdated(pod: Pod, present: str) -> bool:
    """Return whether a pod has the label of another revision than ``present``."""
    return pod.metadata.labels.get(REVISION_LABEL, present) != present


def _next_number(history: list[ControllerRevision]) -> int:
    return history[-1].revision + 1 if history else 1


def template_hash(template: Raw, salt: str = "") -> str:
    """Return ten hexadecimal digits that equal templates with equal salts share."""
    text = json.dumps([template, salt], sort_keys=True)
    return blake2b(text.encode(), digest_size=5).hexdigest()
