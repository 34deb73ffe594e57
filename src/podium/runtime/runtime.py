"""The runtime of components: it delivers observations and answers, and calls components when they are due.

Time is passed in as ``now``: the caller has the clock, virtual or real.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress, takewhile
from operator import attrgetter, or_
from sys import maxsize
from typing import Protocol

import msgspec

from podium.api.times import MAX_TIME_NS
from podium.controllers import controller as controllers
from podium.controllers.actions import Action, Record
from podium.controllers.controller import ADDED, ANY, EVERY, NO_CHANGE, PLACED, is_idle, is_watched_kind, needed_aspects
from podium.controllers.deadlines import Deadline, earliest
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick

ExistingObjects = tuple[str, Sequence[Observation], Sequence[int]]
"""A kind, all its objects, and the aspects of each (`podium.controllers.controller`)."""


@dataclass(slots=True, eq=False)
class Component:
    """A component: ``make`` creates its controller, again after a crash; ``controller`` is None while it is down.

    ``life`` counts its lives. ``began`` is the sequence number of the current life among those of all components of a
    driver: earlier observations and answers are not for it. A component that `waits` acts only when all others are
    quiet, such as a scheduler. ``author`` is the name in its Events, "" if that depends on the pod. ``place`` grows
    with each component that joins a runtime. ``deadline`` is the controller's last deadline. ``deferral`` selects the
    observations that are deferred while it `is_idle`. ``unshown`` are existing objects that it gets before anything
    else when it is no longer idle.
    """

    name: str
    make: Callable[[], controllers.Controller]
    waits: bool = False
    author: str = ""
    controller: controllers.Controller | None = None
    life: int = 0
    began: int = 0
    place: int = 0
    deadline: Deadline | None = None
    deferral: controllers.IdleDeferral | None = None
    is_idle: bool = False
    unshown: tuple[Sequence[Observation], ...] = ()


class CallCount:
    """A counter of ``calls``. After the first ``unchecked`` ones, `check` runs before each; this one allows all."""

    def __init__(self, unchecked: int = maxsize) -> None:
        self.calls = 0
        self.unchecked = unchecked

    def check(self, components: Sequence[Component]) -> None:
        """Check the components that are about to be called and counted."""


class RequestedAction(msgspec.Struct, frozen=True):
    """An action of a component, in the life that ``began`` with that number."""

    component: Component
    began: int
    action: Action


class Transport(Protocol):
    """An interface that carries out the actions of components."""

    def send(self, requested: RequestedAction, now: int) -> None:
        """Start an action; the actions of one component take effect in order.

        The result is passed to the runtime's ``answer``: immediately or later, and exactly once. An action whose answer
        is lost gets a Problem of code 0. The result contains the written object if the API server returns it.
        """


_TICKS = (Tick(),)
# The maximum number of cached routes.
_MOST_ROUTES = 10_000


class _Route(msgspec.Struct, frozen=True):
    """The recipients of a change, those of them that it wakes, and whether it is deferred for other idle components."""

    receivers: tuple[Component, ...]
    roused: tuple[Component, ...]
    is_put_off: bool


class Runtime:
    """Components, their undelivered observations, and their deadlines.

    Observations are delivered in the order of the events; each one is delivered to its recipients in the order in which
    they joined. One queue serves as the inbox of all: each entry is for the components that watch its kind, or for one
    component. A component's deadline is read only after a call that may have changed it. An idle component gets no
    observation that can be deferred; before any other observation it gets the ones that it missed.

    ``count`` counts each call in advance. With ``on_failure`` a component whose controller raises an exception is
    stopped, and the exception is reported; without it the exception ends the run.
    """

    def __init__(
        self,
        transport: Transport,
        count: CallCount | None = None,
        on_failure: Callable[[Component, Exception], None] | None = None,
    ) -> None:
        self._transport = transport
        self._count = count or CallCount()
        self._on_failure = on_failure
        # By place, a growing number; removed components leave gaps.
        self._components: dict[int, Component] = {}
        self._joined = 0
        self._lives = 0
        # The recipients of an entry, the latest life that it is for, and its observations: one, or those of a start.
        self._inbox: deque[tuple[Sequence[Component], int, Sequence[Observation]]] = deque()
        # By kind, aspects and the set of idle components; computed on first use, and cleared when a component joins or
        # leaves.
        self._routes: dict[tuple[str, int, int], _Route] = {}
        self._deferred = DeferredObservations()
        self._called: dict[Component, None] = {}
        self._acting = Wakeups()
        self._waiting = Wakeups()
        # The components that still expect new events.
        self._expecting: set[Component] = set()

    @property
    def components(self) -> list[Component]:
        """All components, in the order in which they joined."""
        return list(self._components.values())

    def add(self, component: Component) -> None:
        """Add a component; it is down until it begins."""
        self._joined += 1
        self._components[self._joined] = component
        component.place = self._joined
        self._expecting.add(component)
        self._routes.clear()

    def remove(self, component: Component) -> None:
        self.stop(component)
        self._expecting.discard(component)
        del self._components[component.place]

    def begin(self, component: Component, observations: Iterable[Observation] = ()) -> None:
        """Begin a component's life with its first observations."""
        if component.is_idle:
            self._deferred.end(component)
        component.controller, component.unshown = component.make(), ()
        component.deferral = getattr(component.controller, "idle_deferral", None)
        self._lives += 1
        component.life += 1
        component.began = self._lives
        self._routes.clear()
        self._called[component] = None
        self._inbox.extend(((component,), component.began, (observation,)) for observation in observations)

    def show_existing(self, component: Component, existing: Iterable[ExistingObjects]) -> None:
        """Show a component that begins the existing objects of the kinds that it watches.

        Those that can wait are shown only when the component is not idle, unless a kind after theirs can neither wait
        nor go ahead.
        """
        controller, deferral = component.controller, component.deferral
        if controller is None:
            return
        found: list[ExistingObjects] = []
        for kind, observations, aspects in existing:
            needed = needed_aspects(controller, kind)
            seen = observations if needed & EVERY else [*compress(observations, [each & needed for each in aspects])]
            if seen:
                found.append((kind, seen, aspects))
        if deferral is not None and is_idle(controller):
            for place, (kind, observations, aspects) in reversed([*enumerate(found)]):
                if deferral.covers(kind, reduce(or_, aspects)):
                    component.unshown = (observations, *component.unshown)
                    del found[place]
                elif kind not in deferral.ahead:
                    break
            if component.unshown:
                self._deferred.begin(component)
        self._inbox.extend(((component,), component.began, observations) for _, observations, _ in found)

    def stop(self, component: Component) -> None:
        """Stop a component: it gets nothing, not even what is queued, until it begins again."""
        if component.is_idle:
            self._deferred.end(component)
        component.controller = component.deadline = None
        self._called.pop(component, None)
        (self._waiting if component.waits else self._acting).set(component.place, None)
        self._expecting.add(component)
        self._routes.clear()

    # Observations

    def show(self, kind: str, observation: Changed | Deleted, aspects: int = ANY) -> None:
        """Queue a change of an object for all components that subscribe to its kind and ``aspects``."""
        route = self._routes.get((kind, aspects, self._deferred.bits))
        if route is None:
            route = self._route(kind, aspects)
        for component in route.roused:
            if type(observation) is Deleted or component.deferral is None or kind not in component.deferral.ahead:
                self._end_idle(component)
        if route.is_put_off:
            self._deferred.put(kind, observation, aspects)
        if route.receivers:
            self._inbox.append((route.receivers, self._lives, (observation,)))

    def enqueue(self, component: Component, observation: Observation) -> None:
        """Queue an observation for one component in its current life."""
        if component.is_idle:
            self._end_idle(component)
        self._inbox.append(((component,), component.began, (observation,)))

    def answer(self, requested: RequestedAction, finished: ActionFinished) -> None:
        """Queue the result of an action for the component that requested it, unless that has begun another life.

        The result of a `Record` is not delivered.
        """
        if type(requested.action) is Record:
            return
        component = requested.component
        if component.is_idle and (component.deferral is None or not component.deferral.ahead):
            self._end_idle(component)
        self._inbox.append(((component,), requested.began, (finished,)))

    @property
    def has_mail(self) -> bool:
        return bool(self._inbox)

    # Delivery

    def deliver(self, now: int, most: int | None = None) -> None:
        """Deliver the queued observations, and those that result immediately, until the queue is empty.

        ``most`` limits the number of entries of the queue, None means no limit.
        """
        inbox, left = self._inbox, most
        while inbox and left != 0:
            targets, newest, observations = inbox.popleft()
            self._hand(targets, newest, observations, now)
            if left is not None:
                left -= 1

    def first_due(self, now: int, *, waits: bool = False) -> Component | None:
        """Return the first due component: an immediate one, or with ``waits`` a waiting one; None for none."""
        if self._called:
            self._ask()
        wakeups = self._waiting if waits else self._acting
        if now < wakeups.quiet_until_ns:
            return None
        place = wakeups.first_due(now)
        return None if place is None else self._components[place]

    def wake(self, component: Component, now: int) -> None:
        if component.controller is None:
            raise ValueError(f"{component.name} is down")
        self._called[component] = None
        self._hand((component,), component.began, _TICKS, now)

    def next_time(self, now: int) -> int | None:
        """Return the time when the next component is due, None for never."""
        if self._called:
            self._ask()
        return earliest((self._acting.next_time(now), self._waiting.next_time(now)))

    def expects_news(self) -> bool:
        """Return whether a component still expects new events, so that a simulation goes on; a stopped one does."""
        if self._called:
            self._ask()
        return bool(self._expecting)

    def check(self) -> None:
        """Raise AssertionError if a controller's deadline or idleness changed without a call."""
        for component in self._components.values():
            controller, known_deadline = component.controller, component.deadline
            if controller is not None and known_deadline is not None and component not in self._called:
                deadline = controller.deadline()
                if deadline != known_deadline:
                    raise AssertionError(f"{component.name} changed {known_deadline} to {deadline} without a call")
                if component.is_idle and not is_idle(controller):
                    raise AssertionError(f"{component.name} became active without a call")

    def _hand(self, targets: Sequence[Component], newest: int, observations: Sequence[Observation], now: int) -> None:
        """Deliver observations to components that have begun no life since, and send their actions in order."""
        count = self._count
        for observation in observations:
            count.calls += len(targets)
            if count.calls > count.unchecked:
                count.check(targets)
            for component in targets:
                controller = component.controller
                if controller is None or component.began > newest:
                    continue
                try:
                    actions = controller.handle(observation, now)
                except Exception as error:
                    self._fail(component, error)
                    continue
                if actions is NO_CHANGE:
                    continue
                self._called[component] = None
                if component.is_idle and not is_idle(controller):
                    self._end_idle(component)
                began = component.began
                for action in actions:
                    # One of its actions may stop the component.
                    if component.controller is None:
                        break
                    self._transport.send(RequestedAction(component, began, action), now)

    def _ask(self) -> None:
        """Read the deadlines of the components that were called."""
        called, self._called = self._called, {}
        for component in called:
            controller = component.controller
            if controller is None:
                raise AssertionError(f"{component.name} was called though it is down")
            try:
                deadline = controller.deadline()
            except Exception as error:
                self._fail(component, error)
                continue
            time_ns, keeps_alive = deadline.time_ns, deadline.keeps_alive
            may_idle = component.deferral is not None and time_ns is None and not self._inbox
            if may_idle and not component.is_idle and is_idle(controller):
                self._deferred.begin(component)
            previous = component.deadline
            if deadline is previous:
                continue
            component.deadline = deadline
            (self._waiting if component.waits else self._acting).set(component.place, time_ns)
            if keeps_alive:
                self._expecting.add(component)
            else:
                self._expecting.discard(component)

    def _fail(self, component: Component, error: Exception) -> None:
        """Stop a component whose controller raised an exception: its state is unreliable."""
        if self._on_failure is None:
            raise error
        self.stop(component)
        self._on_failure(component, error)

    def _end_idle(self, component: Component) -> None:
        """Deliver the existing objects that were put off, and the deferred observations, to an idle component."""
        missed = [(one,) for one in self._deferred.end(component)]
        self._inbox.extend(((component,), component.began, seen) for seen in (*component.unshown, *missed))
        component.unshown = ()

    def _route(self, kind: str, aspects: int) -> _Route:
        """Return the components subscribed to this change, excluding idle ones for which it is deferred."""
        receivers, roused = [], []
        is_put_off = False
        for component in self._components.values():
            controller, deferral = component.controller, component.deferral
            if controller is None or not is_watched_kind(kind, controller.watches):
                continue
            if not aspects & needed_aspects(controller, kind):
                continue
            if deferral is None or not component.is_idle:
                receivers.append(component)
            elif deferral.covers(kind, aspects):
                is_put_off = True
            else:
                receivers.append(component)
                roused.append(component)
        if len(self._routes) > _MOST_ROUTES:
            self._routes.clear()
        route = _Route(tuple(receivers), tuple(roused), is_put_off)
        self._routes[kind, aspects, self._deferred.bits] = route
        return route


_Key = str | tuple[str, str]


class _Entry(msgspec.Struct, eq=False):
    """The last observation of an object, in delivery order.

    ``place`` is its number in that order, ``number`` that among all observations, and ``added`` that of the object's
    creation, 0 if it existed before.
    """

    place: int
    number: int
    added: int
    kind: str
    aspects: int
    observation: Changed | Deleted


class DeferredObservations:
    """The deferred observations of idle components: the last one for each object.

    Delivery follows the order in which the objects were first observed; for pods that were bound, the order of the
    bindings, as in the caches by node. Deletions are kept while an idle component knows the object, so there are never
    more entries than objects that exist or existed when these components became idle.
    """

    def __init__(self) -> None:
        self.bits = 0
        """The idle components as a bit set: one bit for each place."""
        # In the order of their numbers.
        self._entries: dict[_Key, _Entry] = {}
        self._happened = 0
        # The number of observations when each component became idle.
        self._since: dict[Component, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, component: Component) -> None:
        component.is_idle = True
        self.bits |= 1 << component.place
        self._since[component] = self._happened

    def end(self, component: Component) -> list[Observation]:
        """Mark a component as no longer idle; return the observations that it missed."""
        component.is_idle = False
        self.bits ^= 1 << component.place
        since = self._since.pop(component)
        missed = list(takewhile(lambda item: item[1].number > since, reversed(self._entries.items())))
        for key, entry in missed:
            if isinstance(entry.observation, Deleted) and not self._is_known(entry):
                del self._entries[key]
        # Drop the entries that only this component had missed.
        known = min(self._since.values(), default=self._happened)
        if since < known:
            stale = takewhile(lambda item: item[1].number <= known, self._entries.items())
            for key in [key for key, _ in stale]:
                del self._entries[key]
        deferral = component.deferral
        entries = sorted((entry for _, entry in missed), key=attrgetter("place"))
        return [entry.observation for entry in entries if deferral is not None and deferral.covers(entry.kind, 0)]

    def put(self, kind: str, observation: Changed | Deleted, aspects: int) -> None:
        self._happened = number = self._happened + 1
        object_ = observation.object
        key = object_.metadata.uid or (kind, object_.key)
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = _Entry(number, number, number if aspects & ADDED else 0, kind, aspects, observation)
        else:
            if (aspects ^ entry.aspects) & PLACED:
                entry.place = number
            entry.number, entry.aspects, entry.observation = number, aspects, observation
        if type(observation) is Changed or self._is_known(entry):
            self._entries[key] = entry

    def _is_known(self, entry: _Entry) -> bool:
        """Return whether an idle component knows the object from before."""
        return any(entry.added <= since < entry.number for since in self._since.values())


class Wakeups:
    """One deadline for each place, in nanoseconds; of several due places the smallest comes first.

    Few places have a deadline at a time, so that a scan costs less than a heap.
    """

    def __init__(self) -> None:
        self.quiet_until_ns = MAX_TIME_NS + 1
        """Nothing is due before this time; read-only for callers."""
        self._times: dict[int, int] = {}

    def set(self, place: int, time_ns: int | None) -> None:
        """Set the only deadline of a place; None means never."""
        times = self._times
        if time_ns is not None:
            times[place] = time_ns
        elif times.pop(place, None) is None:
            return
        self.quiet_until_ns = min(times.values(), default=MAX_TIME_NS + 1)

    def first_due(self, now: int) -> int | None:
        """Return the first due place, None for none; it remains due until another time is set.

        Frequent callers compare with `quiet_until_ns` first.
        """
        return min((place for place, time_ns in self._times.items() if time_ns <= now), default=None)

    def next_time(self, now: int) -> int | None:
        """Return the next deadline: ``now`` if a place is due, None for never."""
        return max(now, self.quiet_until_ns) if self._times else None
