"""The interface of faults between components and the API server, which the project's tests inject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from podium.apirequests.observations import ObjectObservation
from podium.controllers.actions import Action
from podium.controllers.observations import Problem
from podium.runtime.runtime import Component, Runtime
from podium.store.store import Store
from podium.store.watch_log import WatchEvent


class FaultOutcome(msgspec.Struct, frozen=True):
    """The outcome of an action: it is carried out ``times`` times and answered ``delay_ns`` later.

    The answer is ``problem`` if set, else the first result.
    """

    times: int = 1
    problem: Problem | None = None
    delay_ns: int = 0


class Faults(Protocol):
    """Decides the outcomes of requests and deliveries; ``component`` is a component's name, such as `kubelet`."""

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        """Return the outcome of an action about to be carried out."""

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        """Return how long the component is down if it crashes before or after an action; None if it does not."""

    def informers(self, store: Store, runtime: Runtime) -> Informers: ...


class Informers(Protocol):
    """Delivers watch events to components, which may be late, lost, repeated or merged."""

    def begin(self, component: Component, now: int) -> list[ObjectObservation]:
        """Start a component's informer; return what the component sees first."""

    def end(self, component: Component) -> None:
        """Stop a component's informer; events in flight are lost."""

    def see(self, event: WatchEvent, now: int) -> None:
        """Schedule the delivery of an event."""

    def take(self, now: int) -> Iterator[tuple[Component, ObjectObservation]]:
        """Yield all events that have arrived, by component."""

    def next_time(self, now: int) -> int | None:
        """Return when the next event arrives; None if nothing is pending."""
