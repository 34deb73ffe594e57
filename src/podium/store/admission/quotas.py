"""The quota usage of one object (pkg/quota/v1/evaluator/core).

Amounts are integers: milli-units for cpu, bytes for memory and storage, counts for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podium.api import quantity
from podium.api.devices import DEVICE_CLASS_PREFIX, EXTENDED_RESOURCE_CLAIM, MOST_RESULTS
from podium.api.meta import Kubernetes, Raw, object_at, objects_at, value_at
from podium.api.pod import Container, Pod, PodSpec, ResourceRequirements
from podium.api.policy import ATTRIBUTES_CLASS, PRIORITY_CLASS, ResourceQuota, ScopeRequirement
from podium.api.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, milli_value, whole_value
from podium.api.resource_requests import effective_spec, pod_requests, qos_class, requests_of
from podium.api.selectors import Requirement
from podium.api.storage import STORAGE_CLASS
from podium.store.admission.pod_admission import with_limits_as_requests
from podium.store.errors import forbidden
from podium.store.revisions import Revisions
from podium.store.stored import Stored, reread

Amounts = Mapping[str, int]
"""Amounts by quota resource name, such as `pods`, `requests.cpu`, `count/jobs.batch`."""

_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_BOUNDED = (CPU, MEMORY, EPHEMERAL_STORAGE)
# The resources that quotas counted before the prefix count/ existed.
_PLURALS = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)


def usage_of(stored: Stored) -> dict[str, int]:
    """Return the object's usage. A pod that has ended is counted as an object and uses nothing else."""
    resource = stored.resource
    usage = {f"count/{resource.qualified}": 1}
    if resource.qualified in _PLURALS:
        usage[resource.plural] = 1
    if isinstance(stored.object, Pod) and not stored.object.is_terminal:
        usage |= _pod_usage(stored.object)
    further = _FURTHER_USAGE.get(resource.name)
    return usage if further is None else usage | further(stored.raw)


def _claim_usage(claim: Raw) -> dict[str, int]:
    """Return the storage that a claim requests, also by its storage class."""
    storage = whole_value(object_at(claim, "spec", "resources", "requests").get("storage", 0))
    usage = {"requests.storage": storage}
    annotated = value_at(claim, "metadata", "annotations", STORAGE_CLASS)
    if class_name := annotated or value_at(claim, "spec", "storageClassName"):
        prefix = f"{class_name}{_OF_STORAGE_CLASS}"
        usage |= {f"{prefix}requests.storage": storage, f"{prefix}persistentvolumeclaims": 1}
    return usage


def _service_usage(service: Raw) -> dict[str, int]:
    """Return the node ports and load balancers of a service."""
    spec = object_at(service, "spec")
    if spec.get("type") not in ("LoadBalancer", "NodePort"):
        return {}
    is_allocated = spec.get("allocateLoadBalancerNodePorts") is not False
    ports = [port for port in objects_at(spec, "ports") if is_allocated or port.get("nodePort")]
    return {"services.nodeports": len(ports), "services.loadbalancers": int(spec["type"] == "LoadBalancer")}


def _resource_claim_usage(claim: Raw) -> dict[str, int]:
    """Return the devices that a claim requests by their class; of alternatives the most of each class."""
    usage: dict[str, int] = {}
    is_for_extended = value_at(claim, "metadata", "annotations", EXTENDED_RESOURCE_CLAIM) == "true"
    for request in objects_at(claim, "spec", "devices", "requests"):
        most: dict[str, int] = {}
        for wanted in (object_at(request, "exactly"), *objects_at(request, "firstAvailable")):
            if name := wanted.get("deviceClassName"):
                count = MOST_RESULTS if wanted.get("allocationMode") == "All" else wanted.get("count") or 1
                most[name] = max(most.get(name, 0), count)
        for name, count in most.items():
            # A pod whose extended resources are devices is itself charged for them.
            names = (f"{name}.deviceclass.resource.k8s.io/devices", f"requests.{DEVICE_CLASS_PREFIX}{name}")
            for resource in names[:1] if is_for_extended else names:
                usage[resource] = usage.get(resource, 0) + count
    return usage


_FURTHER_USAGE: Mapping[str, Callable[[Raw], dict[str, int]]] = {
    "PersistentVolumeClaim": _claim_usage,
    "ResourceClaim": _resource_claim_usage,
    "Service": _service_usage,
}


def is_counted(quota: ResourceQuota, stored: Stored) -> bool:
    """Return whether the quota applies to the object; a quota with scopes applies only to pods, or to claims."""
    for requirement in quota.requirements:
        if requirement.scope_name == ATTRIBUTES_CLASS:
            condition = Requirement(ATTRIBUTES_CLASS, requirement.operator, requirement.values)
            names = attributes_classes(stored.raw) or [None]
            if stored.kind != "PersistentVolumeClaim" or not any(map(condition.matches, names)):
                return False
        elif not isinstance(stored.object, Pod) or not _is_met(requirement, stored.object, stored):
            return False
    return True


def attributes_classes(raw: Raw) -> Sequence[str | None]:
    """Return the volume attributes classes that a claim or volume has, wants, or is given."""
    spec, status = object_at(raw, "spec"), object_at(raw, "status")
    target = value_at(status, "modifyVolumeStatus", "targetVolumeAttributesClassName")
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return [name for name in names if name]


def read_amount(name: str, amount: str | int | float) -> int:
    """Return the amount of a quantity of a quota."""
    return milli_value(amount) if _resource(name) == CPU else whole_value(amount)


def written_amount(name: str, amount: int) -> str:
    """Return the amount of a quota as an exact quantity."""
    return quantity.exact_quantity(amount, _resource(name))


def _resource(name: str) -> str:
    """Return the resource that is limited: cpu for `requests.cpu`."""
    of_class = name.rpartition(_OF_STORAGE_CLASS)[2]
    return of_class.removeprefix("requests.").removeprefix("limits.")


def _all(spec: PodSpec) -> tuple[Container, ...]:
    return (*spec.containers, *spec.init_containers)


def _pod_usage(pod: Pod) -> dict[str, int]:
    """Return the pod's usage; for an in-place resize the maximum of desired, allocated and actual resources."""
    usage = {"pods": 1}
    for name, amount in pod_requests(effective_spec(pod)).items():
        if name in _BOUNDED or quantity.is_huge_pages(name):
            usage[name] = amount
        if name in usage or quantity.is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX):
            usage[f"requests.{name}"] = amount
    spec = pod.spec
    limited = replace(
        with_limits_as_requests(spec),
        resources=spec.resources and ResourceRequirements(requests=spec.resources.limits),
        # Overhead counts only for resources that have a limit.
        overhead={
            name: amount
            for name, amount in spec.overhead.items()
            if any(name in container.resources.limits for container in _all(spec))
        },
    )
    return usage | {f"limits.{name}": amount for name, amount in pod_requests(limited).items() if name in _BOUNDED}


def _is_met(requirement: ScopeRequirement, pod: Pod, stored: Stored) -> bool:
    match requirement.scope_name:
        case "BestEffort" | "NotBestEffort" as scope:
            return (qos_class(pod.spec) == "BestEffort") == (scope == "BestEffort")
        case "Terminating" | "NotTerminating" as scope:
            has_deadline = stored.raw["spec"].get("activeDeadlineSeconds") is not None
            return has_deadline == (scope == "Terminating")
        case "CrossNamespacePodAffinity":
            terms = [] if pod.spec.affinity is None else pod.spec.affinity.pod_terms
            return any(term.namespaces or term.namespace_selector is not None for term in terms)
    if requirement.scope_name != PRIORITY_CLASS:
        raise ValueError(f"there is no scope {requirement.scope_name}")
    name = pod.spec.priority_class_name or None
    return Requirement(PRIORITY_CLASS, requirement.operator, requirement.values).matches(name)


class QuotaAccounting(Struct, frozen=True):
    """The quotas among the objects."""

    revisions: Revisions

    def counted(self, candidate: Stored, quota: ResourceQuota) -> Raw:
        """Return a quota to be written, with the usage of its namespace in its status."""
        used = dict.fromkeys(quota.spec.hard, 0)
        _add(used, usage_of(candidate) if is_counted(quota, candidate) else {}, 1)
        for kind in self.revisions.kinds():
            for stored in self.revisions.in_namespace(kind, quota.metadata.namespace):
                if stored.uid != candidate.uid and is_counted(quota, stored):
                    _add(used, usage_of(stored), 1)
        return {
            **candidate.raw,
            "status": {"hard": candidate.raw.get("spec", {}).get("hard", {}), "used": _written(used)},
        }

    def charge(self, previous: Stored | None, after: Stored | None) -> None:
        """Update the quota usage for a write that replaces `previous` by `after`; None means no object.

        Raises StoreError 403 if the write exceeds what a quota has left, or if a new pod does not state its amount of a
        limited resource.
        """
        about = after or previous
        if not self.revisions.of("ResourceQuota") or about is None:
            return
        if previous is not None and after is not None:
            # The usage follows from the spec, the phase, what a pod was given, and the classes that a claim has.
            before, now = (
                (
                    stored.raw.get("spec"),
                    stored.raw.get("status", {}).get("phase"),
                    effective_spec(stored.object) if isinstance(stored.object, Pod) else attributes_classes(stored.raw),
                )
                for stored in (previous, after)
            )
            if before == now:
                return
        for stored in self.revisions.in_namespace("ResourceQuota", about.object.metadata.namespace):
            quota = stored.object
            if not isinstance(quota, ResourceQuota):
                raise TypeError(f"{stored.kind} {stored.key} is not a ResourceQuota")
            if stored.uid != about.uid:
                self._charge(stored, quota, previous, after)

    def _charge(self, stored: Stored, quota: ResourceQuota, previous: Stored | None, after: Stored | None) -> None:
        change = dict.fromkeys(quota.spec.hard, 0)
        if after is not None and is_counted(quota, after):
            item = after.object
            if previous is None and isinstance(item, Pod) and (missing := unstated_amounts(quota, item.spec)):
                raise forbidden(after.resource, after.key, f"failed quota: {quota.metadata.name}: {missing}")
            _add(change, usage_of(after), 1)
        if previous is not None and is_counted(quota, previous):
            _add(change, usage_of(previous), -1)
        if not any(change.values()):
            return
        used = {name: read_amount(name, quota.status.used.get(name, 0)) for name in quota.spec.hard}
        hard = {name: read_amount(name, most) for name, most in quota.spec.hard.items()}
        exceeded = sorted(name for name in change if change[name] > 0 and used[name] + change[name] > hard[name])
        if after is not None and exceeded:
            amounts_text = ", ".join(
                f"{what}: {','.join(f'{name}={written_amount(name, amounts[name])}' for name in exceeded)}"
                for what, amounts in (("requested", change), ("used", used), ("limited", hard))
            )
            raise forbidden(after.resource, after.key, f"exceeded quota: {quota.metadata.name}, {amounts_text}")
        _add(used, change, 1)
        raw = {**stored.raw, "status": {**stored.raw.get("status", {}), "used": _written(used)}}
        read: Kubernetes = reread(quota, stored.raw, raw)
        self.revisions.write(stored.resource, stored, raw, read, is_gone=False)


def _add(used: dict[str, int], amounts: Amounts, factor: int) -> None:
    for name, amount in amounts.items():
        if name in used:
            used[name] += factor * amount


def unstated_amounts(quota: ResourceQuota, spec: PodSpec) -> str:
    """Return the limited amounts of cpu and memory that a pod's containers must state and do not; "" for none.

    A quota on cpu or memory refuses pods that could use any amount of it, unless they have pod-level resources.
    """
    missing: list[str] = []
    for name in sorted(quota.spec.hard) if spec.resources in (None, ResourceRequirements()) else ():
        kind, _, resource = name.rpartition(".")
        if resource not in (CPU, MEMORY) or kind not in ("", "requests", "limits"):
            continue
        containers = [
            container.name
            for container in _all(spec)
            if resource not in (container.resources.limits if kind == "limits" else requests_of(container.resources))
        ]
        if containers:
            missing.append(f"{name} for: {','.join(containers)}")
    return f"must specify {'; '.join(missing)}" if missing else ""


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written_amount(name, amount) for name, amount in sorted(amounts.items())}
