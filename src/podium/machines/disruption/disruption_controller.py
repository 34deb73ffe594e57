"""The controller that keeps the status of PodDisruptionBudgets, and ends disruptions that do not come.

Source: pkg/controller/disruption/disruption.go; controlled-rescheduling.md, Disruption budget (the rate limit).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.disruption_policy import DisruptionPolicy, DisruptionPolicySpec
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.machines.actions import Action, ReplaceStatus
from podium.machines.concerns import DISRUPTED, Rest
from podium.machines.disruption.budget import TrackedBudget
from podium.machines.disruption.coverage import Coverage
from podium.machines.disruption.scales import Scales
from podium.machines.disruption.stale_disruptions import StaleDisruptions
from podium.machines.machine import CUSTOM_KINDS, UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, earliest, soonest
from podium.machines.parts.work_queue import WorkQueue

_CAUSE = "disruption-controller"

_Key = tuple[str, str]


class DisruptionController:
    """Writes the status of each budget that a change concerns: one of its pods, of their workloads, or of itself.

    The API server debits a budget in its status when it accepts an eviction. A status is therefore computed from the
    newest version of the budget that is known here, and written on condition that it is the newest there is: debits
    that came since make the write fail, and the next one is computed anew from a version that holds them. Each version
    is the ground of one write that does not fail.

    A newer budget may meet older pods. What its debits say of pods outweighs what is known of these: see
    `TrackedBudget`. An older budget may meet newer pods; then the write fails.
    """

    # Beside pods, budgets and policy whatever has a scale.
    watches = frozenset(
        (
            *("DisruptionPolicy", "Pod", "PodDisruptionBudget"),
            *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", CUSTOM_KINDS),
        )
    )
    at_rest = Rest(watches - {"DisruptionPolicy", "PodDisruptionBudget"}, but_pods=DISRUPTED)

    def __init__(self) -> None:
        self._coverage: dict[str, Coverage] = {}
        # The namespaces with budgets.
        self._budgeted: set[str] = set()
        self._scales = Scales()
        self._policy = DisruptionPolicySpec()
        self._stale = StaleDisruptions(_CAUSE)
        # Budgets, by namespace and name, whose status may be out of date.
        self._queue: WorkQueue[_Key] = WorkQueue()
        # When the next disruption of each that counts runs out; when other notes run out, or its rate has more to show.
        self._expiries: Deadlines[_Key] = Deadlines()
        self._upkeep: Deadlines[_Key] = Deadlines()
        # For each the version from which a status was written that has not failed.
        self._written: dict[_Key, str] = {}

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to write."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            budgets = self._in(pod).put_pod(pod)
            if budgets:
                self._touch(pod.metadata.namespace, budgets)
            return [] if self._stale.put(pod, observation.raw) or budgets else UNMOVED
        match observation:
            case Gone(object=Pod() as pod):
                self._touch(pod.metadata.namespace, self._in(pod).remove_pod(pod))
                self._drop_empty(pod.metadata.namespace)
                self._stale.remove(pod)
            case Changed(object=PodDisruptionBudget() as budget, raw=raw):
                self._in(budget).put_budget(budget, raw)
                self._budgeted.add(budget.metadata.namespace)
                self._touch(budget.metadata.namespace, [budget.metadata.name])
            case Gone(object=PodDisruptionBudget() as budget):
                self._in(budget).remove_budget(budget)
                self._touch(budget.metadata.namespace, [budget.metadata.name])
                self._drop_empty(budget.metadata.namespace)
            case Changed(object=other, raw=raw):
                self._other_changed(other, raw)
            case Gone(object=other):
                self._other_changed(other, None)
            case Answered(action=ReplaceStatus() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._act(now)
        return []

    def deadline(self) -> Deadline:
        """When there is something to look at; what is refused once more, or changes no limit of budgets, is no news."""
        return soonest(
            self._queue.deadline(),
            self._expiries.deadline(),
            self._upkeep.deadline(is_news=False),
            self._stale.deadline(),
        )

    @property
    def rests(self) -> bool:
        """While there are no budgets, no budget is about a pod or its workload."""
        return not self._budgeted and self._stale.is_empty

    def _in(self, object_: Kubernetes) -> Coverage:
        namespace = object_.metadata.namespace
        found = self._coverage.get(namespace)
        if found is None:
            found = self._coverage[namespace] = Coverage()
        return found

    def _drop_empty(self, namespace: str) -> None:
        coverage = self._coverage[namespace]
        if not coverage.budgets:
            self._budgeted.discard(namespace)
        if coverage.is_empty:
            del self._coverage[namespace]

    def _touch(self, namespace: str, budgets: Iterable[str]) -> None:
        for name in budgets:
            self._queue.add((namespace, name))

    def _other_changed(self, other: Kubernetes, raw: Raw | None) -> None:
        """Take in an object of another kind; ``raw`` None: it is gone."""
        if isinstance(other, DisruptionPolicy):
            self._see_policy(DisruptionPolicySpec() if raw is None else other.spec)
        else:
            self._scales_changed(other, self._scales.remove(other) if raw is None else self._scales.put(other, raw))

    def _see_policy(self, policy: DisruptionPolicySpec) -> None:
        """Take in the policy; with other bounds, all budgets are looked at again."""
        before, self._policy = self._policy, policy
        if before.budget_bounds != policy.budget_bounds:
            for namespace, coverage in self._coverage.items():
                self._touch(namespace, coverage.budgets)

    def _scales_changed(self, object_: Kubernetes, uids: list[str]) -> None:
        coverage = self._coverage.get(object_.metadata.namespace)
        if coverage is None:
            return
        # By name: workloads and pods may have come in any order.
        self._touch(object_.metadata.namespace, sorted({name for uid in uids for name in coverage.change_scale(uid)}))

    def _answered(self, action: ReplaceStatus, answered: Answered, now: int) -> None:
        if action.raw["kind"] == "Pod":
            self._stale.answered(action, answered, now)
            return
        metadata = action.raw["metadata"]
        key = metadata["namespace"], metadata["name"]
        if self._written.get(key) != metadata["resourceVersion"]:
            return
        self._queue.answer(key, answered, now)
        if answered.problem is not None:
            del self._written[key]

    def _act(self, now: int) -> list[Action]:
        for deadlines in (self._expiries, self._upkeep):
            while (due := deadlines.take_due(now)) is not None:
                self._queue.add(due)
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            coverage = self._coverage.get(key[0])
            budget = None if coverage is None else coverage.budgets.get(key[1])
            if budget is None:
                self._forget(key)
            else:
                actions += self._sync(key, budget, now)
        return actions + self._stale.due(now)

    def _sync(self, key: _Key, budget: TrackedBudget, now: int) -> list[Action]:
        status = budget.status(self._scales, now, self._policy)
        self._expiries.set(key, budget.next_expiry_ns(now, counts=True))
        self._upkeep.set(key, _next_upkeep_ns(budget, now))
        if status == budget.raw.get("status"):
            self._queue.forget(key)
            return []
        if self._written.get(key) == budget.version:
            return []
        self._written[key] = budget.version
        write = ReplaceStatus({**budget.raw, "status": status}, _CAUSE)
        warning = budget.warning(status, self._scales)
        return [write] if warning is None else [write, warning]

    def _forget(self, key: _Key) -> None:
        """A budget is gone."""
        self._written.pop(key, None)
        self._expiries.set(key, None)
        self._upkeep.set(key, None)
        self._queue.forget(key)


def _next_upkeep_ns(budget: TrackedBudget, now: int) -> int | None:
    """When the status has something else to say by itself, on which no limit depends; None for never."""
    times = [budget.next_expiry_ns(now, counts=False), budget.next_token_ns(now)]
    return earliest(times)
