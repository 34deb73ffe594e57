"""The API versions in which a minor version serves its kinds, for the kinds whose versions change.

Source: pkg/controlplane (DefaultAPIResourceConfigSource) and the register.go files of k8s.io/api. Beta versions are off
by default; here the gate of a kind also turns on the versions that it is served in, since it does nothing without them.
PodGroup and Workload, which Kubernetes serves with the gate GenericWorkload, are always served.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from podium.api.versions.release import Release

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
            of = api_version.rpartition("/")[0], kind
            found[of] = (*found.get(of, ()), ServedVersion(api_version, minors, "" if gate == "-" else gate))
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
