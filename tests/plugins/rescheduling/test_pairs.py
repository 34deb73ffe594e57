"""Pairs: one pod moves to a better node, and another makes room for it there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podium.framework.rescheduling.policy import Proposal
from podium.plugins.rescheduling import demands
from tests.builders import node, node_term, pod
from tests.plugins.rescheduling.pictures import carry_out, picture_of, policy_of

FAST = {"disk": "ssd"}
LIKES: dict[str, Any] = {"likes_nodes": [(5, node_term("disk=ssd"))]}
NEEDS: dict[str, Any] = {"node_selector": FAST}
BOTH = pytest.mark.parametrize(
    ("name", "wants"), [("SatisfyPreferences", LIKES), ("RepairViolations", NEEDS)], ids=["preferred", "required"]
)


def taking(on: str = "plain", **report: Any) -> Any:
    return pod("a", on=on, owner="ReplicaSet/a", **{"cpu": "2", **report})


def giving(name: str = "b", on: str = "fast", **report: Any) -> Any:
    return pod(name, on=on, owner=f"ReplicaSet/{name}", **{"cpu": "2", **report})


def pairs(proposals: Any) -> list[str]:
    return [" ".join(relocation.pod.name for relocation in proposal.relocations) for proposal in proposals]


@BOTH
def test_another_pod_makes_room_when_the_right_node_is_full(name: str, wants: dict[str, Any]) -> None:
    seen = picture_of(node("plain", cpu="2"), node("fast", cpu="2", labels=FAST), taking(**wants), giving())
    (proposal,) = policy_of(name).proposals(seen)
    assert pairs([proposal]) == ["a b"]
    assert proposal.reason.endswith(", and default/b makes room for it on fast")
    assert carry_out(policy_of(name), seen) == [("a", "plain", "fast"), ("b", "fast", "plain")], "they change places"
    assert policy_of(name).objective(seen) == 0
    assert carry_out(policy_of(name), seen) == []


@BOTH
def test_no_other_pod_makes_room_when_room_is_free(name: str, wants: dict[str, Any]) -> None:
    nodes = node("plain", cpu="2"), node("fast", cpu="2", labels=FAST), node("free", cpu="2", labels=FAST)
    seen = picture_of(*nodes, taking(**wants), giving())
    assert carry_out(policy_of(name), seen) == [("a", "plain", "free")]


@BOTH
def test_another_pod_makes_room_if_the_move_to_free_room_is_refused(name: str, wants: dict[str, Any]) -> None:
    nodes = node("plain", cpu="2"), node("fast", cpu="2", labels=FAST), node("kept", cpu="2", labels=FAST)
    seen = picture_of(*nodes, taking(**wants), giving())
    assert pairs(policy_of(name).proposals(seen)) == ["a", "a b"]


@BOTH
def test_neither_pod_of_a_pair_lacks_budget(name: str, wants: dict[str, Any]) -> None:
    nodes = node("plain", cpu="2"), node("fast", cpu="4", labels=FAST)
    seen = picture_of(*nodes, taking(**wants), giving("b"), giving("c"))
    allowed = replace(seen, may_leave=lambda found: found.name != "b")
    assert pairs(policy_of(name).proposals(allowed)) == ["a c"]
    held = replace(seen, may_leave=lambda found: found.name != "a")
    assert pairs(policy_of(name).proposals(held)) == []


@BOTH
def test_pairs_are_sought_until_too_many_pods_in_a_row_find_none(
    monkeypatch: pytest.MonkeyPatch, name: str, wants: dict[str, Any]
) -> None:
    monkeypatch.setattr(demands, "_MOST_IN_VAIN", 2)
    names = range(5)
    plain = [node(f"plain-{at}", cpu="2") for at in names]
    takers = [pod(f"a{at}", on=f"plain-{at}", owner=f"ReplicaSet/a{at}", cpu="2", **wants) for at in names]
    fast = [node(f"fast-{at}", cpu="2", labels=FAST) for at in names]
    seen = picture_of(*plain, *takers, *fast, *[giving(f"b{at}", on=f"fast-{at}") for at in names])
    assert len({pair[:2] for pair in pairs(policy_of(name).proposals(seen))}) == 2, "none of them is carried out"
    assert len(carry_out(policy_of(name), seen)) == 10, "all change places"


@BOTH
@pytest.mark.parametrize(
    ("other", "why"),
    [
        (giving(priority=1), "it is more important"),
        (giving(cpu="1"), "it would not leave enough room"),
        (pod("b", on="fast", cpu="2"), "it may not be moved"),
        (giving(cpu="3"), "it could go nowhere"),
        (giving(likes_nodes=LIKES["likes_nodes"], node_selector=FAST), "it would lose as much"),
    ],
    ids=lambda value: value if isinstance(value, str) else "other",
)
def test_pods_that_free_no_room_are_not_moved(name: str, wants: dict[str, Any], other: Any, why: str) -> None:
    filler = [pod("filler", on="fast", cpu="1")] if why == "it would not leave enough room" else []
    fast = node("fast", cpu="3" if why == "it could go nowhere" else "2", labels=FAST)
    seen = picture_of(node("plain", cpu="2"), fast, taking(**wants), other, *filler)
    assert pairs(policy_of(name).proposals(seen)) == [], why


@BOTH
def test_the_least_important_pods_make_room_then_those_that_lose_least(name: str, wants: dict[str, Any]) -> None:
    others = [giving(name, priority=priority) for name, priority in (("c", 0), ("d", -5), ("b", 0), ("e", 0))]
    seen = picture_of(node("plain", cpu="2"), node("fast", cpu="8", labels=FAST), taking(**wants, priority=0), *others)
    assert pairs(policy_of(name).proposals(seen)) == ["a d", "a b", "a c"], "three of them"


@BOTH
def test_each_of_several_alike_pods_finds_room(name: str, wants: dict[str, Any]) -> None:
    crowd = [pod(f"a{i}", on="plain", owner="ReplicaSet/a", cpu="1", **wants) for i in range(2)]
    others = [giving(f"b{i}", cpu="1") for i in range(2)]
    seen = picture_of(node("plain", cpu="2"), node("fast", cpu="2", labels=FAST), *crowd, *others)
    made = carry_out(policy_of(name), seen) + carry_out(policy_of(name), seen)
    assert {step[0] for step in made} == {"a0", "a1", "b0", "b1"}
    assert policy_of(name).objective(seen) == 0
    assert carry_out(policy_of(name), seen) == []


def test_a_pod_that_was_moved_meanwhile_is_not_proposed() -> None:
    seen = picture_of(
        node("plain", cpu="2"), node("fast", cpu="4", labels=FAST), taking(**LIKES), giving(), giving("c")
    )
    touched: set[str] = set()
    seen = replace(seen, is_movable=lambda found: found.uid not in touched)
    found: list[Proposal] = []
    for proposal in policy_of("SatisfyPreferences").proposals(seen):
        found.append(proposal)
        touched.update(relocation.pod.uid for relocation in proposal.relocations)
    assert pairs(found) == ["a b"]
