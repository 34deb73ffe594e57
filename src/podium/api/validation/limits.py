"""What namespaces hold and what pods in them may ask for: ResourceQuota and LimitRange (core/validation)."""

from __future__ import annotations

from podium.api.errors import shown
from podium.api.names import label_key_problem
from podium.api.quota import SCOPES
from podium.api.validation.amounts import (
    amount,
    check_amount,
    check_amounts,
    container_resource_problem,
    is_overcommittable,
    resource_name_problem,
)
from podium.api.validation.place import Place

_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_OF_CONTAINERS = ("Pod", "Container")
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_EXISTING = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_NANO = 10**9
# Each says that an amount of one part may not be more than that of another.
_ORDERED = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)


def check_quota(quota: Place) -> None:
    """A quota: amounts by name, and scopes that do not exclude one another."""
    spec = quota.child_or_empty("spec")
    hard = spec.child_or_empty("hard")
    for name in hard.value:
        hard.check(name, label_key_problem(name))
        check_amount(hard, name, name)
    scopes = [text.value for text in spec.texts("scopes")]
    for scope in scopes:
        if scope not in SCOPES:
            spec.invalid("scopes", scope, "unsupported scope")
    _check_conflicts(spec, set(scopes))
    selector = spec.child_or_empty("scopeSelector")
    for place in selector.objects("matchExpressions"):
        _check_requirement(place)
    _check_conflicts(spec, {place.text("scopeName") for place in selector.objects("matchExpressions")})


def check_limit_range(limit_range: Place) -> None:
    """A limit range: each type once, with amounts that fit one another."""
    types: set[str] = set()
    for limit in limit_range.child_or_empty("spec").objects("limits"):
        type_ = limit.text("type")
        problem = label_key_problem(type_)
        if problem is None and "/" not in type_ and type_ not in _LIMIT_TYPES:
            problem = f"{shown(type_)}: must be a standard limit type or fully qualified"
        limit.check("type", problem)
        if type_ in types:
            limit.duplicate("type", type_)
        types.add(type_)
        _check_parts(limit, type_)
        _check_order(limit)


def _check_conflicts(spec: Place, scopes: set[str]) -> None:
    for pair in _CONFLICTS:
        if scopes.issuperset(pair):
            spec.invalid("scopes", sorted(scopes), "conflicting scopes")


def _check_requirement(requirement: Place) -> None:
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


def _check_parts(limit: Place, type_: str) -> None:
    rule = container_resource_problem if type_ in _OF_CONTAINERS else resource_name_problem
    for part in _PARTS:
        if type_ == "Pod" and part in ("default", "defaultRequest"):
            if limit.value.get(part):
                limit.forbidden(part, "may not be specified when `type` is 'Pod'")
        else:
            check_amounts(limit, part, rule)
    if type_ == "PersistentVolumeClaim":
        bounds = ("min", "max")
        if not any("storage" in limit.child_or_empty(part).value for part in bounds):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            limit.required("limits", detail)


def _check_order(limit: Place) -> None:
    parts = {part: limit.child_or_empty(part).value for part in _PARTS}
    names = sorted({name for amounts in parts.values() for name in amounts})
    for name in names:
        for lower, upper, at in _ORDERED:
            least, most = amount(parts[lower].get(name)), amount(parts[upper].get(name))
            if least is not None and most is not None and least > most:
                detail = f"{lower} value {parts[lower][name]} is greater than {upper} value {parts[upper][name]}"
                limit.child_or_empty(at).invalid(name, parts[at][name], detail)
        _check_ratio(limit, name, parts)
        request, default = amount(parts["defaultRequest"].get(name)), amount(parts["default"].get(name))
        if request is not None and default is not None and request < default and not is_overcommittable(name):
            detail = f"default value {parts['default'][name]} must equal to defaultRequest value in {name}"
            limit.child_or_empty("defaultRequest").invalid(name, parts["defaultRequest"][name], detail)


def _check_ratio(limit: Place, name: str, parts: dict[str, dict[str, object]]) -> None:
    ratio = amount(parts["maxLimitRequestRatio"].get(name))
    if ratio is None:
        return
    written = parts["maxLimitRequestRatio"][name]
    if ratio < _NANO:
        limit.child_or_empty("maxLimitRequestRatio").invalid(name, written, f"ratio {written} is less than 1")
    least, most = amount(parts["min"].get(name)), amount(parts["max"].get(name))
    if least and most is not None and ratio * least > most * _NANO:
        detail = f"ratio {written} is greater than max/min = {most / least:f}"
        limit.child_or_empty("maxLimitRequestRatio").invalid(name, written, detail)
