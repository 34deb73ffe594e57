"""The handlers of events about objects other than pods: nodes, volumes, namespaces, workloads, budgets."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.api.devices import DeviceTaintRule
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod_group import PodGroup
from podium.api.policy import PodDisruptionBudget
from podium.api.resource_claims import ResourceClaim
from podium.cluster.cluster import ClusterUpdater
from podium.controllers.actions import Action
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.gangs.gangs import Gangs
from podium.controllers.scheduling.property_changes import node_changes
from podium.controllers.scheduling.queue.hints import NodeCheck
from podium.framework.plugin import ActionType, ClusterEvent, EventResource


class ObjectEventHandlers:
    """Updates the cluster with changes of objects, and wakes the pods that they may help.

    ``node_check`` selects the pods that an event about a node concerns; None if queueing hints do.
    """

    def __init__(
        self, attempts: SchedulingAttempts, updater: ClusterUpdater, gangs: Gangs, node_check: NodeCheck | None = None
    ) -> None:
        self.cluster = attempts.cluster
        self.updater = updater
        self.queue = attempts.queue
        self.cap = attempts.cap
        self.known = attempts.known
        self.capacity = attempts.capacity
        self.gangs = gangs
        self.node_check = node_check

    def changed(self, changed: Kubernetes, now: int) -> list[Action]:
        self.known.forget()
        if isinstance(changed, PodGroup):
            return self._group_changed(changed, now)
        if isinstance(changed, Node):
            self._node_changed(changed, now)
        elif isinstance(changed, PodDisruptionBudget):
            self._budget_changed(changed.key, self.updater.changed, changed, now)
        elif isinstance(changed, ResourceClaim) and self.cluster.devices.claim_cache.is_outdated(changed):
            self.updater.changed(changed)
        else:
            if isinstance(changed, DisruptionPolicy):
                self.cap.observe(changed)
            self._move(*self.updater.changed(changed), now)
        return []

    def claim_written(self, claim: ResourceClaim, now: int) -> None:
        """Take in a claim from the answer to its write, before it is observed."""
        before = self.cluster.devices.claim_cache.claims.get(claim.key)
        if self.cluster.devices.claim_cache.apply_answer(claim):
            self._move(before, claim, now)

    def claim_freed(self, claim: ResourceClaim, now: int) -> None:
        """Handle that a claim's devices no longer count as taken, except those of its known allocation."""
        known = self.cluster.devices.claim_cache.claims.get(claim.key)
        if known is None or not known.is_allocated:
            self._move(claim, replace(claim, status=replace(claim.status, allocation=None)), now)

    def gone(self, gone: Kubernetes, now: int) -> list[Action]:
        """Handle the deletion of an object; nominations to a node end with it."""
        self.known.forget()
        if isinstance(gone, DisruptionPolicy):
            self.cap.observe(None)
        elif isinstance(gone, PodGroup):
            actions = self.capacity.gang_plan_ended(gone.key, now)
            self.gangs.group_gone(gone)
            self.updater.gone(gone)
            return actions
        if isinstance(gone, PodDisruptionBudget):
            self._budget_changed(gone.key, self.updater.gone, gone, now)
            return []
        change = self.updater.gone(gone)
        if change is None:
            return []
        if not isinstance(gone, Node):
            self._move(*change, now)
            return []
        name = gone.metadata.name
        if self.node_check is None:
            self.queue.move(ClusterEvent(EventResource.NODE, ActionType.DELETE, gone, None, "NodeDelete"), now)
        return self.capacity.capacity_taken(name, None, f"node {name} is gone", now)

    def _move(self, before: Kubernetes | None, after: Kubernetes | None, now: int) -> None:
        event = object_event(before, after)
        if event is not None:
            self.queue.move(event, now)

    def _budget_changed(
        self, key: str, take: Callable[[PodDisruptionBudget], object], budget: PodDisruptionBudget, now: int
    ) -> None:
        """Update a budget; wake its waiting pods if it may allow more than before."""
        before = self.cluster.budgets.find(key)
        take(budget)
        after = self.cluster.budgets.find(key)
        if before is None or (after is not None and not after.allows_more_than(before)):
            return
        action = ActionType.DELETE if after is None else ActionType.UPDATE_OTHER
        label = f"{EventResource.POD_DISRUPTION_BUDGET.value}{'Delete' if after is None else 'Change'}"
        self.queue.move(ClusterEvent(EventResource.POD_DISRUPTION_BUDGET, action, before, after, label), now)

    def _group_changed(self, group: PodGroup, now: int) -> list[Action]:
        before = self.gangs.state.group(group.key)
        ends = before is not None and self.gangs.ends_plan(before, group)
        actions = self.capacity.gang_plan_ended(group.key, now) if ends else []
        self.updater.changed(group)
        self.gangs.group_changed(before, group, now)
        # It may be complete.
        return actions + self.gangs.look_at(group, now)

    def _node_changed(self, node: Node, now: int) -> None:
        old = self.updater.known_node(node.metadata.name)
        changes = ActionType.ADD if old is None else node_changes(old, node)
        if old is not None and _avoid_list(old) != _avoid_list(node):
            self.updater.changed(node)
            # kube-scheduler ignores annotations; entries that reserve capacity matter here.
            if any(entry.until_replaced is not None for entry in avoid_entries(_avoid_list(old))):
                changes |= ActionType.UPDATE_NODE_OTHER
        elif changes:
            self.updater.changed(node)
        if changes:
            label = "NodeAdd" if old is None else "NodeUpdate"
            concerned = None if self.node_check is None else self.node_check.of(node)
            self.queue.move(ClusterEvent(EventResource.NODE, changes, old, node, label), now, concerned)


def _avoid_list(node: Node) -> str:
    return node.metadata.annotations.get(PREFER_AVOID_PODS, "")


# By kind.
_RESOURCES: dict[str, EventResource] = {
    **{resource.value: resource for resource in EventResource},
    # A rule counts as a change of the slices that it taints.
    "DeviceTaintRule": EventResource.RESOURCE_SLICE,
    **dict.fromkeys(("ReplicationController", "ReplicaSet", "StatefulSet"), EventResource.WORKLOAD),
}


def object_event(old: Kubernetes | None, new: Kubernetes | None) -> ClusterEvent | None:
    """Return the event; None for kinds that make no pod schedulable. Without ``old`` it may be new or changed."""
    item = new if new is not None else old
    resource = _RESOURCES.get(type(item).__name__)
    if resource is None:
        return None
    if isinstance(item, DeviceTaintRule):
        action = ActionType.UPDATE_OTHER
    elif new is None:
        action = ActionType.DELETE
    else:
        action = ActionType.UPDATE_OTHER if old is not None else ActionType.ADD | ActionType.UPDATE_OTHER
    return ClusterEvent(resource, action, old, new, f"{resource.value}{'Delete' if new is None else 'Change'}")
