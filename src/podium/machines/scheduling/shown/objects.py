"""What the API shows besides pods: nodes, volumes, namespaces, workloads, budgets."""

from __future__ import annotations

from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod_group import PodGroup
from podium.api.resource_claims import ResourceClaim
from podium.cluster.claim_book import ClaimBook
from podium.cluster.feed import Feed
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.machines.actions import Action
from podium.machines.scheduling.cap_waits import CapWaits
from podium.machines.scheduling.gangs.gangs import Gangs
from podium.machines.scheduling.queue.queue import SchedulingQueue
from podium.machines.scheduling.room import Room
from podium.machines.scheduling.shown.node_changes import node_changes
from podium.machines.scheduling.shown.object_events import object_event

_EVERY_PRIORITY = 2**63


class ObjectsShown:
    """Brings the cluster up to date with changes of objects, and wakes the pods in the queue that they may help."""

    def __init__(
        self, feed: Feed, queue: SchedulingQueue, cap: CapWaits, room: Room, gangs: Gangs, book: ClaimBook
    ) -> None:
        self._feed = feed
        self._queue = queue
        self._cap = cap
        self._room = room
        self._gangs = gangs
        self._book = book

    def changed(self, changed: Kubernetes, now: int) -> list[Action]:
        """An object was added or changed."""
        if isinstance(changed, Node):
            self._node_changed(changed, now)
            return []
        if isinstance(changed, PodGroup):
            return self._group_changed(changed, now)
        if isinstance(changed, DisruptionPolicy):
            self._cap.observe(changed)
        if isinstance(changed, ResourceClaim) and self._book.is_late(changed):
            self._feed.changed(changed)
            return []
        self._move(*self._feed.changed(changed), now)
        return []

    def claim_told(self, claim: ResourceClaim, now: int) -> None:
        """An answer tells a claim as it was written. That is news before it is seen, and then no more."""
        before = self._book.claims.get(claim.key)
        if self._book.tell(claim):
            self._move(before, claim, now)

    def claim_freed(self, claim: ResourceClaim, now: int) -> None:
        """The devices of a claim count as taken no more, but for those that it is known to have."""
        known = self._book.claims.get(claim.key)
        if known is None or not known.is_allocated:
            self._move(claim, replace(claim, status=replace(claim.status, allocation=None)), now)

    def gone(self, gone: Kubernetes, now: int) -> list[Action]:
        """An object is no more; nominations to a node go with it."""
        if isinstance(gone, DisruptionPolicy):
            self._cap.observe(None)
        elif isinstance(gone, PodGroup):
            actions = self._room.plan_ended(gone.key, now)
            self._gangs.group_gone(gone)
            self._feed.gone(gone)
            return actions
        change = self._feed.gone(gone)
        if change is None:
            return []
        if not isinstance(gone, Node):
            self._move(*change, now)
            return []
        name = gone.metadata.name
        self._queue.move(ClusterEvent(EventResource.NODE, ActionType.DELETE, gone, None, "NodeDelete"), now)
        return self._room.taken(name, _EVERY_PRIORITY, f"node {name} is gone", now)

    def _move(self, before: Kubernetes | None, after: Kubernetes | None, now: int) -> None:
        event = object_event(before, after)
        if event is not None:
            self._queue.move(event, now)

    def _group_changed(self, group: PodGroup, now: int) -> list[Action]:
        before = self._gangs.state.group(group.key)
        ends = before is not None and self._gangs.ends_plan(before, group)
        actions = self._room.plan_ended(group.key, now) if ends else []
        self._feed.changed(group)
        self._gangs.group_changed(before, group, now)
        return actions

    def _node_changed(self, node: Node, now: int) -> None:
        old = self._feed.known_node(node.metadata.name)
        changes = ActionType.ADD if old is None else node_changes(old, node)
        if old is not None and _avoid_list(old) != _avoid_list(node):
            self._feed.changed(node)
            # kube-scheduler sees no difference in an annotation. Entries that keep room make one.
            if _keeps_room(old):
                changes |= ActionType.UPDATE_NODE_OTHER
        elif changes:
            self._feed.changed(node)
        if changes:
            label = "NodeAdd" if old is None else "NodeUpdate"
            self._queue.move(ClusterEvent(EventResource.NODE, changes, old, node, label), now)


def _keeps_room(node: Node) -> bool:
    """Whether an entry of the avoid list keeps pods off for another one, so that it makes a difference when it goes."""
    return any(entry.until_replaced is not None for entry in avoid_entries(_avoid_list(node)))


def _avoid_list(node: Node) -> str:
    return node.metadata.annotations.get(PREFER_AVOID_PODS, "")
