"""The pods and claims of a StatefulSet, which have numbers.

Source: pkg/controller/statefulset/stateful_set_utils.go.
"""

from __future__ import annotations

import re

from podium.api.meta import Raw
from podium.api.workloads import StatefulSet
from podium.machines.workloads.template_revisions import REVISION_LABEL
from podium.machines.workloads.workload import Workload

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NUMBERED = re.compile(r"(.*)-(0|[1-9][0-9]{0,9})")


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """The number of a StatefulSet's pod; None for a pod that does not have a name of that form."""
    found = _NUMBERED.fullmatch(pod_name)
    return int(found[2]) if found is not None and found[1] == set_name else None


def claims_of(workload: Workload[StatefulSet], ordinal: int) -> dict[str, Raw]:
    """The claims of the pod with that number, by the name of their template, which is also that of a volume."""
    labels = workload.spec.get("selector", {}).get("matchLabels", {})
    claims = {}
    for claim in workload.spec.get("volumeClaimTemplates", ()):
        given, meta = claim["metadata"], workload.object.metadata
        metadata = {
            "name": f"{given['name']}-{meta.name}-{ordinal}",
            "namespace": meta.namespace,
            "labels": {**given.get("labels", {}), **labels},
        }
        if "annotations" in given:
            metadata["annotations"] = given["annotations"]
        base = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        claims[given["name"]] = {**base, "spec": claim.get("spec", {})}
    return claims


def numbered_pod(workload: Workload[StatefulSet], ordinal: int, template: Raw, revision: str) -> Raw:
    """The pod with that number, made from a template, the one of the named revision."""
    claims = claims_of(workload, ordinal)
    spec = template.get("spec", {})
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    volumes += [volume for volume in spec.get("volumes", ()) if volume.get("name") not in claims]
    name = f"{workload.object.metadata.name}-{ordinal}"
    spec = {**spec, "hostname": name}
    if workload.object.spec.service_name:
        spec["subdomain"] = workload.object.spec.service_name
    if volumes:
        spec["volumes"] = volumes
    labels = {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    return workload.new_pod(template, {"name": name}, labels, spec)
