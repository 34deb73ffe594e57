"""One PodDisruptionBudget: the pods that it covers, and the status that follows from them.

The rules of pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time
from podium.store.stored import Stored

DELETION_TIMEOUT_NS = 120 * 10**9
"""How long an accepted disruption counts against a pod that is not deleted for it."""

ScaleOf = Callable[[str], tuple[str, int] | None]
"""The workload that scales a controller (by uid), and its wanted number of pods; None where nobody knows."""


class Budget:
    """A budget and its pods, which `put` and `remove` keep counted."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.budget = _budget(stored)
        self._selector = compile_label_selector(self.budget.spec.selector)
        self._pods: dict[str, Pod] = {}
        self._healthy = 0
        self._controllers: Counter[str] = Counter()

    def covers(self, pod: Pod) -> bool:
        """Whether the budget selects the pod, which is of its namespace; the empty selector selects all."""
        return self._selector.matches(pod.metadata.labels)

    def replace(self, stored: Stored) -> None:
        """Take in the budget's new status; its spec is the same."""
        self.stored = stored
        self.budget = _budget(stored)

    def put(self, pod: Pod) -> None:
        """Count a covered pod as it is now."""
        self.remove(pod.metadata.name)
        self._pods[pod.metadata.name] = pod
        self._healthy += _is_healthy(pod)
        self._controllers[_controller(pod)] += 1

    def remove(self, name: str) -> None:
        """Count a pod no longer, if it was counted."""
        pod = self._pods.pop(name, None)
        if pod is not None:
            self._healthy -= _is_healthy(pod)
            controller = _controller(pod)
            self._controllers[controller] -= 1
            if not self._controllers[controller]:
                del self._controllers[controller]

    def status(self, scale_of: ScaleOf, now: int) -> Raw:
        """The status as it should be now. Where a controller's scale is unknown, nothing may be disrupted."""
        status: Raw = self.stored.raw.get("status", {})
        expected = self._expected(scale_of)
        if expected is None:
            return {**status, "disruptionsAllowed": 0}
        disrupted = self._disrupted(now)
        healthy = self._healthy - sum(_is_healthy(self._pods[name]) for name in disrupted)
        desired = self._desired(expected)
        status = {
            **status,
            "observedGeneration": self.budget.metadata.generation,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": max(0, healthy - desired) if expected > 0 else 0,
        }
        status.pop("disruptedPods", None)
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def recheck_ns(self, now: int) -> int | None:
        """When the next accepted disruption runs out, None when there is none."""
        times = [parse_time(text) + DELETION_TIMEOUT_NS for text in self._disrupted(now).values()]
        return min(times, default=None)

    def _disrupted(self, now: int) -> dict[str, str]:
        """The accepted disruptions of pods that are not being deleted yet, and that have not run out."""
        return {
            name: text
            for name, text in sorted(self.budget.status.disrupted_pods.items())
            if name in self._pods
            and not self._pods[name].is_terminating
            and parse_time(text) + DELETION_TIMEOUT_NS > now
        }

    def _expected(self, scale_of: ScaleOf) -> int | None:
        spec = self.budget.spec
        if spec.max_unavailable is None and isinstance(spec.min_available, int):
            return len(self._pods)
        if spec.max_unavailable is None and spec.min_available is None:
            return 0
        scales: dict[str, int] = {}
        for uid in self._controllers:
            if uid:
                scale = scale_of(uid)
                if scale is None:
                    return None
                scales[scale[0]] = scale[1]
        return sum(scales.values())

    def _desired(self, expected: int) -> int:
        spec = self.budget.spec
        if spec.max_unavailable is not None:
            return max(0, expected - _scaled(spec.max_unavailable, expected))
        return 0 if spec.min_available is None else _scaled(spec.min_available, expected)


def _budget(stored: Stored) -> PodDisruptionBudget:
    if not isinstance(stored.object, PodDisruptionBudget):
        raise TypeError(f"{stored.kind} {stored.key} is no PodDisruptionBudget")
    return stored.object


def _is_healthy(pod: Pod) -> bool:
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True" and not pod.is_terminating


def _controller(pod: Pod) -> str:
    """The uid of the pod's controller, "" for a pod on its own, which no scale counts."""
    owner = pod.metadata.controller
    return owner.uid if owner else ""


def _scaled(amount: int | str, expected: int) -> int:
    """A number of pods; a percentage of those expected is rounded up."""
    return amount if isinstance(amount, int) else -(-int(amount.removesuffix("%")) * expected // 100)
