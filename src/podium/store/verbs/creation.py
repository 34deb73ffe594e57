"""What the API server fills in when an object is created."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.qos import qos_class
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.times import format_time
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request

# Whoever registers a node reports on it in the same request.
_REPORTED_AT_CREATION = frozenset(("Node",))
# What waits for a controller to find out whom it belongs to.
_PENDING = (PersistentVolume, PersistentVolumeClaim)
# What the API server alone gives a new object.
_GIVEN = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "uid",
)


def as_new(raw: Raw, resource: APIResource) -> Raw:
    """The object without what clients cannot say about a new one: its identity, its times, and its status."""
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        raw = {**raw, "metadata": {name: value for name, value in metadata.items() if name not in _GIVEN}}
    if resource.has_status and resource.name not in _REPORTED_AT_CREATION:
        raw = {name: value for name, value in raw.items() if name != "status"}
    return raw


def with_first_status(raw: Raw, object_: Kubernetes) -> Raw:
    """A new object with what can be said of it before anybody has looked at it.

    Source: the strategies of pkg/registry/core (pod, persistentvolume, persistentvolumeclaim).
    """
    if isinstance(object_, Pod):
        return {**raw, "status": {**raw["status"], "qosClass": qos_class(object_.spec)}}
    return {**raw, "status": {"phase": "Pending"}} if isinstance(object_, _PENDING) else raw


def with_uid(raw: Raw, object_: Kubernetes, uid: str) -> tuple[Raw, Kubernetes]:
    """Both forms of an object with its identity."""
    metadata = msgspec.structs.replace(object_.metadata, uid=uid)
    return {**raw, "metadata": {**raw["metadata"], "uid": uid}}, msgspec.structs.replace(object_, metadata=metadata)


def with_metadata(raw: Raw, resource: APIResource, now: int, free_name: Callable[[str, str, str], str]) -> Raw:
    """The object with a time of creation, a namespace where it needs one, a name, and a generation if its kind has one.

    `free_name` makes up a name, given the kind, the namespace and the base. Raises StoreError 400 for metadata that is
    none.
    """
    given = raw.get("metadata", {})
    if not isinstance(given, dict):
        raise bad_request("metadata is not an object")
    metadata = {"creationTimestamp": format_time(now), **given}
    if resource.has_generation:
        metadata.setdefault("generation", 1)
    if resource.namespaced:
        metadata["namespace"] = given.get("namespace") or "default"
    base = metadata.get("generateName")
    if not metadata.get("name") and isinstance(base, str) and base:
        metadata["name"] = free_name(resource.name, str(metadata.get("namespace", "")), base)
    return {**raw, "metadata": metadata}
