"""Disruption budgets as preemption sees them: whom they cover, and how much is left.

Source: pkg/scheduler/framework/preemption/preemption.go (filterPodsWithPDBViolation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import NOTHING, Selector, compile_label_selector
from podium.cluster.arrays import Bools, Int32s
from podium.cluster.pod_class import PodClass, PodClasses


@dataclass(slots=True, eq=False)
class Budget:
    """One budget. ``disrupted`` names pods whose disruption it has accounted for already."""

    namespace: str
    name: str
    selector: Selector
    disruptions_allowed: int
    disrupted: frozenset[str]

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def covers(self, pod_class: PodClass) -> bool:
        """Whether the budget protects pods of the class. Pods without labels and empty selectors match nothing."""
        return (
            pod_class.namespace == self.namespace
            and bool(pod_class.labels)
            and bool(self.selector.requirements)
            and self.selector.matches(pod_class.labels)
        )

    def covered(self, classes: PodClasses, ids: Int32s) -> Bools:
        """``[n]``: which of some classes, given by their ids, the budget covers."""
        table = np.zeros(classes.capacity, dtype=np.bool_)
        for class_id in np.unique(ids).tolist():
            table[class_id] = self.covers(classes[class_id])
        found: Bools = table[ids]
        return found


class Budgets:
    """All budgets. ``generation`` moves whenever one of them changes."""

    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}
        self.generation = 0

    def __len__(self) -> int:
        return len(self._budgets)

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add or replace a budget. A selector that does not parse covers nothing, as upstream decides."""
        selector = compile_label_selector(budget.spec.selector) if budget.spec.selector else NOTHING
        self._budgets[budget.key] = Budget(
            namespace=budget.metadata.namespace,
            name=budget.metadata.name,
            selector=selector,
            disruptions_allowed=budget.status.disruptions_allowed,
            disrupted=frozenset(budget.status.disrupted_pods),
        )
        self.generation += 1

    def remove(self, key: str) -> None:
        """Forget a budget."""
        if self._budgets.pop(key, None) is not None:
            self.generation += 1

    def all(self) -> list[Budget]:
        """The budgets, by key."""
        return [self._budgets[key] for key in sorted(self._budgets)]

    def counts(self, pod_class: PodClass) -> bool:
        """Whether some budget counts the disruption of a pod of the class.

        There the empty selector covers all pods of the namespace, as the eviction API has it and preemption has not.
        """
        return any(
            budget.namespace == pod_class.namespace and budget.selector.matches(pod_class.labels)
            for budget in self._budgets.values()
        )

    def covering(self, pod_classes: Iterable[PodClass]) -> list[Budget]:
        """The budgets that cover at least one of the classes, by key."""
        wanted = list(pod_classes)
        return [budget for budget in self.all() if any(budget.covers(pod_class) for pod_class in wanted)]
