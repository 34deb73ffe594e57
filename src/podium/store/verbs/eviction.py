"""Evictions: the check and debit of a pod's disruption budgets (POST pods/eviction).

The rules of pkg/registry/core/pod/storage/eviction.go. Upstream checks a budget, writes it, and then deletes the pod;
here one transaction does all three, so that no debit is lost and the caller sees no conflict.
"""

from __future__ import annotations

from podium.api.avoid_list import EVICTED, PREFER_AVOID_PODS, Wishes, avoid_list, left_behind
from podium.api.budget_limits import full_ns, last_disruptions, rate_of, rate_status_after
from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import format_duration, format_time
from podium.store.admission.priorities import current_policy
from podium.store.api_resources import POD
from podium.store.conditions import with_condition
from podium.store.errors import StoreError, forbidden, not_found, too_many_requests
from podium.store.revisions import Revisions
from podium.store.stored import Stored, reread

MAX_DISRUPTED_PODS = 2_000
"""The maximum number of accepted disruptions per budget that the disruption controller has not processed yet."""

BUDGET_CAUSE, RATE_CAUSE, CAP_CAUSE = "DisruptionBudget", "DisruptionRate", "DisruptionCap"
"""The cause reasons of a 429 response: the kind of limit that is exhausted."""

_PROCESSING_SECONDS = 10
_SECOND_NS = 10**9


def is_protected(pod: Pod) -> bool:
    """Return whether budgets apply to the pod: it has started, and is neither ended nor terminating."""
    return pod.status.phase != "Pending" and not pod.is_terminal and not pod.is_terminating


def needs_no_debit(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether the unhealthy pod can be evicted without a debit (unhealthyPodEvictionPolicy).

    The number of healthy pods is taken from the status only if the disruption controller could compute it, and for the
    current generation of the budget.
    """
    if pod.is_ready:
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    allowed = status.condition("DisruptionAllowed")
    is_computed = _is_observed(budget) and (allowed is None or allowed.reason != "SyncFailed")
    return is_computed and status.current_healthy >= status.desired_healthy > 0


def check_allowed(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int, *, by_condition: bool) -> None:
    """Raise StoreError if a budget allows no disruption of the pod: 429, or 403 for a status out of bounds.

    With ``by_condition`` the cause says why, as far as the budget's condition does; else the numbers of healthy pods.
    """
    status, name = budget.status, budget.metadata.name
    if not _is_observed(budget):
        problem = f"the disruption budget {name} is still being processed"
        raise too_many_requests(POD, pod.key, problem, BUDGET_CAUSE, _PROCESSING_SECONDS)
    if status.disruptions_allowed < 0:
        raise forbidden(stored.resource, stored.key, "status.disruptionsAllowed is negative")
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        problem = f"status.disruptedPods has {len(status.disrupted_pods)} entries that the controller has yet to see"
        raise forbidden(stored.resource, stored.key, problem)
    if not status.disruptions_allowed:
        raise too_many_requests(POD, pod.key, _cause(budget, by_condition=by_condition), BUDGET_CAUSE)
    rate = rate_of(budget)
    next_ns = now if rate is None else rate.next_ns(full_ns(budget, rate), now)
    if next_ns > now:
        used = f" ({'; '.join(last)})" if (last := last_disruptions(budget)) else ""
        problem = (
            f"the disruption budget {name} allows {rate} disruptions, and they are used up{used}; {when(next_ns, now)}"
        )
        raise too_many_requests(POD, pod.key, problem, RATE_CAUSE, seconds_until(next_ns, now))


def _cause(budget: PodDisruptionBudget, *, by_condition: bool) -> str:
    status = budget.status
    allows_none = f"the disruption budget {budget.metadata.name} does not allow evicting pods currently"
    condition = status.condition("DisruptionAllowed") if by_condition else None
    is_explained = condition is not None and condition.status == "False" and condition.message
    if condition is not None and is_explained and condition.reason == "SyncFailed":
        return f"{allows_none} because it failed sync: {condition.message}"
    if not by_condition or status.current_healthy <= status.desired_healthy:
        wanted, found = status.desired_healthy, status.current_healthy
        return f"the disruption budget {budget.metadata.name} needs {wanted} healthy pods and has {found} currently"
    if condition is not None and is_explained:
        return f"{allows_none} ({condition.reason}): {condition.message}"
    return allows_none


def debited(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int) -> Raw:
    """Return the budget's status after an accepted disruption of the pod."""
    status = {**stored.raw["status"], "disruptionsAllowed": budget.status.disruptions_allowed - 1}
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod.metadata.name: format_time(now)}
    rate = rate_status_after(budget, now, f"pod {pod.metadata.name} was evicted")
    if rate is not None:
        status["disruptionRate"] = rate
    if not status["disruptionsAllowed"]:
        exhausted = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": budget.status.observed_generation,
        }
        status["conditions"] = with_condition(status.get("conditions", ()), exhausted, now)
    return status


def with_disruption_target(raw: Raw, pod: Pod, now: int) -> Raw:
    """Return the pod with the DisruptionTarget condition; a terminating pod keeps its reason."""
    target = pod.status.condition("DisruptionTarget")
    if pod.is_terminating and target is not None and target.status == "True":
        return raw
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": EVICTED,
        "message": "Eviction API: the pod is evicted",
    }
    status = raw["status"]
    return {**raw, "status": {**status, "conditions": with_condition(status.get("conditions", ()), condition, now)}}


def seconds_until(time_ns: int, now: int) -> int:
    """Return the whole seconds to wait."""
    return -(-(time_ns - now) // _SECOND_NS)


def when(next_ns: int, now: int) -> str:
    """Return the text for the time of the next allowed disruption."""
    wait = format_duration(seconds_until(next_ns, now) * _SECOND_NS)
    return f"the next is allowed at {format_time(now + seconds_until(next_ns, now) * _SECOND_NS)}, in {wait}"


def _is_observed(budget: PodDisruptionBudget) -> bool:
    return budget.status.observed_generation >= budget.metadata.generation


_PREEMPTED = "PreemptionByScheduler"


class DisruptionAccounting:
    """The budgets, the policy and the avoid lists among the objects; ``by_condition`` as for `check_allowed`."""

    def __init__(self, revisions: Revisions, *, by_condition: bool) -> None:
        self._revisions = revisions
        self._by_condition = by_condition

    def grant(self, pod: Pod, component: str, now: int) -> None:
        """Debit the budgets and the cap for the eviction of a pod by a component.

        Raises StoreError if a budget, its rate or the component's cap does not allow it, and 500 for a pod with several
        budgets if the policy refuses those.
        """
        if not is_protected(pod):
            return
        budgets = self._covering(pod)
        if len(budgets) > 1 and current_policy(self._revisions)[1].spec.several_budgets == "Refuse":
            names = ", ".join(budget.metadata.name for _, budget in budgets)
            problem = f"This pod has more than one PodDisruptionBudget ({names}), and is not evicted; "
            how = "leave it one, or set severalBudgets: RequireAll in the DisruptionPolicy"
            raise StoreError(500, "", problem + how)
        asked = [(stored, budget) for stored, budget in budgets if not needs_no_debit(pod, budget)]
        for stored, budget in asked:
            check_allowed(stored, budget, pod, now, by_condition=self._by_condition)
        if asked:
            self._check_cap(pod, component, now)
            self._take_cap(pod, component, now)
        for stored, budget in asked:
            self._write(stored, "status", debited(stored, budget, pod, now))

    def count(self, pod: Pod, now: int) -> None:
        """Take the tokens that the deletion of a pod uses, if any are left; nothing is refused."""
        if not is_protected(pod) or not pod.is_ready:
            return
        budgets = self._covering(pod)
        target = pod.status.condition("DisruptionTarget")
        is_preempted = target is not None and target.status == "True" and target.reason == _PREEMPTED
        disruption = f"pod {pod.metadata.name} was {'preempted' if is_preempted else 'deleted'}"
        for stored, budget in budgets:
            rate = rate_of(budget)
            if rate is not None and rate.tokens(full_ns(budget, rate), now) > 0:
                status: Raw = stored.raw.get("status", {})
                status = {**status, "disruptionRate": rate_status_after(budget, now, disruption)}
                self._write(stored, "status", status)
        if budgets and is_preempted:
            self._take_cap(pod, SCHEDULER, now)

    def leave_behind(self, pod: Pod, component: str, wishes: Wishes, grace_seconds: int | None, now: int) -> None:
        """Record the pod's eviction hints on its node.

        Raises StoreError 404 if the hints refer to a pod that does not exist: the one that the avoidance waits for, or
        the one to be replaced if its uid is not given.
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
        text = left.added_to(before, current_policy(self._revisions)[1].spec.avoid_lists, now).written()
        if text == annotations.get(PREFER_AVOID_PODS):
            return
        self._write(node, "metadata", {**node.raw["metadata"], "annotations": {**annotations, PREFER_AVOID_PODS: text}})

    def _covering(self, pod: Pod) -> list[tuple[Stored, PodDisruptionBudget]]:
        """Return the budgets that cover the pod, by key.

        The empty selector selects the whole namespace; a missing selector selects nothing.
        """
        labels = pod.metadata.labels
        return [
            (stored, stored.object)
            for stored in self._revisions.in_namespace("PodDisruptionBudget", pod.metadata.namespace)
            if isinstance(stored.object, PodDisruptionBudget)
            and compile_label_selector(stored.object.spec.selector).matches(labels)
        ]

    def _check_cap(self, pod: Pod, component: str, now: int) -> None:
        exhausted = current_policy(self._revisions)[1].exhausted_cap(component, pod.metadata.namespace, now)
        if exhausted is not None:
            bucket, rate, next_ns = exhausted
            who = f"{bucket.component} may" if bucket.component else "all components together may"
            where = f" in namespace {bucket.namespace}" if bucket.namespace else ""
            done = "has done so" if bucket.component else "have done so"
            problem = f"{who} disrupt {rate} pods with a budget{where}, and {done}; {when(next_ns, now)}"
            raise too_many_requests(POD, pod.key, problem, CAP_CAUSE, seconds_until(next_ns, now))

    def _take_cap(self, pod: Pod, component: str, now: int) -> None:
        """Take a token of each cap on the component that has one left."""
        stored, policy = current_policy(self._revisions)
        status = policy.status_after(component, pod.metadata.namespace, now)
        if stored is not None and status is not None:
            self._write(stored, "status", status)

    def _write(self, stored: Stored, section: str, value: Raw) -> None:
        raw = {**stored.raw, section: value}
        self._revisions.write(stored.resource, stored, raw, reread(stored.object, stored.raw, raw), is_gone=False)
