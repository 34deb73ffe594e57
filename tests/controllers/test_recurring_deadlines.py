"""Recurring deadlines do not prevent a run from settling."""

from podium.api.times import MAX_TIME_NS
from podium.controllers.deadlines import Deadlines


def test_a_one_time_deadline_keeps_alive_until_it_is_taken_or_cancelled() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 5)
    deadlines.set("b", 7)
    assert deadlines.deadline().keeps_alive

    assert deadlines.take_due(5) == "a"
    assert deadlines.deadline().keeps_alive
    deadlines.set("b", None)

    assert not deadlines.deadline().keeps_alive
    assert deadlines.deadline().time_ns is None


def test_recurring_deadlines_become_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 5)

    deadlines.set("a", 9, recurs=True)

    assert not deadlines.deadline().keeps_alive
    assert deadlines.deadline().time_ns == 9
    assert deadlines.take_due(8) is None
    assert deadlines.take_due(9) == "a"


def test_a_deadline_beyond_the_last_representable_time_keeps_nothing_alive() -> None:
    deadlines: Deadlines[str] = Deadlines()

    deadlines.set("a", MAX_TIME_NS + 1)

    assert not deadlines.deadline().keeps_alive


def test_the_last_set_deadline_follows_all_others_due_at_its_time() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key in ("a", "b"):
        deadlines.set(key, 5)

    deadlines.set_last("c", 5)
    deadlines.set_last("b", 7, recurs=True)
    deadlines.set_last("b", None)

    assert [deadlines.take_due(9) for _ in range(3)] == ["a", "c", None]
