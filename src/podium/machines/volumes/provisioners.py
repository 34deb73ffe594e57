"""The volumes that provisioners make for claims.

They stand for the external provisioners of CSI drivers: a volume is as large as its claim asks, is there at once, and
can be reached from where the driver says that the chosen node is.

Source: github.com/kubernetes-csi/external-provisioner (pkg/controller).
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.meta import Kubernetes, Raw
from podium.api.node import CSINode, Node
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.api.volume_annotations import NO_PROVISIONER, PROVISIONED_BY


class Provisioners:
    """What there is to know about classes and nodes for making volumes."""

    def __init__(self) -> None:
        self._classes: dict[str, StorageClass] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._csi_nodes: dict[str, CSINode] = {}

    def changed(self, object_: Kubernetes) -> None:
        """A class or node was added or changed."""
        name = object_.metadata.name
        if isinstance(object_, StorageClass):
            self._classes[name] = object_
        elif isinstance(object_, Node):
            self._labels[name] = object_.metadata.labels
        elif isinstance(object_, CSINode):
            self._csi_nodes[name] = object_

    def gone(self, object_: Kubernetes) -> None:
        """A class or node is no more."""
        name = object_.metadata.name
        if isinstance(object_, StorageClass):
            self._classes.pop(name, None)
        elif isinstance(object_, Node):
            self._labels.pop(name, None)
        elif isinstance(object_, CSINode):
            self._csi_nodes.pop(name, None)

    def lacking(self, class_name: str, node_name: str) -> tuple[str, str] | None:
        """The kind and name of what must be seen before a volume can be made; None where nothing is lacking."""
        if class_name not in self._classes:
            return "StorageClass", class_name
        return None if node_name in self._labels else ("Node", node_name)

    def volume(self, claim: PersistentVolumeClaim, raw: Raw, node_name: str) -> Raw | None:
        """The volume for a claim that lacks nothing; None where people make the volumes of its class."""
        storage_class = self._classes[claim.class_name]
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return None
        return provisioned(claim, raw, storage_class, self._labels[node_name], self._csi_nodes.get(node_name))


def claim_reference(claim: PersistentVolumeClaim) -> Raw:
    """The claim as its volume names it (`spec.claimRef`)."""
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }


def provisioned(
    claim: PersistentVolumeClaim,
    raw: Raw,
    storage_class: StorageClass,
    labels: Mapping[str, str],
    csi_node: CSINode | None,
) -> Raw:
    """A volume for the claim, which is for it alone, made by the driver of a class for a node with these labels."""
    spec, driver = raw.get("spec", {}), storage_class.provisioner
    name = volume_name(claim)
    volume: Raw = {
        "capacity": spec.get("resources", {}).get("requests", {}),
        "accessModes": spec.get("accessModes", []),
        "storageClassName": spec.get("storageClassName", ""),
        "claimRef": claim_reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
        "csi": {"driver": driver, "volumeHandle": name},
    }
    if "volumeMode" in spec:
        volume["volumeMode"] = spec["volumeMode"]
    expressions = [
        {"key": key, "operator": "In", "values": [labels[key]]}
        for key in sorted(_topology_keys(driver, csi_node))
        if key in labels
    ]
    if expressions:
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    metadata = {"name": name, "annotations": {PROVISIONED_BY: driver}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": volume}


def volume_name(claim: PersistentVolumeClaim) -> str:
    """How the volume that is made for a claim is called."""
    return f"pvc-{claim.metadata.uid}"


def _topology_keys(driver: str, csi_node: CSINode | None) -> set[str]:
    """The labels of the node that say from where volumes of the driver can be reached."""
    if csi_node is None:
        return set()
    return {key for known in csi_node.spec.drivers if known.name == driver for key in known.topology_keys}
