"""The node lifecycle controller: what a node reports becomes a taint, so that schedulers keep off.

Source: pkg/controller/nodelifecycle (the taints of conditions).
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.meta import Raw
from podium.api.node import Node
from podium.sim.writes import Replace, Write
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent

_NAME = "node-lifecycle-controller"
# By condition that is true when something is wrong.
_TAINTS: Mapping[str, str] = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}


class NodeLifecycle:
    """Taints a node NoSchedule while a condition says that it lacks something.

    Only conditions that change in the run count: the taints that a node has at the start stand as they are given.
    """

    def __init__(self) -> None:
        # By node, the conditions that have changed, in that order.
        self._changed: dict[str, dict[str, bool]] = {}
        self._nodes: dict[str, Stored] = {}

    def observe(self, event: WatchEvent, now: int) -> None:
        node, previous = event.stored.object, event.previous
        if not isinstance(node, Node):
            return
        if event.type == "DELETED":
            self._nodes.pop(event.stored.key, None)
            self._changed.pop(event.stored.key, None)
            return
        self._nodes[event.stored.key] = event.stored
        if previous is None or not isinstance(previous.object, Node):
            return
        before, after = _wrongs(previous.object), _wrongs(node)
        for type_ in sorted(before ^ after):
            self._changed.setdefault(event.stored.key, {})[type_] = type_ in after

    def reconcile(self, now: int) -> list[Write]:
        changed, self._changed = self._changed, {}
        return [_tainted(self._nodes[name], wrongs) for name, wrongs in changed.items()]

    def next_deadline(self) -> int | None:
        return None


def _wrongs(node: Node) -> set[str]:
    return {one.type for one in node.status.conditions if one.type in _TAINTS and one.status == "True"}


def _tainted(stored: Stored, wrongs: Mapping[str, bool]) -> Replace:
    """The node with the taints of what has gone wrong, and without those of what is right again."""
    keys = {_TAINTS[type_] for type_ in wrongs}
    spec: Raw = stored.raw.get("spec", {})
    taints = [taint for taint in spec.get("taints", []) if taint.get("key") not in keys]
    taints += [{"key": _TAINTS[type_], "effect": "NoSchedule"} for type_, is_wrong in wrongs.items() if is_wrong]
    said = [f"taint {_TAINTS[type_]} {'added' if is_wrong else 'removed'}" for type_, is_wrong in wrongs.items()]
    return Replace({**stored.raw, "spec": {**spec, "taints": taints}}, _NAME, ", ".join(said))
