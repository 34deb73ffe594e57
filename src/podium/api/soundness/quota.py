"""What a ResourceQuota must be like (pkg/apis/core/validation, ValidateResourceQuotaSpec)."""

from __future__ import annotations

from collections.abc import Collection

from podium.api.checks import check, check_count, check_one_of
from podium.api.errors import InputError, field_path, shown
from podium.api.names import label_key_problem
from podium.api.pod import Quantity
from podium.api.quantity import parse_quantity
from podium.api.quota import PRIORITY_CLASS, SCOPES, ResourceQuota, ScopeRequirement
from podium.api.resources import is_extended, is_huge_pages
from podium.api.soundness.resources import check_quantity

_COUNTED = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_COMPUTED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_STORED = (
    "ephemeral-storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.storage",
)
_PLAIN = frozenset((*_COUNTED, *_COMPUTED, *_STORED))
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_quota(quota: ResourceQuota) -> None:
    """The limits, and the scopes with them."""
    for amounts, place in (
        (quota.spec.hard, ".spec.hard"),
        (quota.status.hard, ".status.hard"),
        (quota.status.used, ".status.used"),
    ):
        for name, amount in amounts.items():
            _check_amount(name, amount, field_path(place, name))
    check_count(quota.spec.scopes, ".spec.scopes")
    _check_scopes(quota.spec.scopes, quota.spec.hard, ".spec.scopes")
    if quota.spec.scope_selector is not None:
        requirements, path = quota.spec.scope_selector.match_expressions, ".spec.scopeSelector.matchExpressions"
        check_count(requirements, path)
        for index, requirement in enumerate(requirements):
            _check_requirement(requirement, f"{path}[{index}]")
        _check_scopes([requirement.scope_name for requirement in requirements], quota.spec.hard, path)


def _check_amount(name: str, amount: Quantity, path: str) -> None:
    check(label_key_problem(name), path)
    if "/" not in name and name not in _PLAIN and not is_huge_pages(name.removeprefix("requests.")):
        raise InputError(
            f"{shown(name)} is nothing that a quota limits; write pods, requests.cpu, limits.memory, "
            "requests.example.com/gpu, or count/ and a resource such as count/jobs.batch",
            path=path,
        )
    check_quantity(amount, path)
    if (name in _COUNTED or is_extended(name)) and parse_quantity(amount) % 10**9:
        raise InputError(f"{shown(amount)} is not a whole number, and {name} are counted", path=path)


def _check_scopes(scopes: Collection[str], hard: Collection[str], path: str) -> None:
    for scope in scopes:
        check_one_of(scope, SCOPES, path)
        allowed = ("pods",) if scope == "BestEffort" else ("pods", *_COMPUTED)
        for name in hard:
            if name in _PLAIN and name not in allowed:
                raise InputError(
                    f"the scope {scope} does not go with {name}; it goes with {', '.join(allowed)}", path=path
                )
    for one, other in _OPPOSITES:
        if one in scopes and other in scopes:
            raise InputError(f"{one} and {other} exclude one another; remove one", path=path)


def _check_requirement(requirement: ScopeRequirement, path: str) -> None:
    check_one_of(requirement.scope_name, SCOPES, f"{path}.scopeName")
    check_one_of(requirement.operator, _OPERATORS, f"{path}.operator")
    if requirement.scope_name != PRIORITY_CLASS and requirement.operator != "Exists":
        raise InputError(f"must be Exists with the scope {requirement.scope_name}", path=f"{path}.operator")
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        raise InputError(f"{requirement.operator} needs at least one value", path=f"{path}.values")
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        raise InputError(f"{requirement.operator} takes no values", path=f"{path}.values")
