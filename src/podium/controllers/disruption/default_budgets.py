"""The controller that creates default PodDisruptionBudgets for workloads without one.

Source: controlled-rescheduling.md, Disruption budget (a default budget by priority, more liberal as it decreases).
"""

from __future__ import annotations

from itertools import count

import msgspec

from podium.api.disruption_policy import POLICY_NAME, DefaultBudget, DisruptionPolicy, DisruptionPolicySpec
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Namespace
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.selectors import LabelSelector, Selector, compile_label_selector
from podium.api.workloads import PodTemplate, ReplicaSet, Replicated, ReplicationController
from podium.controllers.actions import Action, CreateObject, PatchObject, deletion_of, owned_object, versioned_patch
from podium.controllers.controller import Reconciler
from podium.controllers.indexes import LabelIndex, MultiMap, SelectorIndex, exchange
from podium.controllers.observations import Changed
from podium.store.admission.priorities import NO_RULES, PriorityRules

DEFAULT_BUDGET = "podium.dev/default-budget"
"""Label with value "true" on default budgets."""

WorkloadKey = tuple[str, str, str]
"""Namespace, name and kind of a workload; the order decides between overlapping ones."""

_MOST_OF_NAME = 230


class ProtectedWorkload(msgspec.Struct, frozen=True):
    """The pods of a workload; ``unfit`` is why they get no budget, or ""."""

    workload: Replicated
    written_selector: LabelSelector
    selector: Selector
    unfit: str

    @property
    def template(self) -> PodTemplate:
        return self.workload.spec.template

    @property
    def key(self) -> WorkloadKey:
        """Return the workload's namespace, name and kind."""
        return workload_key(self.workload)

    @property
    def label(self) -> str:
        """Return the workload's name for users, as in `Deployment default/web`."""
        return f"{self.key[2]} {self.workload.key}"


class Protection:
    """The workloads and budgets. Methods that change them return the affected workloads."""

    def __init__(self) -> None:
        self.workloads: dict[WorkloadKey, ProtectedWorkload] = {}
        self._labels: LabelIndex[WorkloadKey] = LabelIndex()
        self._selectors: SelectorIndex[WorkloadKey] = SelectorIndex()
        self._keys: dict[str, WorkloadKey] = {}
        self._budgets: dict[str, PodDisruptionBudget] = {}
        self._budget_selectors: SelectorIndex[str] = SelectorIndex()
        # The names of default budgets by the uid of their owner, which may be gone or unknown.
        self._owned: MultiMap[str, str] = MultiMap()

    def put(self, object_: PodDisruptionBudget | Replicated) -> list[WorkloadKey]:
        return self._put_budget(object_) if isinstance(object_, PodDisruptionBudget) else self._put_workload(object_)

    def remove(self, object_: PodDisruptionBudget | Replicated) -> list[WorkloadKey]:
        if isinstance(object_, PodDisruptionBudget):
            return self._drop_budget(object_.key, object_.metadata.uid)
        return self._drop(workload_key(object_), object_.metadata.uid)

    def _put_workload(self, workload: Replicated) -> list[WorkloadKey]:
        if workload.metadata.deletion_timestamp is not None:
            return self.remove(workload)
        old = self.workloads.get(workload_key(workload))
        if old is not None and _what_counts(old.workload) == _what_counts(workload):
            self.workloads[old.key] = msgspec.structs.replace(old, workload=workload)
            return []
        labels = workload.spec.template.metadata.labels
        if isinstance(workload, ReplicationController):
            written = LabelSelector(match_labels=workload.spec.selector or labels)
        else:
            written = workload.spec.selector or LabelSelector()
        selector, unfit = compile_label_selector(written), ""
        if isinstance(workload, ReplicaSet) and workload.metadata.controller is not None:
            unfit = "is part of another workload"
        elif not selector.requirements or not selector.matches(labels):
            unfit = "does not select the pods that it makes"
        kept = ProtectedWorkload(workload, written, selector, unfit)
        before = self._drop(kept.key)
        self.workloads[kept.key] = kept
        self._keys[workload.metadata.uid] = kept.key
        if not kept.unfit:
            self._labels.put(kept.key, labels, kept.key[0])
            self._selectors.put(kept.key, kept.selector, kept.key[0])
        return [*before, kept.key, *self.overlapping(kept)]

    def _put_budget(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        """Take in a budget; a change of its status alone affects nothing."""
        key, old = budget.key, self._budgets.get(budget.key)
        if old is not None and _written_fields(old) == _written_fields(budget):
            self._budgets[key] = budget
            return []
        before = self._drop_budget(key)
        self._budgets[key] = budget
        self._budget_selectors.put(key, compile_label_selector(budget.spec.selector), budget.metadata.namespace)
        if owner := _default_for(budget):
            self._owned.add(owner, key)
        return before + self._under(budget)

    def overlapping(self, kept: ProtectedWorkload) -> list[WorkloadKey]:
        """Return the workloads whose budget would cover pods of this one, or the reverse."""
        namespace, selected_by = kept.key[0], self._selectors.matching(kept.template.metadata.labels, kept.key[0])
        return [*selected_by, *self._labels.matching(kept.selector, namespace)]

    def made_budget(self, kept: ProtectedWorkload) -> PodDisruptionBudget | None:
        """Return the first non-default budget by name that covers the workload's pods, or None."""
        keys = sorted(self._budget_selectors.matching(kept.template.metadata.labels, kept.key[0]))
        return next((self._budgets[key] for key in keys if self.owner(key) is None), None)

    def default_budgets(self, kept: ProtectedWorkload) -> list[PodDisruptionBudget]:
        return [self._budgets[key] for key in sorted(self._owned.get(kept.workload.metadata.uid, ()))]

    def owner(self, budget: str) -> WorkloadKey | None:
        """Return the workload of a default budget; None for other budgets."""
        found = self._budgets.get(budget)
        return None if found is None else self._keys.get(_default_for(found))

    def free_name(self, kept: ProtectedWorkload) -> str:
        """Return an unused name for the workload's default budget."""
        base = kept.key[1][:_MOST_OF_NAME].rstrip("-.") + "-default"
        names = (base if number == 1 else f"{base}-{number}" for number in count(1))
        return next(name for name in names if f"{kept.key[0]}/{name}" not in self._budgets)

    def _drop(self, key: WorkloadKey, uid: str = "") -> list[WorkloadKey]:
        """Forget the workload with a key, if there is one, of that uid if one is given."""
        kept = self.workloads.get(key)
        if kept is None or uid not in ("", kept.workload.metadata.uid):
            return []
        concerned = self.overlapping(kept)
        del self.workloads[kept.key]
        del self._keys[kept.workload.metadata.uid]
        self._labels.remove(kept.key)
        self._selectors.remove(kept.key)
        return concerned

    def _drop_budget(self, key: str, uid: str = "") -> list[WorkloadKey]:
        """Forget the budget with a key, as `_drop`."""
        budget = self._budgets.get(key)
        if budget is None or uid not in ("", budget.metadata.uid):
            return []
        concerned = self._under(budget)
        del self._budgets[budget.key]
        self._budget_selectors.remove(budget.key)
        self._owned.discard(_default_for(budget), budget.key)
        return concerned

    def _under(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        """Return the workloads whose pods a budget covers, and those that overlap with them."""
        selector = compile_label_selector(budget.spec.selector)
        covered = self._labels.matching(selector, budget.metadata.namespace)
        return [key for workload in covered for key in self.overlapping(self.workloads[workload])]


def workload_key(workload: Replicated) -> WorkloadKey:
    """Return the namespace, name and kind of a workload."""
    return workload.metadata.namespace, workload.metadata.name, type(workload).__name__


def _default_for(budget: PodDisruptionBudget) -> str:
    """Return the uid of the workload of a default budget, "" for other budgets."""
    controller = budget.metadata.controller
    is_default = budget.metadata.labels.get(DEFAULT_BUDGET) == "true"
    return controller.uid if is_default and controller is not None else ""


def _what_counts(workload: Replicated) -> tuple[object, ...]:
    """Return the properties of a workload on which budgets depend."""
    meta, pods = workload.metadata, workload.spec.template
    priority = pods.spec.priority_class_name, pods.spec.priority
    return meta.uid, meta.owner_references, workload.spec.selector, pods.metadata.labels, *priority


def _written_fields(budget: PodDisruptionBudget) -> tuple[object, ...]:
    """Return what a budget consists of besides its status."""
    return budget.metadata.labels, budget.metadata.owner_references, budget.spec


_CAUSE = "default-budget-controller"
_KIND = "PodDisruptionBudget"
_NO_POLICY = DisruptionPolicySpec()


class DefaultBudgets(Reconciler[WorkloadKey]):
    """Maintains a PodDisruptionBudget for each workload to which the DisruptionPolicy gives one.

    Workloads are Deployments, StatefulSets, ReplicationControllers, and ReplicaSets without owner. The policy's first
    entry for the pods' priority has the numbers. A user's budget that covers the pods replaces the default one. No pod
    gets two budgets, which could make it unevictable: a workload that selects pods with another budget gets none; of
    several overlapping ones without, the first by name gets one.
    """

    watches = frozenset(
        """
        DisruptionPolicy Namespace PodDisruptionBudget PriorityClass Deployment ReplicaSet ReplicationController
        StatefulSet
        """.split()
    )

    def __init__(self) -> None:
        super().__init__()
        self._policy = _NO_POLICY
        self._rules = NO_RULES
        self._labels: dict[str, dict[str, str]] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._protection = Protection()

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        name, is_gone = object_.metadata.name, shown is None
        if isinstance(object_, PodDisruptionBudget | Replicated):
            self._queue.add_all((self._protection.remove if is_gone else self._protection.put)(object_))
        elif isinstance(object_, Namespace):
            # Priority rules may select namespaces by their labels.
            labels = None if is_gone else object_.metadata.labels or None
            if exchange(self._labels, name, labels) != labels and self._rules:
                self._queue.add_all(key for key in self._protection.workloads if key[0] == name)
        elif isinstance(object_, DisruptionPolicy) and name == POLICY_NAME:
            self._see_policy(_NO_POLICY if is_gone else object_.spec)
        elif isinstance(object_, PriorityClass):
            was = exchange(self._classes, name, None if is_gone else object_)
            is_same = was is not None and (was.value, was.global_default) == (object_.value, object_.global_default)
            if is_gone or not is_same:
                self._queue.add_all(self._protection.workloads)
        return []

    def _see_policy(self, policy: DisruptionPolicySpec) -> None:
        before, self._policy, rules = self._policy, policy, policy.priority_rules
        if before.priority_rules != rules:
            self._rules = PriorityRules(rules, lambda namespace: self._labels.get(namespace, {}))
        if (before.priority_rules, before.default_budgets) != (rules, policy.default_budgets):
            self._queue.add_all(self._protection.workloads)

    def _reconcile(self, key: WorkloadKey, now: int) -> list[Action]:
        kept = self._protection.workloads.get(key)
        wanted = [] if kept is None else self._sync(kept)
        if not wanted:
            self._forget(key)
        return wanted

    def _sync(self, kept: ProtectedWorkload) -> list[Action]:
        """Return the writes that give the workload its default budget, or none."""
        existing, entry = self._protection.default_budgets(kept), self._entry(kept)
        why_none = f"{kept.label} {kept.unfit}" if kept.unfit else ""
        if entry is None:
            why_none = why_none or f"the DisruptionPolicy gives {kept.label} none"
        if not why_none and (protector := self._protector(kept)):
            why_none = f"{protector} covers pods that {kept.label} selects"
        if why_none or entry is None:
            return [deletion_of(budget, _CAUSE, message=why_none) for budget in existing]
        if not existing:
            selector = msgspec.to_builtins(kept.written_selector)
            numbers = {field: value for field, value in _numbers(entry).items() if value is not None}
            metadata = {"name": self._protection.free_name(kept), "labels": {DEFAULT_BUDGET: "true"}}
            spec = {"selector": selector, **numbers}
            return [CreateObject(owned_object(kept.workload, PodDisruptionBudget, metadata, spec=spec), _CAUSE)]
        surplus = [deletion_of(budget, _CAUSE, message=f"{kept.label} has another") for budget in existing[1:]]
        return [*_changes(existing[0], kept, entry), *surplus]

    def _entry(self, kept: ProtectedWorkload) -> DefaultBudget | None:
        namespace = kept.workload.metadata.namespace
        return self._policy.default_budget(self._rules.template_priority(kept.template, namespace, self._classes))

    def _protector(self, kept: ProtectedWorkload) -> str:
        """Return what covers pods that the workload selects, in words; "" for nothing."""
        place = self._protection
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


def _changes(budget: PodDisruptionBudget, kept: ProtectedWorkload, entry: DefaultBudget) -> list[PatchObject]:
    """Return the write that updates a default budget."""
    spec: Raw = {}
    if (budget.spec.min_available, budget.spec.max_unavailable) != (entry.min_available, entry.max_unavailable):
        spec |= _numbers(entry)
    if compile_label_selector(budget.spec.selector) != kept.selector:
        old = budget.spec.selector
        labels = {**dict.fromkeys(old.match_labels if old else ()), **kept.written_selector.match_labels}
        expressions = msgspec.to_builtins(kept.written_selector.match_expressions)
        spec["selector"] = {"matchLabels": labels, "matchExpressions": expressions or None}
    return [versioned_patch(budget, {"spec": spec}, _CAUSE)] if spec else []


def _numbers(entry: DefaultBudget) -> Raw:
    return {"minAvailable": entry.min_available, "maxUnavailable": entry.max_unavailable}
