"""What controllers wait to see."""

from podium.machines.parts.deadlines import NEVER
from podium.machines.workloads.expectations import Expectations

TIMEOUT = 300 * 10**9


def test_creations_are_waited_for_until_so_many_have_appeared() -> None:
    expectations: Expectations[str] = Expectations()

    expectations.expect_creations("web", 2, now=0)
    expectations.see_creation("web")

    assert not expectations.are_met("web")
    assert expectations.creations("web") == 1
    expectations.see_creation("web")
    assert expectations.are_met("web")


def test_more_than_was_expected_is_not_held_against_what_comes() -> None:
    expectations: Expectations[str] = Expectations()
    expectations.see_creation("web")

    expectations.expect_creations("web", 1, now=0)

    assert not expectations.are_met("web")


def test_a_change_is_waited_for_by_its_name() -> None:
    expectations: Expectations[str] = Expectations()
    expectations.expect("web", "a", now=0)
    expectations.expect_creations("web", 1, now=0)

    assert not expectations.see("web", "b")
    assert expectations.see("web", "a")
    assert not expectations.see("web", "a")

    assert not expectations.are_met("web")


def test_to_expect_nothing_is_to_wait_for_nothing() -> None:
    expectations: Expectations[str] = Expectations()

    expectations.expect_creations("web", 0, now=0)

    assert expectations.are_met("web")
    assert expectations.deadline() is NEVER


def test_what_is_never_seen_is_given_up_five_minutes_after_the_last_was_asked_for() -> None:
    expectations: Expectations[str] = Expectations()
    expectations.expect("web", "a", now=0)
    expectations.expect("db", "a", now=1)
    expectations.expect("web", "b", now=2)

    assert expectations.deadline().time_ns == TIMEOUT + 1
    assert expectations.take_expired(TIMEOUT) is None
    assert expectations.take_expired(TIMEOUT + 1) == "db"
    assert expectations.take_expired(TIMEOUT + 1) is None
    assert expectations.take_expired(TIMEOUT + 2) == "web"

    assert expectations.are_met("web")
    assert expectations.deadline() is NEVER


def test_of_what_is_forgotten_nothing_is_expected() -> None:
    expectations: Expectations[str] = Expectations()
    expectations.expect("web", "a", now=0)

    expectations.forget("web")

    assert expectations.are_met("web")
