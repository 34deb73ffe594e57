"""One PodDisruptionBudget: the pods that it covers, and the status that follows from them.

Source: pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from podium.api.budget_bound import bound_rate, bounded_desired, pods_of_share
from podium.api.budget_rate import rate_recheck_ns, rate_status
from podium.api.deletion import deletion_ns
from podium.api.disruption_policy import DisruptionPolicySpec
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import NOTHING, compile_label_selector
from podium.api.times import parse_time
from podium.machines.actions import Record
from podium.machines.disruption.covered_pods import CoveredPods, is_healthy
from podium.machines.disruption.scales import Scales
from podium.store.conditions import with_condition

DELETION_TIMEOUT_NS = 120 * 10**9
"""How long an accepted disruption counts against a pod that is not deleted for it."""

STRICTER = "the budget is stricter than the DisruptionPolicy allows"
"""How the message of a condition begins that says what has become of such a budget."""

DISRUPTION_ALLOWED = "DisruptionAllowed"
"""The condition of a budget that says whether one of its pods may be disrupted, and if not, why."""

_SYNC_FAILED = "SyncFailed"
_UNMANAGED = "pods without a controller are not expected ones; to have them counted, write minAvailable as a number"
_NO_POLICY = DisruptionPolicySpec()
_NUMBERS = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


class TrackedBudget:
    """A budget at one version, and its pods, which `put`, `remove` and `lose` keep counted.

    The API server notes a disruption that it accepts in the status, by the pod's name, and deletes the pod. A pod with
    such a note is not healthy, although it may seem so here. The note goes when the pod is seen terminating or gone, or
    after two minutes. A pod that was created after the disruption was accepted replaces the disrupted one, which is
    gone then; one whose deletion began before was disrupted earlier, and the note is about its replacement. What is
    noted of a pod that was never seen stays, since news of budgets may overtake news of pods.

    The rate (`podium.dev/max-disruptions`) is a limit of its own, which the API server keeps: `disruptionsAllowed` says
    what the health of the pods allows, whatever the rate has left.
    """

    def __init__(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        self.object = object_
        self.raw = raw
        self.selector = compile_label_selector(object_.spec.selector)
        self.pods = CoveredPods()
        # The pods whose disruptions, as this version notes them, have taken place.
        self._over: dict[str, None] = {}

    @property
    def version(self) -> str:
        """The version of the object."""
        return self.object.metadata.resource_version

    @property
    def is_relative(self) -> bool:
        """Whether the expected pods are as many as their controllers want, rather than as many as there are."""
        spec = self.object.spec
        return spec.max_unavailable is not None or isinstance(spec.min_available, str)

    def replace(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        """Take in another version of the budget, with the same selector."""
        self._over.clear()
        self.object, self.raw = object_, raw

    def put(self, pod: Pod) -> None:
        """Count a covered pod as it is now."""
        old = self.pods.get(pod.metadata.name)
        if old is not None and old.metadata.uid != pod.metadata.uid:
            self._end(old)
        self.pods.put(pod)

    def remove(self, name: str) -> None:
        """Count a pod no longer, if it was counted: it is not covered any more."""
        self.pods.remove(name)

    def lose(self, pod: Pod) -> None:
        """Count a pod no longer: it is gone, and ``pod`` is its last reading."""
        self.pods.remove(pod.metadata.name)
        self._end(pod)

    def status(self, scales: Scales, now: int, policy: DisruptionPolicySpec = _NO_POLICY) -> Raw:
        """The status as it should be now.

        A budget that is stricter than the policy lets it be is taken to be as strict as that, and says so. Where the
        status cannot be known, no disruption is allowed; the rest, and `observedGeneration`, stay as they were.
        """
        priority = self.pods.lowest_priority
        bound = None if priority is None else policy.budget_bound(priority)
        try:
            expected, wanted = self._numbers(scales)
            desired = bounded_desired(wanted, expected, bound)
            rate = rate_status(self.object, now, bound_rate(bound))
        except ValueError as error:
            return self._failed(str(error), now)
        disrupted = self._disrupted(now)
        healthy = self.pods.healthy - sum(map(self._is_healthy, disrupted))
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = self.object.metadata.generation
        message = _UNMANAGED if self.is_relative and self.pods.has_unmanaged else ""
        if desired < wanted or (rate or {}).get("atLeast"):
            message = "; ".join(filter(None, (message, _bounded(wanted, desired, rate))))
        status: Raw = {
            "observedGeneration": generation,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "disruptedPods": disrupted,
            "disruptionRate": rate,
            "conditions": self._conditions(
                "SufficientPods" if allowed else "InsufficientPods", message, generation, now
            ),
        }
        return {field: value for field, value in status.items() if value or isinstance(value, int)}

    def next_expiry_ns(self, now: int, *, counts: bool) -> int | None:
        """When the next note of a disruption runs out; of those on which the health of the pods depends, or of others.

        None when there is none.
        """
        noted = self._disrupted(now).items()
        times = (parse_time(text) for name, text in noted if self._is_healthy(name) is counts)
        return min((time + DELETION_TIMEOUT_NS for time in times), default=None)

    def next_token_ns(self, now: int) -> int | None:
        """When the rate next has more to show, None for never."""
        try:
            return rate_recheck_ns(self.object, now)
        except ValueError:
            # The status says what is wrong with the rate.
            return None

    def warning(self, status: Raw, scales: Scales) -> Record | None:
        """The Event about one of the pods at fault; None unless ``status`` is the first to say what is wrong."""
        condition = _condition(status)
        message = condition["message"]
        if not message or message == _condition(self.raw.get("status", {})).get("message"):
            return None
        if condition["reason"] == _SYNC_FAILED:
            unknown = self.pods.expected(scales).unknown
            pod = None if unknown is None else self.pods.first_of(unknown.uid)
            reason = "CalculateExpectedPodCountFailed"
        elif STRICTER in message:
            pod, reason = self.pods.first, "BudgetBounded"
        else:
            pod, reason = self.pods.first_of(""), "UnmanagedPods"
        if pod is None:
            return None
        message = f"PodDisruptionBudget {self.object.key}: {message}"
        return Record(pod.key, pod.metadata.uid, "Warning", reason, message)

    def _numbers(self, scales: Scales) -> tuple[int, int]:
        """How many pods are expected, and how many must be healthy. Raises ValueError for what nobody can know."""
        spec = self.object.spec
        if spec.selector is not None and self.selector == NOTHING:
            raise ValueError("spec.selector is not a valid label selector, and selects nothing")
        if not self.is_relative:
            least = spec.min_available
            return (len(self.pods), least) if isinstance(least, int) else (0, 0)
        expected = self.pods.expected(scales)
        if expected.unknown is not None:
            owner = expected.unknown
            label = f"{owner.kind} {self.object.metadata.namespace}/{owner.name}"
            raise ValueError(f"nobody knows the scale of {label}, which controls covered pods: it has none, or is gone")
        if spec.max_unavailable is not None:
            return expected.pods, max(0, expected.pods - pods_of_share(spec.max_unavailable, expected.pods))
        return expected.pods, pods_of_share(spec.min_available or 0, expected.pods)

    def _disrupted(self, now: int) -> dict[str, str]:
        """The disruptions that are noted and count."""
        return {
            name: text
            for name, text in sorted(self.object.status.disrupted_pods.items())
            if not self._is_over(name, parse_time(text)) and parse_time(text) + DELETION_TIMEOUT_NS > now
        }

    def _is_over(self, name: str, accepted_ns: int) -> bool:
        """Whether a disruption has taken place."""
        pod = self.pods.get(name)
        if name in self._over or pod is None:
            return name in self._over
        created = pod.metadata.creation_timestamp
        return _was_deleted_for(pod, accepted_ns) or (created is not None and parse_time(created) > accepted_ns)

    def _end(self, pod: Pod) -> None:
        """A pod is gone, so its disruption is over; a replacement of the same second is not taken for it."""
        accepted = self.object.status.disrupted_pods.get(pod.metadata.name)
        if accepted is not None and _was_deleted_for(pod, parse_time(accepted)):
            self._over[pod.metadata.name] = None

    def _is_healthy(self, name: str) -> bool:
        pod = self.pods.get(name)
        return pod is not None and is_healthy(pod)

    def _failed(self, problem: str, now: int) -> Raw:
        status = {**dict.fromkeys(_NUMBERS, 0), **self.raw.get("status", {}), "disruptionsAllowed": 0}
        conditions = self._conditions(_SYNC_FAILED, problem, status.get("observedGeneration", 0), now)
        return {**status, "conditions": conditions}

    def _conditions(self, reason: str, message: str, generation: int, now: int) -> list[Raw]:
        status = "True" if reason == "SufficientPods" else "False"
        condition: Raw = {"type": DISRUPTION_ALLOWED, "status": status, "reason": reason, "message": message}
        if generation:
            condition["observedGeneration"] = generation
        return with_condition(self.raw.get("status", {}).get("conditions", []), condition, now)


def _bounded(wanted: int, desired: int, rate: Raw | None) -> str:
    """What has become of a budget that is stricter than it may be."""
    parts = [f"{desired} pods must be up, not {wanted}"] if desired < wanted else []
    if rate is not None and "atLeast" in rate:
        parts.append(f"the rate is {rate['max']}")
    return f"{STRICTER}: {', and '.join(parts)}"


def _was_deleted_for(pod: Pod, accepted_ns: int) -> bool:
    """Whether the deletion of a pod began when a disruption of it was accepted, or after that."""
    deleted_ns = deletion_ns(pod)
    return deleted_ns is not None and deleted_ns >= accepted_ns


def _condition(status: Raw) -> Raw:
    conditions: list[Raw] = status.get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == DISRUPTION_ALLOWED), {})
