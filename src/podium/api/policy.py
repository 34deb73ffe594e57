"""Budgets, priorities, quotas and limits: PodDisruptionBudget, PriorityClass, ResourceQuota, LimitRange."""

from __future__ import annotations

from typing import Literal

from podium.api.meta import APIStruct, Int32, Int64, Kubernetes
from podium.api.pod import Pod, PodCondition, ResourceList
from podium.api.selectors import LabelSelector

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never", "PreemptNever", "NonPreemptible", "NonPreemptiblePreemptNever")
"""Kubernetes' two preemption policies, and those that the design for priority classes adds."""

NEVER_PREEMPTS = ("Never", "PreemptNever", "NonPreemptiblePreemptNever")
"""The policies of pods that do not preempt others."""

NEVER_PREEMPTED = ("NonPreemptible", "NonPreemptiblePreemptNever")
"""The policies of pods that are never preempted."""

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that every cluster has (pkg/apis/scheduling/types.go)."""

HIGHEST_USER_PRIORITY = 1_000_000_000
"""The maximum priority of classes that are not the system's, and of pod groups (HighestUserDefinablePriority)."""

POLICY_ANNOTATION = "podium.dev/preemption-policy"
"""The annotation of a pod or class with its policy, for clusters whose API refuses the additional values."""

PRIORITY_RULE_ANNOTATION = "podium.dev/priority-rule"
"""The annotation that names the rule of the DisruptionPolicy that assigned a pod's PriorityClass."""


def preemption_policy(pod: Pod) -> str:
    """Return a pod's preemption policy: the annotation's, if set; otherwise the spec's."""
    annotated = pod.metadata.annotations.get(POLICY_ANNOTATION, "")
    return annotated if annotated in PREEMPTION_POLICIES else pod.spec.preemption_policy or PREEMPTION_POLICIES[0]


class PodDisruptionBudgetSpec(APIStruct, frozen=True, kw_only=True):
    """The minimum available or maximum unavailable pods; a number or a percentage such as "30%"."""

    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = None


class DisruptionRateStatus(APIStruct, frozen=True, kw_only=True):
    """The state of a budget's disruption rate; `podium.api.budget_limits` computes it.

    The tokens of the rate `max` are in a bucket that is full again at `full_time`; without one, it is full. `available`
    is the number of tokens when the status was written. `at_least` is the minimum rate of the DisruptionPolicy, if the
    budget's own is stricter. `last_disruptions` are sentences about the disruptions that took the missing tokens, the
    last one last.
    """

    max: str
    at_least: str | None = None
    available: Int32 = 0
    full_time: str | None = None
    last_disruptions: tuple[str, ...] = ()


class PodDisruptionBudgetStatus(APIStruct, frozen=True, kw_only=True):
    """The disruptions that the budget currently allows.

    `disrupted_pods` maps pod names to the time of an accepted disruption.
    """

    observed_generation: Int64 = 0
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str] = {}
    conditions: tuple[PodCondition, ...] = ()
    disruption_rate: DisruptionRateStatus | None = None

    def condition(self, type_: str) -> PodCondition | None:
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


PRIORITY_CLASS = "PriorityClass"
"""The scope that selects pods by the name of their priority class."""

ATTRIBUTES_CLASS = "VolumeAttributesClass"
"""The scope that selects claims by the names of their volume attributes classes."""

SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
    PRIORITY_CLASS,
    ATTRIBUTES_CLASS,
)
"""The scopes of quotas. They select pods, but for that of volume attributes classes, which selects claims."""


class ScopeRequirement(APIStruct, frozen=True, kw_only=True):
    """A condition on pods or claims; only classes have values, and operators other than Exists."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(APIStruct, frozen=True, kw_only=True):
    """The conditions that a pod must meet to be counted."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(APIStruct, frozen=True, kw_only=True):
    """The limits by name, such as `pods`, `requests.cpu` and `count/jobs.batch`, and the scopes."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(APIStruct, frozen=True, kw_only=True):
    """The limits in force, and the usage of each."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Kubernetes, frozen=True, kw_only=True):
    """A limit on the total usage of a namespace's objects (core/v1)."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def requirements(self) -> tuple[ScopeRequirement, ...]:
        """All conditions on pods: each of `scopes` requires existence."""
        selector = self.spec.scope_selector or ScopeSelector()
        exist = (ScopeRequirement(scope_name=scope, operator="Exists") for scope in self.spec.scopes)
        return (*exist, *selector.match_expressions)

    @property
    def priority_classes(self) -> tuple[str, ...] | None:
        """The priority classes to which the quota is limited; None if it also applies to others.

        Other conditions restrict it further.
        """
        of_classes = (one for one in self.requirements if (one.scope_name, one.operator) == (PRIORITY_CLASS, "In"))
        names = [set(requirement.values) for requirement in of_classes]
        return tuple(sorted(set.intersection(*names))) if names else None


class LimitRangeItem(APIStruct, frozen=True, kw_only=True):
    """Bounds and defaults for one type: Container, Pod or PersistentVolumeClaim.

    `max_limit_request_ratio` is the maximum ratio of a limit to its request.
    """

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}

    @property
    def default_limits(self) -> ResourceList:
        """The limits of containers that state none; the maximum if there is no default."""
        return {**self.max, **self.default} if self.type == "Container" else {}

    @property
    def default_requests(self) -> ResourceList:
        """The requests of containers that state none: else the default limit, else the minimum."""
        return {**self.min, **self.default_limits, **self.default_request} if self.type == "Container" else {}


class LimitRangeSpec(APIStruct, frozen=True, kw_only=True):
    """The bounds by type."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Kubernetes, frozen=True, kw_only=True):
    """Bounds and defaults for the pods and claims of a namespace (core/v1)."""

    spec: LimitRangeSpec = LimitRangeSpec()
