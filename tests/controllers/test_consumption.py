"""The requests of namespaces by priority and hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.controllers.ledger.disruption import HOUR_NS, Consumption, UsageEntry
from tests.builders import pod

MINUTE = 60 * 10**9


def running(name: str, *, cpu: str = "1", namespace: str = "default", class_: str = "", priority: int = 0) -> Pod:
    one = pod(name, namespace=namespace, cpu=cpu, on="n1", priority=priority)
    return replace(one, spec=replace(one.spec, priority_class_name=class_))


def hours(rows: tuple[UsageEntry, ...], resource: str = "cpu") -> list[tuple[int, str, str, float]]:
    """Return the hour, namespace, class and amount of each row."""
    return [
        (used.hour // 3_600, used.namespace, used.priority_class, round(used.requested.get(resource, 0), 6))
        for used in rows
    ]


def test_a_pod_counts_from_its_binding_to_its_end_in_each_hour() -> None:
    consumption = Consumption()
    consumption.on_update(pod("a", cpu="2"), 0)
    consumption.on_update(running("a", cpu="2", class_="high"), 30 * MINUTE)
    consumption.on_update(running("a", cpu="2", class_="high"), 70 * MINUTE)
    consumption.remove(running("a").metadata.uid, 150 * MINUTE)

    assert hours(consumption.read(9 * HOUR_NS)) == [
        (0, "default", "high", 1.0),
        (1, "default", "high", 2.0),
        (2, "default", "high", 1.0),
    ]
    assert hours(consumption.read(9 * HOUR_NS), "pods") == [
        (0, "default", "high", 0.5),
        (1, "default", "high", 1.0),
        (2, "default", "high", 0.5),
    ]


def test_consumption_is_split_by_namespace_class_and_priority_and_sorted() -> None:
    consumption = Consumption()
    for number, (namespace, class_, priority) in enumerate(
        [("shop", "low", 1), ("shop", "high", 9), ("lab", "", 0), ("shop", "low", 2), ("shop", "low", 1)]
    ):
        consumption.on_update(running(f"p{number}", namespace=namespace, class_=class_, priority=priority), 0)

    rows = consumption.read(HOUR_NS)

    assert [(used.namespace, used.priority_class, used.priority, used.requested["cpu"]) for used in rows] == [
        ("lab", "", 0, 1.0),
        ("shop", "high", 9, 1.0),
        ("shop", "low", 2, 1.0),
        ("shop", "low", 1, 2.0),
    ]


def test_drained_consumption_is_not_reported_again() -> None:
    consumption = Consumption()
    consumption.on_update(running("a"), 0)

    assert hours(consumption.take(HOUR_NS // 2)) == [(0, "default", "", 0.5)]
    assert hours(consumption.take(HOUR_NS)) == [(0, "default", "", 0.5)]
    consumption.catch_up([], HOUR_NS)
    assert consumption.take(2 * HOUR_NS) == ()


def test_a_pod_that_asks_for_more_counts_for_more_from_then_on() -> None:
    consumption = Consumption()
    consumption.on_update(running("a", cpu="1"), 0)
    consumption.on_update(running("a", cpu="3"), 30 * MINUTE)

    assert hours(consumption.read(HOUR_NS)) == [(0, "default", "", 2.0)]


LIVES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 400), st.integers(1, 4), st.sampled_from(["a", "b"])), max_size=8
)


@given(LIVES)
def test_the_sums_are_those_of_counting_each_pod_minute_by_minute(lives: list[tuple[int, int, int, str]]) -> None:
    consumption, end = Consumption(), 900
    events = sorted(
        [(begin, 1, number) for number, (begin, _, _, _) in enumerate(lives)]
        + [(begin + lasts, 0, number) for number, (begin, lasts, _, _) in enumerate(lives)]
    )
    for minute, begins, number in events:
        one = running(f"p{number}", cpu=str(lives[number][2]), namespace=lives[number][3])
        if begins:
            consumption.on_update(one, minute * MINUTE)
        else:
            consumption.remove(one.metadata.uid, minute * MINUTE)

    found = {(hour, namespace): amount for hour, namespace, _, amount in hours(consumption.read(end * MINUTE))}

    assert found == {key: round(amount / 60, 6) for key, amount in counted(lives).items()}


def counted(lives: list[tuple[int, int, int, str]]) -> Counter[tuple[int, str]]:
    return Counter(key for begin, lasts, cpu, namespace in lives for key in minutes(begin, lasts, cpu, namespace))


def minutes(begin: int, lasts: int, cpu: int, namespace: str) -> Iterator[tuple[int, str]]:
    for minute, _ in pairwise(range(begin, begin + lasts + 1)):
        yield from [(minute // 60, namespace)] * cpu
