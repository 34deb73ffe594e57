"""The kinds of objects that Podium reads, by API group and kind; the version does not matter."""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import CSINode, Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import ResourceQuota
from podium.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.api.workloads import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: its API group ("" is the core) and name, whether it has a namespace, its reading.

    `version` is what Podium writes where it names the kind.
    """

    group: str
    name: str
    namespaced: bool
    type: type[Kubernetes]
    version: str = "v1"


_KINDS = (
    Kind("", "Namespace", False, Namespace),
    Kind("", "Node", False, Node),
    Kind("", "PersistentVolume", False, PersistentVolume),
    Kind("", "PersistentVolumeClaim", True, PersistentVolumeClaim),
    Kind("", "Pod", True, Pod),
    Kind("", "ReplicationController", True, ReplicationController),
    Kind("", "ResourceQuota", True, ResourceQuota),
    Kind("", "Service", True, Service),
    Kind("apps", "ControllerRevision", True, ControllerRevision),
    Kind("apps", "DaemonSet", True, DaemonSet),
    Kind("apps", "Deployment", True, Deployment),
    Kind("apps", "ReplicaSet", True, ReplicaSet),
    Kind("apps", "StatefulSet", True, StatefulSet),
    Kind("batch", "Job", True, Job),
    Kind("podium.dev", "DisruptionPolicy", False, DisruptionPolicy, "v1alpha1"),
    Kind("policy", "PodDisruptionBudget", True, PodDisruptionBudget),
    Kind("scheduling.k8s.io", "PriorityClass", False, PriorityClass),
    Kind("storage.k8s.io", "CSIDriver", False, CSIDriver),
    Kind("storage.k8s.io", "CSINode", False, CSINode),
    Kind("storage.k8s.io", "CSIStorageCapacity", True, CSIStorageCapacity),
    Kind("storage.k8s.io", "StorageClass", False, StorageClass),
)
KINDS = {(kind.group, kind.name): kind for kind in _KINDS}
_GROUP_OF = {kind.name: kind.group for kind in _KINDS}
_BUILT_IN_GROUPS = frozenset((*_GROUP_OF.values(), "extensions"))


def group_of(api_version: str) -> str:
    """The API group of an `apiVersion` such as apps/v1; "" for the core's v1."""
    return api_version.rpartition("/")[0]


def right_group(group: str, kind: str) -> str | None:
    """The group that has the kind, when `group` is a built-in one that has it not; else None."""
    right = _GROUP_OF.get(kind)
    return right if right is not None and right != group and group in _BUILT_IN_GROUPS else None
