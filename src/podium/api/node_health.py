"""What a node's conditions say."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.times import format_time

READY = "Ready"
MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"

NODE_NOT_READY = "NodeNotReady"
"""The reason of a pod's condition Ready that is false only because its node is not ready."""

_HEARTBEAT = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)


def condition_status(node: Node, type_: str) -> str:
    """The status of the condition of that type: True, False or Unknown; "" for one that the node does not have."""
    return next((condition.status for condition in node.status.conditions if condition.type == type_), "")


def is_ready(node: Node) -> bool:
    """Whether nothing says that the node is not ready.

    A kubelet that is there but has never reported is taken to be well (pkg/controller/nodelifecycle,
    tryUpdateNodeHealth).
    """
    return condition_status(node, READY) in ("", "True")


def unknown_conditions(raw: Raw, now: int) -> list[Raw] | None:
    """The conditions of a node that is not heard of, from its wire form; None where they say so already.

    NetworkUnavailable is not the kubelet's to report, and stays.
    """
    conditions: list[Raw] = list(raw.get("status", {}).get("conditions", []))
    if not any(condition.get("type") == READY for condition in conditions):
        conditions.append({"type": READY})
    stale = [
        condition
        for condition in conditions
        if condition.get("type") in _HEARTBEAT and condition.get("status") != "Unknown"
    ]
    if not stale:
        return None
    lost = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    return [
        {**condition, **lost, "lastTransitionTime": format_time(now)} if condition in stale else condition
        for condition in conditions
    ]
