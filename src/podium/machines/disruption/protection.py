"""The workloads of a namespace whose pods a budget may protect, and the budgets there are over them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from podium.api.kinds import KIND_OF
from podium.api.meta import Raw
from podium.api.policy import PodDisruptionBudget
from podium.api.selection import LabelSelector
from podium.api.selectors import Selector, compile_label_selector
from podium.api.workloads import Deployment, PodTemplate, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.disruption.label_index import LabelIndex, SelectorIndex

DEFAULT_BUDGET = "podium.dev/default-budget"
"""Label, "true" on the budgets that workloads get because nobody made one for them."""

WorkloadKey = tuple[str, str]
"""The name and the kind of a workload; their order says which of several that overlap goes first."""

Keeper = Deployment | StatefulSet | ReplicaSet | ReplicationController
"""What keeps pods for as long as it is there."""

_MOST_OF_NAME = 230


@dataclass(frozen=True, slots=True)
class KeptPods:
    """The pods that a workload keeps: which ones, and how they look; ``unfit`` is why they get no budget, or ""."""

    workload: Keeper
    written_selector: LabelSelector
    selector: Selector
    unfit: str

    @property
    def template(self) -> PodTemplate:
        """How the pods look."""
        return self.workload.spec.template

    @property
    def key(self) -> WorkloadKey:
        """The workload's name and kind."""
        return workload_key(self.workload)

    @property
    def label(self) -> str:
        """The workload as people read it: `Deployment default/web`."""
        return f"{self.key[1]} {self.workload.key}"

    def reference(self) -> Raw:
        """The owner reference that makes the workload the controller of what carries it."""
        kind = KIND_OF[type(self.workload)]
        return {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "name": self.workload.metadata.name,
            "uid": self.workload.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def asks_as(self, other: KeptPods) -> bool:
        """Whether this is the same workload, with pods of the same labels and priority."""
        mine, others = self.template, other.template
        return (
            self.workload.metadata.uid == other.workload.metadata.uid
            and self.selector == other.selector
            and self.unfit == other.unfit
            and mine.metadata.labels == others.metadata.labels
            and mine.spec.priority_class_name == others.spec.priority_class_name
            and mine.spec.priority == others.spec.priority
        )


class Protection:
    """The workloads and the budgets of one namespace."""

    def __init__(self) -> None:
        self.workloads: dict[WorkloadKey, KeptPods] = {}
        self._labels: LabelIndex[WorkloadKey] = LabelIndex()
        self._selectors: SelectorIndex[WorkloadKey] = SelectorIndex()
        self._keys: dict[str, WorkloadKey] = {}
        self._budgets: dict[str, PodDisruptionBudget] = {}
        self._budget_selectors: SelectorIndex[str] = SelectorIndex()
        # The names of the default budgets by the uid of their owner, who may be gone or not known yet.
        self._owned: dict[str, dict[str, None]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a workload nor a budget."""
        return not self.workloads and not self._budgets

    def put_workload(self, workload: Keeper) -> list[WorkloadKey]:
        """Take in a workload as it is now; the workloads that this concerns."""
        kept = _kept_pods(workload)
        if kept is None:
            return self.remove_workload(workload)
        old = self.workloads.get(kept.key)
        if old is not None and old.asks_as(kept):
            self.workloads[kept.key] = kept
            return []
        before = [] if old is None else self._drop(old)
        self.workloads[kept.key] = kept
        self._keys[workload.metadata.uid] = kept.key
        if not kept.unfit:
            self._labels.put(kept.key, kept.template.metadata.labels)
            self._selectors.put(kept.key, kept.selector)
        return [*before, kept.key, *self.overlapping(kept)]

    def remove_workload(self, workload: Keeper) -> list[WorkloadKey]:
        """Forget a workload that is gone, or about to go; the workloads that this concerns."""
        known = self.workloads.get(workload_key(workload))
        if known is None or known.workload.metadata.uid != workload.metadata.uid:
            return []
        return self._drop(known)

    def put_budget(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        """Take in a budget as it is now; the workloads that this concerns."""
        name = budget.metadata.name
        old = self._budgets.get(name)
        if old is not None and _says_as(old, budget):
            self._budgets[name] = budget
            return []
        before = [] if old is None else self._drop_budget(old)
        self._budgets[name] = budget
        self._budget_selectors.put(name, compile_label_selector(budget.spec.selector))
        owner = _default_for(budget)
        if owner:
            self._owned.setdefault(owner, {})[name] = None
        return before + self._under(budget)

    def remove_budget(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        """Forget a budget that is gone; the workloads that this concerns."""
        known = self._budgets.get(budget.metadata.name)
        if known is None or known.metadata.uid != budget.metadata.uid:
            return []
        return self._drop_budget(known)

    def overlapping(self, kept: KeptPods) -> list[WorkloadKey]:
        """The workloads, it may be among them, whose budget would cover pods of this one or the other way round."""
        labels = kept.template.metadata.labels
        return [*self._selectors.matching(labels), *self._labels.matching(kept.selector)]

    def made_budget(self, kept: KeptPods) -> PodDisruptionBudget | None:
        """The first budget by name that somebody made and that covers the workload's pods; None where there is none."""
        names = sorted(self._budget_selectors.matching(kept.template.metadata.labels))
        return next((self._budgets[name] for name in names if self.owner(name) is None), None)

    def default_budgets(self, kept: KeptPods) -> list[PodDisruptionBudget]:
        """The workload's default budgets, by name."""
        return [self._budgets[name] for name in sorted(self._owned.get(kept.workload.metadata.uid, ()))]

    def owner(self, budget: str) -> WorkloadKey | None:
        """The workload whose default budget that is; None for a budget that somebody made, and for one that is gone."""
        found = self._budgets.get(budget)
        return None if found is None else self._keys.get(_default_for(found))

    def free_name(self, kept: KeptPods) -> str:
        """A name for the workload's default budget that no budget has."""
        base = kept.key[0][:_MOST_OF_NAME].rstrip("-.") + "-default"
        names = (base if number == 1 else f"{base}-{number}" for number in count(1))
        return next(name for name in names if name not in self._budgets)

    def _drop(self, kept: KeptPods) -> list[WorkloadKey]:
        concerned = self.overlapping(kept)
        del self.workloads[kept.key]
        del self._keys[kept.workload.metadata.uid]
        self._labels.remove(kept.key)
        self._selectors.remove(kept.key)
        return concerned

    def _drop_budget(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        concerned = self._under(budget)
        name, owner = budget.metadata.name, _default_for(budget)
        del self._budgets[name]
        self._budget_selectors.remove(name)
        if owner:
            del self._owned[owner][name]
            if not self._owned[owner]:
                del self._owned[owner]
        return concerned

    def _under(self, budget: PodDisruptionBudget) -> list[WorkloadKey]:
        """The workloads whose pods a budget covers, and those that overlap with them."""
        covered = self._labels.matching(compile_label_selector(budget.spec.selector))
        return [key for workload in covered for key in self.overlapping(self.workloads[workload])]


def workload_key(workload: Keeper) -> WorkloadKey:
    """The name and kind of a workload."""
    return workload.metadata.name, type(workload).__name__


def _kept_pods(workload: Keeper) -> KeptPods | None:
    """What a workload keeps; None for one that is deleted, whose budget goes with it."""
    if workload.metadata.deletion_timestamp is not None:
        return None
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
    return KeptPods(workload, written, selector, unfit)


def _default_for(budget: PodDisruptionBudget) -> str:
    """The uid of the workload whose default budget that is, "" for a budget that somebody made."""
    controller = budget.metadata.controller
    is_default = budget.metadata.labels.get(DEFAULT_BUDGET) == "true"
    return controller.uid if is_default and controller is not None else ""


def _says_as(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    """Whether a budget is the same but for its status."""
    before, after = old.metadata, new.metadata
    return before.labels == after.labels and before.owner_references == after.owner_references and old.spec == new.spec
