"""Whether quotas promise more at the top priorities than the nodes offer.

Source: controlled-rescheduling.md, Relationship of priority to quota ("The guarantee that highest-priority pods will
always be able to schedule can only be achieved if the sum of the quotas at the top priority level is less than or equal
to the cluster capacity").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.api.node import Node
from podium.api.node_health import is_ready
from podium.api.policy import PriorityClass
from podium.api.quantity import format_quantity
from podium.api.quota import ResourceQuota
from podium.api.resource_requests import node_allocatable
from podium.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended, is_huge_pages
from podium.api.schemas.suggestion import suggestion
from podium.store.admission.priority_classes import SYSTEM_CLASSES
from podium.store.admission.usage import read_amount

_OFFERED = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)


@dataclass(frozen=True, slots=True)
class QuotaLevel:
    """A priority class that quotas are limited to, and what those of this and of all higher classes add up to.

    ``beyond`` is what of it is more than the nodes offer, by resource: what is asked and what there is. Where nothing
    is, pods of these classes can all run, but for what does not go onto single nodes, and where there are no quotas.
    """

    priority_class: str
    priority: int
    beyond: Mapping[str, tuple[int, int]]


def quota_levels(
    quotas: Iterable[ResourceQuota], classes: Iterable[PriorityClass], nodes: Iterable[Node]
) -> list[QuotaLevel]:
    """The levels from the highest down. A quota over several classes counts at the highest, where it may all be used.

    Of a namespace's quotas at one level the smallest of each resource counts, since all of them hold.
    """
    values = _values(classes)
    sums: dict[str, dict[tuple[str, str], int]] = {}
    for quota in quotas:
        known = [name for name in quota.priority_classes or () if name in values]
        if known:
            top = max(known, key=lambda name: (values[name], name))
            level = sums.setdefault(top, {})
            for resource, amount in _requests(quota).items():
                place = (quota.metadata.namespace, resource)
                level[place] = min(amount, level.get(place, amount))
    offered, total, found = _offered(nodes), Counter[str](), []
    for name in sorted(sums, key=lambda name: (-values[name], name)):
        for (_, resource), amount in sums[name].items():
            total[resource] += amount
        beyond = {
            resource: (total[resource], offered[resource])
            for resource in sorted(total)
            if total[resource] > offered[resource]
        }
        found.append(QuotaLevel(name, values[name], beyond))
    return found


def quota_warnings(
    quotas: Iterable[ResourceQuota], classes: Iterable[PriorityClass], nodes: Iterable[Node]
) -> list[str]:
    """What is wrong with quotas by priority: the highest level promises too much, or a class is not there."""
    quotas, classes, nodes = list(quotas), list(classes), list(nodes)
    found, levels = [], quota_levels(quotas, classes, nodes)
    if nodes and levels and levels[0].beyond:
        top = levels[0]
        parts = [
            f"{format_quantity(asked, name)} {name} of {format_quantity(offered, name)}"
            for name, (asked, offered) in top.beyond.items()
        ]
        found.append(
            f"the quotas of PriorityClass {top.priority_class} promise more than the nodes offer: {', '.join(parts)}; "
            "its pods may go pending within their quota"
        )
    known = _values(classes)
    for quota in sorted(quotas, key=lambda resource_quota: resource_quota.key):
        for name in quota.priority_classes or ():
            if name not in known:
                hint = suggestion(name, sorted(known))
                found.append(f"quota {quota.key} is about PriorityClass {name}, which is not there; {hint}")
    return found


def _values(classes: Iterable[PriorityClass]) -> dict[str, int]:
    return {**SYSTEM_CLASSES, **{class_.metadata.name: class_.value for class_ in classes}}


def _requests(quota: ResourceQuota) -> dict[str, int]:
    """What pods may request under the quota of what nodes offer, by resource: cpu in milli, all else in units."""
    found: dict[str, int] = {}
    for name, quantity in quota.spec.hard.items():
        resource = name.removeprefix("requests.")
        is_device = is_extended(resource) and not name.startswith("count/")
        if resource in _OFFERED or is_huge_pages(resource) or is_device:
            amount = read_amount(name, quantity)
            found[resource] = min(amount, found.get(resource, amount))
    return found


def _offered(nodes: Iterable[Node]) -> Counter[str]:
    """What nodes offer that take pods."""
    offered: Counter[str] = Counter()
    for node in nodes:
        if not node.spec.unschedulable and is_ready(node):
            offered.update(node_allocatable(node.status))
    return offered
