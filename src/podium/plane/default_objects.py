"""What there is in every cluster from its beginning.

Source: pkg/controlplane/controller/systemnamespaces, pkg/apis/scheduling/v1/helpers.go.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.store.store import Store

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_CLASSES = {
    "system-cluster-critical": (2_000_000_000, "Used for system critical pods that must run in the cluster."),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their node."),
}


def create_default_objects(store: Store, now: int) -> None:
    """Create the namespaces and the PriorityClasses that every cluster has."""
    for name in _NAMESPACES:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, now=now)
    for name, (value, description) in _CLASSES.items():
        raw: Raw = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        store.create({**raw, "value": value, "description": description}, now=now)
