"""Binding a pod to a node (POST pods/binding)."""

from __future__ import annotations

import msgspec

from podium.api.pod import Pod
from podium.store.conditions import with_condition
from podium.store.stored import Raw, reread

_SCHEDULED = {"type": "PodScheduled", "status": "True"}


def binding_problem(pod: Pod) -> str:
    """Why the pod cannot be bound, "" when it can (pkg/registry/core/pod/storage, setPodNodeAndMetadata)."""
    if pod.is_terminating:
        return "is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f"is already assigned to node {pod.spec.node_name}"
    if pod.spec.scheduling_gates:
        return "has non-empty .spec.schedulingGates"
    return ""


def bound(pod: Pod, raw: Raw, node_name: str, now: int) -> tuple[Raw, Pod]:
    """The pod with its node, PodScheduled=True and no nomination: both forms."""
    status = {name: value for name, value in raw["status"].items() if name != "nominatedNodeName"}
    status["conditions"] = with_condition(status.get("conditions", []), _SCHEDULED, now)
    metadata = {**raw["metadata"], "generation": raw["metadata"]["generation"] + 1}
    spec = {**raw["spec"], "nodeName": node_name}
    after = {**raw, "metadata": metadata, "spec": spec, "status": status}
    # The spec is the largest part, and only one field of it changes: it need not be read again.
    on_node = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
    return after, reread(on_node, {**raw, "spec": spec}, after)
