"""A driver in real time: what happens comes from other threads, and waits until it is taken in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from podium.driver.clock import Clock
from podium.driver.component import Component
from podium.driver.driver import Driver
from podium.driver.transport import Asked, Transport
from podium.machines.concerns import ANY
from podium.machines.kubelets.crash_backoff import CrashBackOff
from podium.machines.observations import Answered, Changed, Gone, Observation
from podium.machines.parts.deadlines import Deadlines, earliest

Listed = Callable[[frozenset[str]], Iterable[Observation]]
"""What is known of the objects of some kinds, with which a component begins its life."""

News = Callable[[Component], Iterable[Observation]]
"""What a component that begins has to be told otherwise than from the API."""

OnFailure = Callable[[Component, Exception, int], None]
"""Is told of a component whose machine has raised an exception, and when it begins anew."""

# So many observations are told between two looks at the clock.
_TOLD_AT_ONCE = 100


class LiveDriver:
    """Runs components by a clock. One thread calls `run` or `turn`; all else may be called by any.

    Machines are not safe for threads and need not be: all that is handed in waits for the thread that runs. Whoever
    keeps what the API shows calls `show` for each change in its order, and gives by ``listed`` what there is so far,
    and by ``news`` what a component is told before that.

    With ``on_failure`` a component whose machine raises an exception begins anew, at once or after a while, as the
    containers of a pod do that fail over and over again; without it the exception ends the run.
    """

    def __init__(
        self,
        clock: Clock,
        transport: Transport,
        listed: Listed,
        on_failure: OnFailure | None = None,
        news: News | None = None,
    ) -> None:
        self._clock = clock
        self._listed = listed
        self._news: News = (lambda _: ()) if news is None else news
        self._on_failure = on_failure
        self._driver = Driver(transport, on_failure=None if on_failure is None else self._failed)
        # What other threads have handed in, in this order; a deque's ends are safe for threads.
        self._arrived: deque[Callable[[], None]] = deque()
        self._is_stopped = False
        # Of components that have failed, how often, what with, and when they begin anew.
        self._backoffs: dict[Component, CrashBackOff] = {}
        self._failures: dict[Component, str] = {}
        self._restarts: Deadlines[Component] = Deadlines()

    # What may be called by any thread

    def add(self, component: Component) -> None:
        """Take in a component, and begin its life."""
        self._hand_in(partial(self._add, component))

    def begin(self, components: Sequence[Component], there: Iterable[tuple[str, Changed | Gone]]) -> None:
        """Take in several components at once, with all that is ``there``, by kind: each is shown it once."""
        self._hand_in(partial(self._begin_all, components, there))

    def restart(self, component: Component) -> None:
        """End a component's life and begin another; what is on its way to the former is not for it."""
        self._hand_in(partial(self._begin, component))

    def show(self, kind: str, observation: Changed | Gone, aspects: int = ANY) -> None:
        """Something has happened to an object of a kind; see `Driver.show`."""
        self._hand_in(partial(self._driver.show, kind, observation, aspects))

    def tell(self, component: Component, observation: Observation) -> None:
        """Tell one component what it learns otherwise than from the API."""
        self._hand_in(partial(self._driver.tell, component, observation))

    def answer(self, asked: Asked, answered: Answered) -> None:
        """An action has ended."""
        self._hand_in(partial(self._driver.answer, asked, answered))

    def stop(self) -> None:
        """Let `run` return before it does anything more."""
        self._is_stopped = True
        self._clock.wake()

    def settle(self) -> None:
        """Take in what has arrived since `stop`, once `run` has returned; nobody's time comes any more."""
        self._take_in()
        while self._driver.has_mail:
            self._driver.deliver(self._clock.now(), _TOLD_AT_ONCE)

    @property
    def has_arrived(self) -> bool:
        """Whether something was handed in that no turn has taken in."""
        return bool(self._arrived)

    @property
    def failures(self) -> Mapping[str, str]:
        """By name, the components that are down because their machines have failed, and what with."""
        return {component.name: problem for component, problem in list(self._failures.items())}

    # What the thread that runs calls

    def run(self) -> None:
        """Run until somebody calls `stop`."""
        while not self._is_stopped:
            next_ns = self.turn()
            if not self._arrived and not self._is_stopped:
                self._clock.wait(next_ns)

    def turn(self, budget_ns: int | None = None) -> int | None:
        """Take in what has arrived and do what is due; when something is due next, None for never.

        A component that acts again and again does not keep others out: what has arrived is taken in between any two of
        its actions, and those that wait act when no other is due. When the ``budget_ns`` is used up, the rest is due at
        once; a turn does at least one thing.
        """
        now = self._clock.now()
        end_ns = None if budget_ns is None else now + budget_ns
        while not self._is_stopped:
            if not self._step(now):
                return earliest((self._driver.next_time(now), self._restarts.next_time()))
            now = self._clock.now()
            if end_ns is not None and now >= end_ns:
                return now
        return None

    def _step(self, now: int) -> bool:
        """Do the next thing; whether there was any."""
        self._take_in()
        while (failed := self._restarts.take_due(now)) is not None:
            self._begin(failed)
        if self._driver.has_mail:
            self._driver.deliver(now, _TOLD_AT_ONCE)
            return True
        due = self._driver.first_due(now) or self._driver.first_due(now, waits=True)
        if due is None:
            return bool(self._arrived)
        self._driver.wake(due, now)
        return True

    def _take_in(self) -> None:
        while self._arrived:
            self._arrived.popleft()()

    def _add(self, component: Component) -> None:
        self._driver.add(component)
        self._begin(component)

    def _begin_all(self, components: Sequence[Component], there: Iterable[tuple[str, Changed | Gone]]) -> None:
        for component in components:
            self._driver.add(component)
            self._driver.begin(component, self._news(component))
        for kind, observation in there:
            self._driver.show(kind, observation)

    def _begin(self, component: Component) -> None:
        self._failures.pop(component, None)
        self._driver.begin(component, self._news(component))
        if component.machine is not None:
            for observation in self._listed(component.machine.watches):
                self._driver.tell(component, observation)

    def _failed(self, component: Component, error: Exception) -> None:
        now = self._clock.now()
        restart_ns = self._backoffs.setdefault(component, CrashBackOff()).next_start_ns(now)
        self._failures[component] = f"{type(error).__name__}: {error}"
        self._restarts.set(component, restart_ns)
        if self._on_failure is not None:
            self._on_failure(component, error, restart_ns)

    def _hand_in(self, change: Callable[[], None]) -> None:
        self._arrived.append(change)
        self._clock.wake()
