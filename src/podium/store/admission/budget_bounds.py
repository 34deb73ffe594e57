"""Which disruption budgets are let in: none that is stricter than the DisruptionPolicy's bounds.

Source: controlled-rescheduling.md, Disruption budget (tied into quota).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.api.budget_bound import strictness_problem
from podium.api.budget_rate import annotated_rate
from podium.api.disruption_policy import POLICY_NAME, BudgetBound, DisruptionPolicy
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.selectors import compile_label_selector
from podium.api.workloads import Deployment, PodTemplate, ReplicaSet, ReplicationController, StatefulSet
from podium.store.admission.priority_classes import SYSTEM_CLASSES, default_class
from podium.store.api_resource import APIResource
from podium.store.errors import forbidden
from podium.store.revisions import Revisions

TOO_STRICT = "stricter than the DisruptionPolicy allows"
"""What the message of a refusal says."""

_WORKLOADS = Deployment | ReplicaSet | ReplicationController | StatefulSet


def check_bounds(
    resource: APIResource, budget: PodDisruptionBudget, revisions: Revisions, classes: Mapping[str, PriorityClass]
) -> None:
    """Raise StoreError 403 for a budget that is stricter than it may be.

    The bound is that of the least important of its pods: those that there are, and those that workloads are to make.
    While there are none, a budget is refused that is too strict for pods of any priority.
    """
    stored = revisions.of("DisruptionPolicy").get(POLICY_NAME)
    if stored is None or not isinstance(stored.object, DisruptionPolicy) or not stored.object.spec.budget_bounds:
        return
    spec = stored.object.spec
    priorities, expected = _covered(budget, revisions, classes)
    bounds = [spec.budget_bound(min(priorities))] if priorities else spec.possible_bounds
    problems = [_problem(budget, bound, expected) for bound in bounds]
    if all(problems):
        whom = f"pods of priority {min(priorities)}" if priorities else "pods of any priority"
        raise forbidden(resource, budget.key, f"{TOO_STRICT} for {whom}: {problems[0]}")


def _problem(budget: PodDisruptionBudget, bound: BudgetBound | None, expected: int | None) -> str | None:
    return None if bound is None else strictness_problem(budget.spec, annotated_rate(budget), bound, expected)


def _covered(
    budget: PodDisruptionBudget, revisions: Revisions, classes: Mapping[str, PriorityClass]
) -> tuple[set[int], int | None]:
    """The priorities of the pods that the budget covers, and how many there are to be; None while there are none."""
    selector, namespace = compile_label_selector(budget.spec.selector), budget.metadata.namespace
    priorities, wanted = set[int](), 0
    for template, replicas in _templates(revisions, namespace):
        if selector.matches(template.metadata.labels):
            priorities.add(_priority(template, classes))
            wanted += replicas
    pods = [
        stored.object
        for stored in revisions.in_namespace("Pod", namespace)
        if isinstance(stored.object, Pod)
        and not stored.object.is_terminal
        and selector.matches(stored.object.metadata.labels)
    ]
    priorities |= {pod.priority for pod in pods}
    wanted += sum(pod.metadata.controller is None for pod in pods)
    return priorities, max(wanted, len(pods)) if priorities else None


def _templates(revisions: Revisions, namespace: str) -> Iterator[tuple[PodTemplate, int]]:
    """The pods that workloads make which no other workload owns, and how many."""
    for kind in ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"):
        for stored in revisions.in_namespace(kind, namespace):
            one = stored.object
            if isinstance(one, _WORKLOADS) and one.metadata.controller is None:
                yield one.spec.template, one.spec.replicas


def _priority(template: PodTemplate, classes: Mapping[str, PriorityClass]) -> int:
    """The priority that pods of a template get."""
    spec = template.spec
    name = spec.priority_class_name
    if name:
        found = classes.get(name)
        return found.value if found is not None else SYSTEM_CLASSES.get(name, 0)
    if spec.priority is not None:
        return spec.priority
    default = default_class(classes.values())
    return 0 if default is None else default.value
