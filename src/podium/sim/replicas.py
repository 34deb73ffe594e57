"""How a workload comes to have as many pods as it wants: new pods from its template, and the ones to do without."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.sim.writes import Create, Delete, Write
from podium.store.stored import Stored


def label(object_: Kubernetes) -> str:
    """The object as history names it, such as `ReplicaSet default/web`."""
    return f"{object_.kind} {object_.key}"


def owner_reference(owner: Stored) -> Raw:
    """The reference that makes `owner` the controller of what carries it."""
    return {
        "apiVersion": owner.raw["apiVersion"],
        "kind": owner.kind,
        "name": owner.object.metadata.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def scale(owner: Stored, pods: Iterable[Pod], wanted: int, labels: Raw) -> list[Write]:
    """What brings the owner's active `pods` to the wanted number; new pods carry `labels` beside the template's."""
    active = list(pods)
    if wanted >= len(active):
        return [_new_pod(owner, labels)] * (wanted - len(active))
    excess = sorted(active, key=_dispensability)[: len(active) - wanted]
    return [Delete("Pod", pod.key, pod.metadata.uid, label(owner.object)) for pod in excess]


def _new_pod(owner: Stored, labels: Raw) -> Create:
    template = owner.raw.get("spec", {}).get("template", {})
    meta = owner.object.metadata
    given = template.get("metadata", {})
    metadata = {
        "generateName": f"{meta.name}-",
        "namespace": meta.namespace,
        "labels": {**given.get("labels", {}), **labels},
        "annotations": given.get("annotations", {}),
        "ownerReferences": [owner_reference(owner)],
    }
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec", {})}
    return Create(raw, label(owner.object))


def _dispensability(pod: Pod) -> tuple[bool, bool, bool, int, str]:
    """Pods in the order in which a workload gives them up (pkg/controller, ActivePodsWithRanks)."""
    ready = pod.status.condition("Ready")
    created = parse_time(pod.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    return (
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        ready is not None and ready.status == "True",
        -created,
        pod.metadata.uid,
    )
