"""NodePreferAvoidPods: a node whose avoid list names a pod's controller is liked least.

With the weight that it has by default, 10,000, all other scores together count for less. Two things differ from the
plugin of this name that kube-scheduler once had: controllers of any kind are avoided, not ReplicationControllers and
ReplicaSets alone; and a pod whose controller has no uid, as in a manifest, is known by the kind and name of it.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods"; in kube-scheduler up to v1.23,
pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go.
"""

from __future__ import annotations

import numpy as np

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.api.meta import OwnerReference
from podium.api.node import Node
from podium.cluster.arrays import Int64s
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.kept.cells import OneCell
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status

# What a controller is looked up by: its uid alone, or kind and name.
Key = tuple[str, ...]


class NodePreferAvoidPods:
    """Rates nodes with 0 where the pod's controller is on their avoid list, and with 100 elsewhere."""

    name = "NodePreferAvoidPods"
    # The pod's class does not tell its controller's uid.
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        self._lists = _AvoidLists(context.cluster.nodes)

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods whose controller is on no list, so that nothing changes where there are none."""
        return SUCCESS if pod.controller and self._lists.rows_avoided_by(pod.controller) else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """0 or 100; 100 everywhere for a pod without a controller."""
        scores = np.full(len(view), MAX_NODE_SCORE, dtype=np.int64)
        rows = self._lists.rows_avoided_by(pod.controller) if pod.controller else ()
        if rows:
            scores[np.isin(view.rows, np.array(sorted(rows), dtype=np.int64))] = 0
        return scores

    def score_cells(self, pod: PodRecord) -> OneCell | None:
        """One for all nodes, where the pod's controller is on no list."""
        return OneCell.of(pod, self._is_spared)

    def _is_spared(self, pod: PodRecord) -> bool:
        return not pod.controller or not self._lists.rows_avoided_by(pod.controller)


class _AvoidLists:
    """The rows whose avoid list names a controller; lists are read again when their nodes have changed."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._position = -1
        self._rows_of: dict[Key, set[int]] = {}
        self._keys_in: dict[int, set[Key]] = {}

    def rows_avoided_by(self, controller: OwnerReference) -> set[int]:
        """The rows of the nodes that the controller's pods should keep off."""
        self._refresh()
        key = (controller.uid,) if controller.uid else (controller.kind, controller.name)
        return self._rows_of.get(key, set())

    def _refresh(self) -> None:
        log = self._nodes.node_changes
        changed = log.since(self._position) if self._position >= 0 else None
        self._position = log.position
        for row in range(self._nodes.count) if changed is None else changed.tolist():
            self._read(row)

    def _read(self, row: int) -> None:
        for key in self._keys_in.pop(row, ()):
            self._rows_of[key].discard(row)
            if not self._rows_of[key]:
                del self._rows_of[key]
        node = self._nodes.nodes[row]
        keys = set() if node is None else _keys(node)
        if keys:
            self._keys_in[row] = keys
        for key in keys:
            self._rows_of.setdefault(key, set()).add(row)


def _keys(node: Node) -> set[Key]:
    """What the controllers on the node's avoid list can be looked up by."""
    controllers = [
        avoid_entry.controller for avoid_entry in avoid_entries(node.metadata.annotations.get(PREFER_AVOID_PODS, ""))
    ]
    return {key for controller in controllers for key in ((controller.uid,), (controller.kind, controller.name))}
