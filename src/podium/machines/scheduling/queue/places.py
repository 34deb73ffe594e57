"""The places of the scheduling queue, and which pod is in which."""

from __future__ import annotations

from collections.abc import Iterator

from podium.machines.scheduling.queue.backoff import BackoffPods
from podium.machines.scheduling.queue.heap import PodHeap
from podium.machines.scheduling.queue.hints import Rejections
from podium.machines.scheduling.queue.in_flight import InFlight
from podium.machines.scheduling.queue.queued_pod import ACTIVE, BACKOFF, IN_FLIGHT, Place, QueuedPod, QueueSettings
from podium.machines.scheduling.queue.unschedulable import UnschedulablePods


class QueuePlaces:
    """Every pending pod in exactly one place. What moves them from one to another is `SchedulingQueue`'s."""

    def __init__(self, rejections: Rejections, settings: QueueSettings) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self.uids = self._pods.keys()
        """Those of all pods, as things are."""
        self._active = PodHeap()
        self._backoff = BackoffPods(settings)
        # Those that wait for an event: unschedulable ones, and gated ones.
        self._waiting = UnschedulablePods(rejections)
        self._in_flight = InFlight()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods: place by place in the order of `Place`, within a place in the order of `pods`."""
        for place in Place:
            yield from self.pods(place)

    def find(self, uid: str) -> QueuedPod | None:
        """A pod with its history; None if the queue does not know it."""
        return self._pods.get(uid)

    def where(self, uid: str) -> Place | None:
        """The place of a pod; None if the queue does not know it."""
        queued = self._pods.get(uid)
        return None if queued is None else queued.place

    def count(self, place: Place) -> int:
        """How many pods are in a place."""
        match place:
            case Place.ACTIVE:
                return len(self._active)
            case Place.BACKOFF:
                return len(self._backoff)
            case Place.IN_FLIGHT:
                return len(self._in_flight)
            case Place.GATED | Place.UNSCHEDULABLE:
                return self._waiting.count(gated=place is Place.GATED)

    def pods(self, place: Place) -> list[QueuedPod]:
        """The pods in a place.

        Active ones and those in flight in order of pop, those that back off by its end (then as if active), waiting
        ones by time of entry, then key, then uid.
        """
        match place:
            case Place.ACTIVE:
                return [self._pods[item[-1]] for item in self._active.items()]
            case Place.BACKOFF:
                return [self._pods[uid] for uid in self._backoff.uids()]
            case Place.IN_FLIGHT:
                return self._in_flight.pods()
            case Place.GATED | Place.UNSCHEDULABLE:
                return self._waiting.pods(gated=place is Place.GATED)

    def delete(self, uid: str) -> None:
        """Forget a pod, in flight or not, that is gone, bound or another scheduler's; unknown pods are no matter."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return
        place = queued.place
        if place is IN_FLIGHT:
            self._in_flight.end(uid)
        elif place is ACTIVE:
            self._active.discard(uid)
        elif place is BACKOFF:
            self._backoff.discard(uid)
        else:
            self._waiting.remove(uid)

    def check(self) -> None:
        """Raise AssertionError if a pod is in two places or none, or if what is kept about pods in flight is wrong."""
        self._active.check()
        self._backoff.check(self._pods)
        self._waiting.check()
        self._in_flight.check()
        if sum(map(self.count, Place)) != len(self._pods):
            raise AssertionError("the queue's places and its pods differ in number")
        for place in Place:
            for queued in self.pods(place):
                uid = queued.record.uid
                if queued.place is not place or self._pods.get(uid) is not queued:
                    raise AssertionError(f"pod {queued.record.key} is in place {place}, but known as {queued.place}")
                if bool(queued.gated_by) is not (place is Place.GATED):
                    raise AssertionError(f"pod {queued.record.key} is {place} with gate {queued.gated_by!r}")
