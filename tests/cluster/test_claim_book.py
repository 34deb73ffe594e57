"""What a scheduler knows of claims, by what it sees, by what it is answered, and by what it has decided."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.input.codec import decode
from podium.api.resource_claims import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from podium.cluster.claim_book import ClaimBook
from tests.devices import DRIVER, allocated, claim
from tests.store.objects import Raw

A = (DRIVER, "n1", "a")
MADE: Raw = {
    "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web", "controller": True}],
}


def at(version: int | str, name: str = "c", *, uid: str = "", has: str = "", **metadata: Any) -> ResourceClaim:
    """The claim as it is at a version, with a device or without any."""
    raw = claim(name, status=allocated("n1", has)) if has else claim(name)
    raw["metadata"] |= {"resourceVersion": str(version), "uid": uid or f"uid-{name}", **metadata}
    item = decode(raw)
    assert isinstance(item, ResourceClaim)
    return item


def made(version: int, name: str, *, has: str = "") -> ResourceClaim:
    """A claim that was made for a pod's extended resources."""
    return at(version, name, has=has, **MADE)


def knowing(*claims: ResourceClaim) -> ClaimBook:
    book = ClaimBook(lambda pool: None)
    for one in claims:
        book.see(one)
    return book


def taken(book: ClaimBook) -> list[str]:
    return sorted(device for _, _, device in book.allocated.dedicated)


def test_an_allocation_that_is_decided_counts_until_it_is_given_up() -> None:
    book = knowing(at(5))
    book.assume(at(5, has="a"))
    assert A in book.allocated

    book.give_back("uid-c")

    assert A not in book.allocated


def test_an_allocation_that_is_told_by_an_answer_counts_whatever_is_seen_of_before_it() -> None:
    book = knowing(at(5))
    book.assume(at(5, has="a"))
    assert book.tell(at(9, has="a"))
    book.confirm("uid-c")
    book.give_back("uid-c")

    for earlier in (6, 7, 8):
        assert book.is_late(at(earlier))
        book.see(at(earlier))

    assert (book.in_flight, taken(book)) == ({}, ["a"])
    assert book.claims["default/c"] == at(9, has="a")


def test_what_is_seen_at_the_version_that_was_told_or_after_it_counts() -> None:
    book = knowing(at(5))
    book.tell(at(9, has="a"))

    book.see(at(9, has="a"))
    assert taken(book) == ["a"]
    book.see(at(10))
    assert taken(book) == []
    # Nothing is awaited any more, and so nothing is late: whoever lists anew counts.
    book.see(at(8, has="b"))
    assert taken(book) == ["b"]


def test_a_written_allocation_that_was_over_before_it_was_seen_counts_no_more() -> None:
    book = knowing(at(5))
    book.tell(at(9, has="a"))

    book.see(at(12))

    assert taken(book) == []


@pytest.mark.parametrize("seen", [9, 10])
def test_an_answer_that_comes_after_its_claim_was_seen_is_no_news(seen: int) -> None:
    book = knowing(at(5), at(seen))

    assert not book.tell(at(9, has="a"))
    assert taken(book) == []


def test_an_answer_about_a_claim_that_has_gone_meanwhile_does_not_bring_it_back() -> None:
    book = knowing(at(5))
    book.remove(at(10))
    assert not book.tell(at(9, has="a"))

    book.see(at(11, uid="namesake"))
    assert not book.tell(at(9, has="a"))

    assert taken(book) == []


def test_a_claim_that_is_gone_counts_no_more_though_it_was_only_told() -> None:
    book = knowing(at(5))
    book.tell(at(9, has="a"))

    book.remove(at(10))

    assert (book.claims, taken(book)) == ({}, [])


def test_a_claim_that_was_just_made_is_known_from_the_answer() -> None:
    book = knowing(at(5, "other"))

    assert book.tell(made(9, "web-1", has="a"))

    assert book.made_for("web") == made(9, "web-1", has="a")
    assert [one.metadata.name for one in book.unseen_of("web")] == ["web-1"]
    book.see(made(8, "web-1"))
    assert taken(book) == ["a"]
    book.see(made(9, "web-1", has="a"))
    assert book.unseen_of("web") == []


def test_a_made_claim_of_which_the_answer_comes_after_it_was_seen_to_go_stays_gone() -> None:
    book = knowing(made(9, "web-1", has="a"))
    book.remove(made(12, "web-1"))

    assert not book.tell(made(9, "web-1", has="a"))
    assert book.made_for("web") is None


def test_a_claim_that_an_answer_says_is_gone_need_not_be_seen_to_go() -> None:
    book = knowing(at(5))
    told = made(9, "web-1", has="a")
    book.tell(told)

    assert book.forget_unseen("default/web-1", "another") is None
    assert book.forget_unseen("default/web-1", "uid-web-1") == told

    assert taken(book) == []
    assert book.forget_unseen("default/c", "uid-c") is None


def test_a_claim_that_was_made_for_the_pod_before_says_nothing_of_the_one_in_flight() -> None:
    book = knowing()
    book.assume(at("", "yet-to-be-made", uid="web", has="a", **MADE))

    book.see(made(7, "web-1", has="a"))
    book.see(made(8, "web-1"))

    assert taken(book) == ["a"]


def test_what_was_written_and_is_not_told_counts_until_it_is_seen() -> None:
    book = knowing(at(5))
    book.assume(at(5, has="a"))
    book.assume(at("", "yet-to-be-made", uid="web", has="b", **MADE))
    book.expect("uid-c")
    book.expect("web")

    book.see(at(6))
    assert taken(book) == ["a", "b"]
    book.see(at(7, has="a"))
    book.see(made(8, "web-1", has="b"))
    assert book.in_flight == {}
    book.see(at(9))
    book.remove(made(10, "web-1"))

    assert taken(book) == []


def test_what_may_have_been_written_counts_after_it_is_given_up_until_that_is_settled() -> None:
    book = knowing(at(5))
    in_flight = at(5, has="a")
    book.assume(in_flight)
    book.doubt("uid-c")
    book.give_back("uid-c")
    assert (book.is_doubted("uid-c"), taken(book)) == (True, ["a"])
    with pytest.raises(AssertionError, match="may have devices"):
        book.assume(in_flight)

    assert book.settle("uid-c") == in_flight

    assert (book.is_doubted("uid-c"), taken(book), book.settle("uid-c")) == (False, [], None)


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_is_seen_settles_what_was_in_doubt(is_gone: bool) -> None:
    book = knowing(at(5))
    book.assume(at(5, has="a"))
    book.doubt("uid-c")

    if is_gone:
        book.remove(at(6))
    else:
        book.see(at(6, has="b"))

    assert not book.is_doubted("uid-c")
    assert taken(book) == ([] if is_gone else ["b"])


def test_versions_that_cannot_be_compared_are_taken_as_they_come() -> None:
    book = knowing(at("x1"))

    assert not book.tell(at("x2", has="a"))
    book.see(at("x0", has="b"))

    assert taken(book) == ["b"]


def test_a_claim_that_was_made_for_a_pod_is_found_by_the_pod() -> None:
    book = knowing(made(5, "web-1"))
    assert book.made_for("web") == made(5, "web-1")

    book.remove(made(6, "web-1"))
    assert book.made_for("web") is None


def test_nothing_is_left_of_claims_and_pods_that_are_gone() -> None:
    book = knowing(at(5))
    book.assume(at(5, has="a"))
    book.assume(at("", "yet-to-be-made", uid="web", has="b", **MADE))
    book.doubt("uid-c")
    book.let_go("uid-c", "web")
    book.tell(at(6, has="a"))
    book.tell(made(7, "web-1", has="b"))
    book.forget_pod("web")
    book.remove(made(8, "web-1"))
    book.remove(at(9))

    kept = {name: value for name, value in vars(book).items() if isinstance(value, dict | set) and value}

    assert (kept, taken(book)) == ({}, [])
