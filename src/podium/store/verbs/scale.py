"""The scale subresource: the desired and actual replicas of a workload (autoscaling/v1 Scale)."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.api.nested import object_at, value_at
from podium.api.selectors import compile_label_selector, selector_from_labels
from podium.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request, invalid, unknown_kind
from podium.store.stored import Stored

SCALE = APIResource(group="autoscaling", kind="Scale", plural="scales", namespaced=True)

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(stored: Stored) -> Raw:
    """Return the scale of a workload. Raises StoreError 404 for a kind that has none."""
    workload = stored.object
    paths = stored.resource.scale_paths
    if paths is not None:
        selector = value_at(stored.raw, *paths.label_selector) if paths.label_selector else ""
        replicas, current = value_at(stored.raw, *paths.spec_replicas), value_at(stored.raw, *paths.status_replicas)
        return _scale(stored, replicas or 0, current, selector)
    if not isinstance(workload, Deployment | ReplicaSet | ReplicationController | StatefulSet):
        raise unknown_kind(f"{stored.kind}/scale")
    if isinstance(workload, ReplicationController):
        selector = selector_from_labels(workload.spec.selector)
    else:
        selector = compile_label_selector(workload.spec.selector)
    return _scale(stored, workload.spec.replicas, stored.raw.get("status", {}).get("replicas", 0), selector)


def _scale(stored: Stored, replicas: Any, current: Any, selector: object) -> Raw:
    metadata = stored.raw["metadata"]
    status = {"replicas": current or 0, **({"selector": str(selector)} if selector else {})}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": replicas},
        "status": status,
    }


def replicas_path(stored: Stored) -> tuple[str, ...]:
    """Return the path of a workload's desired replicas. Raises StoreError 404 for a kind without a scale."""
    if not stored.resource.has_scale:
        raise unknown_kind(f"{stored.kind}/scale")
    paths = stored.resource.scale_paths
    return ("spec", "replicas") if paths is None else paths.spec_replicas


def with_value(raw: Raw, path: tuple[str, ...], value: Any) -> Raw:
    """Return the object with a value at a path of fields."""
    name, *rest = path
    return {**raw, name: with_value(object_at(raw, name), tuple(rest), value) if rest else value}


def nested(path: tuple[str, ...], value: Any) -> Raw:
    """Return an object with a value at a path of fields and nothing else; an empty object for None."""
    return {} if value is None else with_value({}, path, value)


def scaled(stored: Stored, scale: Raw) -> Raw:
    """Return the workload with the replicas of the scale; a scale without replicas means 0.

    Raises StoreError: 400 for a malformed scale or that of another object, 422 for a negative number.
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
    required = {name: metadata.get(name, "") for name in ("uid", "resourceVersion")}
    raw = {**stored.raw, "metadata": {**stored.raw["metadata"], **required}}
    return with_value(raw, replicas_path(stored), replicas)
