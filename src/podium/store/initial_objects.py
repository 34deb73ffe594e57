"""The objects that every cluster has before anybody has asked for anything.

Source: pkg/controlplane (controller/systemnamespaces, controller/kubernetesservice), pkg/registry/scheduling/rest, and
the service account controller.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.store.admission.services import KUBERNETES_ADDRESS
from podium.store.store import Store
from podium.store.verbs.replacement import key_of

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their node."),
)


def create_initial_objects(store: Store, *, now: int) -> None:
    """Create those that are not there: namespaces, each with an account, the classes of the system, one Service."""
    for raw in initial_objects():
        if store.find(raw["kind"], key_of(raw["metadata"])) is None:
            store.create(raw, now=now, is_new=True)


def initial_objects() -> list[Raw]:
    """The objects, in the order in which they are to be created; the accounts come with their namespaces."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": False,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value, description in _CLASSES
    ]
    service: Raw = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": KUBERNETES_ADDRESS,
            "clusterIPs": [KUBERNETES_ADDRESS],
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
    }
    return [*namespaces, *classes, service]
