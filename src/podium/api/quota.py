"""The resource limits of a namespace: ResourceQuota and LimitRange (core/v1)."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Narrow
from podium.api.pod import ResourceList

PRIORITY_CLASS = "PriorityClass"
"""The scope that selects pods by the name of their priority class."""

SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    PRIORITY_CLASS,
    "CrossNamespacePodAffinity",
)
"""The scopes of quotas; all of them select pods."""


class ScopeRequirement(Narrow, frozen=True, kw_only=True):
    """A condition on pods; only PriorityClass has values, and operators other than Exists."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Narrow, frozen=True, kw_only=True):
    """The conditions that a pod must meet to be counted."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(Narrow, frozen=True, kw_only=True):
    """The limits by name, such as `pods`, `requests.cpu` and `count/jobs.batch`, and the scopes."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Narrow, frozen=True, kw_only=True):
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
        names = [
            set(requirement.values)
            for requirement in self.requirements
            if (requirement.scope_name, requirement.operator) == (PRIORITY_CLASS, "In")
        ]
        return tuple(sorted(set.intersection(*names))) if names else None


class LimitRangeItem(Narrow, frozen=True, kw_only=True):
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


class LimitRangeSpec(Narrow, frozen=True, kw_only=True):
    """The bounds by type."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Kubernetes, frozen=True, kw_only=True):
    """Bounds and defaults for the pods and claims of a namespace (core/v1)."""

    spec: LimitRangeSpec = LimitRangeSpec()
