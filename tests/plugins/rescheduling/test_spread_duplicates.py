"""SpreadDuplicates: pods of one owner move from nodes with several of them to nodes with fewer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from tests.builders import node, pod, tolerate
from tests.plugins.rescheduling.pictures import carry_out, picture_of, places, policy_of, reported


def spread(**args: Any) -> Any:
    return policy_of("SpreadDuplicates", **args)


def web(number: int, on: str, *, first: int = 0, owner: str = "ReplicaSet/web", **reported: Any) -> list[Pod]:
    return [pod(f"{owner.split('/')[1]}-{i}", on=on, owner=owner, **reported) for i in range(first, first + number)]


def test_pods_of_one_owner_leave_the_node_that_they_share() -> None:
    seen = picture_of(*(node(name) for name in "abc"), *web(3, "a"))
    assert spread().objective(seen) == 2
    (first, *_) = spread().proposals(seen)
    assert (
        first.reason == "default/web-0 should leave a: 3 pods of ReplicaSet web are on it, and 3 nodes could have one"
    )
    assert len(carry_out(spread(), seen)) == 2
    assert sorted(places(seen).values()) == ["a", "b", "c"]
    assert spread().objective(seen) == 0


def test_a_nodes_part_is_rounded_up() -> None:
    seen = picture_of(node("a"), node("b"), *web(5, "a"))
    assert spread().objective(seen) == 2
    carry_out(spread(), seen)
    assert sorted(places(seen).values()) == ["a"] * 3 + ["b"] * 2


def test_pods_of_different_owners_or_without_one_may_share_a_node() -> None:
    others = [pod(f"bare-{i}", on="a") for i in range(3)]
    seen = picture_of(node("a"), node("b"), *web(1, "a"), *web(1, "a", owner="ReplicaSet/api"), *others)
    assert spread().objective(seen) == 0


def test_owners_of_the_same_name_in_two_namespaces_are_two() -> None:
    seen = picture_of(node("a"), node("b"), *web(1, "a"), *web(1, "a", namespace="shop"))
    assert spread().objective(seen) == 0


def test_pods_that_belong_to_their_nodes_are_no_duplicates() -> None:
    for owner in ("DaemonSet/agent", "Node/a"):
        seen = picture_of(node("a"), node("b"), *web(2, "a", owner=owner))
        assert spread().objective(seen) == 0
        assert reported(spread().proposals(seen)) == []


def test_kinds_of_owners_can_be_left_out() -> None:
    seen = picture_of(node("a"), node("b"), *web(2, "a"), *web(2, "a", owner="StatefulSet/db"))
    assert {name for name, *_ in carry_out(spread(excludeOwnerKinds=["StatefulSet"]), seen)} == {"web-0"}


@pytest.mark.failure(78)
@pytest.mark.parametrize(
    ("others", "closed"),
    [
        ([node("b", taints=["own:NoSchedule"])], ()),
        ([node("b", labels={"disk": "hdd"})], ()),
        ([node("b")], ("b",)),
        ([], ()),
    ],
)
def test_nodes_that_may_not_have_them_are_no_reason_to_leave(others: list[Any], closed: tuple[str, ...]) -> None:
    seen = picture_of(
        node("a", labels={"disk": "ssd"}), *others, *web(3, "a", node_selector={"disk": "ssd"}), closed=closed
    )
    assert spread().objective(seen) == 0
    assert reported(spread().proposals(seen)) == []


def test_nodes_that_are_tolerated_count() -> None:
    seen = picture_of(node("a"), node("b", taints=["own:NoSchedule"]), *web(2, "a", tolerations=[tolerate("own")]))
    assert carry_out(spread(), seen) == [("web-0", "a", "b")]


@pytest.mark.failure(76)
def test_nodes_without_room_do_not_lead_to_evictions() -> None:
    seen = picture_of(node("a"), node("b", cpu="1"), pod("full", on="b", cpu="1"), *web(3, "a", cpu="1"))
    assert reported(spread().proposals(seen)) == []


@pytest.mark.failure(76)
def test_spread_duplicates_are_not_moved_again() -> None:
    seen = picture_of(*(node(name) for name in "abc"), *web(7, "a"))
    carry_out(spread(), seen)
    assert carry_out(spread(), seen) == []
    assert max(list(places(seen).values()).count(name) for name in "abc") == 3


def test_duplicates_on_closed_nodes_are_left_alone() -> None:
    seen = picture_of(node("a"), node("b"), node("c"), *web(3, "a"), closed=("a",))
    assert spread().objective(seen) == 0
    assert reported(spread().proposals(seen)) == []


def test_the_least_important_goes_first_then_by_key() -> None:
    seen = picture_of(
        *(node(name) for name in "abcd"),
        pod("z-lesser", on="a", owner="ReplicaSet/web"),
        pod("important", on="a", owner="ReplicaSet/web", priority=10),
        pod("also", on="a", owner="ReplicaSet/web", cpu="1"),
    )
    assert reported(spread().proposals(seen)) == ["also", "z-lesser"]


@pytest.mark.parametrize(
    ("args", "refusal"),
    [
        ({"excludeOwnerKinds": "ReplicaSet"}, "excludeOwnerKinds"),
        ({"excludeOwnerKinds": [1]}, "excludeOwnerKinds"),
        ({"excluded": []}, "excluded"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(args: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InputError, match=re.escape(refusal)):
        spread(**args)
