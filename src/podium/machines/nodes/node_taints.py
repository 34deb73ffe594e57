"""Which taints follow from what a node reports and from whether it is unschedulable.

Source: pkg/controller/nodelifecycle (doNoScheduleTaintingPass, doNoExecuteTaintingPass).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.times import format_time

TaintName = tuple[str, str]
"""The key and the effect."""

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# By the type and the status of a condition.
_OF_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
EVICTING: frozenset[TaintName] = frozenset((key, "NoExecute") for key in (NOT_READY, UNREACHABLE))
"""The taints that drive pods off a node that is not ready."""

MANAGED = EVICTING | {(key, "NoSchedule") for key in (*_OF_CONDITIONS.values(), _UNSCHEDULABLE)}
"""All taints that follow from a node's state."""


def wanted_taints(node: Node) -> set[TaintName]:
    """The taints that the node should have, of those that follow from its state."""
    states = {(condition.type, condition.status) for condition in node.status.conditions}
    keys = {key for state, key in _OF_CONDITIONS.items() if state in states}
    if node.spec.unschedulable:
        keys.add(_UNSCHEDULABLE)
    return {(key, "NoSchedule") for key in keys} | {(key, "NoExecute") for key in keys & {NOT_READY, UNREACHABLE}}


def present_taints(node: Node) -> set[TaintName]:
    """The taints that the node has, of those that follow from a node's state."""
    names: set[TaintName] = {(taint.key, taint.effect) for taint in node.spec.taints}
    return names & MANAGED


def changed_taints(taints: Sequence[Raw], changes: Collection[TaintName], now: int) -> tuple[list[Raw], str]:
    """The taints of a node after each of the ``changes`` was added, or removed if it was there; and that in words."""
    left = [taint for taint in taints if (taint.get("key"), taint.get("effect")) not in changes]
    before = {(taint.get("key"), taint.get("effect")) for taint in taints}
    said = []
    for key, effect in sorted(changes):
        is_new = (key, effect) not in before
        name = f"{key}:{effect}" if effect == "NoExecute" else key
        said.append(f"taint {name} {'added' if is_new else 'removed'}")
        if is_new:
            added = {"timeAdded": format_time(now)} if effect == "NoExecute" else {}
            left.append({"key": key, "effect": effect, **added})
    return left, ", ".join(said)
