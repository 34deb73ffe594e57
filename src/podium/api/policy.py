"""Who may be disrupted, who goes first: PodDisruptionBudget (policy/v1), PriorityClass (scheduling/v1)."""

from __future__ import annotations

from typing import Literal

from podium.api.meta import Int32, Int64, Kubernetes, Narrow
from podium.api.pod import Pod, PodCondition
from podium.api.selection import LabelSelector

PREEMPTION_POLICIES = (
    "PreemptLowerPriority",
    "Never",
    "PreemptNever",
    "NonPreemptible",
    "NonPreemptiblePreemptNever",
)
"""Kubernetes' own two policies, and the further ones of the design for priority classes."""

NEVER_PREEMPTS = ("Never", "PreemptNever", "NonPreemptiblePreemptNever")
"""The policies of pods that wait for room instead of making it."""

NEVER_PREEMPTED = ("NonPreemptible", "NonPreemptiblePreemptNever")
"""The policies of pods that no preemption removes."""

POLICY_ANNOTATION = "podium.dev/preemption-policy"
"""Says a pod's policy, or that of a class's pods, on clusters whose API refuses the values that are not its own."""


def preemption_policy(pod: Pod) -> str:
    """A pod's policy: the annotation's, if it names one; otherwise the spec's."""
    annotated = pod.metadata.annotations.get(POLICY_ANNOTATION, "")
    return annotated if annotated in PREEMPTION_POLICIES else pod.spec.preemption_policy or PREEMPTION_POLICIES[0]


class PodDisruptionBudgetSpec(Narrow, frozen=True, kw_only=True):
    """How many of the selected pods must stay, or may go; a number or a percentage such as "30%"."""

    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = None


class DisruptionRateStatus(Narrow, frozen=True, kw_only=True):
    """How many more disruptions a budget's rate allows; `podium.api.budget_rate` computes it.

    The tokens of the rate `max` are in a bucket that is full again at `full_time`; without one, it is full. `available`
    was right when the status was written. `at_least` is the rate that the DisruptionPolicy wants at least, where the
    budget's own is stricter.
    """

    max: str
    at_least: str | None = None
    available: Int32 = 0
    full_time: str | None = None


class PodDisruptionBudgetStatus(Narrow, frozen=True, kw_only=True):
    """What the budget allows now. `disrupted_pods` maps pod names to the time of an accepted disruption."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str] = {}
    conditions: tuple[PodCondition, ...] = ()
    disruption_rate: DisruptionRateStatus | None = None

    def condition(self, type_: str) -> PodCondition | None:
        """The condition of that type, or None."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


class PodDisruptionBudget(Kubernetes, frozen=True, kw_only=True):
    """A limit on voluntary disruptions of a set of pods (policy/v1)."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Kubernetes, frozen=True, kw_only=True):
    """A name for a priority (scheduling/v1)."""

    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str = "PreemptLowerPriority"
