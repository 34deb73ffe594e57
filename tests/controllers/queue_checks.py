"""Invariants of a scheduling queue and of its parts."""

from __future__ import annotations

from podium.controllers.scheduling.queue.places import SLACK, BackoffPods, InFlightPods, PodHeap, UnschedulablePods
from podium.controllers.scheduling.queue.queue import SchedulingQueue, _sort_item
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace


def begun(queue: SchedulingQueue, now: int) -> QueuedPod | None:
    """Start an attempt at the first pod, and return it; None if none may be attempted."""
    queued = queue.take(now)
    if queued is not None:
        queue.begin(queued, now)
    return queued


def pods_in(queue: SchedulingQueue, place: QueuePlace) -> list[QueuedPod]:
    """Return the pods in a place.

    Active pods are in order of pop, those in backoff by its end, others by time of entry, key and uid.
    """
    found = [queued for queued in queue if queued.place is place]
    if place is QueuePlace.ACTIVE:
        return sorted(found, key=_sort_item)
    if place is QueuePlace.BACKOFF:
        return sorted(found, key=lambda queued: (queue._settings.backoff_end_ns(queued), *_sort_item(queued)))
    return sorted(found, key=lambda queued: (queued.queued_ns, queued.record.key, queued.record.uid))


def check_heap(heap: PodHeap) -> None:
    """Check the heap's order, and that it stores few removed items."""
    stored, items = heap._heap, heap._heap + heap._sorted
    assert all(stored[(child - 1) // 2] <= stored[child] for child in range(1, len(stored)))
    assert heap._sorted == sorted(heap._sorted, reverse=True)
    assert sum(heap._live.get(item[-1]) is item for item in items) == len(heap._live)
    assert len(items) == len(heap._live) + heap._dead, f"{len(items)} items for {len(heap._live)} pods"
    assert heap._dead <= len(heap._live) + SLACK, f"{heap._dead} dead items for {len(heap._live)} pods"


def check_queue(queue: SchedulingQueue) -> None:
    """Every pod is in one place, and the events for pods in flight are those that are needed."""
    check_heap(queue._active)
    _check_backoff(queue._backoff, queue._pods)
    _check_waiting(queue._waiting)
    _check_in_flight(queue._in_flight)
    held = {
        QueuePlace.ACTIVE: queue._active.uids,
        QueuePlace.BACKOFF: set(queue._backoff),
        QueuePlace.IN_FLIGHT: queue._in_flight._flights.keys(),
    }
    assert sum(map(len, held.values())) + len(queue._waiting.uids) == len(queue._pods)
    for uid, queued in queue._pods.items():
        report = f"pod {queued.record.key} is in place {queued.place}, but not held there"
        assert uid in held.get(queued.place, queue._waiting.uids), report
        is_gated = queued.place is QueuePlace.GATED
        assert bool(queued.gated_by) is is_gated, f"pod {queued.record.key} is in place {queued.place}: wrong gate"


def _check_backoff(backoff: BackoffPods, pods: dict[str, QueuedPod]) -> None:
    """Every pod is in the heap of those whose last attempt has ended like its own."""
    check_heap(backoff.early)
    check_heap(backoff._kept)
    for uid in backoff:
        report = f"pod {pods[uid].record.key} backs off as if its last attempt had ended otherwise"
        assert (uid in backoff._kept) is backoff._settings.must_back_off(pods[uid]), report


def _check_waiting(waiting: UnschedulablePods) -> None:
    """Every pod is in the group of those that wait for the same, and has a deadline."""
    assert sum(map(len, waiting._groups.values())) == len(waiting._waits)
    assert waiting._deadlines.times.keys() == waiting._waits.keys()
    counting = {uid: rejection for rejection, uids in waiting._counting.items() for uid in uids}
    assert waiting.hopeful <= waiting._waits.keys() - counting.keys()
    assert all(waiting._waits[uid][0] is rejection for uid, rejection in counting.items())
    for rejection, group in waiting._groups.items():
        for uid, queued in group.items():
            assert waiting._waits[uid] == (rejection, group), queued.record.key
            is_right = waiting._rejections.of(queued, queued.gated_by) is rejection and (
                rejection.unschedulable or rejection.gate
            )
            assert is_right, f"pod {queued.record.key} waits for what others wait for"


def _check_in_flight(in_flight: InFlightPods) -> None:
    """Neither too many nor too few events are kept."""
    starts = [flight.start for flight in in_flight._hearing.values()]
    kept, needed = len(in_flight._events), in_flight._noted - starts[0] if starts else 0
    assert kept == needed, f"{kept} events are kept for pods in flight, {needed} are needed"
    assert starts == sorted(starts)
