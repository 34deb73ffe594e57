"""What budgets, priority classes and the DisruptionPolicy must be like.

The rules of the first two are those of pkg/apis/policy/validation and pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from podium.api.budget_bound import strictness_problem
from podium.api.checks import check, check_count, check_one_of, check_share, check_time
from podium.api.disruption_cap import Cap
from podium.api.disruption_policy import POLICY_NAME, DefaultBudget, DisruptionPolicy, DisruptionPolicySpec
from podium.api.disruption_rate import MAX_DISRUPTIONS, parse_rate
from podium.api.errors import InputError, field_path, shown
from podium.api.names import subdomain_problem
from podium.api.policy import (
    POLICY_ANNOTATION,
    PREEMPTION_POLICIES,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PriorityClass,
)
from podium.api.soundness.selection import check_label_selector
from podium.api.times import parse_duration

_MAX_USER_PRIORITY = 1_000_000_000
_MAX_INT32 = 2**31 - 1
_MAX_LEVELS = 100
_MAX_AVOID_ENTRIES = 1_000


def check_budget(budget: PodDisruptionBudget) -> None:
    """How many pods must stay, which ones, and how often one of them may be disrupted."""
    spec, status = budget.spec, budget.status
    if spec.min_available is not None and spec.max_unavailable is not None:
        raise InputError("minAvailable and maxUnavailable cannot be both set; remove one", path=".spec")
    check_share(spec.min_available, ".spec.minAvailable")
    check_share(spec.max_unavailable, ".spec.maxUnavailable")
    check_label_selector(spec.selector, ".spec.selector")
    for name, time in status.disrupted_pods.items():
        check_time(time, field_path(".status.disruptedPods", name))
    rate = budget.metadata.annotations.get(MAX_DISRUPTIONS)
    if rate is not None:
        _check_rate(rate, field_path(".metadata.annotations", MAX_DISRUPTIONS))
    if status.disruption_rate is not None:
        _check_rate(status.disruption_rate.max, ".status.disruptionRate.max")
        check_time(status.disruption_rate.full_time, ".status.disruptionRate.fullTime")
        if status.disruption_rate.at_least is not None:
            _check_rate(status.disruption_rate.at_least, ".status.disruptionRate.atLeast")


def check_priority_class(priority_class: PriorityClass) -> None:
    """The value, and the policies that there are."""
    check_one_of(priority_class.preemption_policy, PREEMPTION_POLICIES, ".preemptionPolicy")
    annotated = priority_class.metadata.annotations.get(POLICY_ANNOTATION)
    if annotated is not None:
        check_one_of(annotated, PREEMPTION_POLICIES, field_path(".metadata.annotations", POLICY_ANNOTATION))
    if priority_class.value > _MAX_USER_PRIORITY and not priority_class.metadata.name.startswith("system-"):
        raise InputError(
            f"{priority_class.value} is out of range; above {_MAX_USER_PRIORITY} are system classes only",
            path=".value",
        )


def check_disruption_policy(policy: DisruptionPolicy) -> None:
    """The one object there can be, and each of its parts."""
    name, spec = policy.metadata.name, policy.spec
    if name != POLICY_NAME:
        problem = f"{shown(name)} is not the name of a cluster's one DisruptionPolicy; write {POLICY_NAME}"
        raise InputError(problem, path=".metadata.name")
    _check_levels(spec.levels, ".spec.priorities")
    _check_default_budgets(spec.default_budgets, ".spec.defaultBudgets")
    _check_bounds(spec, ".spec.budgetBounds")
    _check_caps(spec.caps, ".spec.caps")
    most = spec.avoid_lists.max_entries
    if not 1 <= most <= _MAX_AVOID_ENTRIES:
        problem = f"{most} is out of range; it must be 1 to {_MAX_AVOID_ENTRIES}"
        raise InputError(problem, path=".spec.avoidLists.maxEntries")
    _check_period(spec.avoid_lists.expire_after, ".spec.avoidLists.expireAfter")
    for index, cap in enumerate(policy.status.caps):
        check_time(cap.full_time, f".status.caps[{index}].fullTime")


def _check_levels(levels: tuple[str, ...], path: str) -> None:
    check_count(levels, path, _MAX_LEVELS)
    for index, name in enumerate(levels):
        if not name:
            raise InputError('a name is missing; write it as in "Critical > Normal > Preemptible"', path=path)
        check(subdomain_problem(name), path)
        if name in levels[:index]:
            raise InputError(f"{shown(name)} is given twice; capital letters make no difference", path=path)


def _check_default_budgets(budgets: tuple[DefaultBudget, ...], path: str) -> None:
    check_count(budgets, path)
    for index, declared in enumerate(budgets):
        place = f"{path}[{index}]"
        if (declared.max_unavailable is None) == (declared.min_available is None):
            raise InputError("needs either maxUnavailable or minAvailable, and not both", path=place)
        check_share(declared.max_unavailable, f"{place}.maxUnavailable")
        check_share(declared.min_available, f"{place}.minAvailable")
    _check_order([budget.min_priority for budget in budgets], path)


def _check_bounds(spec: DisruptionPolicySpec, path: str) -> None:
    """The bounds themselves, and that the default budgets keep to them."""
    bounds = spec.budget_bounds
    check_count(bounds, path)
    for index, level in enumerate(bounds):
        place = f"{path}[{index}]"
        if level.min_disruptions is None and level.min_rate is None:
            raise InputError("says nothing; give minDisruptions, minRate or both", path=place)
        check_share(level.min_disruptions, f"{place}.minDisruptions")
        if level.min_rate is not None:
            _check_rate(level.min_rate, f"{place}.minRate")
    _check_order([level.min_priority for level in bounds], path)
    for index, default in enumerate(spec.default_budgets):
        bound = spec.budget_bound(-_MAX_INT32 - 1 if default.min_priority is None else default.min_priority)
        numbers = PodDisruptionBudgetSpec(min_available=default.min_available, max_unavailable=default.max_unavailable)
        problem = None if bound is None else strictness_problem(numbers, None, bound, None)
        if problem is not None:
            raise InputError(f"{problem} in {path}; one of them must change", path=f".spec.defaultBudgets[{index}]")


def _check_order(priorities: Sequence[int | None], path: str) -> None:
    """The least priority of each entry must be below that of the one before, and only the last may have none."""
    for index, (above, priority) in enumerate(pairwise(priorities), 1):
        if above is None:
            problem = "is missing; only the last entry stands for any priority"
            raise InputError(problem, path=f"{path}[{index - 1}].minPriority")
        if priority is not None and priority >= above:
            problem = f"{priority} is not below {above}, so that the entry never counts; the highest come first"
            raise InputError(problem, path=f"{path}[{index}].minPriority")


def _check_caps(caps: tuple[Cap, ...], path: str) -> None:
    check_count(caps, path)
    scopes = [cap.scope for cap in caps]
    for index, cap in enumerate(caps):
        place = f"{path}[{index}]"
        if cap.component == "":
            problem = "is empty; write a component's name, such as drain or scheduler, or leave it out for all of them"
            raise InputError(problem, path=f"{place}.component")
        if cap.scope in scopes[:index]:
            given = "a cap on all components" if cap.component is None else shown(cap.component)
            raise InputError(f"{given} is given twice; remove one", path=f"{place}.component")
        _check_rate(cap.max, f"{place}.max")


def _check_rate(text: str, path: str) -> None:
    try:
        parse_rate(text)
    except ValueError as error:
        raise InputError(str(error), path=path) from None


def _check_period(text: str, path: str) -> None:
    """A duration longer than nothing."""
    try:
        period = parse_duration(text)
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    if period <= 0:
        raise InputError(f'{shown(text)} is not longer than 0s; write it as in "1h"', path=path)
