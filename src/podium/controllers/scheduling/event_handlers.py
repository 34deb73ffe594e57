"""The handlers of events about pods, and about other objects: nodes, volumes, namespaces, workloads, budgets.

Source: pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from msgspec.structs import replace

from podium.api.avoid_list import avoid_list, avoid_list_text
from podium.api.devices import DeviceTaintRule, ResourceClaim
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PodDisruptionBudget
from podium.cluster.cluster import Cluster, ClusterUpdater
from podium.cluster.pods import PodRecord, differs_by_node_alone, differs_by_nomination_alone
from podium.cluster.replacements import WORKLOAD_DISRUPTED_AT
from podium.controllers.actions import Action, Nominate, PatchObject
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.deferred_resizes import DeferredResizes
from podium.controllers.scheduling.gangs.gangs import Gangs
from podium.controllers.scheduling.queue.hints import NodeCheck, assigned_event, node_changes
from podium.framework.events import ActionType, ClusterEvent, EventResource


class EventHandlers:
    """Updates cluster, queue and binding cycles with what the API shows, and wakes the pods that a change may help.

    ``ends_nominations``: the API server clears nominations with bindings. ``node_check`` selects the pods that an event
    about a node concerns; None if queueing hints do.
    """

    def __init__(
        self,
        attempts: SchedulingAttempts,
        updater: ClusterUpdater,
        gangs: Gangs,
        resizes: DeferredResizes,
        *,
        ends_nominations: bool,
        node_check: NodeCheck | None = None,
    ) -> None:
        self.cluster = attempts.cluster
        self.updater = updater
        self.queue = attempts.queue
        self.cap = attempts.cap
        self.known = attempts.known
        self.capacity = attempts.capacity
        self.gangs = gangs
        self.resizes = resizes
        self.runners = attempts.runners
        self.bindings = attempts.bindings
        self.preemptions = attempts.preemptions
        self.futile = attempts.futile
        self.reports = attempts.reports
        self.ends_nominations = ends_nominations
        self.node_check = node_check
        self._assumed = AssumedPods(self.cluster)

    # Pods

    def pod_changed(self, pod: Pod, now: int) -> list[Action]:
        if pod.spec.node_name:
            assumed = self._assumed.take(pod) if pod.status.phase == "Pending" else None
            return self._read(pod, now) if assumed is None else self._on_assigned(assumed, now)
        nominated = self._assumed.nominated(pod)
        if nominated is None:
            return self._read(pod, now)
        self._pending(nominated, pod, now)
        self._assumed[nominated.uid] = pod, nominated
        return []

    def _read(self, pod: Pod, now: int) -> list[Action]:
        """Handle a pod that must be read in full."""
        before, record, replaced = self.updater.pod_changed(pod)
        actions: list[Action] = [] if replaced is None else self._withdraw(replaced, now)
        if record is None:
            if pod.spec.node_name and pod.status.nominated_node_name:
                actions += self._clear_stray(pod)
            if before is None:
                # The preemption of a pod that failed meanwhile may have been futile.
                self.futile.restore_lost(pod, now)
                return actions
            if pod.status.phase == "Failed":
                self.futile.on_rejected(before, pod.spec.node_name, now)
            return actions + self._withdraw(before, now)
        is_running = pod.status.phase == "Running"
        if before is None and not is_running:
            self.futile.restore(record, pod)
        if record.node_name:
            if is_running:
                actions += self.futile.on_running(record, now)
            if record.nominated_node_name:
                actions += self._clear_stray(pod)
            actions += self._on_assigned(record, now)
            self.resizes.show(pod, before, record)
            return actions
        if record.scheduler_name in self.runners and not record.terminating:
            record.nominated_node_name = ""
            self._pending(record, pod, now)
            self._assumed[record.uid] = pod, record
            return actions + self._noting_disruption(record, now) if self.cluster.disrupted.counts else actions
        return actions + self._withdraw(record, now)

    def _noting_disruption(self, record: PodRecord, now: int) -> list[Action]:
        """Record in a pending pod when its workload was last disrupted, for the next scheduler."""
        text = self.cluster.disrupted.note_for(record, now)
        if text is None:
            return []
        patch = {"metadata": {"annotations": {WORKLOAD_DISRUPTED_AT: text}}}
        return [PatchObject("Pod", record.key, record.uid, patch, record.scheduler_name)]

    def pod_gone(self, pod: Pod, now: int) -> list[Action]:
        """Handle the deletion or end of a pod."""
        known = self.updater.forget(pod.metadata.uid or pod.key)
        return [] if known is None else self._withdraw(known, now)

    def _on_assigned(self, record: PodRecord, now: int) -> list[Action]:
        """Handle a pod on a node: new, bound by this scheduler or another one, or changed."""
        self.known.forget()
        uid, before = record.uid, self.cluster.placed.get(record.uid)
        if record.terminating:
            self.cluster.deleted_victims.pop(uid, None)
        is_assumed = self.bindings.is_assumed(uid)
        actions = self.bindings.on_bound(uid, record.node_name) if is_assumed else []
        nominated = self.cluster.nominations.node_of(uid)
        if is_assumed or nominated or self._may_be_pending(uid):
            self._forget_pending(uid)
        record.nominated_node_name = ""
        if before is None:
            self.cluster.add_pod(record)
        elif before is not record:
            self.cluster.replace_pod(record)
        if self.queue.has_listeners():
            self.queue.move(assigned_event(None if is_assumed else before, record), now)
        if before is not None and before.node_name != record.node_name:
            self.capacity.capacity_freed(before, now)
        if nominated not in ("", record.node_name):
            self.capacity.bound_elsewhere(record, nominated, now)
        if record.pod_class.pod_group:
            actions = actions + self.gangs.on_assigned(record, now)
        if not self.cluster.nominations.uids:
            return actions
        return actions + self.capacity.capacity_taken(record.node_name, record, record.key, now)

    def _pending(self, record: PodRecord, pod: Pod, now: int) -> None:
        """Handle a pending pod: new, or changed.

        The record has no nomination yet, or the known one; ``pod`` has the nomination in the API.
        """
        uid, shown = record.uid, pod.nominated_node_name
        known, is_on_its_way = self.cluster.nominations.node_of(uid), self.bindings.find(uid) is not None
        wanted = shown if self.reports.read(uid, shown, pod.metadata.resource_version) else known
        if known or wanted or is_on_its_way:
            self.known.forget()
        if uid in self.bindings.unseen:
            return
        if is_on_its_way:
            before = self.cluster.placed[uid]
            if before.pod_class is not record.pod_class:
                # The labels have changed during the binding cycle.
                changed = replace(record, node_name=before.node_name)
                self.cluster.replace_pod(changed)
                self.queue.move(assigned_event(before, changed), now)
        elif wanted and self._holds_place(record):
            self.cluster.nominations.put(record, wanted)
        elif known:
            self.cluster.nominations.remove(uid)
        is_new = uid not in self.queue.uids
        self.queue.update(record, now)
        if is_new and record.pod_class.pod_group:
            self.gangs.on_new_pending(record, now)
        if known and not is_on_its_way and known != wanted:
            self.capacity.nomination_ended(record, known, now)

    def _holds_place(self, record: PodRecord) -> bool:
        """Return whether a nomination of the pod counts; up to 1.36 not of a gated pod before its first change.

        kube-scheduler registered a new pod's nomination when the pod became active, and that of a known pod with every
        update (backend/queue/scheduling_queue.go, moveToActiveQ and Update).
        """
        if self.cluster.nominations.counts_gated or record.uid in self.queue.uids:
            return True
        return self.runners[record.scheduler_name].pre_enqueue(record).is_success

    def _clear_stray(self, pod: Pod) -> list[Action]:
        """Clear the nomination of a bound pod.

        The binding has cleared it, so this scheduler or its predecessor wrote it before it knew of the binding.
        """
        name = pod.spec.scheduler_name
        is_stray = self.ends_nominations and name in self.runners
        return [Nominate(pod.key, pod.metadata.uid, "", name)] if is_stray else []

    def _withdraw(self, record: PodRecord, now: int) -> list[Action]:
        """Handle a pod that no longer uses or needs capacity here: gone, deleted, or another scheduler's."""
        uid, cluster = record.uid, self.cluster
        placed, nominated = cluster.placed.get(uid), cluster.nominations.node_of(uid)
        self.known.forget()
        cluster.deleted_victims.pop(uid, None)
        actions: list[Action] = []
        if placed is None or nominated or self._may_be_pending(uid):
            actions = self.bindings.withdraw(uid)
            self._forget_pending(uid)
        actions = actions + self.bindings.reservations.forget_pod(record.key, uid)
        self.futile.forget(record)
        group = record.pod_class.pod_group
        if group:
            self.gangs.on_not_pending(record, now)
        if uid in cluster.placed:
            cluster.remove_pod(uid)
        if placed is not None:
            self.capacity.capacity_freed(placed, now)
            self.resizes.leave(placed)
        elif nominated:
            self.capacity.nomination_ended(record, nominated, now)
        if group and cluster.nominations.uids and self.gangs.is_short(record):
            actions = actions + self.capacity.gang_plan_ended(group, now)
        return actions

    def _may_be_pending(self, uid: str) -> bool:
        """Return whether a placed pod may have pending state left."""
        return uid in self.queue.uids or len(self.reports.unwritten) > 0 or self.bindings.is_assumed(uid)

    def _forget_pending(self, uid: str) -> None:
        self.queue.delete(uid)
        self.preemptions.forget(uid)
        if self.cluster.nominations.uids:
            self.cluster.nominations.remove(uid)
        self.reports.forget(uid)
        self.cap.forget(uid)
        self.bindings.refused.forget(uid)
        self._assumed.pop(uid, None)

    # Other objects

    def object_changed(self, changed: Kubernetes, now: int) -> list[Action]:
        self.known.forget()
        if isinstance(changed, PodGroup):
            return self._group_changed(changed, now)
        if isinstance(changed, Node):
            self._node_changed(changed, now)
        elif isinstance(changed, PodDisruptionBudget):
            self._budget_changed(changed.key, self.updater.update_object, changed, now)
        elif isinstance(changed, ResourceClaim) and self.cluster.devices.claim_cache.is_outdated(changed):
            self.updater.update_object(changed)
        else:
            if isinstance(changed, DisruptionPolicy):
                self.cap.observe(changed)
            self._move(*self.updater.update_object(changed), now)
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

    def object_gone(self, gone: Kubernetes, now: int) -> list[Action]:
        """Handle the deletion of an object; nominations to a node end with it."""
        self.known.forget()
        if isinstance(gone, DisruptionPolicy):
            self.cap.observe(None)
        elif isinstance(gone, PodGroup):
            actions = self.capacity.gang_plan_ended(gone.key, now)
            self.gangs.group_gone(gone)
            self.updater.delete_object(gone)
            return actions
        if isinstance(gone, PodDisruptionBudget):
            self._budget_changed(gone.key, self.updater.delete_object, gone, now)
            return []
        change = self.updater.delete_object(gone)
        if change is None:
            return []
        if not isinstance(gone, Node):
            self._move(*change, now)
            return []
        name = gone.metadata.name
        if self.node_check is None:
            self.queue.move(ClusterEvent(EventResource.NODE, ActionType.DELETE, gone, None, "NodeDelete"), now)
        return self.capacity.capacity_taken(name, None, f"node {name} is gone", now)

    def _move(self, old: Kubernetes | None, new: Kubernetes | None, now: int) -> None:
        """Wake the pods that a change of an object may help; without ``old`` it may be new or changed.

        The event's label is the kind with "Change" or "Delete", such as StorageClassChange or ResourceClaimDelete.
        """
        item = new if new is not None else old
        resource = _RESOURCES.get(type(item).__name__)
        if resource is None:
            # Objects of this kind make no pod schedulable.
            return
        if isinstance(item, DeviceTaintRule):
            action = ActionType.UPDATE_OTHER
        elif new is None:
            action = ActionType.DELETE
        else:
            action = ActionType.UPDATE_OTHER if old is not None else ActionType.ADD | ActionType.UPDATE_OTHER
        label = f"{resource.value}{'Delete' if new is None else 'Change'}"
        self.queue.move(ClusterEvent(resource, action, old, new, label), now)

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
        self.updater.update_object(group)
        self.gangs.group_changed(before, group, now)
        # It may be complete.
        return actions + self.gangs.report_if_scheduled(group, now)

    def _node_changed(self, node: Node, now: int) -> None:
        old = self.updater.known_node(node.metadata.name)
        changes = ActionType.ADD if old is None else node_changes(old, node)
        if old is not None and avoid_list_text(old) != avoid_list_text(node):
            self.updater.update_object(node)
            # kube-scheduler ignores annotations; entries that reserve capacity matter here.
            if any(entry.until_replaced is not None for entry in avoid_list(avoid_list_text(old)).entries):
                changes |= ActionType.UPDATE_NODE_OTHER
        elif changes:
            self.updater.update_object(node)
        if changes:
            label = "NodeAdd" if old is None else "NodeUpdate"
            concerned = None if self.node_check is None else self.node_check(node)
            self.queue.move(ClusterEvent(EventResource.NODE, changes, old, node, label), now, concerned)
            if changes & _MAY_HOLD_MORE:
                self.resizes.wake(node.metadata.name)


class AssumedPods(dict[str, tuple[Pod, PodRecord]]):
    """By uid, the last observed state of pending pods with their records.

    With it, echoes of own writes need not be read in full.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def take(self, pod: Pod) -> PodRecord | None:
        """Return the assumed record of a pod that the API now shows on that node; None if it must be read in full."""
        uid = pod.metadata.uid or pod.key
        shown = self.pop(uid, None)
        if shown is None:
            return None
        before, record = shown
        is_assumed_there = self._cluster.placed.get(uid) is record and record.node_name == pod.spec.node_name
        if not is_assumed_there or not differs_by_node_alone(before, pod):
            return None
        record.read_from = ref(pod.spec)
        return record

    def nominated(self, pod: Pod) -> PodRecord | None:
        """Return the record of a pod if at most its nomination differs; None if it must be read in full.

        Pods of groups, and possible replacements of evicted pods, are always read.
        """
        shown = self.get(pod.metadata.uid or pod.key)
        if shown is None or self._cluster.replacements.awaited:
            return None
        before, record = shown
        if record.node_name or record.pod_class.pod_group or not differs_by_nomination_alone(before, pod):
            return None
        return record


# The changes of a node after which a resize may fit or preempt; those of the spec count as changes of taints.
# Taints and the rest of the specification, since an update of both counts as one of taints.
_MAY_HOLD_MORE = (
    ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_OTHER
)


# By kind.
_RESOURCES: dict[str, EventResource] = {
    **{resource.value: resource for resource in EventResource},
    # A rule counts as a change of the slices that it taints.
    "DeviceTaintRule": EventResource.RESOURCE_SLICE,
    **dict.fromkeys(("ReplicationController", "ReplicaSet", "StatefulSet"), EventResource.WORKLOAD),
}
