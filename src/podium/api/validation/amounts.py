"""Validation of resources: names, amounts, and requests against limits (ValidateResourceRequirements)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from podium.api.errors import shown
from podium.api.names import NameRule, label_key_problem
from podium.api.quantity import CPU, MEMORY, PODS, is_huge_pages, is_pod_level, is_standard, parse_quantity
from podium.api.validation.findings import Place

_CACHE = 65_536
_CONTAINERS = (CPU, MEMORY, "ephemeral-storage")
WHOLE_COUNTS = frozenset(
    {
        PODS,
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
    }
)
_MAX_QUOTA_NAME = 63


def is_native(name: str) -> bool:
    """Return whether the resource is Kubernetes' own (IsNativeResource)."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=_CACHE)
def is_extended(name: str) -> bool:
    """Return whether the resource is an extended one that a quota could limit (IsExtendedResourceName)."""
    if is_native(name) or name.startswith("requests."):
        return False
    return label_key_problem(f"requests.{name}") is None


def is_overcommittable(name: str) -> bool:
    """Return whether a limit may be higher than the request (IsOvercommitAllowed)."""
    return is_native(name) and not is_huge_pages(name)


@lru_cache(maxsize=_CACHE)
def resource_name_problem(name: str) -> str | None:
    """Check the name of a resource of any kind (validateResourceName)."""
    problem = label_key_problem(name)
    of_quota = name.startswith(("requests.", "limits.")) and len(name) <= _MAX_QUOTA_NAME
    if problem is not None or "/" in name or is_standard(name) or name in WHOLE_COUNTS or of_quota:
        return problem
    return f"{shown(name)}: must be a standard resource type or fully qualified"


@lru_cache(maxsize=_CACHE)
def container_resource_problem(name: str) -> str | None:
    """Check the name of a resource that a container requests."""
    problem = label_key_problem(name)
    if problem is not None:
        return problem
    if "/" not in name:
        fits = name in _CONTAINERS or is_huge_pages(name)
        return None if fits else f"{shown(name)}: must be a standard resource for containers"
    if is_native(name) or is_extended(name):
        return None
    return f"{shown(name)}: doesn't follow extended resource name standard"


@lru_cache(maxsize=_CACHE)
def pod_resource_problem(name: str) -> str | None:
    """Check the name of a resource that a pod requests at pod level."""
    problem = resource_name_problem(name)
    if problem is not None or is_pod_level(name):
        return problem
    return f"{shown(name)}: must be cpu, memory or hugepages-* in a pod's own resources"


@lru_cache(maxsize=_CACHE)
def _amount_problem(name: str, amount: str | int | float) -> str | None:
    try:
        nano = parse_quantity(amount)
    except ValueError as error:
        return str(error)
    if nano < 0:
        return f"{shown(amount)}: must be greater than or equal to 0"
    if nano % 10**9 and (name in WHOLE_COUNTS or is_extended(name)):
        return f"{shown(amount)}: must be an integer"
    return None


@lru_cache(maxsize=_CACHE)
def _pages_problem(name: str, amount: str | int | float) -> str | None:
    """Check that huge pages are a multiple of the page size (IsHugePageResourceValueDivisible)."""
    try:
        nano, page = parse_quantity(amount), parse_quantity(name.removeprefix("hugepages-"))
    except ValueError:
        nano, page = 1, 0
    return None if page > 0 and nano % page == 0 else f"{shown(amount)}: is not positive integer multiple of {name}"


def amount(value: object) -> int | None:
    """Return the quantity in nano units; None if it is invalid."""
    try:
        return parse_quantity(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def check_amount(place: Place, name: str, resource: str) -> None:
    """Check that the field is an amount of a resource (ValidateResourceQuantityValue)."""
    value = place.value.get(name)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        place.check(name, _amount_problem(resource, value))
    else:
        place.invalid(name, value, 'must be a quantity, such as 2, "500m" or "1Gi"')


def check_amounts(place: Place, name: str, rule: NameRule | None, counts_pages: bool = False) -> None:
    """Check the amounts by resource in a field, with the rule for the names."""
    amounts = place.child(name)
    if amounts is None:
        return
    for resource, value in amounts.value.items():
        if rule is not None:
            amounts.check(resource, rule(resource))
        check_amount(amounts, resource, resource)
        if counts_pages and is_huge_pages(resource) and isinstance(value, str | int | float):
            amounts.check(resource, _pages_problem(resource, value))


def check_requirements(place: Place, rule: NameRule, claims: frozenset[str] = frozenset()) -> None:
    """Check the requests and limits in `resources`; `claims` are the resource claims that containers can name."""
    resources = place.child("resources")
    if resources is None or not resources.value:
        return
    check_amounts(resources, "limits", rule, counts_pages=True)
    check_amounts(resources, "requests", rule, counts_pages=True)
    limits, requests = resources.child_or_empty("limits").value, resources.child_or_empty("requests").value
    for resource, request in requests.items():
        _check_request(resources, resource, request, limits)
    named = {*limits, *requests}
    if any(map(is_huge_pages, named)) and not named & {CPU, MEMORY}:
        place.forbidden("resources", "HugePages require cpu or memory")
    _check_claims(resources, claims)


def _check_request(resources: Place, name: str, request: object, limits: Mapping[str, object]) -> None:
    """Check a request against its limit."""
    if name not in limits:
        if not is_overcommittable(name):
            resources.required("limits", "Limit must be set for non overcommitable resources")
        return
    requested, most = amount(request), amount(limits[name])
    if requested is None or most is None:
        return
    if requested != most and not is_overcommittable(name):
        resources.invalid("requests", request, f"must be equal to {name} limit of {shown(limits[name])}")
    elif requested > most:
        resources.invalid("requests", request, f"must be less than or equal to {name} limit of {shown(limits[name])}")


def _check_claims(resources: Place, claims: frozenset[str]) -> None:
    """Check a container's resource claims: each refers to one of the pod's, whole or by request, and only once."""
    seen: set[tuple[str, str]] = set()
    for place in resources.objects("claims"):
        name, request = place.text("name"), place.text("request")
        if not name:
            place.required("")
            continue
        others = {part for known, part in seen if known == name}
        if "" in others or request in others or (not request and others):
            place.duplicate("", f"{name}/{request}" if request else name)
        seen.add((name, request))
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            place.not_found("", name, f"must be one of the names in pod.spec.resourceClaims{known}")
