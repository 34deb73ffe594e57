"""What all components see of the API server by watches that may lag: an informer for each that runs."""

from __future__ import annotations

from collections.abc import Iterator

from podium.driver.component import Component
from podium.driver.driver import Driver
from podium.driver.wakeups import Wakeups
from podium.machines.machine import does_watch
from podium.requests.observations import Seen
from podium.sim.faulty.faults import Faults
from podium.sim.faulty.informer import Informer
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store


class Informers:
    """Hands on to each component what it watches, as the faults have it."""

    def __init__(self, store: Store, faults: Faults, driver: Driver) -> None:
        self._store = store
        self._faults = faults
        self._driver = driver
        self._informers: dict[Component, Informer] = {}
        # By the component's place.
        self._arrivals = Wakeups()

    def begin(self, component: Component, now: int) -> list[Seen]:
        """A component begins a life: what it is shown of all that there is, and of late was."""
        if component.machine is None:
            raise ValueError(f"{component.name} is down")
        kinds = [
            apiresource.name
            for apiresource in self._store.resources.all()
            if does_watch(component.machine, apiresource.name)
        ]
        informer = self._informers[component] = Informer(component.name, kinds, self._store, self._faults)
        seen = informer.start(now)
        self._expect(component, informer, now)
        return seen

    def end(self, component: Component) -> None:
        """A component is down, or has left: what is on its way to it is lost."""
        if self._informers.pop(component, None) is not None:
            self._arrivals.set(component.place, None, 0)

    def see(self, event: WatchEvent, now: int) -> None:
        """Something was written."""
        for component, informer in self._informers.items():
            if informer.watches(event.stored.kind):
                informer.see(event, now)
                self._expect(component, informer, now)

    def take(self, now: int) -> Iterator[tuple[Component, Seen]]:
        """What has arrived, for one component after the other."""
        while (place := self._arrivals.first_due(now)) is not None:
            component = self._driver.at(place)
            informer = self._informers[component]
            while (seen := informer.take(now)) is not None:
                yield component, seen
            self._expect(component, informer, now)

    def next_time(self, now: int) -> int | None:
        """When something arrives next, None when nothing is on its way."""
        return self._arrivals.next_time(now)

    def _expect(self, component: Component, informer: Informer, now: int) -> None:
        self._arrivals.set(component.place, informer.next_time(), now)
