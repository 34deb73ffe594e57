"""The controller that gives disruption budgets to workloads for which nobody made one.

Source: controlled-rescheduling.md, Disruption budget (a default budget by priority, more liberal as it decreases).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.api.disruption_policy import POLICY_NAME, DefaultBudget, DisruptionPolicy
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import PodSpec
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.selectors import compile_label_selector
from podium.machines.actions import Action, CreateObject, DeleteObject, PatchObject
from podium.machines.disruption.protection import DEFAULT_BUDGET, Keeper, KeptPods, Protection, WorkloadKey
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue
from podium.store.admission.priority_classes import SYSTEM_CLASSES, default_class

_CAUSE = "default-budget-controller"
_KIND = "PodDisruptionBudget"
_NO_POLICY = DisruptionPolicy()

_Key = tuple[str, WorkloadKey]
_Write = CreateObject | PatchObject | DeleteObject


class DefaultBudgets:
    """Keeps a PodDisruptionBudget for each workload to which the cluster's DisruptionPolicy gives one.

    Workloads are Deployments, StatefulSets, ReplicationControllers, and ReplicaSets on their own; each owns its budget.
    The policy's first entry for the priority of the workload's pods has the numbers. A budget that somebody made and
    that covers the pods takes the place of the default one. No pod is to have two budgets, for it might not be evicted
    at all then: a workload that selects pods of another with a budget gets none, and of several without, the first by
    name gets one.
    """

    watches = frozenset(
        (
            *("DisruptionPolicy", "PodDisruptionBudget", "PriorityClass"),
            *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"),
        )
    )

    def __init__(self) -> None:
        self._policy = _NO_POLICY.spec
        self._classes: dict[str, PriorityClass] = {}
        self._namespaces: dict[str, Protection] = {}
        # Workloads that may have another budget than they should.
        self._queue: WorkQueue[_Key] = WorkQueue()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to write."""
        match observation:
            case Changed(object=object_):
                self._see(object_, is_gone=False)
            case Gone(object=object_):
                self._see(object_, is_gone=True)
            case Answered(action=CreateObject() | PatchObject() | DeleteObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._act(now)
        return []

    def deadline(self) -> Deadline:
        """When there is a workload to look at; that a write is refused once more is no news."""
        return self._queue.deadline()

    def _see(self, object_: Kubernetes, *, is_gone: bool) -> None:
        namespace, name = object_.metadata.namespace, object_.metadata.name
        if isinstance(object_, PodDisruptionBudget):
            place = self._in(namespace)
            self._touch(namespace, place.remove_budget(object_) if is_gone else place.put_budget(object_))
            self._drop_empty(namespace)
        elif isinstance(object_, Keeper):
            place = self._in(namespace)
            self._touch(namespace, place.remove_workload(object_) if is_gone else place.put_workload(object_))
            self._drop_empty(namespace)
        elif isinstance(object_, DisruptionPolicy) and name == POLICY_NAME:
            self._see_policy(_NO_POLICY if is_gone else object_)
        elif isinstance(object_, PriorityClass):
            self._see_class(object_, is_gone)

    def _see_policy(self, policy: DisruptionPolicy) -> None:
        before, self._policy = self._policy, policy.spec
        if before.default_budgets != policy.spec.default_budgets:
            self._touch_all()

    def _see_class(self, class_: PriorityClass, is_gone: bool) -> None:
        name = class_.metadata.name
        before = self._classes.pop(name, None)
        if not is_gone:
            self._classes[name] = class_
        if before is None or is_gone or (before.value, before.global_default) != (class_.value, class_.global_default):
            self._touch_all()

    def _answered(self, action: _Write, answered: Answered, now: int) -> None:
        key = self._key_of(action)
        if key is not None:
            self._queue.answer(key, answered, now)

    def _key_of(self, action: _Write) -> _Key | None:
        """The workload on whose behalf something was written, None where it has no such budget any more."""
        if isinstance(action, CreateObject):
            metadata = action.raw["metadata"]
            owner = metadata["ownerReferences"][0]
            return metadata["namespace"], (owner["name"], owner["kind"])
        namespace, _, name = action.key.partition("/")
        place = self._namespaces.get(namespace)
        key = None if place is None else place.owner(name)
        return None if key is None else (namespace, key)

    def _act(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            namespace, workload = key
            place = self._namespaces.get(namespace)
            kept = None if place is None else place.workloads.get(workload)
            wanted = [] if place is None or kept is None else self._sync(place, kept)
            if not wanted:
                self._queue.forget(key)
            actions += wanted
        return actions

    def _sync(self, place: Protection, kept: KeptPods) -> list[Action]:
        """What gives the workload the one default budget that it should have, or none."""
        existing = place.default_budgets(kept)
        if kept.unfit:
            return [_deletion(budget, f"{kept.label} {kept.unfit}") for budget in existing]
        entry = self._entry(kept)
        if entry is None:
            return [_deletion(budget, f"the DisruptionPolicy gives {kept.label} none") for budget in existing]
        protector = self._protector(place, kept)
        if protector:
            return [_deletion(budget, f"{protector} covers pods that {kept.label} selects") for budget in existing]
        if not existing:
            return [CreateObject(_new(kept, place.free_name(kept), entry), _CAUSE)]
        changes: list[Action] = [*_changes(existing[0], kept, entry)]
        return changes + [_deletion(budget, f"{kept.label} has another") for budget in existing[1:]]

    def _entry(self, kept: KeptPods) -> DefaultBudget | None:
        return self._policy.default_budget(_priority(kept.template.spec, self._classes))

    def _protector(self, place: Protection, kept: KeptPods) -> str:
        """What covers pods that the workload selects, as people read it; "" for nothing."""
        made = place.made_budget(kept)
        if made is not None:
            return f"{_KIND} {made.key}"
        others = sorted(key for key in place.overlapping(kept) if key != kept.key)
        for other in (place.workloads[key] for key in others):
            made = place.made_budget(other)
            if made is not None and kept.selector.matches(other.template.metadata.labels):
                return f"{_KIND} {made.key}"
            if made is None and other.key < kept.key and self._entry(other) is not None:
                return f"the default budget of {other.label}"
        return ""

    def _drop_empty(self, namespace: str) -> None:
        if self._namespaces[namespace].is_empty:
            del self._namespaces[namespace]

    def _in(self, namespace: str) -> Protection:
        return self._namespaces.setdefault(namespace, Protection())

    def _touch(self, namespace: str, workloads: Iterable[WorkloadKey]) -> None:
        for key in workloads:
            self._queue.add((namespace, key))

    def _touch_all(self) -> None:
        for namespace, place in self._namespaces.items():
            self._touch(namespace, place.workloads)


def _priority(spec: PodSpec, classes: dict[str, PriorityClass]) -> int:
    """The priority that the API server gives to pods of a template."""
    name = spec.priority_class_name
    if name in classes:
        return classes[name].value
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name]
    default = None if name else default_class(classes.values())
    if spec.priority is not None:
        return spec.priority
    return 0 if default is None else default.value


def _new(kept: KeptPods, name: str, entry: DefaultBudget) -> Raw:
    return {
        "apiVersion": "policy/v1",
        "kind": _KIND,
        "metadata": {
            "name": name,
            "namespace": kept.workload.metadata.namespace,
            "labels": {DEFAULT_BUDGET: "true"},
            "ownerReferences": [kept.reference()],
        },
        "spec": {
            "selector": msgspec.to_builtins(kept.written_selector),
            **{field: value for field, value in _numbers(entry).items() if value is not None},
        },
    }


def _changes(budget: PodDisruptionBudget, kept: KeptPods, entry: DefaultBudget) -> list[PatchObject]:
    """What makes a default budget what it should be."""
    spec: Raw = {}
    if (budget.spec.min_available, budget.spec.max_unavailable) != (entry.min_available, entry.max_unavailable):
        spec |= _numbers(entry)
    if compile_label_selector(budget.spec.selector) != kept.selector:
        old = budget.spec.selector
        labels = {**dict.fromkeys(old.match_labels if old else ()), **kept.written_selector.match_labels}
        expressions = msgspec.to_builtins(kept.written_selector.match_expressions)
        spec["selector"] = {"matchLabels": labels, "matchExpressions": expressions or None}
    if not spec:
        return []
    patch = {"metadata": {"resourceVersion": budget.metadata.resource_version}, "spec": spec}
    return [PatchObject(_KIND, budget.key, budget.metadata.uid, patch, _CAUSE)]


def _numbers(entry: DefaultBudget) -> Raw:
    return {"minAvailable": entry.min_available, "maxUnavailable": entry.max_unavailable}


def _deletion(budget: PodDisruptionBudget, why: str) -> Action:
    return DeleteObject(_KIND, budget.key, budget.metadata.uid, _CAUSE, message=why)
