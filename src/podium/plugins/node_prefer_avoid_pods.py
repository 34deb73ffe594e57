"""NodePreferAvoidPods: keeps the pods of a controller off the nodes whose avoid lists name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from podium.api.avoid_list import AvoidEntry, AwaitedPod, avoid_list, avoid_list_text
from podium.api.meta import OwnerReference
from podium.api.node import Node
from podium.cluster.arrays import Int64s, take_out
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cache.class_cache import OneCell
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable

# A controller's uid, or its kind and name.
Key = tuple[str, ...]

# The awaited pod must be evicted within this time after the first eviction.
_FOLLOWS_NS = 60 * 10**9

_NO_ENTRIES: Mapping[int, AvoidEntry] = MappingProxyType({})


class NodePreferAvoidPods:
    """Scores nodes 0 if the pod's controller is on their avoid list, and 100 otherwise.

    Rejects those with an entry that waits for a replacement: for a minute while the pod to be replaced still exists,
    and from its eviction until its replacement has a node or is no longer awaited.
    """

    name = "NodePreferAvoidPods"
    # A pod's class does not include its controller's uid.
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        self._cluster = context.cluster
        self._lists = _AvoidLists(context.cluster.nodes)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SUCCESS if self._lists.about(pod.controller) and self._awaited_by_row(pod.controller) else SKIP

    def never_filters(self, pod_class: PodClass) -> bool:
        return pod_class.owner is None

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        held = self._awaited_by_row(pod.controller)
        rows = sorted(held)
        codes = np.zeros(len(view), dtype=np.int64)
        for number, row in enumerate(rows, 1):
            codes[view.rows == row] = number
        return Verdicts(
            codes, lambda code: unresolvable(f"node(s) were kept for the replacement of pod {held[rows[code - 1]].key}")
        )

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (EventToRegister(EventResource.NODE, ActionType.UPDATE_NODE_OTHER, _lets_in),)

    def _awaited_by_row(self, controller: OwnerReference | None) -> dict[int, AwaitedPod]:
        """Return the pods for whose replacements nodes keep room from a controller's pods, by row."""
        cluster = self._cluster
        held: dict[int, AwaitedPod] = {}
        for row, entry in self._lists.about(controller).items():
            awaited, evicted_ns = entry.until_replaced, entry.eviction_ns
            if awaited is None or evicted_ns is None:
                continue
            until_ns = cluster.replacements.awaits_until_ns(awaited.uid)
            if until_ns is None:
                until_ns = evicted_ns + _FOLLOWS_NS if awaited.uid in cluster.placed else 0
            if cluster.now < until_ns:
                held[row] = awaited
        return held

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods whose controller is on no list, so that the plugin has no effect without lists."""
        return SUCCESS if self._lists.about(pod.controller) else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        scores = np.full(len(view), MAX_NODE_SCORE, dtype=np.int64)
        rows = self._lists.about(pod.controller)
        if rows:
            scores[np.isin(view.rows, np.array(sorted(rows), dtype=np.int64))] = 0
        return scores

    def score_cells(self, pod: PodRecord) -> OneCell | None:
        """Return one cell for all nodes if the pod's controller is on no list."""
        return OneCell.of(pod, lambda pod: not self._lists.about(pod.controller))


class _AvoidLists:
    """The entries of the nodes' avoid lists by the controller that they name, updated with the nodes."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._position = -1
        self._entries: dict[Key, dict[int, AvoidEntry]] = {}
        self._keys_in: dict[int, set[Key]] = {}

    def about(self, controller: OwnerReference | None) -> Mapping[int, AvoidEntry]:
        """Return the entries about a controller, by row."""
        if controller is None:
            return _NO_ENTRIES
        log = self._nodes.node_changes
        if self._position != log.position:
            changed = log.since(self._position) if self._position >= 0 else None
            self._position = log.position
            for row in range(self._nodes.count) if changed is None else changed.tolist():
                self._read(row)
        return self._entries.get(_key_of(controller), _NO_ENTRIES)

    def _read(self, row: int) -> None:
        for key in self._keys_in.pop(row, ()):
            take_out(self._entries, key, row)
        node = self._nodes.nodes[row]
        by_key = {} if node is None else _by_key(node)
        if by_key:
            self._keys_in[row] = set(by_key)
        for key, entry in by_key.items():
            self._entries.setdefault(key, {})[row] = entry


def _key_of(controller: OwnerReference) -> Key:
    return (controller.uid,) if controller.uid else (controller.kind, controller.name)


def _by_key(node: Node) -> dict[Key, AvoidEntry]:
    """Return the entries of the node's avoid list by both keys of their controllers."""
    entries = avoid_list(avoid_list_text(node)).entries
    return {
        key: entry
        for entry in entries
        for key in ((entry.controller.uid,), (entry.controller.kind, entry.controller.name))
    }


def _lets_in(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether a node's entry that kept the pod off is gone."""
    if pod.controller is None or event.old is None or event.new is None:
        return False
    key = _key_of(pod.controller)
    before, after = (_by_key(node).get(key) for node in (event.old, event.new))
    return before is not None and before.until_replaced is not None and before != after
