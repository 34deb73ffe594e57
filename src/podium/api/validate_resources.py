"""What amounts of resources must be like (pkg/apis/core/validation, resource requirements)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from podium.api.errors import InputError, MalformedError, field_path, shown
from podium.api.names import label_key_problem
from podium.api.pod import Quantity, ResourceRequirements
from podium.api.quantity import milli_value, parse_quantity
from podium.api.resources import (
    is_huge_pages,
    is_overcommittable,
    is_pod_level,
    is_standard,
    is_whole,
    page_size,
)

_CACHE = 65_536


@lru_cache(maxsize=_CACHE)
def quantity_problem(amount: Quantity) -> str | None:
    """What is wrong with an amount of something that cannot be negative, or None."""
    try:
        nano = parse_quantity(amount)
    except ValueError as error:
        return str(error)
    return f"{shown(amount)} is negative; it must be 0 or more" if nano < 0 else None


@lru_cache(maxsize=_CACHE)
def _name_problem(name: str) -> str | None:
    problem = label_key_problem(name)
    if problem is not None or "/" in name or is_standard(name):
        return problem
    return f"{shown(name)} is no resource; those that Kubernetes does not know have a prefix: example.com/gpu"


@lru_cache(maxsize=_CACHE)
def _amount_problem(name: str, amount: Quantity) -> str | None:
    """What is wrong with an amount of that resource, or None."""
    problem = quantity_problem(amount)
    if problem is not None or not is_whole(name):
        return problem
    nano = parse_quantity(amount)
    if nano % 10**9:
        return f"{shown(amount)} is not a whole number, and {name} comes in whole pieces"
    if is_huge_pages(name):
        return _pages_problem(name, amount, nano)
    return None


def _pages_problem(name: str, amount: Quantity, nano: int) -> str | None:
    problem = quantity_problem(page_size(name))
    if problem is not None:
        return f"{shown(name)} names no page size: {problem}"
    page = parse_quantity(page_size(name))
    if page == 0 or nano % page:
        return f"{shown(amount)} is not a multiple of the page size {page_size(name)}"
    return None


@lru_cache(maxsize=_CACHE)
def _limit_problem(name: str, request: Quantity, limit: Quantity) -> str | None:
    """What is wrong with a request beside that limit, or None."""
    if milli_value(request) > milli_value(limit):
        return f"{shown(request)} is more than the limit {shown(limit)}"
    if not is_overcommittable(name) and milli_value(request) != milli_value(limit):
        return f"{shown(request)} differs from the limit {shown(limit)}, and {name} cannot be overcommitted"
    return None


def check_amounts(amounts: Mapping[str, Quantity], path: str) -> None:
    """Amounts by resource: a container's requests, a node's capacity, a pod's overhead."""
    for name, amount in amounts.items():
        problem = _name_problem(name) or _amount_problem(name, amount)
        if problem is not None:
            raise _refusal(problem, amount, field_path(path, name))


def check_offers(amounts: Mapping[str, Quantity], path: str) -> None:
    """Amounts by resource that a node offers: of any name, as cloud providers give them."""
    for name, amount in amounts.items():
        problem = label_key_problem(name) or _amount_problem(name, amount)
        if problem is not None:
            raise _refusal(problem, amount, field_path(path, name))


def check_requirements(resources: ResourceRequirements, path: str) -> None:
    """Requests and limits, each by itself."""
    if resources.requests or resources.limits:
        check_amounts(resources.requests, f"{path}.requests")
        check_amounts(resources.limits, f"{path}.limits")


def check_limits(resources: ResourceRequirements, path: str) -> None:
    """That no request exceeds its limit."""
    for name, request in resources.requests.items():
        limit = resources.limits.get(name)
        problem = None if limit is None else _limit_problem(name, request, limit)
        if problem is not None:
            raise InputError(problem, path=field_path(f"{path}.requests", name))


def check_pod_level(resources: ResourceRequirements, path: str) -> None:
    """Resources of a pod as a whole: as a container's, and only cpu, memory and huge pages."""
    for part, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for name in amounts:
            if not is_pod_level(name):
                raise InputError(
                    "cannot be given for a pod as a whole; only cpu, memory and hugepages-* can",
                    path=field_path(f"{path}.{part}", name),
                )
    check_requirements(resources, path)


def check_quantity(amount: Quantity | None, path: str) -> None:
    """A single amount; None is an amount not given."""
    if amount is None:
        return
    problem = quantity_problem(amount)
    if problem is not None:
        raise _refusal(problem, amount, path)


def _refusal(problem: str, amount: Quantity, path: str) -> InputError:
    """The error for an amount, which is malformed where the amount is no quantity at all."""
    try:
        parse_quantity(amount)
    except ValueError:
        return MalformedError(problem, path=path)
    return InputError(problem, path=path)
