"""Observations that are processed later."""

from collections.abc import Sequence

from podium.sim.history import MOST, Backlog, Write
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.store.objects import pod


def written() -> WatchEvent:
    store = Store()
    store.create(pod("a"), now=0)
    return store.events_since(0)[-1]


def test_queued_writes_are_delivered_in_order_on_demand() -> None:
    event, report = written(), list[tuple[str, int]]()
    backlog = Backlog()
    backlog.join(lambda writes: report.extend(("first", now) for _, now, _, _ in writes))
    backlog.join(lambda writes: report.extend(("second", now) for _, now, _, _ in writes))

    backlog.put(event, 1, "", "")
    backlog.put(event, 2, "", "")
    assert (report, len(backlog)) == ([], 2)

    backlog.clear()
    backlog.clear()
    assert (report, len(backlog)) == ([("first", 1), ("first", 2), ("second", 1), ("second", 2)], 0)


def test_the_backlog_has_a_maximum_length() -> None:
    event, report = written(), list[int]()
    backlog = Backlog()

    def take_in(writes: Sequence[Write]) -> None:
        report.extend(now for _, now, _, _ in writes)

    backlog.join(take_in)
    for number in range(2 * MOST + 1):
        backlog.put(event, number, "", "")
        assert len(backlog) < MOST

    assert report == list(range(2 * MOST))
