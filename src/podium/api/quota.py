"""How much a namespace may hold: ResourceQuota (core/v1)."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Narrow
from podium.api.pod import ResourceList

PRIORITY_CLASS = "PriorityClass"
"""The scope of pods by the name of their priority class."""

SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    PRIORITY_CLASS,
    "CrossNamespacePodAffinity",
)
"""What a quota can limit itself to; all of them are about pods."""


class ScopeRequirement(Narrow, frozen=True, kw_only=True):
    """A condition on a pod; only PriorityClass has values, and operators other than Exists."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Narrow, frozen=True, kw_only=True):
    """The conditions that all must hold for a quota to count a pod."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(Narrow, frozen=True, kw_only=True):
    """The limits by name, such as `pods`, `requests.cpu` and `count/jobs.batch`, and the pods that they are about."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Narrow, frozen=True, kw_only=True):
    """The limits in force, and how much of each is used."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Kubernetes, frozen=True, kw_only=True):
    """A limit on what the objects of a namespace take together (core/v1)."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def requirements(self) -> tuple[ScopeRequirement, ...]:
        """All conditions on pods: each of `scopes` asks that it exists."""
        selector = self.spec.scope_selector or ScopeSelector()
        exist = (ScopeRequirement(scope_name=scope, operator="Exists") for scope in self.spec.scopes)
        return (*exist, *selector.match_expressions)

    @property
    def priority_classes(self) -> tuple[str, ...] | None:
        """The names of the priority classes to whose pods alone the quota applies; None where it is about others too.

        Conditions beside that one narrow it further.
        """
        names = [
            set(requirement.values)
            for requirement in self.requirements
            if (requirement.scope_name, requirement.operator) == (PRIORITY_CLASS, "In")
        ]
        return tuple(sorted(set.intersection(*names))) if names else None
