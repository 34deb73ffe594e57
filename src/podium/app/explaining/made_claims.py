"""The claims that controllers make for a pod of a manifest, before its scheduler looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.storage import PersistentVolumeClaim
from podium.machines.workloads.claims.made_claims import device_claim, volume_claims


def with_made_claims(
    pod: Pod, templates: Mapping[str, ResourceClaimTemplate], is_there: Callable[[Kubernetes], bool]
) -> tuple[Pod, tuple[Kubernetes, ...]]:
    """The pod as it knows its claims, and those that are made for it: for devices by `templates`, and for volumes.

    Of a pod that was in a cluster there is what there is. `is_there` says of a claim whether its name is taken.
    """
    if pod.metadata.uid or pod.spec.node_name:
        return pod, ()
    volumes = (msgspec.convert(raw, PersistentVolumeClaim) for raw in volume_claims(pod, pod.key))
    claims: list[Kubernetes] = [claim for claim in volumes if not is_there(claim)]
    statuses = {status.name: status for status in pod.status.resource_claim_statuses}
    for named in pod.spec.resource_claims:
        template = templates.get(f"{pod.metadata.namespace}/{named.resource_claim_template_name}")
        if template is not None and named.name not in statuses:
            claim = _for_devices(pod, named, msgspec.to_builtins(template), is_there)
            claims.append(claim)
            statuses[named.name] = PodResourceClaimStatus(name=named.name, resource_claim_name=claim.metadata.name)
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=tuple(statuses.values()))
    return msgspec.structs.replace(pod, status=status), tuple(claims)


def _for_devices(
    pod: Pod, named: PodResourceClaim, template: Raw, is_there: Callable[[Kubernetes], bool]
) -> ResourceClaim:
    raw = device_claim(pod, pod.key, named, template)
    generated = raw["metadata"].pop("generateName")
    claims = (
        msgspec.convert({**raw, "metadata": {**raw["metadata"], "name": f"{generated}{number}"}}, ResourceClaim)
        for number in count(1)
    )
    return next(claim for claim in claims if not is_there(claim))
