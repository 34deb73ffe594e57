"""The state of everything that limits disruptions: budgets, caps, avoid lists, quotas.

Source: controlled-rescheduling.md, Disruption budget (DisruptionBudgetStatus), Relationship of priority to quota,
/evict subresource and PreferAvoidPods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podium.api.avoid_list import avoid_list, avoid_list_text, awaited_in_words
from podium.api.budget_limits import full_ns, rate_of
from podium.api.disruption_policy import POLICY_NAME, Cap, DisruptionPolicy, Rate, full_times
from podium.api.meta import Kubernetes
from podium.api.node import Node, is_ready
from podium.api.pod import Pod
from podium.api.policy import PRIORITY_CLASS, SYSTEM_CLASSES, PodDisruptionBudget, PriorityClass, ResourceQuota
from podium.api.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_quantity, is_extended, is_huge_pages
from podium.api.resource_requests import node_allocatable
from podium.api.selectors import Requirement, compile_label_selector
from podium.api.times import SECOND, format_duration, format_time
from podium.controllers.disruption.budget import is_healthy
from podium.sim.results.usage import BudgetDisruptions, DisruptionTimes
from podium.store.admission.priorities import class_hint, default_class
from podium.store.admission.quotas import read_amount


class JSONValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A JSON value; fields that have a default are omitted if they are empty."""

    def to_dict(self) -> dict[str, Any]:
        # Through JSON, which makes lists of tuples.
        return msgspec.json.decode(msgspec.json.encode(self), type=dict[str, Any])


def shown_time(time_ns: int) -> str:
    """Return the time for users, rounded up to seconds."""
    return format_time(-(-time_ns // SECOND) * SECOND)


class Avoided(JSONValue, frozen=True, kw_only=True):
    """A controller on a node's avoid list, ``until`` a time or event."""

    controller: str
    since: str | None = None
    until: str | None = None
    reason: str = ""


class ReplacementHintState(JSONValue, frozen=True, kw_only=True):
    """The hints that the eviction of ``pod`` left for its replacement."""

    pod: str
    controller: str
    first: bool = False
    node_name: str = ""
    since: str
    until: str


class AvoidState(JSONValue, frozen=True, kw_only=True):
    """A node's avoid list, and what evictions left there for replacements."""

    node: str
    entries: tuple[Avoided, ...]
    replacements: tuple[ReplacementHintState, ...] = ()


def _avoid_state(node: Node, policy: DisruptionPolicy) -> AvoidState | None:
    """Return a node's avoid list; None if it is empty.

    An entry ends at a time, and earlier if the pod that it awaits arrives.
    """
    lifetime_ns = policy.spec.avoid_lists.expire_after_ns
    here = avoid_list(avoid_list_text(node))
    if not here:
        return None
    entries = []
    for entry in here.entries:
        expiry_ns = entry.expiry_ns(lifetime_ns)
        ends = ("" if expiry_ns is None else shown_time(expiry_ns), awaited_in_words(entry))
        avoided = Avoided(
            controller=f"{entry.controller.kind} {entry.controller.name}",
            since=entry.eviction_time,
            until=" or ".join(filter(None, ends)) or None,
            reason=entry.reason,
        )
        entries.append(avoided)
    replacements = (
        ReplacementHintState(
            pod=left.evicted_pod.name,
            controller=f"{left.controller.kind} {left.controller.name}",
            first=left.first,
            node_name=left.node_name,
            since=left.eviction_time,
            until=shown_time(left.expiry_ns),
        )
        for left in here.replacements
    )
    return AvoidState(node=node.metadata.name, entries=tuple(entries), replacements=tuple(replacements))


DISRUPTION_KINDS = ("DisruptionPolicy", "Node", "Pod", "PodDisruptionBudget", "PriorityClass", "ResourceQuota")
"""The kinds that determine the state."""

_HOUR = 3600 * SECOND


class RateState(JSONValue, frozen=True, kw_only=True):
    """A rate: of ``max`` disruptions, ``used`` ones count and ``left`` ones remain.

    ``next`` is when the next one is allowed, None: now. ``problem`` describes an invalid rate.
    """

    max: str
    used: int
    left: int
    next: str | None = None
    problem: str | None = None


class DownPods(JSONValue, frozen=True, kw_only=True):
    """Covered pods that are not up: deleted through the API, failed or not ready, and not running yet."""

    voluntary: int
    unplanned: int
    starting: int


class ExperiencedDisruptions(JSONValue, frozen=True, kw_only=True):
    """Disruptions of a budget's pods in a run, in total and in the last ``period``."""

    voluntary: int
    unplanned: int
    period: str
    voluntary_in_period: int
    unplanned_in_period: int


class BudgetState(JSONValue, frozen=True, kw_only=True):
    """A budget: its ``expected`` pods, ``desired`` and ``healthy`` ones, and ``allowed`` disruptions.

    These are None if the budget has no status. ``note`` is its condition's message. ``experienced`` is None without a
    run.
    """

    budget: str
    expected: int | None = None
    desired: int | None = None
    healthy: int | None = None
    allowed: int | None = None
    down: DownPods
    rate: RateState | None = None
    experienced: ExperiencedDisruptions | None = None
    note: str | None = None


class CapState(JSONValue, frozen=True, kw_only=True):
    """The remaining disruptions of a cap of the DisruptionPolicy, for one component or (None) all together.

    ``per`` Namespace: the cap applies to each namespace; ``namespace`` is one with used disruptions.
    """

    component: str | None = None
    per: str | None = None
    namespace: str | None = None
    rate: RateState


class QuotaState(JSONValue, frozen=True, kw_only=True):
    """A quota: limits and use. ``priority_classes`` are those that it applies to, None for all pods.

    ``priority_scope`` is any other condition on classes, as a label selector.
    """

    quota: str
    priority_classes: tuple[str, ...] | None = None
    priority_scope: str | None = None
    hard: Mapping[str, str]
    used: Mapping[str, str]


class DisruptionState(JSONValue, frozen=True, kw_only=True):
    """All of it, by name. ``warnings`` describe problems of quotas by priority."""

    budgets: tuple[BudgetState, ...] = ()
    caps: tuple[CapState, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    avoid_lists: tuple[AvoidState, ...] = ()
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.budgets or self.caps or self.quotas or self.avoid_lists)


def disruption_state(objects: Iterable[Kubernetes], now: int, run: BudgetDisruptions | None = None) -> DisruptionState:
    """Return the state at ``now``; ``run`` has the disruptions of a run."""
    by_kind: defaultdict[type[Kubernetes], list[Any]] = defaultdict(list)
    for object_ in objects:
        by_kind[type(object_)].append(object_)
    budgets, quotas, nodes = (
        sorted(by_kind[kind], key=lambda one: one.key) for kind in (PodDisruptionBudget, ResourceQuota, Node)
    )
    policies = (policy for policy in by_kind[DisruptionPolicy] if policy.metadata.name == POLICY_NAME)
    policy: DisruptionPolicy = next(policies, DisruptionPolicy())
    pods: list[Pod] = by_kind[Pod]
    # Many pods share the properties that matter to budgets: namespace, labels, and why they are down.
    down = ((pod, why) for pod in pods if (why := _down(pod))) if budgets else ()
    alike = Counter((pod.metadata.namespace, frozenset(pod.metadata.labels.items()), why) for pod, why in down)
    namespaces = {pod.metadata.namespace for pod in pods} if quotas else set()
    return DisruptionState(
        budgets=tuple(_budget(budget, alike, now, run) for budget in budgets),
        caps=tuple(state for cap in policy.spec.caps for state in _cap(policy, cap, now)),
        quotas=tuple(map(_quota, quotas)),
        avoid_lists=tuple(found for node in nodes if (found := _avoid_state(node, policy)) is not None),
        warnings=tuple(_quota_warnings(quotas, by_kind[PriorityClass], nodes, namespaces)),
    )


def _down(pod: Pod) -> str:
    """Return why a pod is not up; "" if it is or has succeeded. A bound pod without a status counts as up."""
    if pod.status.phase == "Succeeded" or (is_healthy(pod) and not pod.is_terminal):
        return ""
    if pod.is_terminating:
        return "voluntary"
    if pod.spec.node_name and not pod.status.conditions and pod.status.phase in ("", "Pending", "Running"):
        return ""
    return "starting" if pod.status.phase in ("", "Pending") else "unplanned"


def _budget(
    budget: PodDisruptionBudget,
    down_pods: Counter[tuple[str, frozenset[tuple[str, str]], str]],
    now: int,
    counts: BudgetDisruptions | None,
) -> BudgetState:
    selector, status = compile_label_selector(budget.spec.selector), budget.status
    down: Counter[str] = Counter()
    for (namespace, labels, why), number in down_pods.items():
        if namespace == budget.metadata.namespace and selector.matches(dict(labels)):
            down[why] += number
    is_known = bool(status.observed_generation or status.expected_pods or status.disruptions_allowed)
    numbers = (status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed)
    expected, desired, healthy, allowed = numbers if is_known else (None, None, None, None)
    condition = status.condition("DisruptionAllowed")
    rate = None
    try:
        rate = rate_of(budget)
        shown = None if rate is None else _bucket(rate, full_ns(budget, rate), now)
    except ValueError as error:
        shown = RateState(max="", used=0, left=0, problem=str(error))
    return BudgetState(
        budget=budget.key,
        expected=expected,
        desired=desired,
        healthy=healthy,
        allowed=allowed,
        down=DownPods(voluntary=down["voluntary"], unplanned=down["unplanned"], starting=down["starting"]),
        rate=shown,
        experienced=None if counts is None else _disruptions_of(counts.of(budget.key), rate, now),
        note=condition.message or None if condition is not None else None,
    )


def _bucket(rate: Rate, full: int, now: int) -> RateState:
    left, next_ns = max(0, rate.tokens(full, now)), rate.next_ns(full, now)
    return RateState(
        max=str(rate), used=rate.count - left, left=left, next=shown_time(next_ns) if next_ns > now else None
    )


def _disruptions_of(found: DisruptionTimes, rate: Rate | None, now: int) -> ExperiencedDisruptions:
    """Return the disruptions, also for the period of the budget's rate, or an hour."""
    period = _HOUR if rate is None else rate.period_ns
    voluntary, unplanned = found.since(now - period)
    return ExperiencedDisruptions(
        voluntary=len(found.voluntary),
        unplanned=len(found.unplanned),
        period=format_duration(period),
        voluntary_in_period=voluntary,
        unplanned_in_period=unplanned,
    )


def _cap(policy: DisruptionPolicy, cap: Cap, now: int) -> Iterator[CapState]:
    """Yield the cap's state; for a cap by namespace one state for each used bucket, or one if none is used."""
    full = {bucket: full_ns for bucket, full_ns in full_times(policy.status.caps).items() if bucket.scope == cap.scope}
    used = sorted(bucket.namespace for bucket, full_ns in full.items() if full_ns > now)
    for namespace in used or [""]:
        yield CapState(
            component=cap.component,
            per=cap.per if cap.scope.by_namespace else None,
            namespace=namespace or None,
            rate=_bucket(cap.rate, full.get(cap.bucket(namespace), 0), now),
        )


def _quota(quota: ResourceQuota) -> QuotaState:
    def shown(amounts: Mapping[str, Any]) -> dict[str, str]:
        return {name: str(amount) for name, amount in sorted(amounts.items())}

    wanted = () if quota.priority_classes is not None else quota.requirements
    of_class = (each for each in wanted if each.scope_name == PRIORITY_CLASS)
    conditions = [str(Requirement(PRIORITY_CLASS, each.operator, each.values)) for each in of_class]
    return QuotaState(
        quota=quota.key,
        priority_classes=quota.priority_classes,
        priority_scope=",".join(conditions) or None,
        hard=shown(quota.spec.hard),
        used=shown(quota.status.used),
    )


_OFFERED = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_ALL_PODS = ("pods", "count/pods")
# System pods have their own classes.
_SYSTEM = "kube-system"
_MOST_NAMES = 5


def _highest_level(quotas: Iterable[ResourceQuota], values: Mapping[str, int]) -> tuple[str, Counter[str]]:
    """Return the highest priority class with quotas, and the sum of these; "" without any.

    A quota for several classes counts at the highest. Of a namespace's quotas at one level, the smallest limit of each
    resource counts.
    """
    levels: dict[str, dict[tuple[str, str], int]] = {}
    for quota in quotas:
        known = [name for name in quota.priority_classes or () if name in values]
        if known:
            level = levels.setdefault(max(known, key=lambda name: (values[name], name)), {})
            for resource, amount in _requests(quota).items():
                place = (quota.metadata.namespace, resource)
                level[place] = min(amount, level.get(place, amount))
    top, total = min(levels, key=lambda name: (-values[name], name), default=""), Counter[str]()
    for (_, resource), amount in levels.get(top, {}).items():
        total[resource] += amount
    return top, total


def _quota_warnings(
    quotas: Sequence[ResourceQuota], classes: Sequence[PriorityClass], nodes: Sequence[Node], namespaces: Iterable[str]
) -> Iterator[str]:
    """Yield the problems of quotas by priority.

    The highest level promises more than there is; a namespace is unlimited at it, or need not name a class; a quota
    names a class that does not exist.
    """
    values = {**SYSTEM_CLASSES, **{class_.metadata.name: class_.value for class_ in classes}}
    top, promised = _highest_level(quotas, values)
    offered: Counter[str] = Counter()
    for node in nodes if promised else ():
        if not node.spec.unschedulable and is_ready(node):
            offered.update(node_allocatable(node.status))
    parts = [
        f"{format_quantity(amount, name)} {name} of {format_quantity(offered[name], name)}"
        for name, amount in sorted(promised.items())
        if amount > offered[name]
    ]
    if nodes and parts:
        yield (
            f"the quotas of PriorityClass {top} promise more than the nodes offer: {', '.join(parts)}; "
            "its pods may go pending within their quota"
        )
    everywhere = sorted({*namespaces, *(quota.metadata.namespace for quota in quotas)} - {_SYSTEM})
    limited = {quota.metadata.namespace for quota in quotas if top and _counts(quota, top)}
    others = [name for name in everywhere if top and name not in limited]
    if others:
        yield (
            f"{_named(others)} no quota for PriorityClass {top} and may use any amount at it, which the sum of the "
            "quotas does not include"
        )
    yield from _not_required(quotas, classes, everywhere)
    for quota in quotas:
        for name in quota.priority_classes or ():
            if name not in values:
                hint = class_hint(name, classes)
                yield f"quota {quota.key} names PriorityClass {name}, which does not exist; {hint}"


def _not_required(
    quotas: Sequence[ResourceQuota], classes: Sequence[PriorityClass], namespaces: Sequence[str]
) -> Iterator[str]:
    """Yield where pods need not name a class, if quotas of some namespaces require it."""
    # A quota that refuses exactly the pods without a PriorityClass.
    requiring = [
        quota
        for quota in quotas
        if any(read_amount(name, quota.spec.hard[name]) == 0 for name in _ALL_PODS if name in quota.spec.hard)
        and {requirement.operator for requirement in quota.requirements} == {"DoesNotExist"}
        and _counts(quota, None)
    ]
    default = default_class(classes)
    if default is not None:
        for quota in requiring:
            name = default.metadata.name
            yield f"quota {quota.key} never requires a PriorityClass: pods that name none get the default, {name}"
    required = {quota.metadata.namespace for quota in requiring}
    others = [name for name in namespaces if name not in required]
    if requiring and others:
        yield f"{_named(others)} no quota that requires a PriorityClass, as {sorted(required)[0]} has"


def _counts(quota: ResourceQuota, priority_class: str | None) -> bool:
    """Return whether a quota counts all pods of a class; None stands for pods without one."""
    return all(
        requirement.scope_name == PRIORITY_CLASS
        and Requirement(PRIORITY_CLASS, requirement.operator, requirement.values).matches(priority_class)
        for requirement in quota.requirements
    )


def _named(namespaces: Sequence[str]) -> str:
    shown = ", ".join(namespaces[:_MOST_NAMES])
    more = f" and {len(namespaces) - _MOST_NAMES:,} more" if len(namespaces) > _MOST_NAMES else ""
    return f"namespace {shown} has" if len(namespaces) == 1 else f"namespaces {shown}{more} have"


def _requests(quota: ResourceQuota) -> dict[str, int]:
    """Return the requests allowed under the quota, by resource that nodes offer: cpu in milli, others in units."""
    found: dict[str, int] = {}
    for name, quantity in quota.spec.hard.items():
        resource = name.removeprefix("requests.")
        is_device = is_extended(resource) and not name.startswith("count/")
        if resource in _OFFERED or is_huge_pages(resource) or is_device:
            amount = read_amount(name, quantity)
            found[resource] = min(amount, found.get(resource, amount))
    return found
