"""What one object uses of a quota (pkg/quota/v1/evaluator/core).

Amounts are whole numbers: milli for cpu, bytes for memory and storage, pieces for all else.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from podium.api.pod import Container, Pod, PodSpec, ResourceRequirements
from podium.api.qos import qos_class
from podium.api.quantity import milli_value, whole_value
from podium.api.quota import PRIORITY_CLASS, ResourceQuota, ScopeRequirement
from podium.api.requirement import Requirement
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests
from podium.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_bytes, is_extended, is_huge_pages
from podium.store.stored import Stored

Amounts = Mapping[str, int]
"""Amounts by the names that a quota limits, such as `pods`, `requests.cpu`, `count/jobs.batch`."""

_BOUNDED = (CPU, MEMORY, EPHEMERAL_STORAGE)
# What quotas counted before there was count/.
_PLURALS = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)


def usage_of(stored: Stored) -> dict[str, int]:
    """What the object uses. A pod that has ended is counted as an object, and uses nothing else."""
    resource = stored.resource
    usage = {f"count/{resource.qualified}": 1}
    if resource.qualified in _PLURALS:
        usage[resource.plural] = 1
    if isinstance(stored.object, Pod) and not stored.object.is_terminal:
        usage |= _pod_usage(stored.object)
    if resource.name == "PersistentVolumeClaim":
        requests = stored.raw.get("spec", {}).get("resources", {}).get("requests", {})
        usage["requests.storage"] = whole_value(requests.get("storage", 0))
    return usage


def is_counted(quota: ResourceQuota, stored: Stored) -> bool:
    """Whether the quota is about the object: one with scopes is about pods alone."""
    requirements = quota.requirements
    if not requirements:
        return True
    return isinstance(stored.object, Pod) and all(
        _is_met(requirement, stored.object, stored) for requirement in requirements
    )


def unnamed(spec: PodSpec, limited: Mapping[str, object]) -> dict[str, list[str]]:
    """The limited amounts that containers must name and do not, each with those containers.

    A quota on cpu or memory takes no pod that could use any amount of it. What the pod names as a whole counts for
    all of its containers.
    """
    missing: dict[str, list[str]] = {}
    whole = spec.resources or ResourceRequirements()
    for name in sorted(limited):
        kind, _, resource = name.rpartition(".")
        if resource not in (CPU, MEMORY) or kind not in ("", "requests", "limits"):
            continue
        if resource in _named(whole, kind):
            continue
        containers = [container.name for container in _all(spec) if resource not in _named(container.resources, kind)]
        if containers:
            missing[name] = containers
    return missing


def read_amount(name: str, quantity: str | int | float) -> int:
    """The amount of a quota's quantity."""
    return milli_value(quantity) if _resource(name) == CPU else whole_value(quantity)


def written_amount(name: str, amount: int) -> str:
    """The amount as a quantity, exactly: bytes in the largest binary unit that divides them."""
    resource = _resource(name)
    if resource == CPU:
        return str(amount // 1_000) if amount % 1_000 == 0 else f"{amount}m"
    unit = ""
    if is_bytes(resource):
        for larger in ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"):
            if not amount or amount % 1_024:
                break
            amount, unit = amount // 1_024, larger
    return f"{amount}{unit}"


def _resource(name: str) -> str:
    """The resource that is limited: cpu for `requests.cpu`."""
    return name.removeprefix("requests.").removeprefix("limits.")


def _named(resources: ResourceRequirements, kind: str) -> set[str]:
    """What is limited, or else requested; a limit makes a request of the same amount."""
    limits = set(resources.limits)
    return limits if kind == "limits" else limits | set(resources.requests)


def _all(spec: PodSpec) -> tuple[Container, ...]:
    return (*spec.containers, *spec.init_containers)


def _pod_usage(pod: Pod) -> dict[str, int]:
    """What the pod uses; of one that is resized in place, the greatest of what it wants, was given and uses."""
    usage = {"pods": 1}
    for name, amount in pod_requests(effective_spec(pod)).items():
        if name in _BOUNDED or is_huge_pages(name):
            usage[name] = amount
        if name in _BOUNDED or is_huge_pages(name) or is_extended(name):
            usage[f"requests.{name}"] = amount
    for name, amount in pod_requests(_as_limited(pod.spec)).items():
        if name in _BOUNDED:
            usage[f"limits.{name}"] = amount
    return usage


def _as_limited(spec: PodSpec) -> PodSpec:
    """The pod that requests what this one is limited to; overhead counts where there is a limit for it to add to."""
    return replace(
        spec,
        containers=tuple(_limited(container) for container in spec.containers),
        init_containers=tuple(_limited(init_container) for init_container in spec.init_containers),
        resources=spec.resources and ResourceRequirements(requests=spec.resources.limits),
        overhead={
            name: amount
            for name, amount in spec.overhead.items()
            if any(name in container.resources.limits for container in _all(spec))
        },
    )


def _limited(container: Container) -> Container:
    return replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def _is_met(requirement: ScopeRequirement, pod: Pod, stored: Stored) -> bool:
    match requirement.scope_name:
        case "BestEffort" | "NotBestEffort" as scope:
            return (qos_class(pod.spec) == "BestEffort") == (scope == "BestEffort")
        case "Terminating" | "NotTerminating" as scope:
            has_deadline = stored.raw["spec"].get("activeDeadlineSeconds") is not None
            return has_deadline == (scope == "Terminating")
        case "CrossNamespacePodAffinity":
            return _reaches_out(pod.spec)
    if requirement.scope_name != PRIORITY_CLASS:
        raise ValueError(f"there is no scope {requirement.scope_name}")
    name = pod.spec.priority_class_name or None
    return Requirement(PRIORITY_CLASS, requirement.operator, requirement.values).matches(name)


def _reaches_out(spec: PodSpec) -> bool:
    """Whether an affinity term of the pod is about pods of other namespaces."""
    affinity = spec.affinity
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if terms is not None:
            preferred = (weighted.pod_affinity_term for weighted in terms.preferred)
            if any(term.namespaces or term.namespace_selector is not None for term in (*terms.required, *preferred)):
                return True
    return False
