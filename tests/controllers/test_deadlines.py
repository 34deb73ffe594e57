"""One deadline for each key."""

from hypothesis import given
from hypothesis import strategies as st

from podium.api.times import MAX_TIME_NS
from podium.controllers.deadlines import Deadlines


def test_another_time_replaces_the_one_before_and_none_removes_it() -> None:
    deadlines: Deadlines[str] = Deadlines()

    deadlines.set("a", 5)
    deadlines.set("b", 7)
    deadlines.set("a", 9)
    assert deadlines.next_time() == 7
    deadlines.set("b", None)

    assert deadlines.next_time() == 9
    assert deadlines.take_due(8) is None
    assert deadlines.take_due(9) == "a"
    assert deadlines.next_time() is None


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9))), st.integers(0, 9))
def test_a_deadline_fires_once_by_its_time(changes: list[tuple[int, int | None]], now: int) -> None:
    deadlines: Deadlines[int] = Deadlines()
    times: dict[int, int] = {}
    for key, time in changes:
        deadlines.set(key, time)
        times.pop(key, None)
        if time is not None:
            times[key] = time

    assert deadlines.next_time() == min(times.values(), default=None)
    taken = []
    while (due := deadlines.take_due(now)) is not None:
        taken.append(due)
    assert [times[key] for key in taken] == sorted(times[key] for key in taken)
    assert sorted(taken) == sorted(key for key, time in times.items() if time <= now)


def test_a_key_that_is_set_last_for_the_time_that_it_had_comes_after_the_others_of_that_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key in ("a", "b"):
        deadlines.set(key, 5)

    deadlines.set_last("a", 5)

    assert [deadlines.take_due(5) for _ in range(3)] == ["b", "a", None]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3), st.booleans()), max_size=200))
def test_keys_of_one_time_come_in_the_order_in_which_they_were_set_for_it(
    changes: list[tuple[int, int | None, bool]],
) -> None:
    deadlines: Deadlines[int] = Deadlines()
    times: dict[int, int] = {}
    for key, time, is_last in changes:
        (deadlines.set_last if is_last else deadlines.set)(key, time)
        if times.get(key) != time or is_last:
            times.pop(key, None)
            if time is not None:
                times[key] = time

    taken = [deadlines.take_due(3) for _ in times]
    assert taken == sorted(times, key=lambda key: times[key])


def test_a_time_beyond_the_last_representable_one_is_never_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 5)

    deadlines.set("a", MAX_TIME_NS + 1)

    assert (deadlines.times, deadlines.next_time()) == ({}, None)
