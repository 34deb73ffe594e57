"""Runs machines: hands each what it watches and what it has asked for, and lets it act when it is due.

Time comes in as ``now``, as for machines: whoever has a clock, virtual or real, calls this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from podium.driver.call_count import CallCount
from podium.driver.component import Component
from podium.driver.transport import Asked, Transport
from podium.driver.unread import Unread
from podium.driver.wakeups import Wakeups
from podium.machines.actions import Record
from podium.machines.concerns import ANY, does_rest, heeds, rest_of
from podium.machines.machine import UNMOVED, Machine, does_watch
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick

_TICK = Tick()
# So many sorts of changes are kept in mind with whom they concern.
_MOST_ROUTES = 10_000


class _Route(msgspec.Struct, frozen=True):
    """Who is told of a change, those of them who rest until then, and whether it can wait for others who rest."""

    told: tuple[Component, ...]
    roused: tuple[Component, ...]
    is_put_off: bool


class Driver:
    """Components, what they have yet to be told, and when they are due.

    What happens is told in the order in which it happened, of one thing all whom it concerns in the order in which they
    joined. Their inboxes are one queue for that: each entry is for those who watch its kind, or for one component. A
    component is asked for its deadline when it has been called and was moved by that, and at no other time. One whose
    machine rests is told nothing that can wait, but when it is told anything else, what it has missed before that.

    ``count`` counts who is about to be called, before anything else happens. With ``on_failure`` a component whose
    machine raises an exception is down, and that is told; without it the exception ends the run.
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
        # By place, a number that grows; those who have left leave a gap.
        self._components: dict[int, Component] = {}
        self._joined = 0
        self._lives = 0
        # For whom an entry is, the newest of the lives that it is for, and what it says.
        self._inbox: deque[tuple[Sequence[Component], int, Observation]] = deque()
        # By kind, by what a change is about, and by who rests; made when they are first asked for, and anew when
        # somebody comes or goes.
        self._routes: dict[tuple[str, int, int], _Route] = {}
        self._unread = Unread()
        self._called: dict[Component, None] = {}
        self._acting = Wakeups()
        self._waiting = Wakeups()
        # Those of whom news is to be expected.
        self._expecting: set[Component] = set()

    @property
    def components(self) -> list[Component]:
        """All components, in the order in which they joined."""
        return list(self._components.values())

    def at(self, place: int) -> Component:
        """The component of a place."""
        return self._components[place]

    def add(self, component: Component) -> None:
        """Take in one more component, which is down until it begins."""
        self._joined += 1
        self._components[self._joined] = component
        component.place = self._joined
        self._expecting.add(component)
        self._routes.clear()

    def remove(self, component: Component) -> None:
        """Nobody need tell a component anything more."""
        self.stop(component)
        self._expecting.discard(component)
        del self._components[component.place]

    def begin(self, component: Component, observations: Iterable[Observation] = ()) -> None:
        """Begin a component's life, with what it is to be told first."""
        if component.is_at_rest:
            self._unread.end(component)
        component.machine = component.make()
        component.rest = rest_of(component.machine)
        self._lives += 1
        component.life += 1
        component.began = self._lives
        self._routes.clear()
        self._called[component] = None
        self._inbox.extend(((component,), component.began, observation) for observation in observations)

    def stop(self, component: Component) -> None:
        """A component is down: it is told nothing, not even what is on its way, until it begins anew."""
        if component.is_at_rest:
            self._unread.end(component)
        component.machine = component.deadline = None
        self._called.pop(component, None)
        (self._waiting if component.waits else self._acting).set(component.place, None, 0)
        self._expecting.add(component)
        self._routes.clear()

    # What happens

    def show(self, kind: str, observation: Changed | Gone, aspects: int = ANY) -> None:
        """Something has happened to an object of a kind: tell all whom it concerns, as its ``aspects`` have it."""
        concern = kind, aspects, self._unread.bits
        route = self._routes.get(concern)
        if route is None:
            route = self._route(kind, aspects)
        for component in route.roused:
            self._rouse(component)
        if route.is_put_off:
            self._unread.put(kind, observation, aspects)
        if route.told:
            self._inbox.append((route.told, self._lives, observation))

    def tell(self, component: Component, observation: Observation) -> None:
        """Tell one component, in its present life."""
        if component.is_at_rest:
            self._rouse(component)
        self._inbox.append(((component,), component.began, observation))

    def answer(self, asked: Asked, answered: Answered) -> None:
        """An action has ended: tell who asked for it, unless it has begun another life since.

        Of what becomes of a `Record` nobody is told.
        """
        if type(asked.action) is Record:
            return
        component = asked.component
        if component.is_at_rest:
            self._rouse(component)
        self._inbox.append(((component,), asked.began, answered))

    @property
    def has_mail(self) -> bool:
        """Whether there is something to deliver."""
        return bool(self._inbox)

    # What follows from it

    def deliver(self, now: int, most: int | None = None) -> None:
        """Tell what has happened, and what comes of it at once, until there is nothing left to tell.

        ``most`` is how many observations are told at this time, None for all.
        """
        inbox, left = self._inbox, most
        while inbox and left != 0:
            targets, newest, observation = inbox.popleft()
            self._hand(targets, newest, observation, now)
            if left is not None:
                left -= 1

    def first_due(self, now: int, *, waits: bool = False) -> Component | None:
        """The first component that is due, of those that act at once or of those that wait; None for none."""
        if self._called:
            self._ask(now)
        wakeups = self._waiting if waits else self._acting
        if now < wakeups.quiet_until_ns:
            return None
        place = wakeups.first_due(now)
        return None if place is None else self._components[place]

    def wake(self, component: Component, now: int) -> None:
        """Let a component do what is due."""
        if component.machine is None:
            raise ValueError(f"{component.name} is down")
        self._called[component] = None
        self._hand((component,), component.began, _TICK, now)

    def next_time(self, now: int) -> int | None:
        """When some component is due next, None for never."""
        if self._called:
            self._ask(now)
        acting_ns, waiting_ns = self._acting.next_time(now), self._waiting.next_time(now)
        if acting_ns is None or waiting_ns is None:
            return waiting_ns if acting_ns is None else acting_ns
        return min(acting_ns, waiting_ns)

    def expects_news(self, now: int) -> bool:
        """Whether news is to be expected of some component; of one that is down it always is."""
        if self._called:
            self._ask(now)
        return bool(self._expecting)

    def check(self) -> None:
        """Raise AssertionError where a machine has another deadline, or rest, than when it was last called."""
        for component in self._components.values():
            machine, said = component.machine, component.deadline
            if machine is not None and said is not None and component not in self._called:
                deadline = machine.deadline()
                if deadline != said:
                    raise AssertionError(f"{component.name} said {said} and was not called since: {deadline}")
                if component.is_at_rest and not does_rest(machine):
                    raise AssertionError(f"{component.name} rests no more and was not called since")

    def _hand(self, targets: Sequence[Component], newest: int, observation: Observation, now: int) -> None:
        """Tell an observation those of whom no life has begun since, and send what they ask for, in its order."""
        count = self._count
        count.calls += len(targets)
        if count.calls > count.unchecked:
            count.check(targets)
        for component in targets:
            machine = component.machine
            if machine is None or component.began > newest:
                continue
            try:
                actions = machine.handle(observation, now)
            except Exception as error:
                self._fail(component, error)
                continue
            if actions is UNMOVED:
                continue
            self._called[component] = None
            began = component.began
            for action in actions:
                # It may go down over what it asks for.
                if component.machine is None:
                    break
                self._transport.send(Asked(component, began, action), now)

    def _ask(self, now: int) -> None:
        """Ask those who were called for their deadlines."""
        called, self._called = self._called, {}
        for component in called:
            machine = component.machine
            if machine is None:
                raise AssertionError(f"{component.name} was called though it is down")
            try:
                deadline = machine.deadline()
            except Exception as error:
                self._fail(component, error)
                continue
            time_ns, is_news = deadline.time_ns, deadline.is_news
            if component.rest is not None and time_ns is None and not self._inbox:
                self._let_rest(component, machine)
            told = component.deadline
            if deadline is told:
                continue
            component.deadline = deadline
            (self._waiting if component.waits else self._acting).set(component.place, time_ns, now)
            if is_news:
                self._expecting.add(component)
            else:
                self._expecting.discard(component)

    def _fail(self, component: Component, error: Exception) -> None:
        """A machine has raised an exception: whatever it knows cannot be relied upon any more."""
        if self._on_failure is None:
            raise error
        self.stop(component)
        self._on_failure(component, error)

    def _let_rest(self, component: Component, machine: Machine) -> None:
        """Let a component rest whose machine does, and that was told all there is."""
        if not component.is_at_rest and does_rest(machine):
            self._unread.begin(component)

    def _rouse(self, component: Component) -> None:
        """Tell a component what it has missed."""
        self._inbox.extend(((component,), component.began, missed) for missed in self._unread.end(component))

    def _route(self, kind: str, aspects: int) -> _Route:
        """Whom a change concerns, now that so many rest."""
        told, roused = [], []
        is_put_off = False
        for component in self._components.values():
            machine, rest = component.machine, component.rest
            if machine is None or not does_watch(machine, kind) or not heeds(machine, kind, aspects):
                continue
            if rest is None or not component.is_at_rest:
                told.append(component)
            elif rest.puts_off(kind, aspects):
                is_put_off = True
            else:
                told.append(component)
                roused.append(component)
        if len(self._routes) > _MOST_ROUTES:
            self._routes.clear()
        route = _Route(tuple(told), tuple(roused), is_put_off)
        self._routes[kind, aspects, self._unread.bits] = route
        return route
