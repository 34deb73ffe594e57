"""Counts disruptions where the API server does not: rates of budgets, and the caps on schedulers.

Podium's own API server debits them in the write that disrupts a pod. Any other knows nothing of them; there this
machine counts each pod that is seen to begin to end, whoever asked for that. What it counts stands in objects, so that
whoever leads next goes on with it: rates in an annotation of the budget, whose status belongs to the cluster's own
disruption controller, and the caps in the status of the DisruptionPolicy.

Source: controlled-rescheduling.md, Disruption budget; `podium.store.verbs.disruptions` for what counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.budget_rate import full_ns, rate_annotation, rate_of
from podium.api.disruption_cap import CapBucket, full_times
from podium.api.disruption_policy import POLICY_NAME, SCHEDULER, DisruptionPolicy
from podium.api.disruption_rate import DISRUPTION_RATE, Rate
from podium.api.left_behind import EVICTED
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.cluster.pods import PREEMPTED
from podium.machines.actions import Action, PatchObject
from podium.machines.disruption.label_index import SelectorIndex
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue
from podium.store.verbs.eviction import is_protected, is_ready

_CAUSE = "disruption-counts"
_BUDGET, _POLICY = "PodDisruptionBudget", "DisruptionPolicy"
# Who disrupts a pod, by the reason of its condition DisruptionTarget: of evictions it is not known who asked for them.
_COMPONENTS = {PREEMPTED: SCHEDULER, EVICTED: ""}


class DisruptionCounts:
    """Counts disruptions, as a machine.

    A pod counts that was healthy when it was last seen alive. One that is already ending when it is first seen was
    counted by whoever led before.
    """

    watches = frozenset(("Pod", _BUDGET, _POLICY))

    def __init__(self) -> None:
        # The uids of the pods whose disruption would count.
        self._healthy: set[str] = set()
        self._budgets: dict[str, PodDisruptionBudget] = {}
        self._selectors: dict[str, SelectorIndex[str]] = {}
        self._policy: DisruptionPolicy | None = None
        # What was counted here and may not be seen in the API yet: when the bucket of a rate is full again.
        self._full: dict[str, tuple[Rate, int]] = {}
        self._caps: dict[CapBucket, tuple[Rate, int]] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to write."""
        match observation:
            case Changed(object=Pod() as pod):
                return self._see(pod, now)
            case Gone(object=Pod() as pod):
                self._healthy.discard(pod.metadata.uid)
                return UNMOVED
            case Changed(object=PodDisruptionBudget() as budget):
                self._put(budget)
            case Gone(object=PodDisruptionBudget() as budget):
                self._remove(budget)
            case Changed(object=DisruptionPolicy() as policy) if policy.metadata.name == POLICY_NAME:
                self._policy = policy
            case Gone(object=DisruptionPolicy() as policy) if policy.metadata.name == POLICY_NAME:
                self._policy, self._caps = None, {}
                self._queue.forget(POLICY_NAME)
            case Answered(action=PatchObject() as action):
                self._queue.answer(action.key, observation, now)
            case Tick():
                return list(self._writes(now))
        return []

    def deadline(self) -> Deadline:
        """When there is something to write."""
        return self._queue.deadline()

    def _see(self, pod: Pod, now: int) -> list[Action]:
        uid = pod.metadata.uid
        if pod.is_terminating and uid in self._healthy:
            self._healthy.discard(uid)
            self._count(pod, now)
            return []
        if is_protected(pod) and is_ready(pod):
            self._healthy.add(uid)
        else:
            self._healthy.discard(uid)
        return UNMOVED

    def _put(self, budget: PodDisruptionBudget) -> None:
        key = budget.key
        before = self._budgets.get(key)
        if before is not None and before.metadata.uid != budget.metadata.uid:
            self._remove(before)
        self._budgets[key] = budget
        index = self._selectors.setdefault(budget.metadata.namespace, SelectorIndex())
        index.put(key, compile_label_selector(budget.spec.selector))

    def _remove(self, budget: PodDisruptionBudget) -> None:
        key = budget.key
        self._queue.forget(key)
        self._full.pop(key, None)
        if self._budgets.pop(key, None) is not None:
            self._selectors[budget.metadata.namespace].remove(key)

    def _count(self, pod: Pod, now: int) -> None:
        """Take a token of each rate, and of the caps on who disrupted the pod: none on whoever deleted it."""
        index = self._selectors.get(pod.metadata.namespace)
        keys = [] if index is None else sorted(index.matching(pod.metadata.labels))
        for key in keys:
            known = self._known(key)
            if known is not None and known[0].tokens(known[1], now) > 0:
                self._full[key] = known[0], known[0].taken(known[1], now)
                self._queue.add(key)
        target = pod.status.condition("DisruptionTarget")
        if keys and target is not None and target.status == "True" and target.reason in _COMPONENTS:
            self._take_caps(_COMPONENTS[target.reason], pod.metadata.namespace, now)

    def _take_caps(self, component: str, namespace: str, now: int) -> None:
        for bucket, (rate, full_time) in self._known_caps(component, namespace).items():
            if rate.tokens(full_time, now) > 0:
                self._caps[bucket] = rate, rate.taken(full_time, now)
                self._queue.add(POLICY_NAME)

    def _known(self, key: str) -> tuple[Rate, int] | None:
        """A budget's rate, and when its bucket is full again; None without a rate that can be read."""
        try:
            rate = rate_of(self._budgets[key])
        except ValueError:
            return None
        if rate is None:
            return None
        shown = full_ns(self._budgets[key], rate)
        own = self._full.get(key)
        return rate, shown if own is None or own[0] != rate else max(shown, own[1])

    def _known_caps(self, component: str, namespace: str) -> dict[CapBucket, tuple[Rate, int]]:
        """The buckets that a disruption takes of, each with its rate, and when it is full again."""
        if self._policy is None:
            return {}
        shown = full_times(self._policy.status.caps)
        known = {}
        for bucket, rate in self._policy.caps_on(component, namespace).items():
            own = self._caps.get(bucket)
            counted = own[1] if own is not None and own[0] == rate else 0
            known[bucket] = rate, max(shown.get(bucket, 0), counted)
        return known

    def _writes(self, now: int) -> Iterator[Action]:
        """The counts that the API does not show yet."""
        while (key := self._queue.take(now)) is not None:
            if key == POLICY_NAME:
                yield from self._write_caps(now)
            elif key in self._budgets:
                yield from self._write_rate(key, now)

    def _write_rate(self, key: str, now: int) -> Iterator[Action]:
        known, budget = self._known(key), self._budgets[key]
        if known is not None:
            text = rate_annotation(*known, now)
            patch = {"metadata": {"annotations": {DISRUPTION_RATE: text}}}
            yield PatchObject(_BUDGET, key, budget.metadata.uid, patch, _CAUSE)

    def _write_caps(self, now: int) -> Iterator[Action]:
        """What was counted of caps that are still as they were then; what is full again is forgotten."""
        policy = self._policy
        if policy is None:
            return
        rates = {cap.scope: cap.rate for cap in policy.spec.caps}
        self._caps = {
            bucket: (rate, full_time)
            for bucket, (rate, full_time) in self._caps.items()
            if full_time > now and rates.get(bucket.scope) == rate
        }
        shown = full_times(policy.status.caps)
        full = {bucket: max(shown.get(bucket, 0), full_time) for bucket, (_, full_time) in self._caps.items()}
        if full:
            status = policy.status_with(full, now)
            yield PatchObject(_POLICY, POLICY_NAME, policy.metadata.uid, {"status": status}, _CAUSE, "status")
