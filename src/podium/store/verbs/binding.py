"""Binding a pod to a node (POST pods/binding)."""

from __future__ import annotations

from msgspec import convert
from msgspec.structs import replace

from podium.api.meta import Raw
from podium.api.pod import Pod, PodCondition
from podium.store.conditions import with_condition
from podium.store.errors import StoreError, conflict
from podium.store.stored import Stored

_CONDITIONS = tuple[PodCondition, ...]
_SCHEDULED = {"type": "PodScheduled", "status": "True"}


def check_binding(stored: Stored, pod: Pod, target_kind: str, node_name: str) -> None:
    """Raise StoreError for a pod that cannot be bound there (pkg/registry/core/pod/storage, setPodNodeAndMetadata).

    409 for a pod that is bound, terminating or gated; 500 for a target that is no node, as the API server does.
    """
    if target_kind not in ("", "Node") or not node_name:
        raise StoreError(500, "", f"a pod is bound to a Node with a name, not to {target_kind} {node_name}")
    problem = ""
    if pod.is_terminating:
        problem = "is being deleted, cannot be assigned to a host"
    elif pod.spec.node_name:
        problem = f"is already assigned to node {pod.spec.node_name}"
    elif pod.spec.scheduling_gates:
        problem = "has non-empty .spec.schedulingGates"
    if problem:
        raise conflict(stored.resource, stored.key, problem)


def bound(pod: Pod, raw: Raw, node_name: str, now: int) -> tuple[Raw, Pod]:
    """The pod with its node, PodScheduled=True and no nomination: both forms."""
    metadata, spec, status = raw["metadata"].copy(), raw["spec"].copy(), raw["status"].copy()
    generation = metadata["generation"] = metadata["generation"] + 1
    spec["nodeName"] = node_name
    status.pop("nominatedNodeName", None)
    conditions = status["conditions"] = with_condition(status.get("conditions", []), _SCHEDULED, now)
    # What changes is known field by field: nothing else needs to be read again.
    on_node = replace(
        pod,
        metadata=replace(pod.metadata, generation=generation),
        spec=replace(pod.spec, node_name=node_name),
        status=replace(pod.status, nominated_node_name="", conditions=convert(conditions, _CONDITIONS)),
    )
    return {**raw, "metadata": metadata, "spec": spec, "status": status}, on_node
