"""Which pods may be touched, as a ReschedulerConfiguration says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from msgspec import Meta

from podium.api.errors import InputError, shown
from podium.api.meta import Int32
from podium.api.names import label_name_problem
from podium.api.requirement import Requirement, requirement_problem
from podium.api.selectors import Selector
from podium.api.times import parse_duration
from podium.framework.rescheduling.settings import Scope
from podium.framework.settings.strict import Strict

Span = str | int | float
"""A duration as it may be written; a bare number counts seconds."""

Allowance = Literal["SystemCriticalPods", "PodsWithoutController", "LocalStorage", "WorkInProgress"]
Sparing = Literal["PodsWithVolumeClaims", "PodsWithDeviceClaims"]


class WrittenRequirement(Strict, frozen=True, kw_only=True):
    """A condition on a label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class WrittenSelector(Strict, frozen=True, kw_only=True):
    """A label selector (meta/v1 LabelSelector), where a field that is not known is an error."""

    match_labels: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each instance
    match_expressions: tuple[WrittenRequirement, ...] = ()


class WrittenNamespaces(Strict, frozen=True, kw_only=True):
    """Namespaces by name; without ``exclude``, kube-system is excluded where it is not included by name."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None


class WrittenScope(Strict, frozen=True, kw_only=True):
    """See `Scope`; None is what holds where nothing is said."""

    namespaces: WrittenNamespaces = WrittenNamespaces()
    pod_selector: WrittenSelector | None = None
    node_selector: WrittenSelector | None = None
    allow: tuple[Allowance, ...] = ()
    spare: tuple[Sparing, ...] = ()
    priority_below: Int32 | None = None
    minimum_replicas: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    minimum_age: Span | None = None
    max_lost_work: Span | None = None


def scope_of(written: WrittenScope, usual: Scope, path: str) -> Scope:
    """The scope that the fields at a path come to. Raises InputError for what is wrong in them."""
    included, excluded = _namespaces(written.namespaces, usual.excluded, f"{path}.namespaces")
    return replace(
        usual,
        included=included,
        excluded=excluded,
        pods=label_selector(written.pod_selector, f"{path}.podSelector"),
        nodes=label_selector(written.node_selector, f"{path}.nodeSelector"),
        allows_system_critical="SystemCriticalPods" in written.allow,
        allows_bare_pods="PodsWithoutController" in written.allow,
        allows_local_storage="LocalStorage" in written.allow,
        allows_work_in_progress="WorkInProgress" in written.allow,
        spares_volume_claims="PodsWithVolumeClaims" in written.spare,
        spares_device_claims="PodsWithDeviceClaims" in written.spare,
        priority_below=written.priority_below,
        minimum_replicas=written.minimum_replicas,
        max_lost_work_ns=span_ns(written.max_lost_work, usual.max_lost_work_ns, f"{path}.maxLostWork", least=0),
        minimum_age_ns=span_ns(written.minimum_age, usual.minimum_age_ns, f"{path}.minimumAge", least=0),
    )


def span_ns(written: Span | None, usual: int, path: str, *, least: int = 1) -> int:
    """A duration in nanoseconds, not less than ``least``; None is the usual one. Raises InputError."""
    if written is None:
        return usual
    try:
        duration_ns = parse_duration(written)
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    if duration_ns < least:
        raise InputError(f"{shown(written)} is too short; write {'more than 0s' if least else '0s or more'}", path=path)
    return duration_ns


def _namespaces(written: WrittenNamespaces, usual: frozenset[str], path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Those included and those excluded, none of them both."""
    included = names_of(written.include, f"{path}.include")
    if written.exclude is None:
        return included, usual - included
    excluded = names_of(written.exclude, f"{path}.exclude")
    both = sorted(included & excluded)
    if both:
        raise InputError(f"{shown(both[0])} is also included; leave it out of one of the two", path=f"{path}.exclude")
    return included, excluded


def names_of(names: tuple[str, ...], path: str) -> frozenset[str]:
    """The names of namespaces in a list at a path. Raises InputError for what is none."""
    for position, name in enumerate(names):
        problem = label_name_problem(name)
        if problem is not None:
            raise InputError(problem, path=f"{path}[{position}]")
    return frozenset(names)


def label_selector(written: WrittenSelector | None, path: str) -> Selector | None:
    """The selector that stands at a path, None for none. Raises InputError for a condition that is none."""
    if written is None:
        return None
    requirements: list[Requirement] = []
    for key, value in written.match_labels.items():
        problem = requirement_problem(key, "In", (value,))
        if problem is not None:
            raise InputError(problem[1], path=f"{path}.matchLabels")
        requirements.append(Requirement(key, "In", (value,)))
    for position, condition in enumerate(written.match_expressions):
        problem = requirement_problem(condition.key, condition.operator, condition.values)
        if problem is not None:
            raise InputError(problem[1], path=f"{path}.matchExpressions[{position}].{problem[0]}")
        requirements.append(Requirement(condition.key, condition.operator, condition.values))
    return Selector(tuple(requirements))
