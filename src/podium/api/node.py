"""Nodes and related kinds: Node, Namespace (core/v1), CSINode (storage/v1), RuntimeClass (node.k8s.io/v1).

Announced maintenance is an extension; source: controlled-rescheduling.md, Example use cases ("a known or speculated
future event").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from podium.api.meta import APIStruct, Int32, Int64, Kubernetes, Raw
from podium.api.pod import PodCondition, ResourceList, Toleration
from podium.api.times import format_time, time_of

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
"""The label by which clouds name a node's kind of machine."""

# Keys of taints that the node lifecycle controller puts on nodes, but the third, which an administrator does.
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
EXCLUDED = "node.kubernetes.io/exclude-disruption"


def region_and_zone(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return where a node is, "" each if unknown; its labels of the older names come first (GetZoneKey)."""
    keys = ("failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/")
    return tuple(next((labels[key + one] for key in keys if key + one in labels), "") for one in ("region", "zone"))


class Taint(APIStruct, frozen=True, kw_only=True):
    """A property of a node that repels pods without a matching toleration."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class ContainerImage(APIStruct, frozen=True, kw_only=True):
    """An image on a node: all its names, and its size."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodePodPreemptionPolicy(APIStruct, frozen=True, kw_only=True):
    """The policy of preemption on a node; ``disable_resize_preemption`` names those that forbid it for resizes."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(APIStruct, frozen=True, kw_only=True):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: NodePodPreemptionPolicy = NodePodPreemptionPolicy()


class NodeInfo(APIStruct, frozen=True, kw_only=True):
    """The node's software, as the kubelet reports it."""

    kubelet_version: str = ""


class NodeFeatures(APIStruct, frozen=True, kw_only=True):
    """The features of the node's container runtime."""

    supplemental_groups_policy: bool = False


class NodeStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state of a node. An absent `allocatable` means the capacity."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[PodCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeInfo = NodeInfo()
    features: NodeFeatures = NodeFeatures()


class Node(Kubernetes, frozen=True, kw_only=True):
    """A node (core/v1)."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Kubernetes, frozen=True, kw_only=True):
    """A namespace (core/v1); only its labels are used."""


class VolumeNodeResources(APIStruct, frozen=True, kw_only=True):
    """The maximum number of a driver's volumes on a node; None means unlimited."""

    count: Int32 | None = None


class CSINodeDriver(APIStruct, frozen=True, kw_only=True):
    """A CSI driver on a node."""

    name: str
    node_id: str = msgspec.field(name="nodeID", default="")
    allocatable: VolumeNodeResources | None = None
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(APIStruct, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Kubernetes, frozen=True, kw_only=True):
    """The CSI drivers that a node reports (storage/v1); it has the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


READY = "Ready"
MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"

NODE_NOT_READY = "NodeNotReady"
"""The reason of a pod's condition Ready that is false only because its node is not ready."""

_HEARTBEAT = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)


def condition_status(node: Node, type_: str) -> str:
    """Return the status of the condition of that type: True, False or Unknown; "" if it is absent."""
    return next((condition.status for condition in node.status.conditions if condition.type == type_), "")


def is_ready(node: Node) -> bool:
    """Return whether no condition says that the node is not ready.

    A kubelet that has never reported is assumed to be healthy (pkg/controller/nodelifecycle, tryUpdateNodeHealth).
    """
    return condition_status(node, READY) in ("", "True")


def unknown_conditions(raw: Raw, now: int, *, reports_all: bool) -> list[Raw] | None:
    """Return the conditions of an unresponsive node, from its wire form; None if they are Unknown already.

    NetworkUnavailable is kept, because the kubelet does not report it. With ``reports_all``, conditions that the
    kubelet never posted are added; without it kubelets post few, and only Ready is added.
    """
    changed = format_time(now)
    lost = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    conditions: list[Raw] = list(raw.get("status", {}).get("conditions", []))
    is_stale = False
    for index, condition in enumerate(conditions):
        if condition.get("type") in _HEARTBEAT and condition.get("status") != "Unknown":
            is_stale, conditions[index] = True, {**condition, **lost, "lastTransitionTime": changed}
    if reports_all:
        lost |= {"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
        lost |= {"lastHeartbeatTime": raw["metadata"]["creationTimestamp"]}
    there = {condition.get("type") for condition in conditions}
    missing = [type_ for type_ in (_HEARTBEAT if reports_all else (READY,)) if type_ not in there]
    conditions += [{"type": type_, **lost, "lastTransitionTime": changed} for type_ in missing]
    return conditions if is_stale or missing else None


MAINTENANCE_TIME = "podium.dev/maintenance-time"
"""The annotation of a node that states when it will go down, as a time such as 2026-01-31T09:30:00Z."""


def maintenance_ns(annotations: Mapping[str, str]) -> int | None:
    """Return when the node will go down; None if nothing is announced, or the time is invalid."""
    return time_of(annotations.get(MAINTENANCE_TIME))


class RuntimeOverhead(APIStruct, frozen=True, kw_only=True):
    """The resources that a pod needs in addition to its containers."""

    pod_fixed: ResourceList = {}


class RuntimeScheduling(APIStruct, frozen=True, kw_only=True):
    """The nodes that support the runtime, and the tolerations for their taints."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Kubernetes, frozen=True, kw_only=True):
    """A class of container runtimes (node.k8s.io/v1)."""

    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
