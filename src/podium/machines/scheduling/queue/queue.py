"""The scheduling queue: which pending pod is attempted next, which back off, and what the others wait for.

`podium.machines.scheduling.queue.automaton` tells in a table what comes of whatever happens to a pod.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from podium.api.times import MAX_TIME_NS
from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.machines.parts.deadlines import earliest
from podium.machines.scheduling.queue.automaton import landing
from podium.machines.scheduling.queue.gate import PreEnqueue, QueueGate, SortKey
from podium.machines.scheduling.queue.heap import Item
from podium.machines.scheduling.queue.hints import AFTER_BACKOFF, AT_ONCE, NO, Registrations, Rejections, Wake
from podium.machines.scheduling.queue.in_flight import Flight
from podium.machines.scheduling.queue.places import QueuePlaces
from podium.machines.scheduling.queue.queued_pod import (
    ACTIVE,
    BACKOFF,
    GATED,
    IN_FLIGHT,
    UNSCHEDULABLE,
    Place,
    QueuedPod,
    QueueSettings,
)
from podium.machines.scheduling.shown.pod_changes import pod_changes

DEFAULTS = QueueSettings()

POD_ADD = "PodAdd"
POD_UPDATE = "PodUpdate"
FORCE_ACTIVATE = "ForceActivate"
GATE_OPENED = "GateOpened"
GROUP_CHANGED = "PodGroupChanged"
UNSCHEDULABLE_TIMEOUT = "UnschedulableTimeout"
ATTEMPT_FAILURE = "ScheduleAttemptFailure"

_POD = EventResource.POD
# Where pods wait for an event.
_WAITS = (UNSCHEDULABLE, GATED)


class SchedulingQueue(QueuePlaces):
    """Every pending pod that the scheduler is responsible for, in exactly one place.

    A pod is active (may be popped now), backs off from its last attempt, is unschedulable (waits for an event that
    the plugins which rejected it registered), is gated (a PreEnqueue plugin holds it), or is in flight (popped, and
    neither failed, done nor deleted since). PreEnqueue is asked about a pod that is about to be active or to back
    off, not again when its backoff ends. Times are nanoseconds and must not go back.

    ``queue_sort`` and ``registrations`` are by scheduler name. A plugin that names no events of its own must be given
    `EVERY_EVENT` in ``registrations``; one that is missing there wakes no pod. The pods of ``first``, by uid, come
    before all others, in order of the sort among themselves; their backoff is as long as that of others.
    """

    def __init__(
        self,
        queue_sort: Mapping[str, SortKey],
        pre_enqueue: PreEnqueue,
        registrations: Registrations,
        settings: QueueSettings = DEFAULTS,
        first: Container[str] = frozenset(),
    ) -> None:
        self._settings = settings
        self._rejections = Rejections(registrations)
        self._gate = QueueGate(queue_sort, pre_enqueue, first)
        # `flush` has nothing to do before that time.
        self._due_ns = MAX_TIME_NS
        super().__init__(self._rejections, settings)

    def add(self, record: PodRecord, now: int) -> None:
        """Take in a new pending pod: it becomes active, or gated.

        Raises ValueError for a pod that is in the queue already, or whose scheduler name has no profile here.
        """
        if record.uid in self._pods:
            raise ValueError(f"pod {record.key} ({record.uid}) is in the scheduling queue already")
        if not self._gate.knows(record):
            raise ValueError(f"pod {record.key}: no profile is named {record.scheduler_name!r}")
        queued = self._pods[record.uid] = QueuedPod(record, now)
        self._requeue(queued, AT_ONCE, POD_ADD, now)

    def update(self, record: PodRecord, now: int) -> None:
        """Take in a newer reading of a pending pod; one that is not in the queue is added.

        An active pod, or one that backs off, stays what it is, sorted anew. One in flight keeps its reading until
        its attempt ends; the change counts then. A waiting pod is woken if a plugin that rejected it waits for what
        changed; a gated one is put to PreEnqueue again in any case, and waits for an event if that lets it pass but
        its last attempt was rejected by plugins which the change does not concern.
        """
        queued = self._pods.get(record.uid)
        if queued is None:
            self.add(record, now)
            return
        flight = self._in_flight.find(record.uid)
        if flight is not None:
            flight.own.append(_update_event(flight.latest, record))
            flight.latest = record
            return
        event = _update_event(queued.record, record)
        queued.record = record
        if queued.place in (ACTIVE, BACKOFF):
            self._sort_anew(queued, now)
        else:
            wake = self._rejections.of(queued, "").wake(record, event)
            if wake or queued.gated_by:
                self._requeue(queued, wake, event.label, now)

    def pop(self, now: int) -> QueuedPod | None:
        """Start an attempt at the pod that goes first; None if none may be attempted now.

        That is the first active pod: those that go first before the others, then in order of the queue's sort, then
        key, then uid. With none active it is, if the settings say so, the one whose backoff after a rejection ends
        first; a backoff after an error is kept, and one after too many attempts at one instant.
        """
        if now >= self._due_ns:
            self._end_backoffs(now)
        uid = self._active.pop()
        if uid is None and self._settings.pop_from_backoff:
            uid = self._backoff.pop_early()
        if uid is None:
            return None
        queued = self._pods[uid]
        queued.pop(now)
        self._in_flight.begin(queued)
        return queued

    def join(self, uid: str, now: int) -> QueuedPod | None:
        """Start an attempt at a pod together with another one's: at once, whether it waits for an event or backs off.

        None for a pod that a gate holds, that is in flight already, or that the queue does not know.
        """
        queued = self._pods.get(uid)
        match None if queued is None else queued.place:
            case Place.ACTIVE:
                self._active.discard(uid)
            case Place.BACKOFF:
                self._backoff.discard(uid)
            case Place.UNSCHEDULABLE:
                self._waiting.remove(uid)
            case _:
                return None
        if queued is None:
            raise AssertionError(f"pod {uid} has a place, and is not known")
        if queued.first_attempt_ns is None:
            queued.first_attempt_ns = now
        queued.pop(now)
        self._in_flight.begin(queued)
        return queued

    @property
    def has_listeners(self) -> bool:
        """Whether any pod could be woken by an event: where none could, none need be made up."""
        return bool(self._in_flight.listeners or self._waiting.uids)

    @property
    def can_pop(self) -> bool:
        """Whether `pop` would give a pod, were it asked before any backoff ends."""
        if not self._pods:
            return False
        return bool(self._active.uids) or (self._settings.pop_from_backoff and self._backoff.can_pop_early)

    @property
    def has_promising(self) -> bool:
        """Whether a pod backs off whose attempts have not ended in errors each time."""
        return len(self._backoff) > 0 and any(self._pods[uid].error_count <= 1 for uid in self._backoff)

    def decide(self, uid: str) -> None:
        """A pod in flight is past all plugins that may turn it down: what fails now is tried again without an event."""
        self._in_flight.decide(uid)

    def done(self, uid: str) -> None:
        """Forget a pod in flight: it is bound, or not to be attempted again. Does nothing for any other pod."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is IN_FLIGHT:
            self.delete(uid)

    def add_unschedulable(
        self,
        queued: QueuedPod,
        plugins: Iterable[str],
        pending_plugins: Iterable[str],
        now: int,
        *,
        error: bool = False,
    ) -> Place | None:
        """Take a pod back after a failed attempt, and say where it went.

        ``plugins`` rejected it, ``pending_plugins`` answered Pending. Without any, or with ``error`` (which makes
        them not count), something went wrong: the pod backs off and is attempted again without an event. Otherwise
        it waits for an event, unless one that wakes it came in since it was popped.

        None: the pod was deleted (and perhaps another of its name added) meanwhile, and stays out. Raises ValueError
        for a pod that is back already.
        """
        flight = self._flight_of(queued)
        if flight is None:
            return None
        queued.record = flight.latest
        queued.unschedulable_plugins = tuple(sorted(set(plugins))) if plugins and not error else ()
        queued.pending_plugins = tuple(sorted(set(pending_plugins))) if pending_plugins and not error else ()
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        queued.queued_ns = now
        wake, reason = self._woken_in_flight(flight)
        self._in_flight.end(queued.record.uid)
        self._requeue(queued, wake, reason, now)
        return queued.place

    def give_back(self, queued: QueuedPod, now: int) -> Place | None:
        """Take a pod back whose attempt was not made, as there is something that holds it; says where it went.

        None: it was deleted meanwhile. Raises ValueError for a pod that is back already.
        """
        flight = self._flight_of(queued)
        if flight is None:
            return None
        queued.record, queued.queued_ns = flight.latest, now
        self._in_flight.end(queued.record.uid)
        self._requeue(queued, AFTER_BACKOFF, GROUP_CHANGED, now)
        return queued.place

    def _flight_of(self, queued: QueuedPod) -> Flight | None:
        """The attempt a pod comes back from; None where it was deleted meanwhile. Raises ValueError without one."""
        uid = queued.record.uid
        if self._pods.get(uid) is not queued:
            return None
        flight = self._in_flight.find(uid)
        if flight is None:
            raise ValueError(f"pod {queued.record.key} ({uid}) is not in flight but {queued.place}")
        return flight

    def wake(self, uid: str, reason: str, now: int) -> None:
        """Something has happened that makes a pod worth another attempt after its backoff, unless a gate holds it."""
        queued, flight = self._pods.get(uid), self._in_flight.find(uid)
        if flight is not None:
            flight.own.append(ClusterEvent(EventResource.WILDCARD, ActionType.ALL, label=reason))
        elif queued is not None and queued.place in _WAITS:
            self._requeue(queued, AFTER_BACKOFF, reason, now)

    def move(self, event: ClusterEvent, now: int, among: Callable[[PodRecord], bool] | None = None) -> None:
        """Wake the waiting pods that an event may help; for pods in flight it counts once their attempt has failed.

        Of the waiting pods only those ``among`` which the event is meant for are asked; None stands for all. A woken
        pod backs off if it must, or is active at once if a plugin that answered Pending wakes it. Costs next to nothing
        if no plugin registered the event. Raises ValueError for an event about a pending pod itself, which is for
        `update`.
        """
        if event.resource is _POD:
            raise ValueError(
                f"event {event.label or event.action} is about a pending pod: hand its reading to update()"
            )
        if self._in_flight.listeners and self._rejections.concern(event):
            self._in_flight.note(event)
        if not self._waiting.uids:
            return
        for queued, wake in self._waiting.woken_by(event):
            if among is not None and not among(queued.record):
                continue
            if queued.gated_by and self._stays_gated(queued, now):
                queued.woken_by = event.label
                continue
            self._requeue(queued, wake, event.label, now)

    def activate(self, uids: Iterable[str], now: int) -> None:
        """Make pods active that wait or back off, unless a gate holds them.

        One in flight is attempted again once its attempt has failed, after its backoff. So is one that was attempted
        too often at this instant.
        """
        for uid in uids:
            queued, flight = self._pods.get(uid), self._in_flight.find(uid)
            if queued is None or queued.place is ACTIVE:
                continue
            if flight is not None:
                flight.own.append(ClusterEvent(EventResource.WILDCARD, ActionType.ALL, label=FORCE_ACTIVATE))
            elif queued.place is BACKOFF:
                if self._settings.must_pause(queued, now):
                    continue
                self._backoff.discard(uid)
                queued.woken_by = FORCE_ACTIVATE
                self._put(queued, ACTIVE, now)
            else:
                self._requeue(queued, AT_ONCE, FORCE_ACTIVATE, now)

    def reorder(self, uid: str, now: int) -> None:
        """Whether a pod goes first may have changed: an active one, or one that backs off, gets its place in order."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place in (ACTIVE, BACKOFF):
            self._sort_anew(queued, now)

    def ask_gate_again(self, uid: str, now: int, *, is_worth_attempt: bool) -> None:
        """Put a gated pod to PreEnqueue again: its gate may have opened. Does nothing for any other pod.

        One that passes goes on to its backoff if it ``is_worth_attempt``; otherwise it waits for an event.
        """
        queued = self._pods.get(uid)
        if queued is not None and queued.place is GATED:
            self._requeue(queued, AFTER_BACKOFF if is_worth_attempt else NO, GATE_OPENED, now)

    def flush(self, now: int) -> None:
        """Make active whose backoff has ended, and try again with pods that waited too long for an event.

        A gated pod is put to PreEnqueue again, so that none hangs on an event that was missed.
        """
        if now < self._due_ns:
            return
        self._end_backoffs(now)
        for queued in self._waiting.take_overdue(now):
            self._requeue(queued, AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT, now)
        next_ns = self.next_deadline()
        self._due_ns = MAX_TIME_NS if next_ns is None else next_ns

    @property
    def has_deadlines(self) -> bool:
        """Whether any pod backs off, or waits for an event."""
        return bool(self._pods) and (bool(self._waiting.uids) or len(self._backoff) > 0)

    def next_deadline(self) -> int | None:
        """When `flush` next has something to do; None if only a call can change anything."""
        if not self._pods:
            return None
        return earliest((self._backoff.next_deadline(), self._waiting.next_deadline()))

    def _requeue(self, queued: QueuedPod, wake: Wake, reason: str, now: int) -> None:
        """Give a pod its place that is nowhere, or waits for an event."""
        is_held = bool(wake or queued.gated_by) and self._gate.holds(queued)
        if wake:
            queued.woken_by = reason
        backs_off = False
        if wake and not is_held and (wake is AFTER_BACKOFF or self._settings.must_pause(queued, now)):
            backs_off = self._settings.backoff_end_ns(queued) > now
        self._put(queued, landing(wake, is_held=is_held, backs_off=backs_off), now)

    def _stays_gated(self, queued: QueuedPod, now: int) -> bool:
        """Whether the gate that holds a pod still does, and its wait for an event goes on as it is.

        A preemptor's gate is asked again with the end of each victim, and most of these open nothing.
        """
        gate, flush_ns = queued.gated_by, self._settings.unschedulable_flush_ns
        return queued.queued_ns + flush_ns > now and self._gate.holds(queued) and queued.gated_by == gate

    def _put(self, queued: QueuedPod, place: Place, now: int) -> None:
        before, queued.place = queued.place, place
        if before in _WAITS and place not in _WAITS:
            self._waiting.discard(queued.record.uid)
        if place is ACTIVE:
            if queued.first_attempt_ns is None:
                queued.first_attempt_ns = now
            self._active.put(_sort_item(queued))
            return
        if place is BACKOFF:
            due_ns = self._backoff.put(queued, _sort_item(queued))
        else:
            due_ns = queued.queued_ns + self._settings.unschedulable_flush_ns
            if due_ns <= now:  # The pod was looked at just now.
                due_ns = now + self._settings.unschedulable_flush_ns
            self._waiting.put(queued, due_ns)
        self._due_ns = min(self._due_ns, due_ns)

    def _sort_anew(self, queued: QueuedPod, now: int) -> None:
        """Bring an active pod, or one that backs off, to the place in order that its new reading gives it."""
        uid = queued.record.uid
        self._active.discard(uid)
        self._backoff.discard(uid)
        self._put(queued, queued.place if self._gate.sorts(queued) else GATED, now)

    def _end_backoffs(self, now: int) -> None:
        for uid in self._backoff.take_ended(now):
            self._put(self._pods[uid], ACTIVE, now)

    def _woken_in_flight(self, flight: Flight) -> tuple[Wake, str]:
        """What has happened during a failed attempt that makes another one worthwhile, and its label."""
        queued, best, label = flight.queued, NO, ""
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return AFTER_BACKOFF, ATTEMPT_FAILURE
        if not self._in_flight.has_heard(flight):
            return best, label
        rejection = self._rejections.of(queued, "")
        enough = AT_ONCE if queued.pending_plugins else AFTER_BACKOFF
        for event in self._in_flight.events(flight):
            wake = rejection.wake(queued.record, event)
            if wake > best:
                best, label = wake, event.label
                if best is enough:
                    break
        return best, label


def _sort_item(queued: QueuedPod) -> Item:
    return (not queued.goes_first, queued.sort_key, queued.record.key, queued.record.uid)


def _update_event(old: PodRecord, new: PodRecord) -> ClusterEvent:
    return ClusterEvent(_POD, pod_changes(old, new), old, new, POD_UPDATE)
