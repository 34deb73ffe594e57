"""What the API server asks of an object that is to be written, because of others that there are, and fills in.

Source: the admission plugins Priority, LimitRanger, RuntimeClass and DefaultStorageClass; for budgets
controlled-rescheduling.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podium.api.disruption_rate import MAX_DISRUPTIONS
from podium.api.limit_range import LimitRange
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.pod_specs import SharedSpec, shared_spec
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.runtime_class import RuntimeClass
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.store.admission.budget_bounds import check_bounds
from podium.store.admission.group_admission import admit_group
from podium.store.admission.limit_ranges import check_claim_limits
from podium.store.admission.pod_admission import admit_pod
from podium.store.admission.priority_classes import check_default_class, check_priority_class
from podium.store.admission.storage_classes import with_default_class
from podium.store.api_resource import APIResource
from podium.store.revisions import Revisions
from podium.store.stored import Stored
from podium.store.verbs.readings import filled_in

_ADMITTING = ("LimitRange", "PriorityClass", "RuntimeClass")


class Admission:
    """Looks at what is to be written in the light of the cluster's classes, limit ranges and policy."""

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions
        # How often the kinds that admission looks at had changed, and what stands for that.
        self._seen: tuple[int | None, ...] = ()
        self._where = object()

    def admit(
        self,
        resource: APIResource,
        raw: Raw,
        object_: Kubernetes,
        shared: SharedSpec | None,
        *,
        was_there: bool,
    ) -> tuple[Raw, Kubernetes]:
        """An object that is to be created, with what is filled in: both forms. A pod may have a `shared` specification.

        A budget that has a uid or `was_there` before may be stricter than the policy's bounds. Raises StoreError as
        `admit_pod`, `admit_group`, `check_claim_limits`, `check_priority_class`, `check_default_class` and
        `check_bounds` do.
        """
        is_new = not object_.metadata.uid
        if isinstance(object_, Pod):
            return self._admit_pod(resource, raw, object_, shared)
        if isinstance(object_, PodGroup):
            return filled_in(resource, object_, raw, admit_group(raw, object_.key, self.priority_classes()))
        if isinstance(object_, PersistentVolumeClaim) and is_new:
            return self._admit_claim(resource, raw, object_)
        if isinstance(object_, PriorityClass):
            check_priority_class(resource, object_)
            # A dump of a cluster may have several defaults.
            if is_new:
                check_default_class(resource, object_, self.priority_classes().values())
        if isinstance(object_, PodDisruptionBudget) and is_new and not was_there:
            check_bounds(resource, object_, self._revisions, self.priority_classes())
        return raw, object_

    def _admit_claim(self, resource: APIResource, raw: Raw, claim: PersistentVolumeClaim) -> tuple[Raw, Kubernetes]:
        ranges = self._limit_ranges(claim.metadata.namespace)
        check_claim_limits(resource, claim.key, claim.spec.resources.requests, ranges)
        return filled_in(resource, claim, raw, with_default_class(raw, claim, self._storage_classes()))

    def check_update(self, previous: Stored, object_: Kubernetes) -> None:
        """Raise StoreError as `check_default_class` does, and as `check_bounds` for a budget that is made stricter."""
        if isinstance(object_, PriorityClass):
            check_default_class(previous.resource, object_, self.priority_classes().values())
        if isinstance(object_, PodDisruptionBudget) and _is_tightened(previous.object, object_):
            check_bounds(previous.resource, object_, self._revisions, self.priority_classes())

    def _admit_pod(
        self, resource: APIResource, raw: Raw, pod: Pod, shared: SharedSpec | None
    ) -> tuple[Raw, Kubernetes]:
        """The same for a pod; what becomes of a specification is remembered while the classes are the same."""
        where = self._classes_now()
        if shared is not None and shared.admitted is not None and shared.admitted[0] is where and not pod.metadata.uid:
            known = shared.admitted[1]
            status = {"phase": "Pending", **raw.get("status", {})}
            return {**raw, "spec": known.raw, "status": status}, msgspec.structs.replace(pod, spec=known.spec)
        ranges = self._limit_ranges(pod.metadata.namespace)
        admitted = admit_pod(raw, pod.key, self.priority_classes(), ranges, self._runtime_classes())
        is_by_itself = admitted["metadata"] is raw["metadata"] and not self._revisions.of("LimitRange")
        if shared is not None and is_by_itself and not pod.metadata.uid and not shared.has_label_keys():
            known_spec = shared_spec(admitted["spec"])
            if known_spec is not None:
                shared.admitted = (where, known_spec)
        return filled_in(resource, pod, raw, admitted)

    def _classes_now(self) -> object:
        """Another object whenever classes or limit ranges have changed."""
        seen = self._revisions.changes_of(_ADMITTING)
        if seen != self._seen:
            self._seen, self._where = seen, object()
        return self._where

    def priority_classes(self) -> Mapping[str, PriorityClass]:
        """The cluster's PriorityClasses, by name."""
        classes: dict[str, Any] = {name: stored.object for name, stored in self._revisions.of("PriorityClass").items()}
        return classes

    def _runtime_classes(self) -> Mapping[str, RuntimeClass]:
        classes: dict[str, Any] = {name: stored.object for name, stored in self._revisions.of("RuntimeClass").items()}
        return classes

    def _storage_classes(self) -> list[StorageClass]:
        found = (stored.object for stored in self._revisions.of("StorageClass").values())
        return [storage_class for storage_class in found if isinstance(storage_class, StorageClass)]

    def _limit_ranges(self, namespace: str) -> list[LimitRange]:
        if not self._revisions.of("LimitRange"):
            return []
        found = (stored.object for stored in self._revisions.in_namespace("LimitRange", namespace))
        return [limits for limits in found if isinstance(limits, LimitRange)]


def _is_tightened(before: Kubernetes, after: PodDisruptionBudget) -> bool:
    """Whether a budget may have become stricter: it asks for something else than before."""
    if not isinstance(before, PodDisruptionBudget):
        return True
    old, new = ((budget.spec, budget.metadata.annotations.get(MAX_DISRUPTIONS)) for budget in (before, after))
    return old != new
