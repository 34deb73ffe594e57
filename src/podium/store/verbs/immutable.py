"""Fields that stay as they were when the object was created (the ValidateUpdate functions of pkg/apis).

Which they are stands in the schemas of the kinds (`podium.api.schemas.schema`), but for those with rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.api.meta import Raw
from podium.api.policy import PriorityClass
from podium.api.schemas.schema import immutable_paths
from podium.store.errors import invalid
from podium.store.stored import Stored
from podium.store.verbs.job_update import check_job_update
from podium.store.verbs.pod_update import check_pod_update
from podium.store.verbs.volume_update import check_claim_update, check_volume_update

_SEALED = ("ConfigMap", "Secret")
_SEALED_FIELDS = ("immutable", "data", "binaryData")
_PROBLEM = "the field is immutable"


def check_update(previous: Stored, raw: Raw, object_: object) -> None:
    """Raise StoreError 422 for an update that changes what cannot be changed."""
    resource, key = previous.resource, previous.key
    for path in immutable_paths(resource.group, resource.kind):
        if _at(previous.raw, path) != _at(raw, path):
            raise invalid(resource, key, _PROBLEM, ".".join(path))
    if previous.raw.get("immutable") is True and resource.name in _SEALED:
        changed = next((field for field in _SEALED_FIELDS if previous.raw.get(field) != raw.get(field)), None)
        if changed is not None:
            problem = "Forbidden: field is immutable when `immutable` is set"
            raise invalid(resource, key, problem, changed, "FieldValueForbidden")
    check = _CHECKS.get(resource.name)
    if check is not None:
        check(previous, raw)
    old = previous.object
    if isinstance(old, PriorityClass) and isinstance(object_, PriorityClass):
        if old.value != object_.value:
            raise invalid(resource, key, _PROBLEM, "value", "FieldValueForbidden")
        if old.preemption_policy != object_.preemption_policy:
            raise invalid(resource, key, _PROBLEM, "preemptionPolicy")
    _check_finalizers(previous, raw)


def _check_address(previous: Stored, raw: Raw) -> None:
    """The address of a Service stays; one of type ExternalName has none (ValidateServiceUpdate)."""
    before, after = previous.raw.get("spec") or {}, raw.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")) or not before.get("clusterIP"):
        return
    if before["clusterIP"] != after.get("clusterIP"):
        raise invalid(previous.resource, previous.key, "may not change once set", "spec.clusterIPs[0]")


def _check_node(previous: Stored, raw: Raw) -> None:
    """A node keeps what it was once given (ValidateNodeUpdate)."""
    before, after = previous.raw.get("spec") or {}, raw.get("spec") or {}
    for field in ("podCIDR", "podCIDRs", "providerID"):
        if before.get(field) and before[field] != after.get(field):
            problem = f'Forbidden: node updates may not change {field} except from "" to valid'
            raise invalid(previous.resource, previous.key, problem, f"spec.{field}", "FieldValueForbidden")


def _check_pod(previous: Stored, raw: Raw) -> None:
    check_pod_update(previous, raw["spec"])


_CHECKS: Mapping[str, Callable[[Stored, Raw], None]] = {
    "Job": check_job_update,
    "Node": _check_node,
    "PersistentVolume": check_volume_update,
    "PersistentVolumeClaim": check_claim_update,
    "Pod": _check_pod,
    "Service": _check_address,
}


def _check_finalizers(previous: Stored, raw: Raw) -> None:
    before = previous.object.metadata
    if before.deletion_timestamp is None:
        return
    added = [finalizer for finalizer in raw["metadata"].get("finalizers", ()) if finalizer not in before.finalizers]
    if added:
        problem = f"an object that is being deleted takes no new finalizers, such as {added[0]}"
        raise invalid(previous.resource, previous.key, problem, "metadata.finalizers", "FieldValueForbidden")


def _at(raw: Raw, path: tuple[str, ...]) -> Any:
    value: Any = raw
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    # Nothing, an empty list and an empty object are all the same to Kubernetes.
    return value or None
