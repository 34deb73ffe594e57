"""What the API server fills in when an object is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.qos import qos_class
from podium.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus
from podium.api.times import format_time
from podium.api.workloads import Job
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request
from podium.store.stored import reread
from podium.store.verbs.job_selector import selecting_its_own

# Whoever registers a node reports on it in the same request.
_REPORTED_AT_CREATION = frozenset(("Node",))
_PENDING = "Pending"
Reading = TypeVar("Reading", bound=Kubernetes)
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


def with_first_status(raw: Raw, object_: Kubernetes) -> tuple[Raw, Kubernetes]:
    """Both forms of a new object with what can be said of it before anybody has looked at it.

    Source: the strategies of pkg/registry/core (pod, persistentvolume, persistentvolumeclaim).
    """
    if isinstance(object_, Pod):
        return {**raw, "status": {**raw["status"], "qosClass": qos_class(object_.spec)}}, object_
    if isinstance(object_, PersistentVolume):
        object_ = replace(object_, status=PersistentVolumeStatus(phase=_PENDING))
        return {**raw, "status": {"phase": _PENDING}}, object_
    if isinstance(object_, PersistentVolumeClaim):
        return {**raw, "status": {"phase": _PENDING}}, object_
    return raw, object_


def with_uid(raw: Raw, object_: Kubernetes, uid: str) -> tuple[Raw, Kubernetes]:
    """Both forms of an object with its identity, and a Job with the selector that follows from it.

    Its metadata are those that `with_metadata` has made for it.
    """
    raw["metadata"]["uid"] = uid
    object_ = replace(object_, metadata=replace(object_.metadata, uid=uid))
    if isinstance(object_, Job):
        selecting = selecting_its_own(raw, object_.metadata.name, uid)
        return selecting, reread(object_, raw, selecting)
    return raw, object_


def read_with_metadata(reading: Reading, raw: Raw) -> Reading:
    """The reading of an object that `with_metadata` has made, where there is one of what it was made of."""
    given = raw["metadata"]
    metadata = replace(
        reading.metadata,
        name=given.get("name", ""),
        namespace=given.get("namespace", ""),
        generation=given.get("generation", 0),
        creation_timestamp=given["creationTimestamp"],
    )
    return replace(reading, metadata=metadata)


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
    if not metadata.get("name"):
        base = metadata.get("generateName")
        if isinstance(base, str) and base:
            metadata["name"] = free_name(resource.name, str(metadata.get("namespace", "")), base)
    return {**raw, "metadata": metadata}
