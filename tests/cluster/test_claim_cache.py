"""The scheduler's view of claims: observed, answered and assumed."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.devices import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from podium.api.input.codec import decode
from podium.cluster.devices import ClaimCache
from tests.devices import DRIVER, allocated, claim
from tests.store.objects import Raw

A = (DRIVER, "n1", "a")
MADE: Raw = {
    "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web", "controller": True}],
}


def at(version: int | str, name: str = "c", *, uid: str = "", has: str = "", **metadata: Any) -> ResourceClaim:
    """Return the claim as it is at a version, with a device or without any."""
    raw = claim(name, status=allocated("n1", has)) if has else claim(name)
    raw["metadata"] |= {"resourceVersion": str(version), "uid": uid or f"uid-{name}", **metadata}
    item = decode(raw)
    assert isinstance(item, ResourceClaim)
    return item


def made(version: int, name: str, *, has: str = "") -> ResourceClaim:
    """Return a claim that was made for a pod's extended resources."""
    return at(version, name, has=has, **MADE)


def knowing(*claims: ResourceClaim) -> ClaimCache:
    claim_cache = ClaimCache(lambda pool: None)
    for one in claims:
        claim_cache.observe(one)
    return claim_cache


def taken(claim_cache: ClaimCache) -> list[str]:
    return sorted(device for _, _, device in claim_cache.allocated.dedicated)


def test_an_allocation_that_is_decided_counts_until_it_is_given_up() -> None:
    claim_cache = knowing(at(5))
    claim_cache.assume(at(5, has="a"))
    assert A in claim_cache.allocated

    claim_cache.release("uid-c")

    assert A not in claim_cache.allocated


def test_an_answered_allocation_outranks_older_observations() -> None:
    claim_cache = knowing(at(5))
    claim_cache.assume(at(5, has="a"))
    assert claim_cache.apply_answer(at(9, has="a"))
    claim_cache.end("uid-c")
    claim_cache.release("uid-c")

    for earlier in (6, 7, 8):
        assert claim_cache.is_outdated(at(earlier))
        claim_cache.observe(at(earlier))

    assert (claim_cache.in_flight, taken(claim_cache)) == ({}, ["a"])
    assert claim_cache.claims["default/c"] == at(9, has="a")


def test_claims_seen_at_or_after_the_answered_version_count() -> None:
    claim_cache = knowing(at(5))
    claim_cache.apply_answer(at(9, has="a"))

    claim_cache.observe(at(9, has="a"))
    assert taken(claim_cache) == ["a"]
    claim_cache.observe(at(10))
    assert taken(claim_cache) == []
    # No write is pending, so that no observation is late: a new list counts.
    claim_cache.observe(at(8, has="b"))
    assert taken(claim_cache) == ["b"]


def test_a_written_allocation_that_was_over_before_it_was_seen_counts_no_more() -> None:
    claim_cache = knowing(at(5))
    claim_cache.apply_answer(at(9, has="a"))

    claim_cache.observe(at(12))

    assert taken(claim_cache) == []


@pytest.mark.parametrize("seen", [9, 10])
def test_an_answer_after_the_observation_of_its_claim_changes_nothing(seen: int) -> None:
    claim_cache = knowing(at(5), at(seen))

    assert not claim_cache.apply_answer(at(9, has="a"))
    assert taken(claim_cache) == []


def test_an_answer_about_a_claim_that_has_gone_meanwhile_does_not_bring_it_back() -> None:
    claim_cache = knowing(at(5))
    claim_cache.remove(at(10))
    assert not claim_cache.apply_answer(at(9, has="a"))

    claim_cache.observe(at(11, uid="namesake"))
    assert not claim_cache.apply_answer(at(9, has="a"))

    assert taken(claim_cache) == []


def test_a_removed_claim_no_longer_counts_though_only_an_answer_named_it() -> None:
    claim_cache = knowing(at(5))
    claim_cache.apply_answer(at(9, has="a"))

    claim_cache.remove(at(10))

    assert (claim_cache.claims, taken(claim_cache)) == ({}, [])


def test_a_claim_that_was_just_made_is_known_from_the_answer() -> None:
    claim_cache = knowing(at(5, "other"))

    assert claim_cache.apply_answer(made(9, "web-1", has="a"))

    assert claim_cache.made_for("web") == made(9, "web-1", has="a")
    assert [one.metadata.name for one in claim_cache.unobserved_of("web")] == ["web-1"]
    claim_cache.observe(made(8, "web-1"))
    assert taken(claim_cache) == ["a"]
    claim_cache.observe(made(9, "web-1", has="a"))
    assert claim_cache.unobserved_of("web") == []


def test_a_created_claim_stays_deleted_if_its_answer_comes_late() -> None:
    claim_cache = knowing(made(9, "web-1", has="a"))
    claim_cache.remove(made(12, "web-1"))

    assert not claim_cache.apply_answer(made(9, "web-1", has="a"))
    assert claim_cache.made_for("web") is None


def test_a_claim_that_an_answer_says_is_gone_need_not_be_seen_to_go() -> None:
    claim_cache = knowing(at(5))
    report = made(9, "web-1", has="a")
    claim_cache.apply_answer(report)

    assert claim_cache.forget_unobserved("default/web-1", "another") is None
    assert claim_cache.forget_unobserved("default/web-1", "uid-web-1") == report

    assert taken(claim_cache) == []
    assert claim_cache.forget_unobserved("default/c", "uid-c") is None


def test_a_claim_that_was_made_for_the_pod_before_says_nothing_of_the_one_in_flight() -> None:
    claim_cache = knowing()
    claim_cache.assume(at("", "yet-to-be-made", uid="web", has="a", **MADE))

    claim_cache.observe(made(7, "web-1", has="a"))
    claim_cache.observe(made(8, "web-1"))

    assert taken(claim_cache) == ["a"]


def test_an_unacknowledged_write_counts_until_it_is_seen() -> None:
    claim_cache = knowing(at(5))
    claim_cache.assume(at(5, has="a"))
    claim_cache.assume(at("", "yet-to-be-made", uid="web", has="b", **MADE))
    claim_cache.expect("uid-c")
    claim_cache.expect("web")

    claim_cache.observe(at(6))
    assert taken(claim_cache) == ["a", "b"]
    claim_cache.observe(at(7, has="a"))
    claim_cache.observe(made(8, "web-1", has="b"))
    assert claim_cache.in_flight == {}
    claim_cache.observe(at(9))
    claim_cache.remove(made(10, "web-1"))

    assert taken(claim_cache) == []


def test_a_possibly_written_claim_counts_until_the_write_is_settled() -> None:
    claim_cache = knowing(at(5))
    in_flight = at(5, has="a")
    claim_cache.assume(in_flight)
    claim_cache.mark_uncertain("uid-c")
    claim_cache.release("uid-c")
    assert ("uid-c" in claim_cache.uncertain, taken(claim_cache)) == (True, ["a"])
    with pytest.raises(AssertionError, match="may have devices"):
        claim_cache.assume(in_flight)

    assert claim_cache.settle("uid-c") == in_flight

    assert ("uid-c" in claim_cache.uncertain, taken(claim_cache), claim_cache.settle("uid-c")) == (False, [], None)


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_observation_settles_an_uncertain_claim_write(is_gone: bool) -> None:
    claim_cache = knowing(at(5))
    claim_cache.assume(at(5, has="a"))
    claim_cache.mark_uncertain("uid-c")

    if is_gone:
        claim_cache.remove(at(6))
    else:
        claim_cache.observe(at(6, has="b"))

    assert "uid-c" not in claim_cache.uncertain
    assert taken(claim_cache) == ([] if is_gone else ["b"])


def test_versions_that_cannot_be_compared_are_taken_as_they_come() -> None:
    claim_cache = knowing(at("x1"))

    assert not claim_cache.apply_answer(at("x2", has="a"))
    claim_cache.observe(at("x0", has="b"))

    assert taken(claim_cache) == ["b"]


def test_a_claim_that_was_made_for_a_pod_is_found_by_the_pod() -> None:
    claim_cache = knowing(made(5, "web-1"))
    assert claim_cache.made_for("web") == made(5, "web-1")

    claim_cache.remove(made(6, "web-1"))
    assert claim_cache.made_for("web") is None


def test_nothing_is_left_of_claims_and_pods_that_are_gone() -> None:
    claim_cache = knowing(at(5))
    claim_cache.assume(at(5, has="a"))
    claim_cache.assume(at("", "yet-to-be-made", uid="web", has="b", **MADE))
    claim_cache.mark_uncertain("uid-c")
    claim_cache.unreserve("uid-c", "web")
    claim_cache.apply_answer(at(6, has="a"))
    claim_cache.apply_answer(made(7, "web-1", has="b"))
    claim_cache.forget_pod("web")
    claim_cache.remove(made(8, "web-1"))
    claim_cache.remove(at(9))

    kept = {name: value for name, value in vars(claim_cache).items() if isinstance(value, dict | set) and value}

    assert (kept, taken(claim_cache)) == ({}, [])
