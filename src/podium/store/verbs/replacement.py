"""What becomes of an object that an update replaces, or whose status it replaces."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.store.admission.group_admission import readmit_group
from podium.store.admission.pod_admission import readmit_pod
from podium.store.api_resource import APIResource
from podium.store.api_resources import POD_GROUP
from podium.store.errors import bad_request
from podium.store.stored import Stored
from podium.store.verbs.job_selector import selecting_as_before
from podium.store.verbs.managed_fields import with_kept_managers

_KEPT_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""What no update changes: the server alone writes it."""

_NO_CONTENT = ("apiVersion", "kind", "metadata")


def replaced(previous: Stored, raw: Raw) -> Raw:
    """The object of an update: all but its status, and what the server alone writes, is that of `raw`.

    The generation, where the kind has one, counts the changes of what the object asks for: of all but its metadata and
    status.
    """
    kept = previous.raw["metadata"]
    metadata = {name: value for name, value in raw["metadata"].items() if name not in _KEPT_METADATA}
    metadata |= {name: kept[name] for name in _KEPT_METADATA if name in kept}
    metadata = with_kept_managers(metadata, kept)
    updated = {**raw, "metadata": metadata}
    if previous.resource.has_status:
        updated.pop("status", None)
        if "status" in previous.raw:
            updated["status"] = previous.raw["status"]
    if previous.resource.name == "Pod":
        updated = readmit_pod(updated, previous.raw)
    elif previous.resource.name == "Job":
        updated = selecting_as_before(updated, previous.raw)
    elif previous.resource is POD_GROUP:
        updated = readmit_group(updated, previous.raw)
    if previous.resource.has_generation and _content(previous, updated) != _content(previous, previous.raw):
        metadata["generation"] = metadata.get("generation", 0) + 1
    return updated


def identity(resource: APIResource, raw: Raw) -> tuple[str, str, str]:
    """The key of an object that is to be updated, and the uid and version that it must have; "" for any.

    Without a namespace, an object of a kind that needs one is in `default`. Raises StoreError 400
    for an object that does not say which one it is.
    """
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise bad_request("metadata.name is missing: an update names its object")
    if resource.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    return key_of(metadata), str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")


def key_of(metadata: Raw) -> str:
    """`namespace/name`, or the name alone."""
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _content(previous: Stored, raw: Raw) -> Raw:
    without = (*_NO_CONTENT, "status") if previous.resource.has_status else _NO_CONTENT
    return {name: value for name, value in raw.items() if name not in without}
