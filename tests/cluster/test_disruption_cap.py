"""What a scheduler knows to be left of the cap on its disruptions."""

from __future__ import annotations

import pytest

from podium.cluster.disruption_cap import DisruptionCap
from tests.builders import scheduler_cap

HOUR = 3600 * 10**9


def cap(rate: str, *, used: int = 0, now: int = 0) -> DisruptionCap:
    made = DisruptionCap()
    made.observe(scheduler_cap(rate, used=used))
    made.now = now
    return made


def test_without_a_policy_everything_is_allowed_at_once() -> None:
    free = DisruptionCap()
    free.take(100)

    assert (free.left, free.allows(100), free.next_ns(100)) == (None, True, 0)


def test_every_victim_takes_a_token_and_tokens_come_back_one_by_one() -> None:
    two = cap("3/3h")

    two.take(2)

    assert (two.left, two.allows(1), two.allows(2)) == (1, True, False)
    assert two.next_ns(2) == HOUR
    two.now = HOUR
    assert (two.left, two.allows(2), two.next_ns(2)) == (2, True, HOUR)


def test_more_victims_than_the_cap_ever_allows_need_all_of_it() -> None:
    two = cap("2/2h", used=1)

    assert (two.allows(9), two.next_ns(9)) == (False, HOUR)
    two.now = HOUR
    two.take(9)
    assert two.left == 0


def test_more_than_is_left_cannot_be_taken() -> None:
    with pytest.raises(ValueError, match="2 disruptions are more than the 1 that are left"):
        cap("2/2h", used=1).take(2)


def test_what_was_taken_counts_until_the_api_shows_it_and_not_twice() -> None:
    """Tokens in flight: an older status does not give them back, and the one that has them adds nothing."""
    three = cap("3/3h")
    three.take(2)

    for used in (0, 1):
        assert not three.observe(scheduler_cap("3/3h", used=used))
        assert three.left == 1
    assert not three.observe(scheduler_cap("3/3h", used=2))
    assert three.left == 1
    assert not three.observe(scheduler_cap("3/3h", used=3))
    assert three.left == 0


def test_with_another_cap_what_the_api_shows_counts_alone() -> None:
    three = cap("3/3h")
    three.take(3)

    assert three.observe(scheduler_cap("4/4h", used=1))
    assert three.left == 3
    assert three.observe(None)
    assert three.left is None
