"""The scale subresource: how many pods a workload wants and has (autoscaling/v1 Scale)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.selectors import compile_label_selector, selector_from_labels
from podium.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request, invalid, unknown_kind
from podium.store.stored import Stored

SCALE = APIResource(group="autoscaling", kind="Scale", plural="scales", namespaced=True)

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(stored: Stored) -> Raw:
    """The scale of a workload. Raises StoreError 404 for a kind that has none."""
    workload = stored.object
    if not isinstance(workload, Deployment | ReplicaSet | ReplicationController | StatefulSet):
        raise unknown_kind(f"{stored.kind}/scale")
    if isinstance(workload, ReplicationController):
        selector = selector_from_labels(workload.spec.selector)
    else:
        selector = compile_label_selector(workload.spec.selector)
    metadata = stored.raw["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": workload.spec.replicas},
        "status": {"replicas": stored.raw.get("status", {}).get("replicas", 0), "selector": str(selector)},
    }


def scaled(stored: Stored, scale: Raw) -> Raw:
    """The workload with the number of pods that the scale wants; a scale that gives none wants none.

    Raises StoreError: 400 for what is no scale or is that of another object, 422 for a number below zero.
    """
    metadata, spec = scale.get("metadata"), scale.get("spec", {})
    if scale.get("kind") != "Scale" or not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise bad_request("an autoscaling/v1 Scale with metadata is expected")
    for name in ("name", "namespace"):
        if metadata.get(name, "") not in ("", stored.raw["metadata"].get(name)):
            raise bad_request(f"the scale is that of another object: metadata.{name} differs")
    replicas = spec.get("replicas", 0)
    if type(replicas) is not int or replicas > 2**31 - 1:
        raise bad_request("spec.replicas of a scale is a whole number")
    if replicas < 0:
        raise invalid(stored.resource, stored.key, "must be greater than or equal to 0", "spec.replicas")
    identity = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    return {
        **stored.raw,
        "metadata": {**_unconditional(stored.raw["metadata"]), **identity},
        "spec": {**stored.raw.get("spec", {}), "replicas": replicas},
    }


def _unconditional(metadata: Raw) -> Raw:
    return {name: value for name, value in metadata.items() if name not in ("uid", "resourceVersion")}
