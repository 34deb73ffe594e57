"""The events and disruptions of a run, and the timeline of each pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.api.avoid_list import EVICTED, PREFER_AVOID_PODS, avoid_list, entry_in_words, replacement_in_words
from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.api.times import parse_time, seconds
from podium.controllers.actions import Record
from podium.controllers.kubelets.kubelet_reports import read_restarts
from podium.controllers.ledger.disruption import Disruption, FollowUp, Seconds
from podium.controllers.ledger.ledger import disruption_target, is_disrupted
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent

Write = tuple[WatchEvent, int, str, str]
"""A write: event, time, author, message."""

MOST = 256
"""The largest number of waiting writes."""


@dataclass(slots=True, eq=False)
class Backlog:
    """Writes that wait to be recorded and measured in batches.

    Recording a batch takes two thirds of the time that single writes take, since caches stay warm. Every query
    processes the waiting writes first.
    """

    _takers: list[Callable[[Sequence[Write]], None]] = field(default_factory=list)
    _waiting: list[Write] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, take_in: Callable[[Sequence[Write]], None]) -> None:
        """Add a consumer of all writes from now on, after the earlier consumers."""
        self._takers.append(take_in)

    def put(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        self._waiting.append((event, now, by, message))
        if len(self._waiting) >= MOST:
            self.clear()

    def clear(self) -> None:
        """Process the waiting writes."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for take_in in self._takers:
                take_in(waiting)


class EventHistory:
    """Records every write with its author, and the Events that schedulers record."""

    def __init__(self, start_ns: int, backlog: Backlog) -> None:
        self.start_ns = start_ns
        self._backlog = backlog
        self._backlog.join(self._take_in)
        self._events: list[SimEvent] = []
        # How many events repeat an earlier one.
        self._repeats = 0
        self._last_time: tuple[int, Seconds] = start_ns, 0
        self.refused: set[str] = set()
        """The keys of objects that quotas or bounds did not let a step create or change."""
        # Since the first failure, the number of relevant writes; and by pod key, or workload whose pods could not be
        # created, the index of its last event if that is a failure, with that number then.
        self._has_failures = False
        self._changes = 0
        self._failed: dict[str, tuple[int, int]] = {}
        # By kind and key, the objects that were deleted.
        self._gone: set[tuple[str, str]] = set()
        self._timelines: dict[str, PodTimeline] = {}
        self.disruptions: dict[int, Disruption] = {}
        """The records of disruptions, by number."""
        # The uids of preempted pods.
        self._preempted: set[str] = set()

    @property
    def events(self) -> list[SimEvent]:
        """Return all events, in order."""
        self._backlog.clear()
        return self._events

    @property
    def timelines(self) -> dict[str, PodTimeline]:
        self._backlog.clear()
        return self._timelines

    @property
    def happened(self) -> int:
        """Return the number of events with repetitions."""
        return len(self.events) + self._repeats

    def add(self, now: int, reason: str, pod: str | None, node: str | None, by: str | None, message: str = "") -> None:
        """Add an event, or count it if it repeats the last failure of its subject; "" stands for None."""
        self._backlog.clear()
        if now != self._last_time[0]:
            # Events of one instant share the number.
            self._last_time = now, seconds(now - self.start_ns)
        time = self._last_time[1]
        event = SimEvent(time, reason, pod or None, node or None, by or None, message, 1, time)
        if reason not in _REPEATED:
            self._failed.pop(pod or "", None)
        else:
            self._has_failures = True
            if subject := pod or by:
                place, changes = self._failed.get(subject, (0, -1))
                if changes == self._changes and (both := self._events[place].repeated(event)):
                    self._events[place] = both
                    self._repeats += 1
                    return
                self._failed[subject] = len(self._events), self._changes
        self._events.append(event)

    def keep(self, record: Disruption, trail: FollowUp | None) -> None:
        """Keep the record of a disruption; see `DisruptionLedger`."""
        self.disruptions[record.id] = record

    def was_deleted(self, kind: str, key: str) -> bool:
        """Return whether an object of that kind and key was deleted; another one may exist."""
        self._backlog.clear()
        return (kind, key) in self._gone

    def record(self, action: Record, by: str, now: int) -> None:
        if action.reason == "Preempted":
            # Several preemptors may delete a victim before its deletion is observed; the first has preempted it.
            if action.uid in self._preempted:
                return
            self._preempted.add(action.uid)
        origin = action.related or action.workload or by
        self.add(now, action.reason, action.pod, action.node_name, origin, action.message)

    def begin(self, pod: Pod, key: str, now: int) -> None:
        """Record a pod that existed before the run."""
        self._begin(pod, key, parse_time(pod.metadata.creation_timestamp or ""), now)

    def _take_in(self, writes: Sequence[Write]) -> None:
        for event, now, by, message in writes:
            stored, time, object_ = event.stored, seconds(now - self.start_ns), event.stored.object
            if self._has_failures and not _changes_status_only(event):
                self._changes += 1
            if event.type == "DELETED":
                self._gone.add((stored.resource.name, stored.key))
            if isinstance(object_, Pod):
                if event.type == "MODIFIED":
                    self._pod_changed(object_, event, time, now, by)
                elif event.type == "ADDED":
                    self._begin(object_, stored.key, now, now)
                    self._add_pod_event(time, "Created", stored.key, object_.spec.node_name, by, message)
                else:
                    self._pod_gone(object_, stored.key, time, now, by, message)
            elif isinstance(object_, Node):
                what = {"ADDED": "NodeAdded", "MODIFIED": "NodeChanged", "DELETED": "NodeRemoved"}[event.type]
                words = message or _avoid_list_changes(event, object_)
                self._events.append(SimEvent(time, what, None, object_.metadata.name, by or None, words, 1, time))

    def _add_pod_event(self, time: Seconds, reason: str, pod: str, node: str, by: str, message: str = "") -> None:
        if self._failed:
            self._failed.pop(pod, None)
        self._events.append(SimEvent(time, reason, pod, node or None, by or None, message, 1, time))

    def _begin(self, pod: Pod, key: str, created_ns: int, now: int) -> None:
        """Begin the timeline of a pod, which may be running already."""
        uid, node, phase = pod.metadata.uid, pod.spec.node_name, pod.status.phase
        nominated = "" if node else pod.nominated_node_name
        timeline = PodTimeline(key, uid, pod.priority, phase, node, nominated, created_ns)
        if node and phase != "Pending":
            timeline.started_ns = parse_time(pod.status.start_time) if pod.status.start_time else now
            timeline.scheduled_ns = timeline.started_ns
        self._timelines[uid] = timeline

    def _pod_changed(self, pod: Pod, event: WatchEvent, time: Seconds, now: int, by: str) -> None:
        previous, key = event.previous, event.stored.key
        if previous is None or not isinstance(previous.object, Pod):
            return
        old, timeline = previous.object, self._timelines[pod.metadata.uid]
        meta, node, status, was = pod.metadata, pod.spec.node_name, pod.status, old.status
        if meta.deletion_timestamp is not None or status.phase == "Failed":
            note_disruption(timeline, pod, by)
        if node and not old.spec.node_name:
            timeline.node, timeline.nominated_node, timeline.scheduled_ns, timeline.bound_in_run = node, "", now, True
            self._add_pod_event(time, "Scheduled", key, node, by, f"Successfully assigned {key} to {node}")
        elif status.nominated_node_name != was.nominated_node_name or meta.annotations is not old.metadata.annotations:
            nominated, before = pod.nominated_node_name, old.nominated_node_name
            if nominated != before:
                timeline.nominated_node = "" if node else nominated
                reason = "Nominated" if nominated else "NominationCleared"
                self._add_pod_event(time, reason, timeline.pod, nominated or before, by)
        if status.container_statuses or meta.deletion_timestamp is not None:
            self._containers_changed(pod, event.stored, previous, time, by)
        if status.phase != was.phase:
            self._phase_changed(timeline, pod, event.stored.raw["status"], time, now, by)

    def _containers_changed(self, pod: Pod, stored: Stored, previous: Stored, time: Seconds, by: str) -> None:
        """Record restarts and the start of termination."""
        key, node, meta = stored.key, pod.spec.node_name, pod.metadata
        if pod.status.container_statuses:
            restarts, _ = read_restarts(stored.raw)
            if restarts and restarts > read_restarts(previous.raw)[0]:
                self._add_pod_event(time, "Restarted", key, node, by, f"restart {restarts}")
        grace = meta.deletion_grace_period_seconds
        if meta.deletion_timestamp is not None and grace != previous.object.metadata.deletion_grace_period_seconds:
            self._add_pod_event(time, "Killing", key, node, by, f"grace period {grace}s")

    def _phase_changed(self, timeline: PodTimeline, pod: Pod, status: Raw, time: Seconds, now: int, by: str) -> None:
        timeline.phase = phase = pod.status.phase
        if phase == "Running":
            timeline.started_ns = now
            self._add_pod_event(time, "Started", timeline.pod, timeline.node, by)
        elif phase in TERMINAL_PHASES:
            timeline.ended_ns = now
            reason = "Finished" if phase == "Succeeded" else "Failed"
            message = ": ".join([str(status[name]) for name in ("reason", "message") if status.get(name)])
            target = disruption_target(pod)
            if not message and phase == "Failed" and target is not None:
                message = target.message
            self._add_pod_event(time, reason, timeline.pod, timeline.node, by, message)

    def _pod_gone(self, pod: Pod, key: str, time: Seconds, now: int, by: str, message: str) -> None:
        timeline, has_ended = self._timelines[pod.metadata.uid], pod.is_terminal
        note_disruption(timeline, pod, by, is_gone=not has_ended)
        timeline.nominated_node = ""
        was_alive = bool(pod.spec.node_name) and not has_ended
        if not has_ended:
            timeline.phase, timeline.ended_ns = "Terminated", now
        self._add_pod_event(time, "Terminated" if was_alive else "Deleted", key, pod.spec.node_name, by, message)


def _changes_status_only(event: WatchEvent) -> bool:
    """Return whether only the reported status of a pending pod changed."""
    pod, before = event.stored.object, event.previous.object if event.previous is not None else None
    if event.type != "MODIFIED" or not isinstance(pod, Pod) or not isinstance(before, Pod):
        return False
    was, now = before.metadata, pod.metadata
    return (
        (before.spec is pod.spec or before.spec == pod.spec)
        and was.labels == now.labels
        and was.annotations == now.annotations
        and was.deletion_timestamp == now.deletion_timestamp
        and before.nominated_node_name == pod.nominated_node_name
    )


def _avoid_list_changes(event: WatchEvent, node: Node) -> str:
    """Return the node's new avoid list entries and what was left for replacements, in words; "" if none."""
    if event.type != "MODIFIED":
        return ""
    objects = (None if event.previous is None else event.previous.object, node)
    annotations = (object_.metadata.annotations if isinstance(object_, Node) else {} for object_ in objects)
    before, after = (avoid_list(each.get(PREFER_AVOID_PODS, "")) for each in annotations)
    avoided = [entry_in_words(entry) for entry in after.entries if entry not in before.entries]
    left = [replacement_in_words(left) for left in after.replacements if left not in before.replacements]
    parts = [f"put on the avoid list: {', '.join(avoided)}"] if avoided else []
    if left:
        parts.append(f"left behind: {', '.join(left)}")
    return "; ".join(parts)


class PodTimeline(msgspec.Struct):
    """The timeline of one pod; times in nanoseconds, None for what has not happened.

    `phase` is Terminated if the pod was deleted before it ended. `disruption` is the reason of its condition
    DisruptionTarget, such as PreemptionByScheduler, if it ended for that, else "". `evicted_by` is the component that
    evicted it, or "".
    """

    pod: str
    uid: str
    priority: int
    phase: str
    node: str
    nominated_node: str
    created_ns: int
    scheduled_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    bound_in_run: bool = False
    disruption: str = ""
    evicted_by: str = ""


def note_disruption(timeline: PodTimeline, pod: Pod, by: str, *, is_gone: bool = False) -> None:
    """Record why a pod was disrupted first, and by which component; `is_gone`: it has vanished while it ran."""
    target = disruption_target(pod)
    if target is None or timeline.disruption or not (is_gone or is_disrupted(pod)):
        return
    timeline.disruption = target.reason
    if target.reason == EVICTED:
        # For a preemptor, which is a pod, its scheduler acts.
        timeline.evicted_by = SCHEDULER if "/" in by else by


# Failures that are retried and may repeat unchanged.
_REPEATED = frozenset(("FailedScheduling", "FailedCreate"))


class SimEvent(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An event `time` seconds after the start.

    `pod` is a key, `node` a name, and `by` the author: a component, a preemptor, or a workload such as `ReplicaSet
    default/web`; None without one. A failure that repeats the one before while nothing changed is counted, as in
    Kubernetes' Events: `count` is the number, `last_time` the time of the last one.
    """

    time: Seconds
    reason: str
    pod: str | None
    node: str | None
    by: str | None
    message: str
    count: int
    last_time: Seconds

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @property
    def is_failure(self) -> bool:
        """Return whether it is a failure that will be retried."""
        return self.reason in _REPEATED

    @property
    def subject(self) -> str | None:
        """The pod, or the workload whose pods could not be created; None if neither."""
        return self.pod or (self.by if self.is_failure else None)

    def repeated(self, event: SimEvent) -> SimEvent | None:
        """Return this failure and another one as one event; None if the other does not repeat it."""
        was, is_ = ((each.reason, each.node, each.by, each.message) for each in (self, event))
        if was != is_ or not self.is_failure:
            return None
        return msgspec.structs.replace(self, count=self.count + event.count, last_time=event.last_time)
