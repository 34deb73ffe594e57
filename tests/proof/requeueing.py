"""Stories of rejected pods, and the events that requeue them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from tests.builders import configuration
from tests.controllers.driving import Driver
from tests.controllers.queue_checks import pods_in


@dataclass(frozen=True, slots=True)
class Requeueing:
    """Given a cluster where ``plugins`` alone decide, the pods ``waiting`` are all turned down.

    Then objects are ``gone`` and others ``seen``, as they are now; ``woken`` names the pods that this may help.
    """

    plugins: str
    given: Sequence[Kubernetes]
    waiting: Sequence[Pod]
    woken: str
    gone: Sequence[Kubernetes] = ()
    seen: Sequence[Kubernetes] = ()

    def reported(self) -> Driver:
        """Return a scheduler that has turned the pods down."""
        driver = Driver(*self.given, settings=configuration(only=self.plugins.split()))
        driver.see(*self.waiting)
        for _ in self.waiting:
            driver.tick()
        assert self.pods_in(driver, QueuePlace.UNSCHEDULABLE) == {one.metadata.name for one in self.waiting}
        return driver

    def awake(self) -> set[str]:
        """Return the names of the pods that have left their place once all has happened."""
        driver = self.reported()
        driver.miss(*self.gone)
        driver.see(*self.seen)
        return self.pods_in(driver, QueuePlace.BACKOFF) | self.pods_in(driver, QueuePlace.ACTIVE)

    @staticmethod
    def pods_in(driver: Driver, place: QueuePlace) -> set[str]:
        return {queued.record.name for queued in pods_in(driver.scheduler.queue, place)}
