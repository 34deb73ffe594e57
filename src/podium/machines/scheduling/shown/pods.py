"""What the API shows of pods: on which node each of them is, who waits for one, and who is gone.

Source: pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.api.pod import Pod
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.machines.actions import Action, Nominate
from podium.machines.scheduling.binding.echoes import BindingEchoes
from podium.machines.scheduling.futile_notes import note_of
from podium.machines.scheduling.parts import Parts
from podium.machines.scheduling.shown.pod_changes import pod_changes


class PodsShown:
    """Brings cluster, queue and binding cycles up to date with the pods that the API shows."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._runners = parts.runners
        self._queue = parts.queue
        self._bindings = parts.bindings
        self._preemptions = parts.preemptions
        self._futile = parts.futile
        self._cap = parts.cap
        self._reports = parts.reports
        self._known = parts.known
        self._room = parts.room
        self._feed = parts.feed
        self._gangs = parts.gangs
        self._echoes = BindingEchoes(parts.cluster)

    def changed(self, pod: Pod, now: int) -> list[Action]:
        """A pod was added or changed."""
        if pod.spec.node_name:
            assumed = self._echoes.take(pod) if pod.status.phase == "Pending" else None
            return self._read(pod, None, now) if assumed is None else self._assigned(assumed, now)
        nominated = self._echoes.nominated(pod)
        if nominated is None:
            return self._read(pod, self._echoes.class_of(pod), now)
        self._pending(nominated, pod, now)
        self._echoes.expect(pod, nominated)
        return []

    def _read(self, pod: Pod, known_class: PodClass | None, now: int) -> list[Action]:
        """The same for a pod that has to be read anew; its class may be known."""
        before, record, replaced = self._feed.pod_changed(pod, known_class)
        actions: list[Action] = [] if replaced is None else self._withdraw(replaced, now)
        if record is None:
            if pod.spec.node_name and pod.status.nominated_node_name:
                actions += self._clear_stray(pod)
            if before is None:
                self._take_up_lost(pod, now)
                return actions
            if pod.status.phase == "Failed":
                self._futile.rejected(before, pod.spec.node_name, now)
            return actions + self._withdraw(before, now)
        is_running = pod.status.phase == "Running"
        if before is None and not is_running and (note := note_of(pod)) is not None:
            self._futile.restore(record, note)
        if record.node_name:
            if is_running:
                actions += self._futile.runs(record, now)
            if record.nominated_node_name:
                actions += self._clear_stray(pod)
            return actions + self._assigned(record, now)
        if record.scheduler_name in self._runners and not record.terminating:
            record.nominated_node_name = ""
            self._pending(record, pod, now)
            self._echoes.expect(pod, record)
            return actions
        return actions + self._withdraw(record, now)

    def gone(self, pod: Pod, now: int) -> list[Action]:
        """A pod is no more, or has ended; nothing if it is not known."""
        known = self._feed.forget(pod.metadata.uid or pod.key)
        return [] if known is None else self._withdraw(known, now)

    def _take_up_lost(self, pod: Pod, now: int) -> None:
        """A pod that has ended is seen for the first time: it may have failed where its preemption made room."""
        note = note_of(pod)
        if note is None or pod.status.phase != "Failed" or pod.spec.node_name != note.node:
            return
        self._futile.restore_lost(pod, note, now)

    def _assigned(self, record: PodRecord, now: int) -> list[Action]:
        """A pod is on a node: newly seen, bound by us or by others, or changed there."""
        self._known.forget()
        uid, before = record.uid, self._cluster.placed.get(record.uid)
        is_assumed = self._bindings.is_assumed(uid)
        is_new = before is None or is_assumed
        actions = self._bindings.seen(uid, record.node_name) if is_assumed else []
        nominated = self._cluster.nominations.node_of(uid)
        if is_new or nominated or self._may_be_pending(uid):
            self._forget_pending(uid)
        record.nominated_node_name = ""
        if before is None:
            self._cluster.add_pod(record)
        elif before is not record:
            self._cluster.replace_pod(record)
        if self._queue.has_listeners:
            self._queue.move(_assigned_event(None if is_new else before, record), now)
        if before is not None and before.node_name != record.node_name:
            self._room.opened(before, now)
        if nominated not in ("", record.node_name):
            self._room.went_elsewhere(record, nominated, now)
        if record.pod_class.pod_group:
            actions = actions + self._gangs.assigned(record, now)
        if not self._cluster.nominations.uids:
            return actions
        return actions + self._room.taken(record.node_name, record.priority, record.key, now)

    def _pending(self, record: PodRecord, pod: Pod, now: int) -> None:
        """A pod of ours waits for a node: newly seen, or changed while it waits.

        The record has no nomination yet, or the one that is known here; ``pod`` has that in the API.
        """
        uid, shown = record.uid, pod.nominated_node_name
        known, is_on_its_way = self._cluster.nominations.node_of(uid), uid in self._bindings
        wanted = shown if self._reports.read(uid, shown, pod.metadata.resource_version) else known
        if known or wanted or is_on_its_way:
            self._known.forget()
        if uid in self._bindings.unseen:
            return
        if is_on_its_way:
            self._assumed_changed(record, now)
        elif wanted and self._holds_place(record):
            self._cluster.nominations.put(record, wanted)
        elif known:
            self._cluster.nominations.remove(uid)
        is_new = uid not in self._queue.uids
        self._queue.update(record, now)
        if is_new and record.pod_class.pod_group:
            self._gangs.came(record, now)
        if known and not is_on_its_way and known != wanted:
            self._room.given_up(record, known, now)

    def _holds_place(self, record: PodRecord) -> bool:
        """Whether a nomination of the pod counts; one that is gated when it is first seen has none until it changes.

        kube-scheduler notes a new pod's nomination when the pod enters the active queue, and that of a pod which it
        knows with every update (backend/queue/scheduling_queue.go, moveToActiveQ and Update).
        """
        return record.uid in self._queue.uids or self._runners[record.scheduler_name].pre_enqueue(record).is_success

    def _assumed_changed(self, record: PodRecord, now: int) -> None:
        """A pod on its way to its node may get other labels, which others look at."""
        before = self._cluster.placed[record.uid]
        if before.pod_class is not record.pod_class:
            changed = replace(record, node_name=before.node_name)
            self._cluster.replace_pod(changed)
            self._queue.move(_assigned_event(before, changed), now)

    def _clear_stray(self, pod: Pod) -> list[Action]:
        """Clear the nomination of a pod of ours that is bound, whether it has ended or not.

        The binding has cleared it, so it was written by us before we knew of the binding, or by our predecessor.
        """
        name = pod.spec.scheduler_name
        return [Nominate(pod.key, pod.metadata.uid, "", name)] if name in self._runners else []

    def _withdraw(self, record: PodRecord, now: int) -> list[Action]:
        """A pod neither takes nor wants room: it is gone, or without a node and deleted or another scheduler's."""
        uid, cluster = record.uid, self._cluster
        placed, nominated = cluster.placed.get(uid), cluster.nominations.node_of(uid)
        self._known.forget()
        actions: list[Action] = []
        if placed is None or nominated or self._may_be_pending(uid):
            actions = self._bindings.withdraw(uid)
            self._forget_pending(uid)
        actions = actions + self._bindings.reservations.forget_pod(record.key, uid)
        self._futile.forget(record)
        group = record.pod_class.pod_group
        if group:
            self._gangs.left(record, now)
        if uid in cluster.placed:
            cluster.remove_pod(uid)
        if placed is not None:
            self._room.opened(placed, now)
        elif nominated:
            self._room.given_up(record, nominated, now)
        if group and cluster.nominations.uids and self._gangs.is_short(record):
            actions = actions + self._room.plan_ended(group, now)
        return actions

    def _may_be_pending(self, uid: str) -> bool:
        """Whether a placed pod may have left something behind from when it waited for its node.

        One that was seen on its node has not, unless an old reading said since that it waits.
        """
        return uid in self._queue.uids or bool(self._reports.unwritten) or self._bindings.is_assumed(uid)

    def _forget_pending(self, uid: str) -> None:
        self._queue.delete(uid)
        self._preemptions.forget(uid)
        if self._cluster.nominations.uids:
            self._cluster.nominations.remove(uid)
        self._reports.forget(uid)
        self._cap.forget(uid)
        self._echoes.forget(uid)


def _assigned_event(before: PodRecord | None, after: PodRecord) -> ClusterEvent:
    """A pod on a node was added (``before`` None), or changed."""
    if before is None:
        return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, after, "AssignedPodAdd")
    return ClusterEvent(EventResource.ASSIGNED_POD, pod_changes(before, after), before, after, "AssignedPodUpdate")
