"""The Node and the Namespace (core/v1), and the CSINode (storage/v1)."""

from __future__ import annotations

from typing import Literal

from podium.api.meta import Int32, Int64, Kubernetes, Narrow
from podium.api.pod import PodCondition, ResourceList


class Taint(Narrow, frozen=True, kw_only=True):
    """A mark on a node that keeps off pods which do not tolerate it."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class ContainerImage(Narrow, frozen=True, kw_only=True):
    """An image that a node has: all its names, and its size."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSpec(Narrow, frozen=True, kw_only=True):
    """What was decided about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Narrow, frozen=True, kw_only=True):
    """What a node has. An absent `allocatable` means the capacity."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[PodCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Kubernetes, frozen=True, kw_only=True):
    """A node (core/v1)."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Kubernetes, frozen=True, kw_only=True):
    """A namespace (core/v1); only its labels matter here."""


class VolumeNodeResources(Narrow, frozen=True, kw_only=True):
    """How many volumes of a driver a node can attach; None means without limit."""

    count: Int32 | None = None


class CSINodeDriver(Narrow, frozen=True, kw_only=True):
    """A CSI driver that runs on a node."""

    name: str
    allocatable: VolumeNodeResources | None = None
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(Narrow, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Kubernetes, frozen=True, kw_only=True):
    """What a node's CSI drivers reported (storage/v1), named like the node."""

    spec: CSINodeSpec = CSINodeSpec()
