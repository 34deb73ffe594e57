"""The changes that a controller expects to observe."""

from podium.controllers.workloads.workload_controller import Expectations

TIMEOUT = 300 * 10**9


def test_creations_are_waited_for_until_so_many_have_appeared() -> None:
    expectations = Expectations()

    expectations.expect_creations("web", 2, now=0)
    expectations.see_creation("web")

    assert not expectations.are_met("web")
    assert expectations["web"].creations == 1
    expectations.see_creation("web")
    assert expectations.are_met("web")


def test_more_than_was_expected_is_not_held_against_what_comes() -> None:
    expectations = Expectations()
    expectations.see_creation("web")

    expectations.expect_creations("web", 1, now=0)

    assert not expectations.are_met("web")


def test_a_change_is_waited_for_by_its_name() -> None:
    expectations = Expectations()
    expectations.expect("web", "a", now=0)
    expectations.expect_creations("web", 1, now=0)

    assert not expectations.see("web", "b")
    assert expectations.see("web", "a")
    assert not expectations.see("web", "a")

    assert not expectations.are_met("web")


def test_to_expect_nothing_is_to_wait_for_nothing() -> None:
    expectations = Expectations()

    expectations.expect_creations("web", 0, now=0)

    assert expectations.are_met("web")


def test_a_change_may_wait_for_a_greater_generation() -> None:
    expectations = Expectations()
    expectations.expect("web", "scaled", now=0, generation=3)
    expectations.expect("web", "deleted", now=0)

    assert not expectations.see("web", "scaled", 3)
    assert not expectations.see("web", "deleted", 4)
    assert expectations.see("web", "scaled", 4)
    assert expectations.see("web", "deleted")
    assert expectations.are_met("web")


def test_unobserved_expectations_expire_five_minutes_after_the_last_request() -> None:
    expectations = Expectations()
    expectations.expect("web", "a", now=0)
    expectations.expect("web", "b", now=2)

    assert expectations["web"].expires_ns == TIMEOUT + 2
    expectations.give_up("web", TIMEOUT + 1)
    assert not expectations.are_met("web")
    expectations.give_up("web", TIMEOUT + 2)
    assert expectations.are_met("web")
