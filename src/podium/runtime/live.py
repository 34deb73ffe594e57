"""The runtime in real time: observations are queued between its turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial

from podium.controllers.controller import ANY
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.kubelets.pod_run import CrashBackOff
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation
from podium.runtime.runtime import Component, RequestedAction, Runtime, Transport

Listed = Callable[[frozenset[str]], Iterable[Observation]]
"""A function that returns the known objects of some kinds, for a component's first observations."""

News = Callable[[str], Iterable[Observation]]
"""A function that returns the observations of a new component, by its name, that do not come from the API."""

OnFailure = Callable[[Component, Exception, int], None]
"""A callback for a component whose controller raised an exception, with the time of its restart."""

# The number of observations that are delivered between two reads of the clock.
_DELIVERED_AT_ONCE = 100


@dataclass(eq=False)
class LiveRuntime:
    """A runtime of components by a clock. One thread calls `turn`; other methods are thread-safe.

    Controllers need not be thread-safe: all inputs are queued for the next turn, and ``on_arrival`` is called. The
    owner of the API cache calls `show` for each change in order; ``listed`` returns the current objects, and ``news``
    the observations that a component gets before those.

    With ``on_failure`` a component whose controller raises an exception is restarted, immediately or with a backoff,
    like a container in CrashLoopBackOff; without it the exception ends the run.
    """

    now: Callable[[], int]
    transport: InitVar[Transport]
    listed: Listed
    on_failure: OnFailure | None = None
    news: News = lambda name: ()
    on_arrival: Callable[[], None] = lambda: None
    is_stopped: bool = False
    # Inputs from other threads, in order; deque ends are thread-safe.
    _arrived: deque[Callable[[], None]] = field(default_factory=deque)
    # The failures of components: their number, the error, and the restart time.
    _backoffs: dict[Component, CrashBackOff] = field(default_factory=dict)
    _failures: dict[Component, str] = field(default_factory=dict)
    _restarts: Deadlines[Component] = field(default_factory=Deadlines)

    def __post_init__(self, transport: Transport) -> None:
        self._runtime = Runtime(transport, on_failure=None if self.on_failure is None else self._on_failure)

    # Methods for any thread

    def add(self, component: Component) -> None:
        self._hand_in(partial(self._add, component))

    def begin(self, components: Sequence[Component], there: Iterable[tuple[str, Changed | Deleted]]) -> None:
        """Add several components at once; each gets all objects in ``there``, by kind, exactly once."""

        def begin_all() -> None:
            for component in components:
                self._runtime.add(component)
                self._runtime.begin(component, self.news(component.name))
            for kind, observation in there:
                self._runtime.show(kind, observation)

        self._hand_in(begin_all)

    def restart(self, component: Component) -> None:
        """End a component's life and begin another; queued observations and answers of the former are dropped."""
        self._hand_in(partial(self._begin, component))

    def show(self, kind: str, observation: Changed | Deleted, aspects: int = ANY) -> None:
        """Queue a change of an object; see `Runtime.show`."""
        self._hand_in(partial(self._runtime.show, kind, observation, aspects))

    def enqueue(self, component: Component, observation: Observation) -> None:
        """Queue an observation for one component that does not come from the API."""
        self._hand_in(partial(self._runtime.enqueue, component, observation))

    def answer(self, requested: RequestedAction, finished: ActionFinished) -> None:
        self._hand_in(partial(self._runtime.answer, requested, finished))

    def stop(self) -> None:
        """Make `turn` return before it does anything more."""
        self.is_stopped = True
        self.on_arrival()

    def settle(self) -> None:
        """Deliver what has arrived since `stop`; no deadline is served any more."""
        self._take_in()
        while self._runtime.has_mail:
            self._runtime.deliver(self.now(), _DELIVERED_AT_ONCE)

    @property
    def has_arrived(self) -> bool:
        """Whether inputs have arrived that no turn has processed."""
        return bool(self._arrived)

    @property
    def failures(self) -> Mapping[str, str]:
        """The components that are down because of a failure, each with its error, by name."""
        return {component.name: problem for component, problem in list(self._failures.items())}

    # Methods for the running thread

    def turn(self, budget_ns: int | None = None) -> int | None:
        """Process inputs and do what is due; return the time of the next deadline, None for never.

        A component that acts repeatedly does not starve others: inputs are processed between any two of its actions,
        and waiting components act when no other is due. When ``budget_ns`` is used up, the rest is due immediately; a
        turn does at least one step.
        """
        now = self.now()
        end_ns = None if budget_ns is None else now + budget_ns
        while not self.is_stopped:
            if not self._step(now):
                return earliest((self._runtime.next_time(now), self._restarts.next_time()))
            now = self.now()
            if end_ns is not None and now >= end_ns:
                return now
        return None

    def _step(self, now: int) -> bool:
        """Do the next step; return whether there was one."""
        self._take_in()
        while (failed := self._restarts.take_due(now)) is not None:
            self._begin(failed)
        if self._runtime.has_mail:
            self._runtime.deliver(now, _DELIVERED_AT_ONCE)
            return True
        due = self._runtime.first_due(now) or self._runtime.first_due(now, waits=True)
        if due is None:
            return bool(self._arrived)
        self._runtime.wake(due, now)
        return True

    def _take_in(self) -> None:
        while self._arrived:
            self._arrived.popleft()()

    def _add(self, component: Component) -> None:
        self._runtime.add(component)
        self._begin(component)

    def _begin(self, component: Component) -> None:
        self._failures.pop(component, None)
        self._runtime.begin(component, self.news(component.name))
        if component.controller is not None:
            for observation in self.listed(component.controller.watches):
                self._runtime.enqueue(component, observation)

    def _on_failure(self, component: Component, error: Exception) -> None:
        restart_ns = self._backoffs.setdefault(component, CrashBackOff()).next_start_ns(self.now())
        self._failures[component] = f"{type(error).__name__}: {error}"
        self._restarts.set(component, restart_ns)
        if self.on_failure is not None:
            self.on_failure(component, error, restart_ns)

    def _hand_in(self, change: Callable[[], None]) -> None:
        self._arrived.append(change)
        self.on_arrival()
