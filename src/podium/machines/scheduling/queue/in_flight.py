"""The pods that are being attempted or bound, and what has happened in the meantime.

Source: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import chain, islice

import msgspec

from podium.cluster.pods import PodRecord
from podium.framework.events import ClusterEvent
from podium.machines.scheduling.queue.queued_pod import QueuedPod


class Flight(msgspec.Struct, eq=False):
    """A pod's attempt: since which event it goes on, the events about the pod itself, and its newest reading."""

    queued: QueuedPod
    start: int
    latest: PodRecord
    own: list[ClusterEvent] = []


class InFlight:
    """Popped pods that are not done, in order of pop, and the events that may yet count for one of these.

    Those are the events since the first pod was popped that plugins may still turn down.
    """

    def __init__(self) -> None:
        self._flights: OrderedDict[str, Flight] = OrderedDict()
        self._hearing: OrderedDict[str, Flight] = OrderedDict()
        self.listeners = self._hearing.keys()
        """The uids of the pods for which events still count, as things are."""
        self._events: deque[ClusterEvent] = deque()
        self._noted = 0

    def __len__(self) -> int:
        return len(self._flights)

    def find(self, uid: str) -> Flight | None:
        """A pod's attempt; None if none goes on."""
        return self._flights.get(uid)

    def begin(self, queued: QueuedPod) -> None:
        """Start a pod's attempt."""
        record = queued.record
        self._flights[record.uid] = self._hearing[record.uid] = Flight(queued, self._noted, record)

    def note(self, event: ClusterEvent) -> None:
        """Keep an event for the pods in flight."""
        if self._hearing:
            self._events.append(event)
            self._noted += 1

    def has_heard(self, flight: Flight) -> bool:
        """Whether anything may have happened since a pod's attempt began."""
        return bool(flight.own) or flight.start != self._noted

    def events(self, flight: Flight) -> Iterator[ClusterEvent]:
        """What has happened since a pod's attempt began, in no order that means anything."""
        if flight.queued.record.uid not in self._hearing:
            return iter(flight.own)
        return chain(flight.own, islice(reversed(self._events), self._noted - flight.start))

    def end(self, uid: str) -> None:
        """End a pod's attempt, and forget the events that only it had to know. Raises KeyError if none goes on."""
        del self._flights[uid]
        if uid in self._hearing:
            self.decide(uid)

    def decide(self, uid: str) -> None:
        """No plugin turns the pod down any more, so that no event counts for it."""
        if self._hearing.pop(uid, None) is None or not self._events:
            return
        if not self._hearing:
            self._events.clear()
            return
        oldest = next(iter(self._hearing.values()))
        for _ in range(len(self._events) - (self._noted - oldest.start)):
            self._events.popleft()

    def pods(self) -> list[QueuedPod]:
        """The pods in flight, in order of pop."""
        return [flight.queued for flight in self._flights.values()]

    def check(self) -> None:
        """Raise AssertionError if events are kept that no pod needs, or missing that one does."""
        starts = [flight.start for flight in self._hearing.values()]
        needed = self._noted - starts[0] if starts else 0
        if len(self._events) != needed or starts != sorted(starts):
            raise AssertionError(f"{len(self._events)} events are kept for pods in flight, {needed} are needed")
