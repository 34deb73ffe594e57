"""Amounts of resources that can be counted with: quantities, and not negative, whatever the resources are called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from podium.api.errors import InputError, MalformedError, field_path, shown
from podium.api.pod import Quantity, ResourceRequirements
from podium.api.quantity import parse_quantity

_CACHE = 65_536


@lru_cache(maxsize=_CACHE)
def quantity_problem(amount: Quantity) -> str | None:
    """What is wrong with an amount of something that cannot be negative, or None."""
    try:
        nano = parse_quantity(amount)
    except ValueError as error:
        return str(error)
    return f"{shown(amount)} is negative; it must be 0 or more" if nano < 0 else None


def check_amounts(amounts: Mapping[str, Quantity], path: str) -> None:
    """Amounts by resource: a container's requests, a node's capacity, a pod's overhead."""
    for name, amount in amounts.items():
        problem = quantity_problem(amount)
        if problem is not None:
            raise _refusal(problem, amount, field_path(path, name))


def check_requirements(resources: ResourceRequirements, path: str) -> None:
    """Requests and limits."""
    if resources.requests or resources.limits:
        check_amounts(resources.requests, f"{path}.requests")
        check_amounts(resources.limits, f"{path}.limits")


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
