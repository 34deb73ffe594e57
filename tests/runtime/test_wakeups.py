"""Components whose deadlines coincide act in the order in which they joined."""

from hypothesis import given
from hypothesis import strategies as st

from podium.runtime.runtime import Wakeups

TIMES = st.one_of(st.none(), st.integers(0, 12))
CHANGES = st.lists(st.tuples(st.integers(1, 4), TIMES, st.integers(0, 2)), max_size=40)


def test_the_first_registered_of_due_components_wakes_first() -> None:
    wakeups = Wakeups()
    wakeups.set(2, 5)
    wakeups.set(1, 7)
    wakeups.set(3, 0)

    assert wakeups.first_due(0) == 3
    wakeups.set(3, None)
    assert wakeups.first_due(4) is None
    assert wakeups.next_time(4) == 5
    assert wakeups.first_due(5) == 2
    assert wakeups.first_due(7) == 1


def test_a_component_stays_due_until_its_time_is_reset() -> None:
    wakeups = Wakeups()
    wakeups.set(1, 5)

    assert [wakeups.first_due(5), wakeups.first_due(6)] == [1, 1]
    wakeups.set(1, 9)

    assert wakeups.first_due(6) is None
    assert wakeups.next_time(6) == 9


@given(CHANGES)
def test_wakeups_agree_with_a_scan_of_all_places(changes: list[tuple[int, int | None, int]]) -> None:
    wakeups = Wakeups()
    plain: dict[int, int | None] = {}
    now = 0
    for place, time_ns, elapsed in changes:
        now += elapsed
        wakeups.set(place, time_ns)
        plain[place] = time_ns

        due = sorted(place for place, time in plain.items() if time is not None and time <= now)
        assert wakeups.first_due(now) == next(iter(due), None)
        next_ns = min((time for time in plain.values() if time is not None), default=None)
        found = wakeups.next_time(now)
        assert found == next_ns or (found is not None and next_ns is not None and found <= now and next_ns <= now)
