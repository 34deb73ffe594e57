"""The backoff of operations that keep failing."""

from podium.controllers.controller import Backoff

FIRST, LONGEST = 10, 80


def waits(*failures: int) -> list[int]:
    """Return how long the wait after each failure is, at these times."""
    backoff: Backoff[str] = Backoff(FIRST, LONGEST)
    found = []
    for now in failures:
        backoff.fail("a", now)
        found.append((backoff.until("a", now) or now) - now)
    return found


def test_each_wait_is_twice_as_long_as_the_one_before_up_to_a_limit() -> None:
    assert waits(0, 10, 30, 70, 150, 230) == [10, 20, 40, 80, 80, 80]


def test_a_failure_during_a_wait_changes_nothing() -> None:
    assert waits(0, 4, 9, 10) == [10, 6, 1, 20]


def test_backoff_resets_after_twice_the_longest_wait_without_failure() -> None:
    assert waits(0, 10 + 2 * LONGEST) == [10, 20]
    assert waits(0, 10 + 2 * LONGEST + 1) == [10, 10]


def test_a_wait_can_be_asked_to_be_longer() -> None:
    backoff: Backoff[str] = Backoff(FIRST, LONGEST)

    backoff.fail("a", 0, least_ns=50)

    assert backoff.until("a", 49) == 50
    assert backoff.until("a", 50) is None


def test_a_forgotten_item_has_no_failures() -> None:
    backoff: Backoff[str] = Backoff(FIRST, LONGEST)
    for now in (0, 10, 30, 70):
        backoff.fail("a", now)
    assert backoff.until("a", 71) is not None

    backoff.forget("a")

    assert backoff.until("a", 71) is None


def test_a_failure_after_the_longest_backoff_is_likely_permanent() -> None:
    backoff: Backoff[str] = Backoff(FIRST, LONGEST)
    report = []
    for _ in range(6):
        now = backoff.until("a", 0) or 0
        backoff.fail("a", now)
        report.append((backoff.until("a", now) or 0) - now == LONGEST and backoff.is_hopeless("a"))

    assert report == sorted(report)
    assert report[-1]

    backoff.forget("a")

    assert not backoff.is_hopeless("a")
