"""The scheduler's view of what the caps on its disruptions leave."""

from __future__ import annotations

import pytest

from podium.api.disruption_policy import (
    SCHEDULER,
    Cap,
    CapBucket,
    CapStatus,
    DisruptionPolicy,
    DisruptionPolicySpec,
    DisruptionPolicyStatus,
)
from podium.api.meta import ObjectMeta
from podium.cluster.cluster import DisruptionCaps
from tests.builders import scheduler_cap

HOUR = 3600 * 10**9
WHOLE = CapBucket(SCHEDULER)


def caps(*policies: DisruptionPolicy, now: int = 0) -> DisruptionCaps:
    made = DisruptionCaps()
    made.now = now
    for policy in policies:
        made.observe(policy)
    return made


def allows(known: DisruptionCaps, **by_namespace: int) -> bool:
    return known.shortage(known.needs(by_namespace)) is None


def take(known: DisruptionCaps, **by_namespace: int) -> None:
    known.take(known.needs(by_namespace))


def test_without_a_policy_everything_is_allowed_at_once() -> None:
    free = caps()

    take(free, default=100)

    assert (free.used(), free.needs({"default": 100})) == ([], {})


def test_every_victim_takes_a_token_and_tokens_come_back_one_by_one() -> None:
    two = caps(scheduler_cap("3/3h"))

    take(two, default=2)

    assert (two.tokens_left(WHOLE), allows(two, default=1), allows(two, default=2)) == (1, True, False)
    assert two.next_ns(WHOLE, 2) == HOUR
    two.now = HOUR
    assert (two.tokens_left(WHOLE), allows(two, default=2), two.next_ns(WHOLE, 2)) == (2, True, HOUR)


def test_more_victims_than_the_cap_ever_allows_need_all_of_it() -> None:
    two = caps(scheduler_cap("2/2h", used=1))

    assert (allows(two, default=9), two.next_ns(WHOLE, 9)) == (False, HOUR)
    two.now = HOUR
    take(two, default=9)
    assert two.tokens_left(WHOLE) == 0


def test_more_than_is_left_cannot_be_taken() -> None:
    with pytest.raises(ValueError, match="2 disruptions are more than the 1 that are left"):
        take(caps(scheduler_cap("2/2h", used=1)), default=2)


def test_taken_tokens_count_once_until_the_api_shows_them() -> None:
    """Tokens in flight: an older status does not give them back, and the one that has them adds nothing."""
    three = caps(scheduler_cap("3/3h"))
    take(three, default=2)

    for used in (0, 1):
        assert not three.observe(scheduler_cap("3/3h", used=used))
        assert three.tokens_left(WHOLE) == 1
    assert not three.observe(scheduler_cap("3/3h", used=2))
    assert three.tokens_left(WHOLE) == 1
    assert not three.observe(scheduler_cap("3/3h", used=3))
    assert three.tokens_left(WHOLE) == 0


def test_with_another_cap_what_the_api_shows_counts_alone() -> None:
    three = caps(scheduler_cap("3/3h"))
    take(three, default=3)

    assert three.observe(scheduler_cap("4/4h", used=1))
    assert three.tokens_left(WHOLE) == 3
    assert three.observe(None)
    assert three.used() == []


def policy(*made: Cap, used: tuple[CapStatus, ...] = ()) -> DisruptionPolicy:
    return DisruptionPolicy(
        metadata=ObjectMeta(name="default"),
        spec=DisruptionPolicySpec(caps=made),
        status=DisruptionPolicyStatus(caps=used),
    )


EACH = Cap(max="2/2h", per="Namespace")


def test_each_namespace_has_a_bucket_of_its_own() -> None:
    known = caps(policy(EACH))

    take(known, web=2, db=1)

    assert known.used() == [CapBucket(namespace="db"), CapBucket(namespace="web")]
    assert [allows(known, **{name: 1}) for name in ("web", "db", "other")] == [False, True, True]


def test_a_disruption_takes_a_token_of_each_matching_cap_and_names_the_slowest() -> None:
    slow = Cap(component=SCHEDULER, max="3/30h")
    known = caps(policy(EACH, slow, Cap(component="drain", max="1/9h")))

    take(known, web=2)
    take(known, db=1)

    assert (known.tokens_left(WHOLE), known.tokens_left(CapBucket(namespace="web"))) == (0, 0)
    assert known.shortage(known.needs({"web": 1})) == WHOLE
    assert CapBucket("drain") not in known.needs({"web": 1})


def test_a_full_token_bucket_is_forgotten() -> None:
    known = caps(policy(EACH, used=(CapStatus(namespace="web", full_time="1970-01-01T01:00:00Z"),)))
    assert known.used() == [CapBucket(namespace="web")]

    known.now = HOUR
    known.observe(policy(EACH, used=(CapStatus(namespace="web", full_time="1970-01-01T01:00:00Z"),)))

    assert not known.full
