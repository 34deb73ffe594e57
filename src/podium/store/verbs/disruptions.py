"""Who pays for disruptions: budgets, their rates, and the caps of components, written when a pod is disrupted.

A pod is disrupted when its graceful termination begins, whoever asked for it; controlled-rescheduling.md, Disruption
budget.
"""

from __future__ import annotations

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_list
from podium.api.budget_rate import full_ns, rate_of, rate_status_after
from podium.api.disruption_policy import POLICY_NAME, SCHEDULER, DisruptionPolicy
from podium.api.left_behind import Wishes, left_behind
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.store.api_resources import POD
from podium.store.errors import not_found, too_many_requests
from podium.store.revisions import Revisions
from podium.store.stored import Stored, reread
from podium.store.verbs.eviction import (
    CAP_CAUSE,
    check_allowed,
    debited,
    is_protected,
    is_ready,
    is_spared,
    seconds_until,
    several_budgets,
)

_NO_POLICY = DisruptionPolicy()
_PREEMPTED = "PreemptionByScheduler"


class Disruptions:
    """The budgets, the policy and the avoid lists among the objects."""

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions

    def grant(self, pod: Pod, component: str, now: int) -> None:
        """Debit what the eviction of a pod by a component uses.

        Raises StoreError where a budget, its rate or the component's cap does not allow it, and 500 for a pod with more
        budgets than the policy takes.
        """
        if not is_protected(pod):
            return
        budgets = self._covering(pod)
        if len(budgets) > 1 and self._policy()[1].spec.several_budgets == "Refuse":
            raise several_budgets([budget.metadata.name for _, budget in budgets])
        asked = [(stored, budget) for stored, budget in budgets if not is_spared(pod, budget)]
        for stored, budget in asked:
            check_allowed(stored, budget, pod, now)
        if asked:
            self._check_cap(pod, component, now)
            self._take_cap(pod, component, now)
        for stored, budget in asked:
            self._write(stored, debited(stored, budget, pod, now))

    def count(self, pod: Pod, now: int) -> None:
        """Take the tokens that the deletion of a pod uses, where there are any; nothing is refused."""
        if not is_protected(pod) or not is_ready(pod):
            return
        budgets = self._covering(pod)
        for stored, budget in budgets:
            rate = rate_of(budget)
            if rate is not None and rate.tokens(full_ns(budget, rate), now) > 0:
                status: Raw = stored.raw.get("status", {})
                self._write(stored, {**status, "disruptionRate": rate_status_after(budget, now)})
        target = pod.status.condition("DisruptionTarget")
        if budgets and target is not None and target.status == "True" and target.reason == _PREEMPTED:
            self._take_cap(pod, SCHEDULER, now)

    def leave_behind(self, pod: Pod, component: str, wishes: Wishes, grace_seconds: int | None, now: int) -> None:
        """Write to the pod's node what its eviction leaves there.

        Raises StoreError 404 where the node is to be avoided until a pod is scheduled that does not exist, or until one
        is replaced that does not, and whose uid is not told.
        """
        until = wishes.avoid_for.until_scheduled
        wanted = self._revisions.of("Pod").get(until)
        if until and wanted is None:
            raise not_found(POD, until)
        awaited = wanted.object if wanted is not None and isinstance(wanted.object, Pod) else None
        replaced = wishes.avoid_for.until_replaced
        if replaced is not None and not replaced.uid:
            found = self._revisions.of("Pod").get(replaced.key)
            if found is None:
                raise not_found(POD, replaced.key)
            wishes = wishes.until_replaced(found.uid)
        left = left_behind(pod, wishes, awaited, component, grace_seconds, now)
        node = self._revisions.of("Node").get(pod.spec.node_name)
        if node is None or not left:
            return
        annotations = node.object.metadata.annotations
        before = avoid_list(annotations.get(PREFER_AVOID_PODS, ""))
        text = left.added_to(before, self._policy()[1].spec.avoid_lists, now).written()
        if text == annotations.get(PREFER_AVOID_PODS):
            return
        metadata = {**node.raw["metadata"], "annotations": {**annotations, PREFER_AVOID_PODS: text}}
        raw = {**node.raw, "metadata": metadata}
        self._revisions.write(node.resource, node, raw, reread(node.object, node.raw, raw), is_gone=False)

    def _covering(self, pod: Pod) -> list[tuple[Stored, PodDisruptionBudget]]:
        """The budgets over the pod, by key: the empty selector selects its whole namespace, none selects nothing."""
        labels = pod.metadata.labels
        return [
            (stored, stored.object)
            for stored in self._revisions.in_namespace("PodDisruptionBudget", pod.metadata.namespace)
            if isinstance(stored.object, PodDisruptionBudget)
            and compile_label_selector(stored.object.spec.selector).matches(labels)
        ]

    def _policy(self) -> tuple[Stored | None, DisruptionPolicy]:
        """The cluster's policy; without one, what holds then."""
        stored = self._revisions.of("DisruptionPolicy").get(POLICY_NAME)
        if stored is None or not isinstance(stored.object, DisruptionPolicy):
            return None, _NO_POLICY
        return stored, stored.object

    def _check_cap(self, pod: Pod, component: str, now: int) -> None:
        exhausted = self._policy()[1].exhausted_cap(component, pod.metadata.namespace, now)
        if exhausted is not None:
            bucket, rate, next_ns = exhausted
            who = f"{bucket.component} may" if bucket.component else "all components together may"
            where = f" in namespace {bucket.namespace}" if bucket.namespace else ""
            done = "has done so" if bucket.component else "have done so"
            problem = f"{who} disrupt {rate} pods with a budget{where}, and {done}"
            raise too_many_requests(POD, pod.key, problem, CAP_CAUSE, seconds_until(next_ns, now))

    def _take_cap(self, pod: Pod, component: str, now: int) -> None:
        """Take a token of each cap on the component that has one left."""
        stored, policy = self._policy()
        status = policy.status_after(component, pod.metadata.namespace, now)
        if stored is not None and status is not None:
            self._write(stored, status)

    def _write(self, stored: Stored, status: Raw) -> None:
        raw = {**stored.raw, "status": status}
        self._revisions.write(stored.resource, stored, raw, reread(stored.object, stored.raw, raw), is_gone=False)
