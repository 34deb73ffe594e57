"""Evictions: what a pod's disruption budgets say to its disruption, and what it takes from them (POST pods/eviction).

The rules of pkg/registry/core/pod/storage/eviction.go. Where that judges a budget, writes it, and then deletes the pod,
one transaction does all three here, so that no debit is lost and no conflict is left to the caller.
"""

from __future__ import annotations

from podium.api.budget_rate import full_ns, rate_of, rate_status_after
from podium.api.left_behind import EVICTED
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.times import format_time
from podium.store.api_resources import POD
from podium.store.conditions import with_condition
from podium.store.errors import StoreError, forbidden, too_many_requests
from podium.store.stored import Stored

MAX_DISRUPTED_PODS = 2_000
"""With more accepted disruptions that the budget controller has not seen yet, a budget accepts no more of them."""

BUDGET_CAUSE, RATE_CAUSE, CAP_CAUSE = "DisruptionBudget", "DisruptionRate", "DisruptionCap"
"""The reasons of the cause in an answer 429: what is used up."""

_PROCESSING_SECONDS = 10
_SECOND = 10**9


def is_protected(pod: Pod) -> bool:
    """Whether budgets have a say in the pod's disruption: it has started, and neither ended nor begun to end."""
    return pod.status.phase != "Pending" and not pod.is_terminal and not pod.is_terminating


def is_ready(pod: Pod) -> bool:
    """Whether the pod counts as healthy."""
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True"


def is_spared(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether the pod, which is not healthy, can go without a debit (unhealthyPodEvictionPolicy).

    That enough others are healthy is believed only of a status that the budget controller could compute, and for the
    budget as it is now.
    """
    if is_ready(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    allowed = status.condition("DisruptionAllowed")
    is_computed = _is_observed(budget) and (allowed is None or allowed.reason != "SyncFailed")
    return is_computed and status.current_healthy >= status.desired_healthy > 0


def check_allowed(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int) -> None:
    """Raise StoreError for a budget that allows no disruption of the pod: 429, or 403 for a status out of hand."""
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
        wanted, found = status.desired_healthy, status.current_healthy
        problem = f"the disruption budget {name} needs {wanted} healthy pods and has {found} currently"
        raise too_many_requests(POD, pod.key, problem, BUDGET_CAUSE)
    rate = rate_of(budget)
    next_ns = now if rate is None else rate.next_ns(full_ns(budget, rate), now)
    if next_ns > now:
        problem = f"the disruption budget {name} allows {rate} disruptions, and they are used up"
        raise too_many_requests(POD, pod.key, problem, RATE_CAUSE, seconds_until(next_ns, now))


def debited(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int) -> Raw:
    """The budget's status after an accepted disruption of the pod."""
    status = {**stored.raw["status"], "disruptionsAllowed": budget.status.disruptions_allowed - 1}
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod.metadata.name: format_time(now)}
    rate = rate_status_after(budget, now)
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


def marked(raw: Raw, pod: Pod, now: int) -> Raw:
    """The pod with the condition that says why it goes; one that is going already keeps the reason that it has."""
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


def several_budgets(names: list[str]) -> StoreError:
    """A pod has several budgets, and the cluster's policy refuses to evict such pods."""
    problem = f"This pod has more than one PodDisruptionBudget ({', '.join(names)}), and is not evicted; "
    return StoreError(500, "", f"{problem}leave it one, or set severalBudgets: RequireAll in the DisruptionPolicy")


def seconds_until(time_ns: int, now: int) -> int:
    """The whole seconds to wait."""
    return -(-(time_ns - now) // _SECOND)


def _is_observed(budget: PodDisruptionBudget) -> bool:
    return budget.status.observed_generation >= budget.metadata.generation
