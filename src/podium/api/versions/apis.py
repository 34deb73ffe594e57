"""The API versions, kinds and fields that a minor version serves and keeps, for those that change.

Beta versions are off by default; here the gate of a kind also turns on the versions that it is served in, since it does
nothing without them. PodGroup and Workload, which Kubernetes serves with the gate GenericWorkload, are always served.
Fields are dropped that are unknown, or whose gate is off.

Source: pkg/controlplane (DefaultAPIResourceConfigSource) and the register.go files of k8s.io/api; pkg/api/pod/util.go
(DropDisabledPodFields), pkg/api/persistentvolume, pkg/api/persistentvolumeclaim, pkg/registry/core/node,
pkg/registry/resource (dropDisabledFields), pkg/api/resourceclaimspec.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.versions.gates import Gate
from podium.api.versions.release import Release
from podium.api.workloads import POD_PATHS

Known = TypeVar("Known", bound=Kubernetes)

_GROUPS, _CLAIMS = "PodGroup Workload", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"
_POLICIES = "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
# An API version, the first and the last minor version that serve it, the gate that it needs, its kinds; `-` for none.
_TABLE = f"""
admissionregistration.k8s.io/v1       36 -  MutatingAdmissionPolicy   {_POLICIES}
admissionregistration.k8s.io/v1beta1  34 35 MutatingAdmissionPolicy   {_POLICIES}
admissionregistration.k8s.io/v1alpha1 32 33 MutatingAdmissionPolicy   {_POLICIES}
networking.k8s.io/v1                  33 -  MultiCIDRServiceAllocator IPAddress ServiceCIDR
networking.k8s.io/v1beta1             31 32 MultiCIDRServiceAllocator IPAddress ServiceCIDR
resource.k8s.io/v1                    34 -  DynamicResourceAllocation {_CLAIMS}
resource.k8s.io/v1beta2               33 33 DynamicResourceAllocation {_CLAIMS}
resource.k8s.io/v1beta1               32 33 DynamicResourceAllocation {_CLAIMS}
resource.k8s.io/v1alpha3              31 33 DynamicResourceAllocation {_CLAIMS}
resource.k8s.io/v1                    37 -  DRADeviceTaintRules       DeviceTaintRule
resource.k8s.io/v1beta2               36 36 DRADeviceTaintRules       DeviceTaintRule
resource.k8s.io/v1alpha3              35 35 DRADeviceTaintRules       DeviceTaintRule
resource.k8s.io/v1alpha3              33 34 DRADeviceTaints           DeviceTaintRule
scheduling.k8s.io/v1beta1             37 -  -                         {_GROUPS}
scheduling.k8s.io/v1alpha3            37 -  -                         {_GROUPS}
scheduling.k8s.io/v1alpha2            31 36 -                         {_GROUPS}
storage.k8s.io/v1                     34 -  VolumeAttributesClass     VolumeAttributesClass
storage.k8s.io/v1beta1                31 33 VolumeAttributesClass     VolumeAttributesClass
"""


class ServedVersion(NamedTuple):
    """An API version of a kind, the minor versions that serve it, and the gate that it needs; "" for none."""

    api_version: str
    minors: range
    gate: str


@cache
def served_versions() -> dict[tuple[str, str], tuple[ServedVersion, ...]]:
    """Return the API versions of the kinds whose versions change, by group and kind, the preferred ones first."""
    found = dict[tuple[str, str], tuple[ServedVersion, ...]]()
    for line in _TABLE.strip().splitlines():
        api_version, first, last, gate, *kinds = line.split()
        minors = range(int(first), _NEWER if last == "-" else int(last) + 1)
        for kind in kinds:
            key = api_version.rpartition("/")[0], kind
            found[key] = (*found.get(key, ()), ServedVersion(api_version, minors, "" if gate == "-" else gate))
    return found


_NEWER = 1_000


def has_subresource(kind: str, subresource: str, release: Release) -> bool:
    """Return whether a version serves a subresource of a kind."""
    gate = _SUBRESOURCES.get((kind, subresource))
    return gate is None or release.enabled(gate)


# The subresources that are not served while a gate is off.
_SUBRESOURCES = {("Pod", "resize"): "InPlacePodVerticalScaling"}


def is_removed(api_version: str, kind: str, before: Release, after: Release) -> bool:
    """Return whether the minor version ``before`` may serve a kind in an API version, and ``after`` may not."""
    of = api_version.rpartition("/")[0], kind
    minors = [each.minors for each in served_versions().get(of, ()) if each.api_version == api_version]
    minors += [range(last + 1) for group_version, last in _LAST.items() if group_version == api_version]
    was, then = (any(release.minor in served for served in minors) for release in (before, after))
    return was and not then


# The last minor version that may serve an API version of kinds that Podium does not serve in it.
_LAST = {
    "coordination.k8s.io/v1alpha1": 31,
    "flowcontrol.apiserver.k8s.io/v1beta3": 31,
    "networking.k8s.io/v1alpha1": 33,
    "resource.k8s.io/v1alpha2": 30,
    "scheduling.k8s.io/v1alpha1": 35,
    "storagemigration.k8s.io/v1alpha1": 34,
}


def versions_in(group: str, kind: str, release: Release) -> tuple[str, ...] | None:
    """Return the API versions in which a version serves a kind; None for a kind that all serve in the same ones."""
    known = served_versions().get((group, kind))
    if known is None:
        return None
    served = (each for each in known if release.minor in each.minors)
    return tuple(each.api_version for each in served if not each.gate or release.enabled(each.gate))


# By kind and gate, the fields that are dropped while the gate is off; `*` matches each item of a list or map. A
# number is the first minor version that drops them; before, they stay by mistake.
_FIELDS = """
CSIDriver CSIServiceAccountTokenSecrets spec.serviceAccountTokenInSecrets
CSIDriver MutableCSINodeAllocatableCount spec.nodeAllocatableUpdatePeriodSeconds
CSIDriver VolumeLimitScaling spec.preventPodSchedulingIfMissing
Deployment DeploymentReplicaSetTerminatingReplicas status.terminatingReplicas
HorizontalPodAutoscaler HPAConfigurableTolerance spec.behavior.scaleDown.tolerance spec.behavior.scaleUp.tolerance
Job JobBackoffLimitPerIndex spec.backoffLimitPerIndex spec.maxFailedIndexes
Job JobManagedBy spec.managedBy
Job JobSuccessPolicy spec.successPolicy
Node InPlacePodVerticalScalingSchedulerPreemption spec.podPreemptionPolicy
Node NodeDeclaredFeatures status.declaredFeatures
Node SupplementalGroupsPolicy status.features
PersistentVolume VolumeAttributesClass spec.volumeAttributesClassName
PersistentVolumeClaim RecoverVolumeExpansionFailure status.allocatedResources status.allocatedResourceStatuses
PersistentVolumeClaim VolumeAttributesClass spec.volumeAttributesClassName status.currentVolumeAttributesClassName
PersistentVolumeClaim VolumeAttributesClass status.modifyVolumeStatus
Pod ContainerRestartRules spec.containers.*.restartPolicy spec.containers.*.restartPolicyRules
Pod ContainerRestartRules spec.initContainers.*.restartPolicyRules
Pod DynamicResourceAllocation spec.resourceClaims status.resourceClaimStatuses
Pod DynamicResourceAllocation spec.containers.*.resources.claims spec.initContainers.*.resources.claims
Pod DRAExtendedResource status.extendedResourceClaimStatus
Pod EnvFiles spec.containers.*.env.*.valueFrom.fileKeyRef spec.initContainers.*.env.*.valueFrom.fileKeyRef
Pod HostnameOverride spec.hostnameOverride
Pod ImageVolume spec.volumes.*.image
Pod InPlacePodLevelResourcesVerticalScaling status.resources status.allocatedResources
Pod InPlacePodVerticalScaling spec.containers.*.resizePolicy spec.initContainers.*.resizePolicy status.resize
Pod InPlacePodVerticalScaling status.containerStatuses.*.resources status.containerStatuses.*.allocatedResources
Pod InPlacePodVerticalScaling status.initContainerStatuses.*.resources status.initContainerStatuses.*.allocatedResources
Pod PodLevelResources spec.resources
Pod PodObservedGenerationTracking status.observedGeneration status.conditions.*.observedGeneration
Pod SELinuxChangePolicy spec.securityContext.seLinuxChangePolicy
Pod SupplementalGroupsPolicy spec.securityContext.supplementalGroupsPolicy
Pod UserNamespacesSupport spec.hostUsers
DeviceClass DRAExtendedResource spec.extendedResourceName
ResourceSlice DRAConsumableCapacity spec.devices.*.allowMultipleAllocations spec.devices.*.capacity.*.requestPolicy
ResourceSlice DRADeviceBindingConditions spec.devices.*.bindingConditions spec.devices.*.bindingFailureConditions
ResourceSlice DRADeviceBindingConditions spec.devices.*.bindsToNode
ResourceSlice DRADeviceTaints spec.devices.*.taints
ResourceSlice DRAPartitionableDevices spec.sharedCounters spec.perDeviceNodeSelection spec.devices.*.consumesCounters
ResourceSlice DRAPartitionableDevices spec.devices.*.nodeName spec.devices.*.nodeSelector spec.devices.*.allNodes
ResourceClaim DRAAdminAccess spec.devices.requests.*.exactly.adminAccess
ResourceClaim DRAAdminAccess status.allocation.devices.results.*.adminAccess
ResourceClaim DRAConsumableCapacity 35 spec.devices.constraints.*.distinctAttribute
ResourceClaim DRAConsumableCapacity spec.devices.requests.*.exactly.capacity
ResourceClaim DRAConsumableCapacity spec.devices.requests.*.firstAvailable.*.capacity
ResourceClaim DRAConsumableCapacity status.allocation.devices.results.*.shareID
ResourceClaim DRAConsumableCapacity status.allocation.devices.results.*.consumedCapacity
ResourceClaim DRADeviceBindingConditions status.allocation.allocationTimestamp
ResourceClaim DRADeviceBindingConditions status.allocation.devices.results.*.bindingConditions
ResourceClaim DRADeviceBindingConditions status.allocation.devices.results.*.bindingFailureConditions
ResourceClaim DRADeviceTaints 35 spec.devices.requests.*.exactly.tolerations
ResourceClaim DRADeviceTaints 35 spec.devices.requests.*.firstAvailable.*.tolerations
ResourceClaim DRAPrioritizedList spec.devices.requests.*.firstAvailable
ResourceClaim DRAResourceClaimDeviceStatus status.devices
ReplicaSet DeploymentReplicaSetTerminatingReplicas status.terminatingReplicas
StatefulSet MaxUnavailableStatefulSet spec.updateStrategy.rollingUpdate.maxUnavailable
"""

# The kinds that are not served while a gate is off.
_KINDS: dict[str, Gate | str] = {**dict.fromkeys(_CLAIMS.split(), Gate.DRA), "DeviceTaintRule": "DRADeviceTaints"}
# Where kinds have the spec of another one.
_TEMPLATES = {kind: ("Pod", "".join(f"{name}." for name in path)) for kind, path in POD_PATHS.items() if path}
_TEMPLATES["ResourceClaimTemplate"] = ("ResourceClaim", "spec.")

Path = tuple[str, ...]


def is_served(kind: str, release: Release) -> bool:
    """Return whether the version serves a kind; true for the kinds that all versions serve."""
    gate = _KINDS.get(kind)
    return gate is None or release.enabled(gate)


@cache
def gates_of_fields() -> frozenset[str]:
    """Return the gates on which kinds and fields depend."""
    of_versions = {version.gate for versions in served_versions().values() for version in versions if version.gate}
    return frozenset(gate for _, gate, *_ in _rows()) | frozenset(map(str, _KINDS.values())) | of_versions


@cache
def dropped_paths(kind: str, release: Release) -> tuple[tuple[Path, ...], ...]:
    """Return the paths of the fields of a kind that the version drops, those of a gate together."""
    of, prefix = _TEMPLATES.get(kind, ("", ""))
    found = dict[str, tuple[Path, ...]]()
    for row_kind, gate, since, *paths in _rows():
        if row_kind in (kind, of) and release.minor >= int(since) and not release.enabled(gate):
            own = paths if row_kind == kind else [prefix + path for path in paths if path.startswith("spec.")]
            found[gate] = (*found.get(gate, ()), *(tuple(path.split(".")) for path in own))
    return tuple(found.values())


def as_kept(raw: Raw, kind: str, release: Release, previous: Raw | None = None) -> Raw:
    """Return an object as the version's API server keeps it: itself, or a copy without some fields.

    The update of a ``previous`` object keeps all fields of a gate if that object has one of them.
    """
    for paths in dropped_paths(kind, release):
        if previous is not None and all(raw.get(path[0]) is previous.get(path[0]) for path in paths):
            # Most updates leave all of this as it was.
            continue
        if previous is None or all(_without(previous, path) is previous for path in paths):
            for path in paths:
                raw = _without(raw, path)
    return raw


def read_as_kept(item: Known, release: Release) -> Known:
    """Return the reading of an object as the version's API server keeps it."""
    if not dropped_paths(item.kind, release):
        return item
    raw = msgspec.to_builtins(item)
    kept = as_kept(raw, item.kind, release)
    return item if kept is raw else msgspec.convert(kept, type(item))


def dropped_from(raw: Raw, kind: str, release: Release) -> Iterator[str]:
    """Yield the paths of an object's fields that the version drops, as in `spec.volumes.*.image`."""
    for paths in dropped_paths(kind, release):
        for path in paths:
            if _without(raw, path) is not raw:
                yield ".".join(path)


def _rows() -> Iterator[list[str]]:
    """Yield the rows of the table, all with the first minor version that drops the fields."""
    for line in _FIELDS.strip().splitlines():
        kind, gate, *rest = line.split()
        yield [kind, gate, *(rest if rest[0].isdigit() else ["0", *rest])]


def _without(value: Any, path: Path) -> Any:
    """Return a value without the field at a path; the value itself if it has none there."""
    key, rest = path[0], path[1:]
    if key == "*":
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        changed = {place: kept for place, item in items if (kept := _without(item, rest)) is not item}
        if not changed:
            return value
        if isinstance(value, dict):
            return value | changed
        return [changed.get(place, item) for place, item in enumerate(value)]
    if not isinstance(value, dict) or key not in value:
        return value
    if not rest:
        return {name: field for name, field in value.items() if name != key}
    kept = _without(value[key], rest)
    return value if kept is value[key] else {**value, key: kept}
