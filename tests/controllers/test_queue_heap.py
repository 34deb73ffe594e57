from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.controllers.scheduling.queue import places
from podium.controllers.scheduling.queue.hints import Rejections
from podium.controllers.scheduling.queue.places import MANY, SLACK, PodHeap, UnschedulablePods
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from tests.builders import cluster_of, pod
from tests.controllers.queue_checks import check_heap

UIDS = st.sampled_from("abcdef")
STEPS = st.lists(
    st.tuples(st.just("put"), UIDS, st.integers(0, 3))
    | st.tuples(st.sampled_from(("discard", "pop")), UIDS, st.just(0))
    | st.tuples(st.just("take until"), UIDS, st.integers(0, 2)),
    max_size=60,
)


@pytest.mark.parametrize("many", [0, 2, MANY])
@given(steps=STEPS)
def test_the_queue_heap_matches_a_sorted_table(many: int, steps: list[tuple[str, str, int]]) -> None:
    """However many there have to be before they are sorted."""
    with patch.object(places, "MANY", many):
        walk(steps)


def walk(steps: list[tuple[str, str, int]]) -> None:
    heap, table = PodHeap(), dict[str, tuple[int, str]]()
    for step, uid, key in steps:
        if step == "put":
            heap.put((key, uid))
            table[uid] = (key, uid)
        elif step == "discard":
            heap.discard(uid)
            table.pop(uid, None)
        elif step == "take until":
            taken = sorted(item for item in table.values() if item[0] <= key)
            assert heap.take_until(key) == taken
            for _, other in taken:
                del table[other]
        else:
            first = min(table.values(), default=None)
            assert heap.first() == first
            assert heap.pop() == (None if first is None else first[1])
            table.pop("" if first is None else first[1], None)
        check_heap(heap)
        assert heap._live == {item[1]: item for item in table.values()}
        assert len(heap) == len(table)
        assert all((uid in heap) is (uid in table) for uid in "abcdef")


def test_pods_that_move_or_leave_do_not_pile_up_and_order_survives_the_sweep() -> None:
    heap = PodHeap()
    uids = [f"{number:04}" for number in range(1000)]
    for turn in range(4):
        for number, uid in enumerate(uids):
            heap.put((number * 389 % 1000 + turn, uid))
        check_heap(heap)
    for uid in uids[:-50]:
        heap.discard(uid)
    check_heap(heap)
    expected = sorted((number * 389 % 1000, uids[number]) for number in range(950, 1000))
    assert [heap.pop() for _ in expected] == [uid for _, uid in expected]
    assert heap.pop() is None


def test_deadlines_of_pods_that_wait_no_longer_do_not_pile_up() -> None:
    cluster = cluster_of()
    first, second = (QueuedPod(cluster.read(pod(name)), 0, unschedulable_plugins=("Fit",)) for name in "ab")
    waiting = UnschedulablePods(Rejections({}))
    waiting.put(first, 0)
    for deadline_ns in range(1, 1000):
        waiting.put(second, deadline_ns)

    assert len(waiting._deadlines._heap) <= 4 + SLACK
    assert waiting.take_overdue(998) == [first]
    assert waiting.next_deadline() == 999
