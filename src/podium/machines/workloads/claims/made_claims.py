"""The claims that controllers make for a pod: for devices from templates, and for volumes that are its own."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod, PodResourceClaim
from podium.api.resource_claims import POD_CLAIM_NAME


def device_claim(pod: Pod, uid: str, pod_claim: PodResourceClaim, template: Raw) -> Raw:
    """The ResourceClaim that a pod with that uid wants made (pkg/controller/resourceclaim, handleClaim).

    Its name is generated when it is created.
    """
    spec = template.get("spec", {})
    like, meta = spec.get("metadata", {}), pod.metadata
    metadata: Raw = {
        "generateName": f"{meta.name}-{pod_claim.name}-",
        "namespace": meta.namespace,
        "annotations": {**like.get("annotations", {}), POD_CLAIM_NAME: pod_claim.name},
        "ownerReferences": [_owner(pod, uid)],
    }
    if like.get("labels"):
        metadata["labels"] = like["labels"]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec.get("spec", {}),
    }


def volume_claims(pod: Pod, uid: str) -> list[Raw]:
    """The PersistentVolumeClaims of a pod's ephemeral volumes, in their order (pkg/controller/volume/ephemeral).

    The pod has that uid.
    """
    found = []
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            like = template.get("metadata", {})
            metadata: Raw = {
                "name": f"{pod.metadata.name}-{volume.name}",
                "namespace": pod.metadata.namespace,
                "ownerReferences": [_owner(pod, uid)],
                **{field: like[field] for field in ("annotations", "labels") if like.get(field)},
            }
            spec = template.get("spec", {})
            found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return found


def _owner(pod: Pod, uid: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
