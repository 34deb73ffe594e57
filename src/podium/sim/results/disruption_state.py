"""What holds for disruptions in a cluster at one time: budgets, caps, avoid lists, quotas.

Source: controlled-rescheduling.md, Disruption budget (DisruptionBudgetStatus), Relationship of priority to quota,
/evict subresource and PreferAvoidPods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.budget_rate import full_ns, rate_of
from podium.api.disruption_cap import Cap, full_times
from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.disruption_rate import Rate
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import ResourceQuota
from podium.api.selectors import compile_label_selector
from podium.api.times import format_duration
from podium.machines.disruption.covered_pods import is_healthy
from podium.sim.results.avoid_state import AvoidState, avoid_state
from podium.sim.results.disruption_counts import DisruptionCounts
from podium.sim.results.quota_levels import quota_warnings
from podium.sim.results.shown import Shown, shown_time

DISRUPTION_KINDS = ("DisruptionPolicy", "Node", "Pod", "PodDisruptionBudget", "PriorityClass", "ResourceQuota")
"""The kinds that the state is made from."""

_SECOND = 10**9
_HOUR = 3600 * _SECOND


class RateState(Shown, frozen=True, kw_only=True):
    """A rate: of ``max`` so many are ``used`` and not back yet, and so many ``left``.

    ``next`` is when the next disruption is allowed, None for at once. ``problem`` says what is wrong with a rate that
    cannot be read.
    """

    max: str
    used: int
    left: int
    next: str | None = None
    problem: str | None = None


class Down(Shown, frozen=True, kw_only=True):
    """Covered pods that are not up now.

    ``voluntary``: their end was begun through the API. ``unplanned``: they have failed, or run and are not ready.
    ``starting``: they have not begun to run.
    """

    voluntary: int
    unplanned: int
    starting: int


class Experienced(Shown, frozen=True, kw_only=True):
    """The disruptions of a budget's pods in a run: all of them, and those of the last ``period``."""

    voluntary: int
    unplanned: int
    period: str
    voluntary_in_period: int
    unplanned_in_period: int


class BudgetState(Shown, frozen=True, kw_only=True):
    """A budget: how many pods are ``healthy``, ``desired`` to be, and ``expected``; how many disruptions it allows.

    These are None where the budget's status says nothing. ``note`` is what its condition says. ``experienced`` is None
    where nobody has watched.
    """

    budget: str
    expected: int | None = None
    desired: int | None = None
    healthy: int | None = None
    allowed: int | None = None
    down: Down
    rate: RateState | None = None
    experienced: Experienced | None = None
    note: str | None = None


class CapState(Shown, frozen=True, kw_only=True):
    """What a cap of the DisruptionPolicy leaves a component; without one it is what it leaves all of them together.

    ``per`` Namespace: it holds for each namespace by itself. ``namespace`` is one that has used something of it.
    """

    component: str | None = None
    per: str | None = None
    namespace: str | None = None
    rate: RateState


class QuotaState(Shown, frozen=True, kw_only=True):
    """A quota: what may be used, and is. ``priority_classes`` are those that it is limited to, None for any pods."""

    quota: str
    priority_classes: tuple[str, ...] | None = None
    hard: Mapping[str, str]
    used: Mapping[str, str]


class DisruptionState(Shown, frozen=True, kw_only=True):
    """All of it, by name. ``warnings`` say in words what is wrong with quotas by priority."""

    budgets: tuple[BudgetState, ...] = ()
    caps: tuple[CapState, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    avoid_lists: tuple[AvoidState, ...] = ()
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.budgets or self.caps or self.quotas or self.avoid_lists)

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        # Through JSON, so that lists are lists.
        return msgspec.json.decode(msgspec.json.encode(self), type=dict[str, Any])


def disruption_state(
    objects: Iterable[Kubernetes], now: int, counts: DisruptionCounts | None = None
) -> DisruptionState:
    """The state at ``now``; ``counts`` are the disruptions of a run that has been watched."""
    kinds = _Kinds(objects)
    policy = kinds.policy
    return DisruptionState(
        budgets=tuple(_budget(budget, kinds.covered(budget), now, counts) for budget in kinds.budgets),
        caps=tuple(state for cap in policy.spec.caps for state in _cap(policy, cap, now)),
        quotas=tuple(map(_quota, kinds.quotas)),
        avoid_lists=tuple(found for node in kinds.nodes if (found := avoid_state(node, policy)) is not None),
        warnings=tuple(quota_warnings(kinds.quotas, kinds.classes, kinds.nodes)),
    )


@dataclass(frozen=True, slots=True)
class _PodState:
    """What matters of a pod here; many pods share one."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    down: str


class _Kinds:
    """The objects by kind, each in order of their keys; pods are counted by what matters of them."""

    def __init__(self, objects: Iterable[Kubernetes]) -> None:
        self.budgets: list[PodDisruptionBudget] = []
        self.quotas: list[ResourceQuota] = []
        self.nodes: list[Node] = []
        self.classes: list[PriorityClass] = []
        self.policy = DisruptionPolicy()
        pods: list[Pod] = []
        for object_ in objects:
            if isinstance(object_, Pod):
                pods.append(object_)
            else:
                self._take_in(object_)
        # Only budgets look at them.
        self._pods = Counter(_pod_state(pod) for pod in pods) if self.budgets else Counter()
        for listed in (self.budgets, self.quotas, self.nodes):
            listed.sort(key=lambda node: node.key)

    def covered(self, budget: PodDisruptionBudget) -> Down:
        """The pods of a budget that are down."""
        selector, namespace = compile_label_selector(budget.spec.selector), budget.metadata.namespace
        down: Counter[str] = Counter()
        for state, number in self._pods.items():
            if state.namespace == namespace and state.down and selector.matches(dict(state.labels)):
                down[state.down] += number
        return Down(voluntary=down["voluntary"], unplanned=down["unplanned"], starting=down["starting"])

    def _take_in(self, object_: Kubernetes) -> None:
        match object_:
            case PodDisruptionBudget():
                self.budgets.append(object_)
            case ResourceQuota():
                self.quotas.append(object_)
            case Node():
                self.nodes.append(object_)
            case PriorityClass():
                self.classes.append(object_)
            case DisruptionPolicy() if object_.metadata.name == POLICY_NAME:
                self.policy = object_


def _pod_state(pod: Pod) -> _PodState:
    return _PodState(pod.metadata.namespace, frozenset(pod.metadata.labels.items()), _down(pod))


def _down(pod: Pod) -> str:
    """Why a pod is not up; "" for one that is, or has succeeded. On a node, and without a status, it is taken to be."""
    if pod.status.phase == "Succeeded" or (is_healthy(pod) and not pod.is_terminal):
        return ""
    if pod.is_terminating:
        return "voluntary"
    if pod.spec.node_name and not pod.status.conditions and pod.status.phase in ("", "Pending", "Running"):
        return ""
    return "starting" if pod.status.phase in ("", "Pending") else "unplanned"


def _budget(budget: PodDisruptionBudget, down: Down, now: int, counts: DisruptionCounts | None) -> BudgetState:
    status = budget.status
    is_known = bool(status.observed_generation or status.expected_pods or status.disruptions_allowed)
    numbers = (status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed)
    expected, desired, healthy, allowed = numbers if is_known else (None, None, None, None)
    condition = status.condition("DisruptionAllowed")
    return BudgetState(
        budget=budget.key,
        expected=expected,
        desired=desired,
        healthy=healthy,
        allowed=allowed,
        down=down,
        rate=_rate(budget, now),
        experienced=None if counts is None else _experienced(budget, counts, now),
        note=condition.message or None if condition is not None else None,
    )


def _rate(budget: PodDisruptionBudget, now: int) -> RateState | None:
    try:
        rate = rate_of(budget)
        full = 0 if rate is None else full_ns(budget, rate)
    except ValueError as error:
        return RateState(max="", used=0, left=0, problem=str(error))
    return None if rate is None else _bucket(rate, full, now)


def _bucket(rate: Rate, full: int, now: int) -> RateState:
    left, next_ns = max(0, rate.tokens(full, now)), rate.next_ns(full, now)
    return RateState(
        max=str(rate), used=rate.count - left, left=left, next=shown_time(next_ns) if next_ns > now else None
    )


def _experienced(budget: PodDisruptionBudget, counts: DisruptionCounts, now: int) -> Experienced:
    """Over the period of the budget's rate, or an hour."""
    try:
        rate = rate_of(budget)
    except ValueError:
        rate = None
    period = _HOUR if rate is None else rate.period_ns
    found = counts.of(budget.key)
    voluntary, unplanned = found.since(now - period)
    return Experienced(
        voluntary=len(found.voluntary),
        unplanned=len(found.unplanned),
        period=format_duration(period),
        voluntary_in_period=voluntary,
        unplanned_in_period=unplanned,
    )


def _cap(policy: DisruptionPolicy, cap: Cap, now: int) -> Iterator[CapState]:
    """A cap on the cluster; of one on each namespace those that have used something of it, or that none has."""
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

    return QuotaState(
        quota=quota.key,
        priority_classes=quota.priority_classes,
        hard=shown(quota.spec.hard),
        used=shown(quota.status.used),
    )
