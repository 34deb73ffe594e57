"""The scheduling queue: pending pods that are active, back off, or wait for events.

docs/scheduling-automata.md has its transitions as a table, which a test compares with it. Source:
pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go, unschedulable_pods.go).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

from podium.api.times import MAX_TIME_NS
from podium.cluster.pods import PodRecord
from podium.controllers.deadlines import earliest
from podium.controllers.scheduling.queue import hints, places
from podium.controllers.scheduling.queue.queued_pod import (
    ACTIVE,
    BACKOFF,
    GATED,
    IN_FLIGHT,
    UNSCHEDULABLE,
    QueuedPod,
    QueuePlace,
    QueueSettings,
)
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.verdicts import SUCCESS, PluginError, Status, unresolvable

DEFAULTS = QueueSettings()

POD_ADD = "PodAdd"
POD_UPDATE = "PodUpdate"
FORCE_ACTIVATE = "ForceActivate"
GATE_OPENED = "GateOpened"
GROUP_CHANGED = "PodGroupChanged"
UNSCHEDULABLE_TIMEOUT = "UnschedulableTimeout"
ATTEMPT_FAILURE = "ScheduleAttemptFailure"

_POD = EventResource.POD
# The places where pods wait for an event.
_WAITS = (UNSCHEDULABLE, GATED)


class SchedulingQueue:
    """Every pending pod of the scheduler, in exactly one place.

    A pod is active (may be popped), in backoff, unschedulable (waits for an event that its rejecting plugins
    registered), gated by a PreEnqueue plugin, or in flight (popped, and neither failed, done nor deleted since).
    PreEnqueue runs before a pod becomes active or backs off, not again when its backoff ends. Times are nanoseconds and
    must not go back.

    ``queue_sort`` and ``registrations`` are by scheduler name. A plugin without own events must have `EVERY_EVENT` in
    ``registrations``; one that is missing there wakes no pod. The pods (uids) of ``first`` come before all others.
    """

    def __init__(
        self,
        queue_sort: Mapping[str, SortKey],
        pre_enqueue: PreEnqueue,
        registrations: hints.Registrations,
        settings: QueueSettings = DEFAULTS,
        first: Container[str] = frozenset(),
    ) -> None:
        self._settings = settings
        self._pods: dict[str, QueuedPod] = {}
        self.uids = self._pods.keys()
        """Those of all pods; a live view."""
        self.find = self._pods.get
        """Returns a pod with its history by uid, or None."""
        self._rejections = hints.Rejections(registrations)
        # Each pod is in one of these. Gated pods wait for an event, too.
        self._active = places.PodHeap()
        self._backoff = places.BackoffPods(settings)
        self._waiting = places.UnschedulablePods(self._rejections)
        self._in_flight = places.InFlightPods()
        self.decide = self._in_flight.decide
        """Notes that no plugin can reject an in-flight pod (uid) any more."""
        self._queue_sort = queue_sort
        self._pre_enqueue = pre_enqueue
        self._first = first
        # The number of pops, now and at the last event that concerned some plugin: what counts without hints.
        self._pops = self._pops_at_event = 0
        # `flush` has nothing to do before this time.
        self._due_ns = MAX_TIME_NS

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield all pods, those that came first first."""
        return iter(self._pods.values())

    def where(self, uid: str) -> QueuePlace | None:
        queued = self._pods.get(uid)
        return None if queued is None else queued.place

    def count(self, place: QueuePlace) -> int:
        """Return the number of pods in a place."""
        return sum(queued.place is place for queued in self._pods.values())

    def delete(self, uid: str) -> None:
        """Forget a pod that is gone, bound or another scheduler's, also in flight."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return
        if queued.place is IN_FLIGHT:
            self._in_flight.end(uid)
        else:
            self._take_out(queued)

    def _take_out(self, queued: QueuedPod) -> None:
        """Remove a pod that is not in flight from its place."""
        uid = queued.record.uid
        if queued.place is ACTIVE:
            self._active.discard(uid)
        elif queued.place is BACKOFF:
            self._backoff.discard(uid)
        else:
            self._waiting.discard(uid)

    def add(self, record: PodRecord, now: int) -> None:
        """Add a new pending pod: it becomes active, or gated.

        Raises ValueError for a known pod, or one without a profile.
        """
        if record.uid in self._pods:
            raise ValueError(f"pod {record.key} ({record.uid}) is in the scheduling queue already")
        if record.scheduler_name not in self._queue_sort:
            raise ValueError(f"pod {record.key}: no profile is named {record.scheduler_name!r}")
        queued = self._pods[record.uid] = QueuedPod(record, now)
        self._requeue(queued, hints.AT_ONCE, POD_ADD, now)

    def update(self, record: PodRecord, now: int) -> None:
        """Take in a newer state of a pending pod; an unknown one is added.

        An active pod, or one in backoff, is sorted again. In flight, the change counts after the attempt. A waiting pod
        is woken if a rejecting plugin registered the change; a gated one runs PreEnqueue again in any case.
        """
        queued = self._pods.get(record.uid)
        if queued is None:
            self.add(record, now)
            return
        if (flight := self._in_flight.find(record.uid)) is not None:
            flight.own.append(_update_event(flight.latest, record))
            flight.latest = record
            return
        event = _update_event(queued.record, record)
        queued.record = record
        if queued.place not in _WAITS:
            self._sort_again(queued, now)
            return
        if self._settings.has_hints:
            is_woken = hints.wakes(self._rejections.of(queued, "").hints(event), record, event)
        else:
            is_woken = hints.is_updated(event.old, record)
        if is_woken or queued.place is GATED:
            self._requeue(queued, hints.AFTER_BACKOFF if is_woken else hints.NO, event.label, now)

    def take(self, now: int) -> QueuedPod | None:
        """Remove the first pod, which the caller must `begin` or `reject` at once; None if none may be attempted now.

        The order is: pods that go first, the queue's sort, key, uid. Without active pods, the settings may allow the
        pod whose backoff after a rejection ends first.
        """
        if now >= self._due_ns:
            self._end_backoffs(now)
        uid = self._active.pop()
        if uid is None and self._settings.pop_from_backoff:
            uid = self._backoff.early.pop()
        return None if uid is None else self._pods[uid]

    def join(self, uid: str, now: int) -> QueuedPod | None:
        """Start an attempt at a pod together with another one's, even if it waits or backs off.

        None for a pod that is gated, in flight or unknown.
        """
        queued = self._pods.get(uid)
        if queued is None or queued.place in (GATED, IN_FLIGHT):
            return None
        self._take_out(queued)
        if queued.first_attempt_ns is None:
            queued.first_attempt_ns = now
        self.begin(queued, now)
        return queued

    def begin(self, queued: QueuedPod, now: int) -> None:
        """Start an attempt at a pod that was taken."""
        self._pops += 1
        queued.pop(now)
        self._in_flight.begin(queued)

    def has_listeners(self) -> bool:
        """Return whether an event could wake any pod."""
        return len(self._in_flight.listeners) > 0 or len(self._waiting.uids) > 0

    def can_pop(self) -> bool:
        """Return whether `take` would return a pod before any further backoff ends."""
        return len(self._active.uids) > 0 or (self._settings.pop_from_backoff and len(self._backoff.early.uids) > 0)

    @property
    def has_promising(self) -> bool:
        """Return whether a pod in backoff has not failed with an error each time, or a waiting one may now preempt."""
        if self._waiting.hopeful:
            return True
        return len(self._backoff) > 0 and any(self._pods[uid].error_count <= 1 for uid in self._backoff)

    def done(self, uid: str) -> None:
        """Forget an in-flight pod that is bound or not to be attempted; no effect on other pods."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is IN_FLIGHT:
            self.delete(uid)

    def add_unschedulable(
        self, queued: QueuedPod, plugins: Collection[str], now: int, *, is_error: bool = False
    ) -> None:
        """Return a pod that was not deleted meanwhile to the queue after a failed attempt.

        ``plugins`` rejected it. Without any, or if it ``is_error``, the pod backs off and is retried without an event.
        Otherwise it waits for an event, unless one has come since it was popped. Raises ValueError for a pod that is
        back already.
        """
        flight = self._flight_of(queued)
        if flight is None:
            return
        queued.record = flight.latest
        queued.fail(() if is_error else tuple(plugins if len(plugins) < 2 else sorted({*plugins})), now)
        wake, reason = self._woken_in_flight(flight)
        self._in_flight.end(queued.record.uid)
        self._requeue(queued, wake, reason, now)

    def reject(self, queued: QueuedPod, plugins: tuple[str, ...], now: int) -> None:
        """Return a taken pod that some plugins, in order of name, are known to reject: no event can have come yet."""
        self._pops += 1
        queued.pop(now)
        queued.fail(plugins, now)
        self._put(queued, UNSCHEDULABLE, now)

    def give_back(self, queued: QueuedPod, now: int) -> None:
        """Return a pod that was not deleted meanwhile to the queue without an attempt.

        Raises ValueError for a pod that is back already.
        """
        flight = self._flight_of(queued)
        if flight is not None:
            queued.record, queued.queued_ns = flight.latest, now
            self._in_flight.end(queued.record.uid)
            self._requeue(queued, hints.AFTER_BACKOFF, GROUP_CHANGED, now)

    def _flight_of(self, queued: QueuedPod) -> places.InFlightPod | None:
        """Return the attempt that a pod returns from; None if it was deleted. Raises ValueError without one."""
        uid = queued.record.uid
        if self._pods.get(uid) is not queued:
            return None
        flight = self._in_flight.find(uid)
        if flight is None:
            raise ValueError(f"pod {queued.record.key} ({uid}) is not in flight but {queued.place}")
        return flight

    def wake(self, uid: str, reason: str, now: int) -> None:
        """Make a pod worth another attempt after its backoff, unless it is gated."""
        if (queued := self._pods.get(uid)) is not None:
            self._wake(queued, hints.AFTER_BACKOFF, reason, now)

    def move(self, event: ClusterEvent, now: int, among: Callable[[PodRecord], bool] | None = None) -> None:
        """Wake the waiting pods that an event may help; for pods in flight it counts after their attempt.

        Of the waiting pods only those ``among`` which the event is meant for are asked. Raises ValueError for an event
        about a pending pod, which is for `update`.
        """
        if event.resource is _POD:
            raise ValueError(
                f"event {event.label or event.action} is about a pending pod: hand its reading to update()"
            )
        if self._in_flight.listeners and self._rejections.concern(event):
            self._in_flight.note(event)
            self._pops_at_event = self._pops
        if not self._waiting.uids:
            return
        for queued in self._waiting.woken_by(event):
            if among is not None and not among(queued.record):
                continue
            # A preemptor's gate is asked at the end of each victim. As long as the same gate holds the pod, its wait
            # continues unchanged.
            gate, flush_ns = queued.gated_by, self._settings.unschedulable_flush_ns
            if gate and queued.queued_ns + flush_ns > now and self._holds(queued) and queued.gated_by == gate:
                queued.woken_by = event.label
                continue
            self._requeue(queued, hints.AFTER_BACKOFF, event.label, now)
        self._waiting.note(event)

    def activate(self, uids: Iterable[str], now: int) -> None:
        """Make waiting pods and pods in backoff active, unless they are gated.

        A pod in flight is retried after its attempt and backoff, as is one with too many attempts at this instant.
        """
        for queued in filter(None, map(self._pods.get, uids)):
            if queued.place is not BACKOFF:
                self._wake(queued, hints.AT_ONCE, FORCE_ACTIVATE, now)
            elif not self._settings.must_pause(queued, now):
                self._backoff.discard(queued.record.uid)
                queued.woken_by = FORCE_ACTIVATE
                self._put(queued, ACTIVE, now)

    def _wake(self, queued: QueuedPod, wake: hints.Wake, reason: str, now: int) -> None:
        """Choose the place of a waiting pod again; in flight, that counts after the attempt."""
        if (flight := self._in_flight.find(queued.record.uid)) is not None:
            flight.own.append(ClusterEvent(EventResource.WILDCARD, ActionType.ALL, label=reason))
        elif queued.place in _WAITS:
            self._requeue(queued, wake, reason, now)

    def reorder(self, uid: str, now: int) -> None:
        """Sort an active pod or one in backoff again, after a change of ``first``."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place in (ACTIVE, BACKOFF):
            self._sort_again(queued, now)

    def ask_gate_again(self, uid: str, now: int, is_worth_attempt: bool) -> None:
        """Run PreEnqueue again for a gated pod; no effect on other pods.

        A pod that passes backs off if it ``is_worth_attempt``, and waits for an event otherwise.
        """
        queued = self._pods.get(uid)
        if queued is not None and queued.place is GATED:
            self._requeue(queued, hints.AFTER_BACKOFF if is_worth_attempt else hints.NO, GATE_OPENED, now)

    def flush(self, now: int) -> None:
        """End due backoffs, and retry pods that waited too long for an event.

        Gated pods run PreEnqueue again, in case an event was missed.
        """
        if now < self._due_ns:
            return
        self._end_backoffs(now)
        for queued in self._waiting.take_overdue(now):
            self._requeue(queued, hints.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT, now)
        next_ns = self.next_deadline()
        self._due_ns = MAX_TIME_NS if next_ns is None else next_ns

    @property
    def has_deadlines(self) -> bool:
        """Return whether any pod backs off or waits for an event."""
        return bool(self._pods) and (bool(self._waiting.uids) or len(self._backoff) > 0)

    def next_deadline(self) -> int | None:
        """Return when `flush` is next due, or None."""
        if not self._pods:
            return None
        return earliest((self._backoff.next_deadline(), self._waiting.next_deadline()))

    def _requeue(self, queued: QueuedPod, wake: hints.Wake, reason: str, now: int) -> None:
        """Choose the place of a pod that is in none, or waits for an event."""
        is_held = self._holds(queued) if wake or queued.gated_by else False
        if wake:
            queued.woken_by = reason
        end_ns = now
        if wake and not is_held and (wake is hints.AFTER_BACKOFF or self._settings.must_pause(queued, now)):
            end_ns = self._settings.backoff_end_ns(queued)
        self._put(queued, landing(wake, is_held, end_ns > now), now, end_ns)

    def _put(self, queued: QueuedPod, place: QueuePlace, now: int, end_ns: int | None = None) -> None:
        """Put a pod in a place; ``end_ns`` is the end of its backoff, None if that is not known."""
        before, queued.place = queued.place, place
        if before in _WAITS and place not in _WAITS:
            self._waiting.discard(queued.record.uid)
        if place is ACTIVE:
            if queued.first_attempt_ns is None:
                queued.first_attempt_ns = now
            self._active.put(_sort_item(queued))
            return
        if place is BACKOFF:
            due_ns = self._settings.backoff_end_ns(queued) if end_ns is None else end_ns
            self._backoff.put(queued, (due_ns, *_sort_item(queued)))
        else:
            due_ns = queued.queued_ns + self._settings.unschedulable_flush_ns
            if due_ns <= now:  # The pod was looked at just now.
                due_ns = now + self._settings.unschedulable_flush_ns
            self._waiting.put(queued, due_ns)
        self._due_ns = min(self._due_ns, due_ns)

    def _sort_again(self, queued: QueuedPod, now: int) -> None:
        uid = queued.record.uid
        self._active.discard(uid)
        self._backoff.discard(uid)
        self._put(queued, queued.place if self._sorts(queued) else GATED, now)

    def _end_backoffs(self, now: int) -> None:
        for uid in self._backoff.take_ended(now):
            self._put(self._pods[uid], ACTIVE, now)

    def _holds(self, queued: QueuedPod) -> bool:
        """Return whether PreEnqueue rejects the pod, or QueueSort fails; the pod records the plugin and the reason."""
        status = self._pre_enqueue(queued.record)
        if status is not SUCCESS and not status.is_success:
            self._hold(queued, status)
            return True
        if not self._sorts(queued):
            return True
        if queued.gated_by:
            queued.gated_by = queued.message = ""
        return False

    def _sorts(self, queued: QueuedPod) -> bool:
        """Run QueueSort for a pod; return whether it succeeded. After a failure the pod is gated."""
        record = queued.record
        try:
            queued.sort_key = self._queue_sort[record.scheduler_name](record, queued.queued_ns)
        except PluginError as error:
            self._hold(queued, unresolvable(str(error)).by(QUEUE_SORT))
            return False
        queued.goes_first = record.uid in self._first
        return True

    def _hold(self, queued: QueuedPod, status: Status) -> None:
        if not status.plugin:
            raise ValueError(f"pod {queued.record.key} is gated by a plugin that does not name itself")
        queued.gated_by, queued.message = status.plugin, status.message

    def _woken_in_flight(self, flight: places.InFlightPod) -> tuple[hints.Wake, str]:
        """Return the effect of the events during a failed attempt, and the label of the decisive one."""
        queued, has_hints = flight.queued, self._settings.has_hints
        if not queued.unschedulable_plugins or (not has_hints and self._pops_at_event == self._pops):
            return hints.AFTER_BACKOFF, ATTEMPT_FAILURE
        if has_hints and self._in_flight.has_heard(flight):
            rejection = self._rejections.of(queued, "")
            for event in self._in_flight.events(flight):
                if hints.wakes(rejection.hints(event), queued.record, event):
                    return hints.AFTER_BACKOFF, event.label
        return hints.NO, ""


def landing(wake: hints.Wake, is_held: bool, backs_off: bool) -> QueuePlace:
    """Return the new place of a pod.

    ``is_held``: a PreEnqueue plugin rejects it or QueueSort fails, which is asked if the pod is woken or was gated.
    ``backs_off``: its backoff has not ended.
    """
    if is_held:
        return GATED
    if wake is hints.NO:
        return UNSCHEDULABLE
    return BACKOFF if backs_off else ACTIVE


def _sort_item(queued: QueuedPod) -> places.Item:
    return (not queued.goes_first, queued.sort_key, queued.record.key, queued.record.uid)


def _update_event(old: PodRecord, new: PodRecord) -> ClusterEvent:
    return ClusterEvent(_POD, hints.pod_changes(old, new), old, new, POD_UPDATE)


# The sort key of a pod, from the pod and its time of entry; the smallest goes first.
SortKey = Callable[[PodRecord, int], tuple[int, ...]]
PreEnqueue = Callable[[PodRecord], Status]

QUEUE_SORT = "QueueSort"
