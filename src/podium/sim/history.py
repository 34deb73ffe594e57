"""What happened, event by event, and the story of each pod."""

from __future__ import annotations

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, avoid_list, entry_in_words
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.replacements import replacement_in_words
from podium.api.times import parse_time
from podium.machines.actions import Record
from podium.machines.kubelets.container_statuses import read_restarts
from podium.sim.backlog import Backlog
from podium.sim.pod_story import PodStory, note_disruption
from podium.sim.sim_event import SimEvent, again, is_failure, is_repeated, seconds, subject_of
from podium.store.log.watch_event import WatchEvent

# What the store's own log tells better: it also knows of bindings whose answer was lost.
_TOLD_BY_THE_STORE = frozenset(("Scheduled",))


# A write to a pod is told as its binding or nomination, a restart, its killing and another phase at most.
_MOST_EVENTS_A_WRITE = 4


class History:
    """Takes in every write, with who made it, and every Event that a scheduler records."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._backlog = Backlog(self._observe)
        # How much time had passed when something happened last, in nanoseconds and in seconds.
        self._elapsed: tuple[int, int | float] = (0, 0)
        self._events: list[SimEvent] = []
        # How often something happened: the events with what they count.
        self._happened = 0
        self.at_most = 0
        """As `happened`, or more, and known at once."""
        # By the key of a pod, or the name of a workload whose pods could not be made, the place of its last event.
        self._latest: dict[str, int] = {}
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
        self._backlog.clear()
        self.at_most = self._happened
        return self._happened

    def add(self, now: int, reason: str, pod: str | None, node: str | None, by: str | None, message: str = "") -> None:
        """Add an event; "" stands for None."""
        self._backlog.clear()
        self.at_most += 1
        self._add(now, reason, pod, node, by, message)

    def _add(self, now: int, reason: str, pod: str | None, node: str | None, by: str | None, message: str = "") -> None:
        elapsed_ns = now - self._start_ns
        if elapsed_ns != self._elapsed[0]:
            self._elapsed = elapsed_ns, seconds(elapsed_ns)
        time = self._elapsed[1]
        self._happened += 1
        event = SimEvent(time, reason, pod or None, node or None, by or None, message, 1, time)
        if is_failure(event):
            self._add_failure(event)
            return
        if pod:
            self._latest[pod] = len(self._events)
        self._events.append(event)

    def _add_failure(self, event: SimEvent) -> None:
        """Add what may be the same once more."""
        self._has_failures = True
        if subject := subject_of(event):
            place = self._latest.get(subject)
            nothing_changed = self._changes_at.get(subject) == self._changes
            if place is not None and nothing_changed and is_repeated(self._events[place], event):
                self._events[place] = again(self._events[place], event)
                return
            self._latest[subject] = len(self._events)
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
        pod = event.stored.object
        self._named.add((event.stored.kind, event.stored.key))
        if isinstance(pod, Pod):
            self._tell(pod, parse_time(pod.metadata.creation_timestamp or ""), now)

    def observe(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        """Take in a write."""
        self.at_most += _MOST_EVENTS_A_WRITE
        self._backlog.put(event, now, by, message)

    def _observe(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        object_ = event.stored.object
        if self._has_failures:
            self._changes += not _is_mere_report(event)
        if event.type == "ADDED":
            self._named.add((event.stored.kind, event.stored.key))
        if isinstance(object_, Pod):
            self._observe_pod(object_, event, now, by, message)
        elif isinstance(object_, Node):
            what = {"ADDED": "NodeAdded", "MODIFIED": "NodeChanged", "DELETED": "NodeRemoved"}[event.type]
            self._add(now, what, None, object_.metadata.name, by, message or _avoided_anew(event, object_))

    def _observe_pod(self, pod: Pod, event: WatchEvent, now: int, by: str, message: str) -> None:
        node = pod.spec.node_name
        if event.type == "ADDED":
            self._tell(pod, now, now)
            self._add(now, "Created", pod.key, node, by, message)
        elif event.type == "DELETED":
            self._gone(pod, now, by, message)
        elif event.previous is not None and isinstance(event.previous.object, Pod):
            self._changed(event.previous.object, pod, event, now, by)
            if pod.status.phase != event.previous.object.status.phase:
                self._phase_changed(pod, event.stored.raw["status"], now, by)

    def _tell(self, pod: Pod, created_ns: int, now: int) -> None:
        """Begin the story of a pod, which may be running already."""
        meta, status = pod.metadata, pod.status
        story = PodStory(
            pod.key,
            meta.uid,
            pod.priority,
            status.phase,
            pod.spec.node_name,
            "" if pod.spec.node_name else pod.nominated_node_name,
            created_ns,
            made_by=_maker(pod),
        )
        if pod.spec.node_name and status.phase != "Pending":
            story.started_ns = parse_time(status.start_time) if status.start_time else now
            story.scheduled_ns = story.started_ns
        self._stories[meta.uid] = story

    def _changed(self, old: Pod, pod: Pod, event: WatchEvent, now: int, by: str) -> None:
        story = self._stories[pod.metadata.uid]
        node, nominated = pod.spec.node_name, pod.nominated_node_name
        story.nominated_node = "" if node else nominated
        note_disruption(story, pod, by)
        if node and not old.spec.node_name:
            story.node, story.scheduled_ns, story.bound_in_run = node, now, True
            self._add(now, "Scheduled", pod.key, node, by, f"Successfully assigned {pod.key} to {node}")
        elif nominated != (before := old.nominated_node_name):
            self._add(now, "Nominated" if nominated else "NominationCleared", pod.key, nominated or before, by)
        if pod.status.container_statuses and event.previous is not None:
            restarts = read_restarts(event.stored.raw).count
            if restarts and restarts > read_restarts(event.previous.raw).count:
                self._add(now, "Restarted", pod.key, node, by, f"restart {restarts}")
        grace = pod.metadata.deletion_grace_period_seconds
        if pod.is_terminating and grace != old.metadata.deletion_grace_period_seconds:
            self._add(now, "Killing", pod.key, node, by, f"grace period {grace}s")

    def _phase_changed(self, pod: Pod, status: Raw, now: int, by: str) -> None:
        story = self._stories[pod.metadata.uid]
        story.phase = pod.status.phase
        if story.phase == "Running":
            story.started_ns = now
            self._add(now, "Started", pod.key, pod.spec.node_name, by)
        elif pod.is_terminal:
            story.ended_ns = now
            reason = "Finished" if story.phase == "Succeeded" else "Failed"
            message = ": ".join(str(status[name]) for name in ("reason", "message") if status.get(name))
            self._add(now, reason, pod.key, pod.spec.node_name, by, message)

    def _gone(self, pod: Pod, now: int, by: str, message: str) -> None:
        story = self._stories[pod.metadata.uid]
        note_disruption(story, pod, by, is_gone=not pod.is_terminal)
        story.nominated_node = ""
        was_alive = bool(pod.spec.node_name) and not pod.is_terminal
        if not pod.is_terminal:
            story.phase, story.ended_ns = "Terminated", now
        self._add(now, "Terminated" if was_alive else "Deleted", pod.key, pod.spec.node_name, by, message)


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
