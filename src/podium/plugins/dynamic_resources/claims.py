"""The claims of a pod: those it names, and those that were made for it.

Source: k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go (Name, IsForPod); foreachPodResourceClaim of
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

from podium.api.resource_claims import ResourceClaim
from podium.cluster.devices import Devices
from podium.cluster.pods import PodRecord


class ClaimError(Exception):
    """A claim of a pod that is not there, or not to be used."""


def pod_claims(pod: PodRecord, devices: Devices) -> list[ResourceClaim]:
    """The claims of a pod in its order, without those that it turned out not to need. Raises ClaimError."""
    made = dict(pod.made_claims)
    found = []
    for resource_claim in pod.spec.resource_claims:
        if resource_claim.resource_claim_name is not None:
            name: str | None = resource_claim.resource_claim_name
        elif resource_claim.resource_claim_template_name is None:
            raise ClaimError(
                f'pod "{pod.key}", spec.resourceClaim "{resource_claim.name}": none of the supported fields are set'
            )
        elif resource_claim.name in made:
            name = made[resource_claim.name]
        else:
            raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
        if name is None:
            continue
        found.append(_claim(pod, devices, name, is_made=resource_claim.resource_claim_name is None))
    return found


def _claim(pod: PodRecord, devices: Devices, name: str, *, is_made: bool) -> ResourceClaim:
    key = f"{pod.namespace}/{name}"
    claim = devices.claims.get(key)
    if claim is None:
        raise ClaimError(f'could not find ResourceClaim "{key}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimError(f'resourceclaim "{name}" is being deleted')
    owner = claim.metadata.controller
    if is_made and (owner is None or owner.uid != pod.uid):
        raise ClaimError(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim
