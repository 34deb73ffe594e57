"""The places of the scheduling queue: heaps of pods, and pods that back off, wait for events, or are in flight."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import Any

import msgspec

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.pods import PodRecord
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.indexes import MultiMap
from podium.controllers.scheduling.queue.hints import FEW, Hints, Kind, Rejection, Rejections, wakes
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueueSettings
from podium.framework.events import ClusterEvent

# The sort key, then the pod's uid: no two current items are equal.
Item = tuple[Any, ...]

SLACK = 32
MANY = 64
"""Larger heaps are sorted as a whole when the first item is taken; the rest is then taken without comparisons."""


class PodHeap:
    """Pods by key, smallest first.

    Sorted items are kept beside the heap, the last one first; later ones go to the heap. Removed items stay until they
    come up, at most as many as current ones (and `SLACK`).
    """

    __slots__ = ("_dead", "_heap", "_live", "_sorted", "uids")

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._sorted: list[Item] = []
        self._live: dict[str, Item] = {}
        self.uids = self._live.keys()
        """The uids of all pods; a live view."""
        # The number of removed items that are still stored.
        self._dead = 0

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[str]:
        """Return the uids, in no order."""
        return iter(self._live)

    def put(self, item: Item) -> None:
        """Add or move the pod whose uid is the item's last element."""
        live, uid = self._live, item[-1]
        if uid in live:
            self._dead += 1
        live[uid] = item
        heappush(self._heap, item)
        if self._dead > len(live) + SLACK:
            self._sweep()

    def discard(self, uid: str) -> None:
        if self._live.pop(uid, None) is None:
            return
        self._dead += 1
        if self._dead > len(self._live) + SLACK:
            self._sweep()

    def first(self) -> Item | None:
        heap, in_order, live = self._heap, self._sorted, self._live
        while heap and live.get(heap[0][-1]) is not heap[0]:
            heappop(heap)
            self._dead -= 1
        while in_order and live.get(in_order[-1][-1]) is not in_order[-1]:
            in_order.pop()
            self._dead -= 1
        if not (heap and in_order):
            return heap[0] if heap else in_order[-1] if in_order else None
        return min(heap[0], in_order[-1])

    def pop(self) -> str | None:
        """Remove the first pod and return its uid, or None."""
        heap, in_order, live = self._heap, self._sorted, self._live
        if len(heap) > MANY and len(heap) > len(in_order) // 2:
            in_order += heap
            in_order.sort(reverse=True)
            heap.clear()
        while heap or in_order:
            item = in_order.pop() if in_order and (not heap or in_order[-1] < heap[0]) else heappop(heap)
            uid: str = item[-1]
            if live.get(uid) is item:
                del live[uid]
                if self._dead > len(live) + SLACK:
                    self._sweep()
                return uid
            self._dead -= 1
        return None

    def take_until(self, last: int) -> list[Item]:
        """Remove the pods whose key begins with ``last`` or less; return their items in order."""
        taken: list[Item] = []
        while (first := self.first()) is not None and first[0] <= last:
            self.pop()
            taken.append(first)
        return taken

    def _sweep(self) -> None:
        self._heap, self._sorted, self._dead = list(self._live.values()), [], 0
        heapify(self._heap)


class BackoffPods:
    """Pods by the end of their backoff; in two heaps, for backoffs that may be cut short and others."""

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self.early = PodHeap()
        """The pods whose backoff may be cut short."""
        self._kept = PodHeap()

    def __len__(self) -> int:
        return len(self.early) + len(self._kept)

    def __iter__(self) -> Iterator[str]:
        """Yield the uids, in no order."""
        yield from self.early
        yield from self._kept

    def put(self, queued: QueuedPod, item: Item) -> None:
        """Add or move a pod; its item begins with the end of its backoff."""
        (self._kept if self._settings.must_back_off(queued) else self.early).put(item)

    def discard(self, uid: str) -> None:
        self.early.discard(uid)
        self._kept.discard(uid)

    def take_ended(self, now: int) -> list[str]:
        """Remove the pods whose backoff has ended; return their uids in order of the ends."""
        return [item[-1] for item in sorted(self.early.take_until(now) + self._kept.take_until(now))]

    def next_deadline(self) -> int | None:
        """Return when the first backoff ends, or None."""
        return earliest(first[0] for heap in (self.early, self._kept) if (first := heap.first()) is not None)


Group = dict[str, QueuedPod]


class UnschedulablePods:
    """Waiting pods by the plugins that hold them, so that an event costs only the pods it may concern."""

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections
        self._groups: dict[Rejection, Group] = {}
        # By uid, the rejection, and its group.
        self._waits: dict[str, tuple[Rejection, Group]] = {}
        self.uids = self._waits.keys()
        """The uids of all pods; a live view."""
        # By rejection, those that may preempt, and that count other pods or volumes, until that changes for them.
        self._counting: MultiMap[Rejection, str] = MultiMap()
        self.hopeful: set[str] = set()
        """The uids of pods that may preempt once their wait ends, though no event has woken them."""
        self._concerned: dict[Kind, list[tuple[Hints, Group]]] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        self.next_deadline = self._deadlines.next_time

    def put(self, queued: QueuedPod, deadline_ns: int) -> None:
        """Let a pod wait for an event, at most until ``deadline_ns``."""
        rejection = self._rejections.of(queued, queued.gated_by)
        group = self._groups.get(rejection)
        if group is None:
            # Empty groups are kept for a while, because most are soon used again.
            if len(self._groups) >= FEW:
                self._groups = {held_by: group for held_by, group in self._groups.items() if group}
            self._concerned.clear()
            group = self._groups[rejection] = {}
        uid = queued.record.uid
        self.discard(uid)
        group[uid] = queued
        pod, pod_class = queued.record, queued.record.pod_class
        counts = pod_class.required_affinity or pod.spec.topology_spread_constraints or pod_class.claims
        if counts and not queued.gated_by and pod.preemption_policy not in NEVER_PREEMPTS:
            self._counting.add(rejection, uid)
        self._waits[uid] = rejection, group
        self._deadlines.set(uid, deadline_ns)

    def discard(self, uid: str) -> None:
        """End a pod's wait, if it waits."""
        if uid in self._waits:
            rejection, group = self._waits.pop(uid)
            del group[uid]
            self._counting.discard(rejection, uid)
            self.hopeful.discard(uid)
            self._deadlines.set(uid, None)

    def woken_by(self, event: ClusterEvent) -> list[QueuedPod]:
        """Return the pods that an event makes worth another attempt; they wait until removed."""
        kind = (event.resource, event.action)
        concerned = self._concerned.get(kind)
        if concerned is None:
            hinted = ((rejection.hints(event), group) for rejection, group in self._groups.items())
            concerned = self._concerned[kind] = [(hints, group) for hints, group in hinted if hints]
        return [queued for hints, group in concerned for queued in group.values() if wakes(hints, queued.record, event)]

    def note(self, event: ClusterEvent) -> None:
        """Note which pods an event may let preempt although the plugins that rejected them do not wake them."""
        for rejection, uids in [*self._counting.items()]:
            if hints := rejection.other_hints(event):
                pods = {uid: self._waits[uid][1][uid].record for uid in uids}
                # It counts once victims have left.
                found = [uid for uid, pod in pods.items() if wakes(hints, pod, event)]
                self.hopeful.update(found)
                for uid in found:
                    self._counting.discard(rejection, uid)

    def take_overdue(self, now: int) -> list[QueuedPod]:
        """End the wait of the pods whose deadline has come; return them, longest overdue first."""
        overdue = []
        while (deadline_ns := self.next_deadline()) is not None and (uid := self._deadlines.take_due(now)) is not None:
            queued = self._waits[uid][1][uid]
            overdue.append((deadline_ns, queued.record.key, uid, queued))
            self.discard(uid)
        return [queued for *_, queued in sorted(overdue)]


class InFlightPod(msgspec.Struct, eq=False):
    """A pod's attempt: the first event that counts, the events about the pod itself, and its newest state."""

    queued: QueuedPod
    start: int
    latest: PodRecord
    own: list[ClusterEvent] = []


class InFlightPods:
    """Popped pods in order of pop, and the events that may still count for one of them.

    Events are kept from the pop of the first pod that plugins may still reject.
    """

    def __init__(self) -> None:
        self._flights: dict[str, InFlightPod] = {}
        self._hearing: OrderedDict[str, InFlightPod] = OrderedDict()
        self.listeners = self._hearing.keys()
        """The uids of the pods for which events still count; a live view."""
        self._events: deque[ClusterEvent] = deque()
        self._noted = 0
        self.find = self._flights.get
        """Returns a pod's attempt by uid, or None."""

    def begin(self, queued: QueuedPod) -> None:
        """Start a pod's attempt."""
        record = queued.record
        self._flights[record.uid] = self._hearing[record.uid] = InFlightPod(queued, self._noted, record)

    def note(self, event: ClusterEvent) -> None:
        """Keep an event for the `listeners`, of which there are some."""
        self._events.append(event)
        self._noted += 1

    def has_heard(self, flight: InFlightPod) -> bool:
        """Return whether any event has come since a pod's attempt began."""
        return len(flight.own) > 0 or flight.start != self._noted

    def events(self, flight: InFlightPod) -> Iterator[ClusterEvent]:
        """Return the events since a pod's attempt began, in no order."""
        if flight.queued.record.uid not in self._hearing:
            return iter(flight.own)
        return chain(flight.own, islice(reversed(self._events), self._noted - flight.start))

    def end(self, uid: str) -> None:
        """End a pod's attempt, and drop events that only it needed. Raises KeyError without one."""
        del self._flights[uid]
        if uid in self._hearing:
            self.decide(uid)

    def decide(self, uid: str) -> None:
        """Drop the events for a pod that no plugin can reject any more."""
        if self._hearing.pop(uid, None) is None or not self._events:
            return
        if not self._hearing:
            self._events.clear()
            return
        oldest = next(iter(self._hearing.values()))
        for _ in range(len(self._events) - (self._noted - oldest.start)):
            self._events.popleft()
