"""The scheduling queue: which pending pod is attempted next, which back off, and what the others wait for.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from podium.cluster.pods import PodRecord
from podium.framework.errors import PluginError
from podium.framework.events import Action, ClusterEvent, Resource
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.machines.deadlines import earliest
from podium.machines.scheduling.pod_changes import pod_changes
from podium.machines.scheduling.queue_backoff import BackoffPods
from podium.machines.scheduling.queue_heap import Item, PodHeap
from podium.machines.scheduling.queue_hints import Registrations, Rejections, Wake
from podium.machines.scheduling.queue_in_flight import Flight, InFlight
from podium.machines.scheduling.queue_waiting import WaitingPods
from podium.machines.scheduling.queued_pod import Place, QueuedPod, QueueSettings

# A pod's place in the active queue, from the pod and its time of entry; the smallest goes first.
SortKey = Callable[[PodRecord, int], tuple[int, ...]]
PreEnqueue = Callable[[PodRecord], Status]

DEFAULTS = QueueSettings()

POD_ADD = "PodAdd"
POD_UPDATE = "PodUpdate"
FORCE_ACTIVATE = "ForceActivate"
GATE_OPENED = "GateOpened"
QUEUE_SORT = "QueueSort"
UNSCHEDULABLE_TIMEOUT = "UnschedulableTimeout"
ATTEMPT_FAILURE = "ScheduleAttemptFailure"


class SchedulingQueue:
    """Every pending pod that the scheduler is responsible for, in exactly one place.

    A pod is active (may be popped now), backs off from its last attempt, is unschedulable (waits for an event that
    the plugins which rejected it registered), is gated (a PreEnqueue plugin holds it), or is in flight (popped, and
    neither failed, done nor deleted since). PreEnqueue is asked about a pod that is about to be active or to back
    off, not again when its backoff ends. Times are nanoseconds and must not go back.

    ``queue_sort`` and ``registrations`` are by scheduler name. A plugin that names no events of its own must be given
    `EVERY_EVENT` in ``registrations``; one that is missing there wakes no pod.
    """

    def __init__(
        self,
        queue_sort: Mapping[str, SortKey],
        pre_enqueue: PreEnqueue,
        registrations: Registrations,
        settings: QueueSettings = DEFAULTS,
    ) -> None:
        self._queue_sort = queue_sort
        self._pre_enqueue = pre_enqueue
        self._settings = settings
        self._rejections = Rejections(registrations)
        self._pods: dict[str, QueuedPod] = {}
        self._active = PodHeap()
        self._backoff = BackoffPods(settings)
        self._waiting = WaitingPods(self._rejections)
        self._in_flight = InFlight()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods: place by place in the order of `Place`, within a place in the order of `pods`."""
        for place in Place:
            yield from self.pods(place)

    def find(self, uid: str) -> QueuedPod | None:
        """A pod with its history; None if the queue does not know it."""
        return self._pods.get(uid)

    def where(self, uid: str) -> Place | None:
        """The place of a pod; None if the queue does not know it."""
        queued = self._pods.get(uid)
        return None if queued is None else queued.place

    def count(self, place: Place) -> int:
        """How many pods are in a place."""
        match place:
            case Place.ACTIVE:
                return len(self._active)
            case Place.BACKOFF:
                return len(self._backoff)
            case Place.IN_FLIGHT:
                return len(self._in_flight)
            case Place.GATED | Place.UNSCHEDULABLE:
                return self._waiting.count(gated=place is Place.GATED)

    def pods(self, place: Place) -> list[QueuedPod]:
        """The pods in a place.

        Active ones and those in flight in order of pop, those that back off by its end (then as if active), waiting
        ones by time of entry, then key, then uid.
        """
        match place:
            case Place.ACTIVE:
                return [self._pods[item[-1]] for item in self._active.items()]
            case Place.BACKOFF:
                return [self._pods[uid] for uid in self._backoff.uids()]
            case Place.IN_FLIGHT:
                return self._in_flight.pods()
            case Place.GATED | Place.UNSCHEDULABLE:
                return self._waiting.pods(gated=place is Place.GATED)

    def add(self, record: PodRecord, now: int) -> None:
        """Take in a new pending pod: it becomes active, or gated.

        Raises ValueError for a pod that is in the queue already, or whose scheduler name has no profile here.
        """
        if record.uid in self._pods:
            raise ValueError(f"pod {record.key} ({record.uid}) is in the scheduling queue already")
        if record.scheduler_name not in self._queue_sort:
            raise ValueError(f"pod {record.key}: no profile is named {record.scheduler_name!r}")
        queued = self._pods[record.uid] = QueuedPod(record, now)
        self._requeue(queued, Wake.AT_ONCE, POD_ADD, now)

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
        if queued.place in (Place.ACTIVE, Place.BACKOFF):
            self._sort_anew(queued, now)
        else:
            wake = self._rejections.of_attempt(queued).wake(record, event)
            if wake or queued.gated_by:
                self._waiting.remove(record.uid)
                self._requeue(queued, wake, event.label, now)

    def delete(self, uid: str) -> None:
        """Forget a pod, in flight or not, that is gone, bound or another scheduler's; unknown pods are no matter."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return
        match queued.place:
            case Place.ACTIVE:
                self._active.discard(uid)
            case Place.BACKOFF:
                self._backoff.discard(uid)
            case Place.IN_FLIGHT:
                self._in_flight.end(uid)
            case Place.GATED | Place.UNSCHEDULABLE:
                self._waiting.remove(uid)

    def pop(self, now: int) -> QueuedPod | None:
        """Start an attempt at the pod that goes first; None if none may be attempted now.

        That is the first active pod in order of the queue's sort, then key, then uid. With none active it is, if the
        settings say so, the one whose backoff after a rejection ends first; a backoff after an error is kept, and one
        after too many attempts at one instant.
        """
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

    @property
    def can_pop(self) -> bool:
        """Whether `pop` would give a pod, were it asked before any backoff ends."""
        return len(self._active) > 0 or (self._settings.pop_from_backoff and self._backoff.can_pop_early)

    @property
    def has_promising(self) -> bool:
        """Whether a pod backs off whose attempts have not ended in errors each time."""
        return any(self._pods[uid].error_count <= 1 for uid in self._backoff)

    def decide(self, uid: str) -> None:
        """A pod in flight is past all plugins that may turn it down: what fails now is tried again without an event."""
        self._in_flight.decide(uid)

    def done(self, uid: str) -> None:
        """Forget a pod in flight: it is bound, or not to be attempted again. Does nothing for any other pod."""
        if self._in_flight.find(uid) is not None:
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
        uid = queued.record.uid
        if self._pods.get(uid) is not queued:
            return None
        flight = self._in_flight.find(uid)
        if flight is None:
            raise ValueError(f"pod {queued.record.key} ({uid}) is not in flight but {queued.place}")
        queued.record = flight.latest
        queued.unschedulable_plugins = () if error else tuple(sorted(set(plugins)))
        queued.pending_plugins = () if error else tuple(sorted(set(pending_plugins)))
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        queued.queued_ns = now
        wake, reason = self._woken_in_flight(flight)
        self._in_flight.end(uid)
        self._requeue(queued, wake, reason, now)
        return queued.place

    def move(self, event: ClusterEvent, now: int, among: Callable[[PodRecord], bool] | None = None) -> None:
        """Wake the waiting pods that an event may help; for pods in flight it counts once their attempt has failed.

        Of the waiting pods only those ``among`` which the event is meant for are asked; None stands for all. A woken
        pod backs off if it must, or is active at once if a plugin that answered Pending wakes it. Costs next to nothing
        if no plugin registered the event. Raises ValueError for an event about a pending pod itself, which is for
        `update`.
        """
        if event.resource is Resource.POD:
            raise ValueError(
                f"event {event.label or event.action} is about a pending pod: hand its reading to update()"
            )
        if not self._rejections.concern(event):
            return
        self._in_flight.note(event)
        for queued, wake in self._waiting.woken_by(event):
            if among is not None and not among(queued.record):
                continue
            self._waiting.remove(queued.record.uid)
            self._requeue(queued, wake, event.label, now)

    def activate(self, uids: Iterable[str], now: int) -> None:
        """Make pods active that wait or back off, unless a gate holds them.

        One in flight is attempted again once its attempt has failed, after its backoff. So is one that was attempted
        too often at this instant.
        """
        for uid in uids:
            queued, flight = self._pods.get(uid), self._in_flight.find(uid)
            if queued is None or queued.place is Place.ACTIVE:
                continue
            if flight is not None:
                flight.own.append(ClusterEvent(Resource.WILDCARD, Action.ALL, label=FORCE_ACTIVATE))
            elif queued.place is Place.BACKOFF:
                if self._settings.must_pause(queued, now):
                    continue
                self._backoff.discard(uid)
                queued.woken_by = FORCE_ACTIVATE
                self._make_active(queued, now)
            else:
                self._waiting.remove(uid)
                self._requeue(queued, Wake.AT_ONCE, FORCE_ACTIVATE, now)

    def ask_gate_again(self, uid: str, now: int, *, is_worth_attempt: bool) -> None:
        """Put a gated pod to PreEnqueue again: its gate may have opened. Does nothing for any other pod.

        One that passes goes on to its backoff if it ``is_worth_attempt``; otherwise it waits for an event.
        """
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.GATED:
            self._waiting.remove(uid)
            self._requeue(queued, Wake.AFTER_BACKOFF if is_worth_attempt else Wake.NO, GATE_OPENED, now)

    def flush(self, now: int) -> None:
        """Make active whose backoff has ended, and try again with pods that waited too long for an event.

        A gated pod is put to PreEnqueue again, so that none hangs on an event that was missed.
        """
        self._end_backoffs(now)
        for queued in self._waiting.take_overdue(now):
            self._requeue(queued, Wake.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT, now)

    def next_deadline(self) -> int | None:
        """When `flush` next has something to do; None if only a call can change anything."""
        deadlines = (self._backoff.next_deadline(), self._waiting.next_deadline())
        return earliest(deadlines)

    def check(self) -> None:
        """Raise AssertionError if a pod is in two places or none, or if what is kept about pods in flight is wrong."""
        self._active.check()
        self._backoff.check(self._pods)
        self._waiting.check()
        self._in_flight.check()
        if sum(map(self.count, Place)) != len(self._pods):
            raise AssertionError("the queue's places and its pods differ in number")
        for place in Place:
            for queued in self.pods(place):
                uid = queued.record.uid
                if queued.place is not place or self._pods.get(uid) is not queued:
                    raise AssertionError(f"pod {queued.record.key} is in place {place}, but known as {queued.place}")
                if bool(queued.gated_by) is not (place is Place.GATED):
                    raise AssertionError(f"pod {queued.record.key} is {place} with gate {queued.gated_by!r}")

    def _requeue(self, queued: QueuedPod, wake: Wake, reason: str, now: int) -> None:
        """Give a pod that is nowhere its place."""
        if (wake or queued.gated_by) and not (status := self._gates(queued)).is_success:
            queued.woken_by = reason if wake else queued.woken_by
            self._gate(queued, status, now)
            return
        if not wake:
            self._wait(queued, Place.UNSCHEDULABLE, now)
            return
        queued.woken_by = reason
        waits = wake is Wake.AFTER_BACKOFF or self._settings.must_pause(queued, now)
        if waits and self._settings.backoff_end_ns(queued) > now:
            queued.place = Place.BACKOFF
            self._backoff.put(queued, _sort_item(queued))
        else:
            self._make_active(queued, now)

    def _sort_anew(self, queued: QueuedPod, now: int) -> None:
        """Bring an active pod, or one that backs off, to the place in order that its new reading gives it."""
        uid = queued.record.uid
        self._active.discard(uid)
        self._backoff.discard(uid)
        status = self._find_order(queued)
        if not status.is_success:
            self._gate(queued, status, now)
        elif queued.place is Place.ACTIVE:
            self._active.put(_sort_item(queued))
        else:
            self._backoff.put(queued, _sort_item(queued))

    def _find_order(self, queued: QueuedPod) -> Status:
        """Ask QueueSort for the pod's place in order. A pod for which that fails has none, and is held out."""
        try:
            queued.sort_key = self._queue_sort[queued.record.scheduler_name](queued.record, queued.queued_ns)
        except PluginError as error:
            return unresolvable(str(error)).by(QUEUE_SORT)
        return SUCCESS

    def _gate(self, queued: QueuedPod, status: Status, now: int) -> None:
        if not status.plugin:
            raise ValueError(f"pod {queued.record.key} is gated by a plugin that does not name itself")
        queued.gated_by, queued.message = status.plugin, status.message
        self._wait(queued, Place.GATED, now)

    def _gates(self, queued: QueuedPod) -> Status:
        """Whether a PreEnqueue plugin holds the pod, or QueueSort has no place for it."""
        status = self._pre_enqueue(queued.record)
        if status.is_success:
            status = self._find_order(queued)
        if status.is_success and queued.gated_by:
            queued.gated_by = queued.message = ""
        return status

    def _wait(self, queued: QueuedPod, place: Place, now: int) -> None:
        queued.place = place
        deadline = queued.queued_ns + self._settings.unschedulable_flush_ns
        if deadline <= now:  # The pod was looked at just now.
            deadline = now + self._settings.unschedulable_flush_ns
        self._waiting.put(queued, deadline)

    def _make_active(self, queued: QueuedPod, now: int) -> None:
        queued.place = Place.ACTIVE
        if queued.first_attempt_ns is None:
            queued.first_attempt_ns = now
        self._active.put(_sort_item(queued))

    def _end_backoffs(self, now: int) -> None:
        for uid in self._backoff.take_ended(now):
            self._make_active(self._pods[uid], now)

    def _woken_in_flight(self, flight: Flight) -> tuple[Wake, str]:
        """What has happened during a failed attempt that makes another one worthwhile, and its label."""
        queued, best, label = flight.queued, Wake.NO, ""
        rejection = self._rejections.of_attempt(queued)
        if rejection.by_nobody:
            return Wake.AFTER_BACKOFF, ATTEMPT_FAILURE
        enough = Wake.AT_ONCE if queued.pending_plugins else Wake.AFTER_BACKOFF
        for event in self._in_flight.events(flight):
            wake = rejection.wake(queued.record, event)
            if wake > best:
                best, label = wake, event.label
                if best is enough:
                    break
        return best, label


def _sort_item(queued: QueuedPod) -> Item:
    return (queued.sort_key, queued.record.key, queued.record.uid)


def _update_event(old: PodRecord, new: PodRecord) -> ClusterEvent:
    return ClusterEvent(Resource.POD, pod_changes(old, new), old, new, POD_UPDATE)
