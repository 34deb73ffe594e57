"""Whose pod it is, as people mean it."""

from __future__ import annotations

from podium.api.meta import OwnerReference
from podium.api.pod import Pod

_HASH = "pod-template-hash"
_NODE = "Node"


def owner_of(pod: Pod) -> str:
    """The workload that a pod belongs to, as in `Deployment default/web`; "" for a pod on its own."""
    controller = pod.metadata.controller if pod.metadata.owner_references else None
    if controller is None or controller.kind == _NODE:
        return ""
    kind, name = _top(controller, pod.metadata.labels.get(_HASH, ""))
    return f"{kind} {pod.metadata.namespace}/{name}"


def _top(controller: OwnerReference, template_hash: str) -> tuple[str, str]:
    """A ReplicaSet that a Deployment has made bears its name, and the hash with which its pods are labelled."""
    if controller.kind == "ReplicaSet" and template_hash:
        name = controller.name.removesuffix(f"-{template_hash}")
        if name != controller.name:
            return "Deployment", name
    return controller.kind, controller.name
