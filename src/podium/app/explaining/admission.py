"""Pods, their groups, claims and classes from manifests that no API server has seen, as it would have stored them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.limit_range import LimitRange
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodAffinity
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.runtime_class import RuntimeClass
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.store.admission.group_admission import admit_group
from podium.store.admission.pod_admission import admit_pod
from podium.store.admission.priority_levels import missing_classes
from podium.store.admission.storage_classes import with_default_class

Claim = TypeVar("Claim", PersistentVolumeClaim, ResourceClaim)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What pods and claims get from the cluster.

    LimitRanges by namespace, RuntimeClasses by name, StorageClasses, and ResourceClaimTemplates by key.
    """

    limit_ranges: dict[str, list[LimitRange]] = field(default_factory=dict)
    runtime_classes: dict[str, RuntimeClass] = field(default_factory=dict)
    storage_classes: list[StorageClass] = field(default_factory=list)
    claim_templates: dict[str, ResourceClaimTemplate] = field(default_factory=dict)

    def take(self, item: Kubernetes) -> None:
        """Remember an object that others get something from."""
        if isinstance(item, LimitRange):
            self.limit_ranges.setdefault(item.metadata.namespace, []).append(item)
        elif isinstance(item, RuntimeClass):
            self.runtime_classes[item.metadata.name] = item
        elif isinstance(item, StorageClass):
            self.storage_classes.append(item)
        elif isinstance(item, ResourceClaimTemplate):
            self.claim_templates[item.key] = item


def admitted(
    pod: Pod,
    classes: Mapping[str, PriorityClass],
    defaults: Defaults,
) -> Pod:
    """The pod with its priority, policy, resources and selectors filled in, where that is still to be done.

    A pod with a uid has been admitted, but for its priority where it has none. Raises StoreError for one that would be
    refused, such as for a class that does not exist.
    """
    if not _is_raw(pod, classes):
        return pod
    raw, ranges = msgspec.to_builtins(pod), defaults.limit_ranges.get(pod.metadata.namespace, [])
    return msgspec.convert(admit_pod(raw, pod.key, classes, ranges, defaults.runtime_classes), Pod)


def group_admitted(group: PodGroup, classes: Mapping[str, PriorityClass]) -> PodGroup:
    """The group with its class's priority, where it names one. Raises StoreError for one that would be refused."""
    if not group.spec.priority_class_name:
        return group
    return msgspec.convert(admit_group(msgspec.to_builtins(group), group.key, classes), PodGroup)


def claim_admitted(claim: Claim, classes: Iterable[StorageClass]) -> Claim:
    """The claim with a uid, by which it is told from others, and with the default storage class where it names none.

    One that has a uid was in a cluster, and is as it was there.
    """
    if claim.metadata.uid:
        return claim
    named = msgspec.structs.replace(claim.metadata, uid=f"{claim.kind} {claim.key}")
    claim = msgspec.structs.replace(claim, metadata=named)
    if not isinstance(claim, PersistentVolumeClaim):
        return claim
    return msgspec.convert(with_default_class(msgspec.to_builtins(claim), claim, classes), PersistentVolumeClaim)


def with_levels(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> dict[str, PriorityClass]:
    """The classes by name, with those that a DisruptionPolicy adds. Raises StoreError for levels in another order."""
    added = (msgspec.convert(raw, PriorityClass) for raw in missing_classes(policy, classes))
    return {**classes, **{priority_class.metadata.name: priority_class for priority_class in added}}


def _is_raw(pod: Pod, classes: Mapping[str, PriorityClass]) -> bool:
    """Whether admission would change how the pod is scheduled."""
    if not pod.metadata.uid and (not pod.spec.node_name or _has_label_keys(pod)):
        return True
    if pod.spec.priority is not None:
        return False
    return bool(pod.spec.priority_class_name) or any(class_.global_default for class_ in classes.values())


def _has_label_keys(pod: Pod) -> bool:
    """Whether the pod's own labels belong into selectors by which it attracts and repels others."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(_has_keys(side) for side in sides if side is not None)


def _has_keys(side: PodAffinity) -> bool:
    terms = (*side.required, *(weighted.pod_affinity_term for weighted in side.preferred))
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)
