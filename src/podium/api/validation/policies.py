"""Validation of quotas, limit ranges, priority classes, disruption budgets and the DisruptionPolicy.

Source: core/validation, pkg/apis/policy/validation, pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from podium.api import budget_limits, disruption_policy, selectors, times
from podium.api.checks import check as refuse
from podium.api.checks import check_amount, check_count, check_share, check_time, parsed
from podium.api.errors import InputError, field_path, shown
from podium.api.names import label_key_problem, subdomain_problem
from podium.api.policy import (
    ATTRIBUTES_CLASS,
    HIGHEST_USER_PRIORITY,
    POLICY_ANNOTATION,
    PREEMPTION_POLICIES,
    PRIORITY_CLASS,
    SCOPES,
    SYSTEM_CLASSES,
    PodDisruptionBudgetSpec,
)
from podium.api.quantity import is_extended, is_huge_pages, parse_quantity
from podium.api.validation import amounts
from podium.api.validation.findings import Place
from podium.api.validation.rules import check, check_alternatives, declare, report_repeats

_MIN_INT32 = -(2**31)
_MAX_LEVELS = 100
_MAX_AVOID_ENTRIES = 1_000
_NANO = 10**9

_EXISTING = tuple(scope for scope in SCOPES if scope not in (PRIORITY_CLASS, ATTRIBUTES_CLASS))
_COMPUTED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_STORED = ("ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage")
# By scope, what a quota with it may limit; others may limit pods and their resources.
_ALLOWED = {"BestEffort": ("pods",), ATTRIBUTES_CLASS: ("persistentvolumeclaims", "requests.storage")}
_PLAIN = frozenset((*amounts.WHOLE_COUNTS, *_COMPUTED, *_STORED))

_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# Two parts of which the first must not exceed the second, and the part that is reported.
_ORDERED = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)

declare(
    f"""\
LimitRange ResourceQuota: spec
LimitRangeItem: @limit
LimitRangeSpec: @limit_types limits
PodDisruptionBudget: spec status
PodDisruptionBudgetSpec: @one_number* minAvailable:share* maxUnavailable:share*
  unhealthyPodEvictionPolicy:AlwaysAllow|IfHealthyBudget selector
PodDisruptionBudgetStatus: disruptionsAllowed:0.. currentHealthy:0.. desiredHealthy:0.. expectedPods:0..
PriorityClass: @reserved_priority* preemptionPolicy:{"|".join(PREEMPTION_POLICIES)}*
ResourceQuotaSpec: hard:keyed-amounts @scopes* scopeSelector
ScopeSelector: matchExpressions
ScopedResourceSelectorRequirement: @scope_requirement*
""",
    """\
LimitRangeItem: max:amounts min:amounts default:amounts defaultRequest:amounts maxLimitRequestRatio:amounts
PodDisruptionBudget: @usable_budget
PriorityClass: @usable_priority
ResourceQuota: status
ResourceQuotaSpec: @usable_amounts scopes:..1000 @usable_scopes
ResourceQuotaStatus: @usable_amounts
ScopeSelector: matchExpressions:..1000
""",
)


@check
def _scopes(spec: Place) -> None:
    scopes = [text.value for text in spec.texts("scopes")]
    for scope in scopes:
        if scope not in SCOPES:
            spec.invalid("scopes", scope, "unsupported scope")
    selector = spec.child_or_empty("scopeSelector")
    for named in ({*scopes}, {place.text("scopeName") for place in selector.objects("matchExpressions")}):
        for pair in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
            if named.issuperset(pair):
                spec.invalid("scopes", sorted(named), "conflicting scopes")


@check
def _scope_requirement(requirement: Place) -> None:
    scope, operator, values = requirement.text("scopeName"), requirement.text("operator"), requirement.texts("values")
    if scope not in SCOPES:
        requirement.invalid("scopeName", scope, "unsupported scope")
    if scope in _EXISTING and operator != "Exists":
        requirement.invalid("operator", operator, f"must be 'Exists' when scope is {scope}")
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            requirement.required("values", detail)
    elif operator not in ("Exists", "DoesNotExist"):
        requirement.invalid("operator", operator, "not a valid selector operator")
    elif values:
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        requirement.invalid("values", [], detail)


@check
def _usable_amounts(place: Place) -> None:
    """Refuse amounts of a quota's spec or status that no quota limits."""
    for limits in map(place.child_or_empty, ("hard", "used")):
        for name, amount in limits.value.items():
            path = limits.path(name)
            refuse(label_key_problem(name), path)
            if "/" not in name and name not in _PLAIN and not is_huge_pages(name.removeprefix("requests.")):
                problem = (
                    f"{shown(name)} is nothing that a quota limits; write pods, requests.cpu, limits.memory, "
                    "requests.example.com/gpu, or count/ and a resource such as count/jobs.batch"
                )
                raise InputError(problem, path=path)
            check_amount(amount, path)
            if (name in amounts.WHOLE_COUNTS or is_extended(name)) and parse_quantity(amount) % _NANO:
                raise InputError(f"{shown(amount)} is not a whole number, and {name} are counted", path=path)


@check
def _usable_scopes(spec: Place) -> None:
    """Refuse scopes that have nothing to do with the limits."""
    hard, selector = spec.child_or_empty("hard"), spec.child_or_empty("scopeSelector")
    selected = [place.text("scopeName") for place in selector.objects("matchExpressions")]
    listed = [(scope, spec.path("scopes")) for scope in spec.value.get("scopes", ())]
    for scope, path in (*listed, *((scope, selector.path("matchExpressions")) for scope in selected)):
        allowed = _ALLOWED.get(scope, ("pods", *_COMPUTED))
        for name in hard.value:
            if name in _PLAIN and name not in allowed:
                problem = f"the scope {scope} does not go with {name}; it goes with {', '.join(allowed)}"
                raise InputError(problem, path=path)


@check
def _limit_types(spec: Place) -> None:
    """Check that the types of limits are known, and each is given once."""
    for limit in report_repeats(spec.objects("limits"), "type"):
        type_ = limit.text("type")
        problem = label_key_problem(type_)
        if problem is None and "/" not in type_ and type_ not in ("Pod", "Container", "PersistentVolumeClaim"):
            problem = f"{shown(type_)}: must be a standard limit type or fully qualified"
        limit.check("type", problem)


@check
def _limit(limit: Place) -> None:
    """Check the amounts of a limit, which must be consistent."""
    type_, parts = limit.text("type"), {part: limit.child_or_empty(part).value for part in _PARTS}
    of_containers = type_ in ("Pod", "Container")
    rule = amounts.container_resource_problem if of_containers else amounts.resource_name_problem
    for part in _PARTS:
        if type_ != "Pod" or part not in ("default", "defaultRequest"):
            amounts.check_amounts(limit, part, rule)
        elif limit.value.get(part):
            limit.forbidden(part, "may not be specified when `type` is 'Pod'")
    if type_ == "PersistentVolumeClaim" and not any("storage" in parts[part] for part in ("min", "max")):
        limit.required("limits", "either minimum or maximum storage value is required, but neither was provided")
    for name in sorted({name for part in parts.values() for name in part}):
        _check_order(limit, name, {part: values[name] for part, values in parts.items() if name in values})


def _check_order(limit: Place, name: str, written: Mapping[str, Any]) -> None:
    """Check the order of the amounts of a resource, as they are written by part."""
    found = {part: amounts.amount(value) for part, value in written.items()}
    known = {part: amount for part, amount in found.items() if amount is not None}
    for lower, upper, at in _ORDERED:
        if lower in known and upper in known and known[lower] > known[upper]:
            detail = f"{lower} value {written[lower]} is greater than {upper} value {written[upper]}"
            limit.child_or_empty(at).invalid(name, written[at], detail)
    ratio = known.get("maxLimitRequestRatio")
    if ratio is not None:
        stated, place = written["maxLimitRequestRatio"], limit.child_or_empty("maxLimitRequestRatio")
        if ratio < _NANO:
            place.invalid(name, stated, f"ratio {stated} is less than 1")
        least, most = known.get("min"), known.get("max")
        if least and most is not None and ratio * least > most * _NANO:
            place.invalid(name, stated, f"ratio {stated} is greater than max/min = {most / least:f}")
    request, default = known.get("defaultRequest"), known.get("default")
    if request is not None and default is not None and request < default and not amounts.is_overcommittable(name):
        detail = f"default value {written['default']} must equal to defaultRequest value in {name}"
        limit.child_or_empty("defaultRequest").invalid(name, written["defaultRequest"], detail)


@check
def _reserved_priority(priority_class: Place) -> None:
    """Check that only the system's classes have the highest values and the prefix `system-`."""
    name = priority_class.child_or_empty("metadata").text("name")
    value = priority_class.number("value") or 0
    if name.startswith("system-"):
        if value != SYSTEM_CLASSES.get(name) or priority_class.flag("globalDefault"):
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            priority_class.child_or_empty("metadata").forbidden("name", detail)
    elif value > HIGHEST_USER_PRIORITY:
        priority_class.forbidden(
            "value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        )


@check
def _usable_priority(priority_class: Place) -> None:
    annotations = priority_class.child_or_empty("metadata", "annotations")
    check_alternatives(annotations, POLICY_ANNOTATION, PREEMPTION_POLICIES)


@check
def _one_number(spec: Place) -> None:
    if spec.has("minAvailable") and spec.has("maxUnavailable"):
        spec.invalid("", {}, "minAvailable and maxUnavailable cannot be both set")


@check
def _usable_budget(budget: Place) -> None:
    """Refuse a budget with an unreadable rate, or an unreadable status."""
    status = budget.child_or_empty("status")
    for name, time in status.text_mapping("disruptedPods").items():
        check_time(time, field_path(status.path("disruptedPods"), name))
    annotations, rate = budget.child_or_empty("metadata", "annotations"), status.child("disruptionRate")
    if annotations.has(disruption_policy.MAX_DISRUPTIONS):
        parsed(
            disruption_policy.parse_rate,
            annotations.value[disruption_policy.MAX_DISRUPTIONS],
            annotations.path(disruption_policy.MAX_DISRUPTIONS),
        )
    if rate is not None:
        parsed(disruption_policy.parse_rate, rate.value["max"], rate.path("max"))
        check_time(rate.value.get("fullTime"), rate.path("fullTime"))
        if rate.value.get("atLeast") is not None:
            parsed(disruption_policy.parse_rate, rate.value["atLeast"], rate.path("atLeast"))


def check_disruption_policy(policy: disruption_policy.DisruptionPolicy) -> None:
    """Check the only DisruptionPolicy, and each of its parts."""
    name, spec = policy.metadata.name, policy.spec
    if name != disruption_policy.POLICY_NAME:
        problem = (
            f"{shown(name)} is not the name of a cluster's one DisruptionPolicy; write {disruption_policy.POLICY_NAME}"
        )
        raise InputError(problem, path=".metadata.name")
    most = spec.avoid_lists.max_entries
    if not 1 <= most <= _MAX_AVOID_ENTRIES:
        problem = f"{most} is out of range; it must be 1 to {_MAX_AVOID_ENTRIES}"
        raise InputError(problem, path=".spec.avoidLists.maxEntries")
    period = spec.avoid_lists.expire_after
    if parsed(times.parse_duration, period, ".spec.avoidLists.expireAfter") <= 0:
        problem = f'{shown(period)} is not longer than 0s; write it as in "1h"'
        raise InputError(problem, path=".spec.avoidLists.expireAfter")
    path = ".spec.priorities"
    check_count(spec.levels, path, _MAX_LEVELS)
    for index, level in enumerate(spec.levels):
        if not level:
            raise InputError('a name is missing; write it as in "Critical > Normal > Preemptible"', path=path)
        refuse(subdomain_problem(level), path)
        if level in spec.levels[:index]:
            raise InputError(f"{shown(level)} is given twice; capital letters make no difference", path=path)
    _refuse_rules(spec.priority_rules, ".spec.priorityRules")
    _refuse_budgets(spec)
    _refuse_caps(spec.caps, ".spec.caps")
    for index, cap in enumerate(policy.status.caps):
        check_time(cap.full_time, f".status.caps[{index}].fullTime")


def _refuse_rules(rules: tuple[disruption_policy.PriorityRule, ...], path: str) -> None:
    """Check that each rule has a unique name and valid conditions, names a class, and can be reached."""
    check_count(rules, path, _MAX_LEVELS)
    names = [rule.name for rule in rules]
    for index, rule in enumerate(rules):
        place = f"{path}[{index}]"
        refuse(subdomain_problem(rule.name), f"{place}.name")
        if rule.name in names[:index]:
            problem = f"{shown(rule.name)} is given twice; give each rule a name of its own"
            raise InputError(problem, path=f"{place}.name")
        refuse(subdomain_problem(rule.class_name), f"{place}.priorityClassName")
        for name, selector in (("podSelector", rule.pod_selector), ("namespaceSelector", rule.namespace_selector)):
            of_name = f"{place}.{name}.matchExpressions"
            expressions = () if selector is None else selector.match_expressions
            check_count(expressions, of_name)
            for number, given in enumerate(expressions):
                check_count(given.values, f"{of_name}[{number}].values", 10_000)
                field, wrong = selectors.requirement_problem(given.key, given.operator, given.values) or ("", None)
                refuse(wrong, f"{of_name}[{number}].{field}")
        if rule.is_unconditional and index + 1 < len(rules):
            problem = f"all pods meet the conditions, so that {shown(names[index + 1])} below never counts; put it last"
            raise InputError(problem, path=place)


def _refuse_budgets(spec: disruption_policy.DisruptionPolicySpec) -> None:
    """Check the default budgets and the bounds, and that the former comply with the latter."""
    path = ".spec.defaultBudgets"
    check_count(spec.default_budgets, path)
    for index, declared in enumerate(spec.default_budgets):
        place = f"{path}[{index}]"
        if (declared.max_unavailable is None) == (declared.min_available is None):
            raise InputError("needs either maxUnavailable or minAvailable, and not both", path=place)
        check_share(declared.max_unavailable, f"{place}.maxUnavailable")
        check_share(declared.min_available, f"{place}.minAvailable")
    _refuse_order([budget.min_priority for budget in spec.default_budgets], path)
    path = ".spec.budgetBounds"
    check_count(spec.budget_bounds, path)
    for index, level in enumerate(spec.budget_bounds):
        place = f"{path}[{index}]"
        if level.min_disruptions is None and level.min_rate is None:
            raise InputError("says nothing; give minDisruptions, minRate or both", path=place)
        check_share(level.min_disruptions, f"{place}.minDisruptions")
        if level.min_rate is not None:
            parsed(disruption_policy.parse_rate, level.min_rate, f"{place}.minRate")
    _refuse_order([level.min_priority for level in spec.budget_bounds], path)
    for index, default in enumerate(spec.default_budgets):
        bound = spec.budget_bound(_MIN_INT32 if default.min_priority is None else default.min_priority)
        numbers = PodDisruptionBudgetSpec(min_available=default.min_available, max_unavailable=default.max_unavailable)
        problem = None if bound is None else budget_limits.strictness_problem(numbers, None, bound, None)
        if problem is not None:
            raise InputError(f"{problem} in {path}; one of them must change", path=f".spec.defaultBudgets[{index}]")


def _refuse_order(priorities: Sequence[int | None], path: str) -> None:
    """Check that the minimum priorities descend; only the last entry may have none."""
    for index, (above, priority) in enumerate(pairwise(priorities), 1):
        if above is None:
            problem = "is missing; only the last entry stands for any priority"
            raise InputError(problem, path=f"{path}[{index - 1}].minPriority")
        if priority is not None and priority >= above:
            problem = f"{priority} is not below {above}, so that the entry never counts; the highest come first"
            raise InputError(problem, path=f"{path}[{index}].minPriority")


def _refuse_caps(caps: tuple[disruption_policy.Cap, ...], path: str) -> None:
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
        parsed(disruption_policy.parse_rate, cap.max, f"{place}.max")
