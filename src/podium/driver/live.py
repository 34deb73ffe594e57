"""A driver in real time: what happens comes from other threads, and waits until it is taken in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from podium.driver.clock import Clock
from podium.driver.component import Component
from podium.driver.driver import Driver
from podium.driver.transport import Asked, Transport
from podium.machines.observations import Observation, Problem

Listed = Callable[[frozenset[str]], Iterable[Observation]]
"""What is known of the objects of some kinds, with which a component begins its life."""


class LiveDriver:
    """Runs components by a clock. One thread calls `run`; all else may be called by any.

    Machines are not safe for threads and need not be: all that is handed in waits for the thread that runs. Whoever
    keeps what the API shows calls `show` for each change in its order, and gives by ``listed`` what there is so far.
    """

    def __init__(self, clock: Clock, transport: Transport, listed: Listed) -> None:
        self._clock = clock
        self._listed = listed
        self._driver = Driver(transport)
        # What other threads have handed in, in this order; a deque's ends are safe for threads.
        self._arrived: deque[Callable[[], None]] = deque()
        self._is_stopped = False

    # What may be called by any thread

    def add(self, component: Component) -> None:
        """Take in a component, and begin its life."""
        self._hand_in(partial(self._add, component))

    def restart(self, component: Component) -> None:
        """End a component's life and begin another; what is on its way to the former is not for it."""
        self._hand_in(partial(self._begin, component))

    def show(self, kind: str, observation: Observation) -> None:
        """Something has happened to an object of a kind."""
        self._hand_in(partial(self._driver.show, kind, observation))

    def tell(self, component: Component, observation: Observation) -> None:
        """Tell one component what it learns otherwise than from the API."""
        self._hand_in(partial(self._driver.tell, component, observation))

    def answer(self, asked: Asked, problem: Problem | None = None) -> None:
        """An action has ended."""
        self._hand_in(partial(self._driver.answer, asked, problem))

    def stop(self) -> None:
        """Let `run` return before it does anything more."""
        self._is_stopped = True
        self._clock.wake()

    # What the thread that runs calls

    def run(self) -> None:
        """Run until somebody calls `stop`."""
        while not self._is_stopped:
            next_ns = self.turn()
            if not self._arrived and not self._is_stopped:
                self._clock.wait(next_ns)

    def turn(self) -> int | None:
        """Take in what has arrived and do what is due; when something is due next, None for never.

        A component that acts again and again does not keep others out: what has arrived is taken in between any two of
        its actions, and those that wait act when no other is due.
        """
        while not self._is_stopped:
            now = self._clock.now()
            while self._arrived:
                self._arrived.popleft()()
            self._driver.deliver(now)
            due = self._driver.first_due(now) or self._driver.first_due(now, waits=True)
            if due is None:
                return self._driver.next_time(now)
            self._driver.wake(due, now)
        return None

    def _add(self, component: Component) -> None:
        self._driver.add(component)
        self._begin(component)

    def _begin(self, component: Component) -> None:
        self._driver.begin(component)
        if component.machine is not None:
            for one in self._listed(component.machine.watches):
                self._driver.tell(component, one)

    def _hand_in(self, change: Callable[[], None]) -> None:
        self._arrived.append(change)
        self._clock.wake()
