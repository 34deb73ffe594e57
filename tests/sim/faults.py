"""Faults between components and the API server, watches included."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Protocol

from podium.apirequests.observations import ObjectObservation, arrived, differences, first_seen
from podium.controllers.actions import Action, Bind, BindClaim, CreateObject, DeleteObject, Evict, Record
from podium.controllers.controller import is_watched_kind
from podium.controllers.observations import Problem
from podium.runtime.runtime import Component, Runtime, Wakeups
from podium.sim.faults import FaultOutcome
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent

_SECOND = 10**9

NO_ANSWER = Problem(0, "Timeout", "no answer came")
STUMBLED = Problem(500, "InternalError", "the API server stumbled")
CONFLICT = Problem(409, "Conflict", "the object has changed; read it and try again")
OVERLOADED = Problem(429, "TooManyRequests", "too many requests; try again later", retry_after_ns=_SECOND)


CARRIED_OUT = FaultOutcome()
REFUSED = FaultOutcome(0, STUMBLED)
LOST = FaultOutcome(0, NO_ANSWER)
ANSWER_LOST = FaultOutcome(1, NO_ANSWER)
DONE_WITH_ERROR = FaultOutcome(1, STUMBLED)


@dataclass(frozen=True, slots=True)
class WatchDelivery:
    """The delivery of a watch event: ``delay_ns`` late, ``copies`` times.

    ``merges`` drops an undelivered earlier event of the same object. ``breaks_ns``: the watch breaks for so long and
    loses its events; then the kind is listed again. None: it does not break.
    """

    delay_ns: int = 0
    copies: int = 1
    merges: bool = False
    breaks_ns: int | None = None


class WatchFaults(Protocol):
    """Decides the deliveries of watches; ``component`` is a component's name, such as `kubelet`."""

    def delivery(self, component: str, kind: str) -> WatchDelivery:
        """Return the delivery of the next event of the component's watch of a kind."""
        ...

    def list_lag(self, component: str) -> int:
        """Return by how many versions the component's lists are old when it starts after a crash."""
        ...

    def informers(self, store: Store, runtime: Runtime) -> Informers:
        """See `Faults`."""
        return Informers(store, self, runtime)


class Fault(StrEnum):
    """The faults of `DrawnFaults`, with their codes in the project's list of faults."""

    REQUEST_REFUSED = "a request is refused with a server's error (W2)"
    DONE_WITH_ERROR = "a request is carried out, and answered with a server's error (W4)"
    REQUEST_CONFLICT = "a request is refused with a conflict (W1)"
    REQUEST_THROTTLED = "a request is one too many (W2)"
    REQUEST_LOST = "a request is lost (W3)"
    ANSWER_LOST = "an answer is lost (W4)"
    ANSWER_LATE = "an answer comes late (W5)"
    REQUEST_TWICE = "a request arrives twice (W6)"
    WATCH_LATE = "a watch event comes late (E1)"
    WATCH_BREAKS = "a watch breaks, and events are lost (E2, E3)"
    WATCH_TWICE = "a watch event comes twice (E4)"
    WATCH_MERGES = "watch events are merged (E7)"
    CRASH_BEFORE = "a component crashes before an action (C1)"
    CRASH_AFTER = "a component crashes after an action (C1)"
    LIST_STALE = "a component begins with an old list (R1)"


_CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
# A proxy repeats only idempotent requests, and a conflict requires an existing object.
_NEVER_TWICE = (CreateObject, BindClaim)
_NEVER_IN_CONFLICT = (CreateObject, Bind, BindClaim, Evict, DeleteObject)


@dataclass(slots=True)
class DrawnFaults(WatchFaults):
    """Random faults, each with its own rate (0 to 1, default 0).

    They affect the components in ``only``, or all if it is empty. ``longest_delay_ns`` bounds delays,
    ``longest_outage_ns`` outages, ``longest_lag`` the age of lists in versions. ``fired`` counts faults. ``stopped``
    ends them. Everything is drawn from ``seed``.
    """

    rates: Mapping[Fault, float]
    seed: int = 0
    only: frozenset[str] = frozenset()
    longest_delay_ns: int = 5 * _SECOND
    longest_outage_ns: int = 20 * _SECOND
    longest_lag: int = 20
    fired: Counter[Fault] = field(default_factory=Counter)
    stopped: bool = False
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(f"faults:{self.seed}")

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        """See `Faults`. Recording an Event never fails, since its answer is ignored."""
        if isinstance(action, Record) or self._spares(component):
            return CARRIED_OUT
        if self.happens(Fault.REQUEST_REFUSED):
            return REFUSED
        if self.happens(Fault.DONE_WITH_ERROR):
            return DONE_WITH_ERROR
        if not isinstance(action, _NEVER_IN_CONFLICT) and self.happens(Fault.REQUEST_CONFLICT):
            return FaultOutcome(0, CONFLICT)
        if not isinstance(action, Bind | BindClaim) and self.happens(Fault.REQUEST_THROTTLED):
            return FaultOutcome(0, OVERLOADED)
        if self.happens(Fault.REQUEST_LOST):
            return LOST
        if self.happens(Fault.ANSWER_LOST):
            return ANSWER_LOST
        times = 2 if not isinstance(action, _NEVER_TWICE) and self.happens(Fault.REQUEST_TWICE) else 1
        return FaultOutcome(times, None, self._delay_ns(Fault.ANSWER_LATE))

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        crashes = not self._spares(component) and self.happens(_CRASHES[is_done])
        return self._random.randint(1, self.longest_outage_ns) if crashes else None

    def delivery(self, component: str, kind: str) -> WatchDelivery:
        if self._spares(component):
            return WatchDelivery()
        return WatchDelivery(
            delay_ns=self._delay_ns(Fault.WATCH_LATE),
            copies=1 + self.happens(Fault.WATCH_TWICE),
            merges=self.happens(Fault.WATCH_MERGES),
            breaks_ns=self._delay_ns(Fault.WATCH_BREAKS) or None,
        )

    def list_lag(self, component: str) -> int:
        return self._random.randint(1, self.longest_lag) if self.happens(Fault.LIST_STALE) else 0

    def _spares(self, component: str) -> bool:
        return bool(self.only) and component not in self.only

    def happens(self, fault: Fault) -> bool:
        """Draw whether a fault happens now."""
        rate = self.rates.get(fault, 0.0)
        happens = not self.stopped and rate > 0 and self._random.random() < rate
        self.fired[fault] += happens
        return happens

    def _delay_ns(self, fault: Fault) -> int:
        """Draw a delay; 0 if the fault does not happen."""
        return self._random.randint(1, self.longest_delay_ns) if self.happens(fault) else 0


@dataclass(slots=True)
class _PendingEvent:
    """An event in flight: arrival, sequence number and content; ``is_merged``: dropped."""

    arrival_ns: int
    number: int
    type: str
    stored: Stored
    is_merged: bool = False


@dataclass(slots=True)
class _WatchState:
    """The watch of one kind: events in flight, delivered objects by key, and until when it is broken."""

    coming: deque[_PendingEvent]
    known: dict[str, Stored]
    broken_until_ns: int | None = None


class Informer:
    """Delivers the events of some kinds to a component, with faults.

    A watch keeps its order; watches of different kinds may overtake each other. After a break the kind is listed again:
    missing objects are reported as deleted, replaced ones as changed.
    """

    def __init__(self, component: str, kinds: Collection[str], store: Store, faults: WatchFaults) -> None:
        self._component = component
        self._watched = kinds
        self._store = store
        self._faults = faults
        self._kinds: dict[str, _WatchState] = {}
        self._number = 0

    def start(self, now: int) -> list[ObjectObservation]:
        """Start with a possibly outdated list of everything; later changes arrive as events."""
        self._kinds.clear()
        store = self._store
        version = max(store.version - self._faults.list_lag(self._component), store.log.oldest)
        missed = self._store.events_since(version)
        was = _before(missed)
        for kind in self._watched:
            listed = {stored.key: stored for stored in self._store.objects(kind)}
            for key, before in was.get(kind, {}).items():
                listed.pop(key, None)
                if before is not None:
                    listed[key] = before
            if listed:
                self._kind(kind).known = dict(sorted(listed.items()))
        seen: list[ObjectObservation] = [
            first_seen(stored) for one_kind in self._kinds.values() for stored in one_kind.known.values()
        ]
        for event in missed:
            if self.watches(event.stored.kind):
                self.see(event, now)
        return seen

    def watches(self, kind: str) -> bool:
        """Return whether the component watches the kind."""
        return kind in self._watched

    def see(self, event: WatchEvent, now: int) -> None:
        """Schedule the delivery of an event."""
        stored = event.stored
        kind = self._kind(stored.kind)
        if kind.broken_until_ns is not None:
            return
        delivery = self._faults.delivery(self._component, stored.kind)
        if delivery.breaks_ns is not None:
            kind.broken_until_ns = now + delivery.breaks_ns
            return
        if delivery.merges:
            for coming in kind.coming:
                coming.is_merged |= coming.stored.key == stored.key
        arrival_ns = now + delivery.delay_ns
        if kind.coming:
            arrival_ns = max(arrival_ns, kind.coming[-1].arrival_ns)
        for _ in range(delivery.copies):
            self._number += 1
            kind.coming.append(_PendingEvent(arrival_ns, self._number, event.type, stored))

    def take(self, now: int) -> ObjectObservation | None:
        """Return the next event that has arrived; None if there is none."""
        self._relist(now)
        while True:
            kinds = [kind for kind in self._kinds.values() if kind.coming]
            if not kinds:
                return None
            kind = min(kinds, key=lambda kind: (kind.coming[0].arrival_ns, kind.coming[0].number))
            if kind.coming[0].arrival_ns > now:
                return None
            one = kind.coming.popleft()
            if not one.is_merged:
                return arrived(kind.known, one.type, one.stored)

    def next_time(self) -> int | None:
        """Return when the next event arrives or a broken watch resumes; None if nothing is pending."""
        times = [kind.coming[0].arrival_ns for kind in self._kinds.values() if kind.coming]
        times += [kind.broken_until_ns for kind in self._kinds.values() if kind.broken_until_ns is not None]
        return min(times, default=None)

    def _relist(self, now: int) -> None:
        """List the kinds whose watches have resumed."""
        for name, kind in self._kinds.items():
            if kind.broken_until_ns is None or kind.broken_until_ns > now:
                continue
            kind.broken_until_ns = None
            expected = dict(kind.known)
            for coming in kind.coming:
                if coming.type == "DELETED":
                    expected.pop(coming.stored.key, None)
                else:
                    expected[coming.stored.key] = coming.stored
            arrival_ns = kind.coming[-1].arrival_ns if kind.coming else now
            for type_, stored in differences(expected, {stored.key: stored for stored in self._store.objects(name)}):
                self._number += 1
                kind.coming.append(_PendingEvent(arrival_ns, self._number, type_, stored))

    def _kind(self, name: str) -> _WatchState:
        return self._kinds.setdefault(name, _WatchState(deque(), {}))


def _before(events: list[WatchEvent]) -> dict[str, dict[str, Stored | None]]:
    """Return the objects of the events before their changes, by kind and key; None for new ones."""
    found: dict[str, dict[str, Stored | None]] = {}
    for event in events:
        found.setdefault(event.stored.kind, {}).setdefault(event.stored.key, event.previous)
    return found


class Informers:
    """The informers of all components."""

    def __init__(self, store: Store, faults: WatchFaults, runtime: Runtime) -> None:
        self._store = store
        self._faults = faults
        self._runtime = runtime
        self._informers: dict[Component, Informer] = {}
        # By the component's place.
        self._arrivals = Wakeups()

    def begin(self, component: Component, now: int) -> list[ObjectObservation]:
        """Start a component's informer; return what the component sees first."""
        if component.controller is None:
            raise ValueError(f"{component.name} is down")
        kinds = [
            apiresource.name
            for apiresource in self._store.resources.all()
            if is_watched_kind(apiresource.name, component.controller.watches)
        ]
        informer = self._informers[component] = Informer(component.name, kinds, self._store, self._faults)
        seen = informer.start(now)
        self._expect(component, informer)
        return seen

    def end(self, component: Component) -> None:
        """Stop a component's informer; events in flight are lost."""
        if self._informers.pop(component, None) is not None:
            self._arrivals.set(component.place, None)

    def see(self, event: WatchEvent, now: int) -> None:
        """Schedule the delivery of an event."""
        for component, informer in self._informers.items():
            if informer.watches(event.stored.kind):
                informer.see(event, now)
                self._expect(component, informer)

    def take(self, now: int) -> Iterator[tuple[Component, ObjectObservation]]:
        """Yield all events that have arrived, by component."""
        while (place := self._arrivals.first_due(now)) is not None:
            component = next(each for each in self._runtime.components if each.place == place)
            informer = self._informers[component]
            while (seen := informer.take(now)) is not None:
                yield component, seen
            self._expect(component, informer)

    def next_time(self, now: int) -> int | None:
        """Return when the next event arrives; None if nothing is pending."""
        return self._arrivals.next_time(now)

    def _expect(self, component: Component, informer: Informer) -> None:
        self._arrivals.set(component.place, informer.next_time())
