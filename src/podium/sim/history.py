"""What happened, event by event, and the story of each pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, avoid_list, entry_in_words
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.api.replacements import replacement_in_words
from podium.api.times import parse_time
from podium.machines.actions import Record
from podium.machines.kubelets.container_statuses import read_restarts
from podium.sim.backlog import MOST, Backlog, Write
from podium.sim.pod_story import PodStory, note_disruption
from podium.sim.sim_event import SimEvent, again, is_failure, is_repeated, seconds, subject_of
from podium.store.log.watch_event import WatchEvent
from podium.store.stored import Stored

# What the store's own log tells better: it also knows of bindings whose answer was lost.
_TOLD_BY_THE_STORE = frozenset(("Scheduled",))


# A write to a pod is told as its binding or nomination, a restart, its killing and another phase at most.
_MOST_EVENTS_WAIT = 4 * MOST


class History:
    """Takes in every write, with who made it, and every Event that a scheduler records."""

    def __init__(self, start_ns: int, backlog: Backlog, most_events: int) -> None:
        self._start_ns = start_ns
        self._backlog = backlog
        self._backlog.join(self._take_in)
        # The time as last seen, and the seconds from the start until then.
        self._now, self._time = start_ns, seconds(0)
        self._events: list[SimEvent] = []
        # How often something happened that was told as an event before.
        self._repeats = 0
        # With fewer events than this, and whatever waits, there are not too many.
        self._few = most_events - _MOST_EVENTS_WAIT
        self._on_many: Callable[[], None] | None = None
        # By the key of a pod, or the name of a workload whose pods could not be made, the place of its last event where
        # that is a failure.
        self._failed: dict[str, int] = {}
        # Since something failed first, how often something was written that others may look at; and how often that was
        # when a subject's last failure was told.
        self._has_failures = False
        self._changes = 0
        self._changes_at: dict[str, int] = {}
        # By kind and key, what exists or has existed.
        self._named: set[tuple[str, str]] = set()
        # The keys of what quotas and bounds have kept from being created.
        self._refused: set[str] = set()
        self._stories: dict[str, PodStory] = {}

    @property
    def events(self) -> list[SimEvent]:
        """What happened, in order."""
        self._backlog.clear()
        return self._events

    @property
    def stories(self) -> dict[str, PodStory]:
        """By uid, the story of each pod that was ever there."""
        self._backlog.clear()
        return self._stories

    @property
    def happened(self) -> int:
        """How often something happened: the events with what they count."""
        return len(self.events) + self._repeats

    def add(self, now: int, reason: str, pod: str | None, node: str | None, by: str | None, message: str = "") -> None:
        """Add an event; "" stands for None."""
        self._backlog.clear()
        time = self._time_at(now)
        event = SimEvent(time, reason, pod or None, node or None, by or None, message, 1, time)
        if is_failure(event):
            self._add_failure(event)
        else:
            self._failed.pop(pod or "", None)
            self._events.append(event)
        self._count()

    def watch_number(self, on_many: Callable[[], None]) -> None:
        """Have somebody called once more may have happened than is allowed; `happened` says how much has."""
        self._on_many = on_many
        self._count()

    def _count(self) -> None:
        if self._on_many is not None and len(self._events) + self._repeats > self._few:
            self._on_many()
            self._on_many = None

    def _time_at(self, now: int) -> int | float:
        """The seconds from the start; much happens at one time."""
        if now != self._now:
            self._now, self._time = now, seconds(now - self._start_ns)
        return self._time

    def _add_failure(self, event: SimEvent) -> None:
        """Add what may be the same once more."""
        self._has_failures = True
        if subject := subject_of(event):
            place = self._failed.get(subject)
            nothing_changed = self._changes_at.get(subject) == self._changes
            if place is not None and nothing_changed and is_repeated(self._events[place], event):
                self._events[place] = again(self._events[place], event)
                self._repeats += 1
                return
            self._failed[subject] = len(self._events)
            self._changes_at[subject] = self._changes
        self._events.append(event)

    def elapsed(self, now: int) -> int | float:
        """The seconds from the start."""
        return seconds(now - self._start_ns)

    def has_seen(self, kind: str, key: str) -> bool:
        """Whether there is or was an object of that kind and key."""
        self._backlog.clear()
        return (kind, key) in self._named

    def refuse(self, key: str) -> None:
        """Take note of an object that a quota or a bound has kept from being created."""
        self._refused.add(key)

    def was_refused(self, key: str) -> bool:
        """Whether an object of that key was ever kept from being created."""
        return key in self._refused

    def record(self, action: Record, by: str, now: int) -> None:
        """Take in an Event that a component records."""
        if self.tells(action):
            whose = action.related or action.workload or by
            self.add(now, action.reason, action.pod, action.node_name, whose, action.message)

    def tells(self, action: Record) -> bool:
        """Whether an Event that a component records says what the store's log does not."""
        return action.reason not in _TOLD_BY_THE_STORE

    def begin(self, event: WatchEvent, now: int) -> None:
        """Take in an object that was there before the run."""
        stored, pod = event.stored, event.stored.object
        self._named.add((stored.kind, stored.key))
        if isinstance(pod, Pod):
            self._begin(pod, stored.key, parse_time(pod.metadata.creation_timestamp or ""), now)

    def _take_in(self, writes: Sequence[Write]) -> None:
        for event, now, by, message in writes:
            stored = event.stored
            time, object_ = self._time if now == self._now else self._time_at(now), stored.object
            if self._has_failures and not _is_mere_report(event):
                self._changes += 1
            if event.type == "ADDED":
                self._named.add((stored.resource.name, stored.key))
            if isinstance(object_, Pod):
                if event.type == "MODIFIED":
                    self._pod_changed(object_, event, time, now, by)
                elif event.type == "ADDED":
                    self._begin(object_, stored.key, now, now)
                    self._tell(time, "Created", stored.key, object_.spec.node_name, by, message)
                else:
                    self._pod_gone(object_, stored.key, time, now, by, message)
            elif isinstance(object_, Node):
                what = {"ADDED": "NodeAdded", "MODIFIED": "NodeChanged", "DELETED": "NodeRemoved"}[event.type]
                words = message or _avoided_anew(event, object_)
                self._events.append(SimEvent(time, what, None, object_.metadata.name, by or None, words, 1, time))
        self._count()

    def _tell(self, time: int | float, reason: str, pod: str, node: str, by: str, message: str = "") -> None:
        """Add what happened to a pod."""
        if self._failed:
            self._failed.pop(pod, None)
        self._events.append(SimEvent(time, reason, pod, node or None, by or None, message, 1, time))

    def _begin(self, pod: Pod, key: str, created_ns: int, now: int) -> None:
        """Begin the story of a pod, which may be running already."""
        uid, node, phase = pod.metadata.uid, pod.spec.node_name, pod.status.phase
        nominated = "" if node else pod.nominated_node_name
        story = PodStory(key, uid, pod.priority, phase, node, nominated, created_ns)
        if pod.metadata.owner_references:
            story.made_by = _maker(pod)
        if node and phase != "Pending":
            story.started_ns = parse_time(pod.status.start_time) if pod.status.start_time else now
            story.scheduled_ns = story.started_ns
        self._stories[uid] = story

    def _pod_changed(self, pod: Pod, event: WatchEvent, time: int | float, now: int, by: str) -> None:
        previous, key = event.previous, event.stored.key
        if previous is None or not isinstance(previous.object, Pod):
            return
        old, story = previous.object, self._stories[pod.metadata.uid]
        meta, node, status = pod.metadata, pod.spec.node_name, pod.status
        if meta.deletion_timestamp is not None or status.phase == "Failed":
            note_disruption(story, pod, by)
        if node and not old.spec.node_name:
            story.node, story.nominated_node, story.scheduled_ns, story.bound_in_run = node, "", now, True
            self._tell(time, "Scheduled", key, node, by, f"Successfully assigned {key} to {node}")
        elif (
            status.nominated_node_name != old.status.nominated_node_name
            or meta.annotations is not old.metadata.annotations
        ):
            self._nominated(story, pod, old, time, by)
        if status.container_statuses or meta.deletion_timestamp is not None:
            self._containers_changed(pod, event.stored, previous, time, by)
        if status.phase != old.status.phase:
            self._phase_changed(story, status.phase, event.stored.raw["status"], time, now, by)

    def _nominated(self, story: PodStory, pod: Pod, old: Pod, time: int | float, by: str) -> None:
        nominated, before = pod.nominated_node_name, old.nominated_node_name
        if nominated != before:
            story.nominated_node = "" if pod.spec.node_name else nominated
            self._tell(time, "Nominated" if nominated else "NominationCleared", story.pod, nominated or before, by)

    def _containers_changed(self, pod: Pod, stored: Stored, previous: Stored, time: int | float, by: str) -> None:
        """Containers were started again, or are being killed."""
        key, node, meta = stored.key, pod.spec.node_name, pod.metadata
        if pod.status.container_statuses:
            restarts = read_restarts(stored.raw).count
            if restarts and restarts > read_restarts(previous.raw).count:
                self._tell(time, "Restarted", key, node, by, f"restart {restarts}")
        grace = meta.deletion_grace_period_seconds
        if meta.deletion_timestamp is not None and grace != previous.object.metadata.deletion_grace_period_seconds:
            self._tell(time, "Killing", key, node, by, f"grace period {grace}s")

    def _phase_changed(self, story: PodStory, phase: str, status: Raw, time: int | float, now: int, by: str) -> None:
        story.phase = phase
        if phase == "Running":
            story.started_ns = now
            self._tell(time, "Started", story.pod, story.node, by)
        elif phase in TERMINAL_PHASES:
            story.ended_ns = now
            reason = "Finished" if phase == "Succeeded" else "Failed"
            message = ": ".join([str(status[name]) for name in ("reason", "message") if status.get(name)])
            self._tell(time, reason, story.pod, story.node, by, message)

    def _pod_gone(self, pod: Pod, key: str, time: int | float, now: int, by: str, message: str) -> None:
        story, has_ended = self._stories[pod.metadata.uid], pod.is_terminal
        note_disruption(story, pod, by, is_gone=not has_ended)
        story.nominated_node = ""
        was_alive = bool(pod.spec.node_name) and not has_ended
        if not has_ended:
            story.phase, story.ended_ns = "Terminated", now
        self._tell(time, "Terminated" if was_alive else "Deleted", key, pod.spec.node_name, by, message)


def _maker(pod: Pod) -> str:
    controller = pod.metadata.controller
    return "" if controller is None else f"{controller.kind} {pod.metadata.namespace}/{controller.name}"


def _is_mere_report(event: WatchEvent) -> bool:
    """Whether nothing was written but what is said about a pod that waits."""
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


def _avoided_anew(event: WatchEvent, node: Node) -> str:
    """Who has come on the node's avoid list, and what was left there for replacements, in words; "" for nothing."""
    if event.type != "MODIFIED":
        return ""
    previous = event.previous.object if event.previous is not None else None
    before, after = (
        avoid_list(object_.metadata.annotations.get(PREFER_AVOID_PODS, ""))
        if isinstance(object_, Node)
        else AvoidList()
        for object_ in (previous, node)
    )
    avoided = [entry_in_words(entry) for entry in after.entries if entry not in before.entries]
    left = [replacement_in_words(left) for left in after.replacements if left not in before.replacements]
    parts = [f"put on the avoid list: {', '.join(avoided)}"] if avoided else []
    if left:
        parts.append(f"left behind: {', '.join(left)}")
    return "; ".join(parts)
