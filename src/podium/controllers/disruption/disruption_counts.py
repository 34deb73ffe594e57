"""Counts disruptions for API servers that do not: rates of budgets, and the caps on components.

Podium's own API server debits them when it disrupts a pod. With others, this controller counts each pod that begins to
terminate. The counts are stored for the next leader: rates in an annotation of the budget, whose status belongs to the
cluster's disruption controller, and caps in the status of the DisruptionPolicy. Source: controlled-rescheduling.md,
Disruption budget; `podium.store.verbs.disruptions` for what counts.
"""

from __future__ import annotations

from podium.api import disruption_policy
from podium.api.avoid_list import EVICTED
from podium.api.budget_limits import full_ns, rate_annotation, rate_of
from podium.api.disruption_policy import POLICY_NAME, CapBucket, DisruptionPolicy, Rate, full_times
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.cluster.pods import PREEMPTED
from podium.controllers import controller, indexes, observations
from podium.controllers.actions import Action, PatchObject
from podium.store.verbs.deletion import is_protected

_CAUSE = "disruption-counts"
_BUDGET, _POLICY = "PodDisruptionBudget", "DisruptionPolicy"
# The disrupting component by the reason of DisruptionTarget; "" for evictions by an unknown one.
_COMPONENTS = {PREEMPTED: disruption_policy.SCHEDULER, EVICTED: ""}


class DisruptionCounter(controller.Reconciler[str]):
    """Counts disruptions of pods that were healthy when last observed alive.

    The previous leader has counted pods that terminate when first observed. Keys are those of budgets, and
    `POLICY_NAME`.
    """

    watches = frozenset(("Pod", _BUDGET, _POLICY))

    def __init__(self) -> None:
        super().__init__()
        # The uids of the pods whose disruption would count.
        self._healthy: set[str] = set()
        self._budgets: dict[str, PodDisruptionBudget] = {}
        self._selectors: indexes.SelectorIndex[str] = indexes.SelectorIndex()
        self._policy: DisruptionPolicy | None = None
        # Counts that the API may not show yet: when the bucket of a rate is full again.
        self._full: dict[str, tuple[Rate, int]] = {}
        self._caps: dict[CapBucket, tuple[Rate, int]] = {}

    def _observe(self, object_: Kubernetes, shown: observations.Changed | None, now: int) -> list[Action]:
        key, uid, is_gone = object_.key, object_.metadata.uid, shown is None
        if isinstance(object_, Pod):
            if not is_gone and object_.is_terminating and uid in self._healthy:
                self._healthy.discard(uid)
                self._count(object_, now)
                return []
            counts = not is_gone and is_protected(object_) and object_.is_ready
            (self._healthy.add if counts else self._healthy.discard)(uid)
            return controller.NO_CHANGE
        if isinstance(object_, PodDisruptionBudget):
            before = self._budgets.pop(key, object_)
            if is_gone or before.metadata.uid != uid:
                self._forget(key)
                self._full.pop(key, None)
                self._selectors.remove(key)
            if not is_gone:
                self._budgets[key] = object_
                self._selectors.put(key, compile_label_selector(object_.spec.selector), object_.metadata.namespace)
        elif isinstance(object_, DisruptionPolicy) and object_.metadata.name == POLICY_NAME:
            self._policy = None if is_gone else object_
            if is_gone:
                self._caps = {}
                self._forget(POLICY_NAME)
        return []

    def _count(self, pod: Pod, now: int) -> None:
        """Take a token of each rate, and of the caps of the disrupting component if known."""
        keys = sorted(self._selectors.matching(pod.metadata.labels, pod.metadata.namespace))
        for key in keys:
            known = self._known(key)
            if known is not None and known[0].tokens(known[1], now) > 0:
                self._full[key] = known[0], known[0].taken(known[1], now)
                self._queue.add(key)
        target = pod.status.condition("DisruptionTarget")
        if not keys or self._policy is None or target is None or target.status != "True":
            return
        if target.reason in _COMPONENTS:
            shown = full_times(self._policy.status.caps)
            caps = self._policy.caps_on(_COMPONENTS[target.reason], pod.metadata.namespace)
            for bucket, rate in caps.items():
                own = self._caps.get(bucket)
                full_time = max(shown.get(bucket, 0), own[1] if own is not None and own[0] == rate else 0)
                if rate.tokens(full_time, now) > 0:
                    self._caps[bucket] = rate, rate.taken(full_time, now)
                    self._queue.add(POLICY_NAME)

    def _known(self, key: str) -> tuple[Rate, int] | None:
        """Return a budget's rate, and when its bucket is full again; None without a valid rate."""
        try:
            rate = rate_of(self._budgets[key])
        except ValueError:
            return None
        if rate is None:
            return None
        shown = full_ns(self._budgets[key], rate)
        own = self._full.get(key)
        return rate, shown if own is None or own[0] != rate else max(shown, own[1])

    def _reconcile(self, key: str, now: int) -> list[Action]:
        """Return the write of a rate, or of the counts of unchanged caps; full buckets are dropped."""
        budget, policy = self._budgets.get(key), self._policy
        if budget is not None and (known := self._known(key)) is not None:
            patch = {"metadata": {"annotations": {disruption_policy.DISRUPTION_RATE: rate_annotation(*known, now)}}}
            return [PatchObject(_BUDGET, key, budget.metadata.uid, patch, _CAUSE)]
        if key != POLICY_NAME or policy is None:
            return []
        rates = {cap.scope: cap.rate for cap in policy.spec.caps}
        short = ((bucket, cap) for bucket, cap in self._caps.items() if cap[1] > now)
        self._caps = {bucket: cap for bucket, cap in short if rates.get(bucket.scope) == cap[0]}
        shown = full_times(policy.status.caps)
        full = {bucket: max(shown.get(bucket, 0), full_time) for bucket, (_, full_time) in self._caps.items()}
        if not full:
            return []
        status = {"status": policy.status_with(full, now)}
        return [PatchObject(_POLICY, POLICY_NAME, policy.metadata.uid, status, _CAUSE, "status")]
