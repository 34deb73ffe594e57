"""Binding claims to volumes, as the volume controller and the provisioners of a cluster do."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import CSINode, Node
from podium.api.storage import StorageClass
from podium.machines.actions import BindClaim
from podium.store.errors import conflict
from podium.store.store import Store
from podium.store.stored import Stored

_BOUND = {"phase": "Bound"}
# How the volume controller says that both sides are bound; the scheduler waits for it.
_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}


def bind_claim(store: Store, action: BindClaim, now: int) -> None:
    """Bind the claim to its volume, which is made first where the action names none. Raises StoreError."""
    claim = store.get("PersistentVolumeClaim", action.claim)
    if claim.uid != action.uid:
        raise conflict(claim.resource, claim.key, f"has uid {claim.uid}, not {action.uid}")
    bound_to = claim.raw.get("spec", {}).get("volumeName", "")
    if bound_to not in ("", action.volume):
        raise conflict(claim.resource, claim.key, f"is bound to volume {bound_to}")
    if action.volume:
        volume = store.get("PersistentVolume", action.volume)
    else:
        volume = store.create(_provisioned(store, claim, action.node_name), now=now)
    reference = _reference(claim)
    taken = volume.raw.get("spec", {}).get("claimRef", {}).get("uid", "")
    if taken not in ("", claim.uid):
        raise conflict(volume.resource, volume.key, f"is bound to the claim of uid {taken}")
    store.update({**volume.raw, "spec": {**volume.raw.get("spec", {}), "claimRef": reference}})
    store.update_status(_with_phase(store.get(volume.kind, volume.key)))
    spec = {**claim.raw.get("spec", {}), "volumeName": volume.object.metadata.name}
    metadata = claim.raw["metadata"]
    marked = {**metadata, "annotations": {**metadata.get("annotations", {}), **_COMPLETED}}
    store.update({**claim.raw, "metadata": marked, "spec": spec})
    store.update_status(_with_phase(store.get(claim.kind, claim.key)))


def _with_phase(stored: Stored) -> Raw:
    return {**stored.raw, "status": {**stored.raw.get("status", {}), **_BOUND}}


def _reference(claim: Stored) -> Raw:
    meta = claim.object.metadata
    return {"kind": claim.kind, "namespace": meta.namespace, "name": meta.name, "uid": claim.uid}


def _provisioned(store: Store, claim: Stored, node_name: str) -> Raw:
    """A new volume for the claim, reachable from the nodes of the node's topology as its CSI driver reports it."""
    spec = claim.raw.get("spec", {})
    class_name = spec.get("storageClassName", "")
    provisioner = ""
    found = store.find("StorageClass", class_name)
    if found is not None and isinstance(found.object, StorageClass):
        provisioner = found.object.provisioner
    name = f"pvc-{claim.uid}"
    volume: Raw = {
        "capacity": spec.get("resources", {}).get("requests", {}),
        "accessModes": spec.get("accessModes", []),
        "storageClassName": class_name,
        "claimRef": _reference(claim),
        "csi": {"driver": provisioner, "volumeHandle": name},
    }
    expressions = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(_topology(store, provisioner, node_name).items())
    ]
    if expressions:
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume}


def _topology(store: Store, driver: str, node_name: str) -> dict[str, str]:
    """The node's labels that say from where volumes of the driver can be reached."""
    node, csi_node = store.find("Node", node_name), store.find("CSINode", node_name)
    if node is None or csi_node is None or not isinstance(csi_node.object, CSINode):
        return {}
    if not isinstance(node.object, Node):
        raise TypeError(f"{node.kind} {node.key} is no Node")
    labels = node.object.metadata.labels
    keys = (key for one in csi_node.object.spec.drivers if one.name == driver for key in one.topology_keys)
    return {key: labels[key] for key in keys if key in labels}
