"""The planner's moves for policies, with replacements placed by the default scheduler's scores."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework.rescheduling.policy import Policy
from podium.framework.rescheduling.settings import Guidance
from tests.builders import HOSTNAME, ZONE, node, node_term, pod, spread_over, term
from tests.decide.rescheduling.planning import Given, free_settings, given, planned, web
from tests.plugins.rescheduling.pictures import policy_of

ROUNDS = 20


def settle(here: Given, *policies: Policy) -> list[tuple[str, str, str | None]]:
    """Carry out one plan after another until there is none; who left which node for which, in order."""
    made: list[tuple[str, str, str | None]] = []
    for number in range(ROUNDS):
        with planned(here, *policies) as (plan, _):
            moves = [move for group in plan.planned for move in group.moves]
        assert not plan.errors
        if not moves:
            return made
        for move in moves:
            record = here.cluster.remove_pod(move.pod.uid)
            assert move.target is not None
            uid = f"{record.uid}-{number}"
            here.cluster.add_pod(replace(record, uid=uid, node_name=move.target, row=-1, slot=-1))
            made.append((move.pod.name, move.source, move.target))
    raise AssertionError(f"after {ROUNDS} plans there are still moves: {made[-3:]}")


def nodes_of(here: Given) -> list[str]:
    """Return the node of each pod, sorted."""
    return sorted(found.node_name for found in here.cluster.placed.values())


def zoned(*names: str, **fields: Any) -> list[Any]:
    return [node(name, zone=f"zone-{name}", **fields) for name in names]


def test_after_a_scale_up_the_empty_nodes_are_filled_from_the_full_ones() -> None:
    crowd = [web(f"w{i}-{on}", on, cpu="1") for on in "ab" for i in range(9)]
    here = given(*zoned("a", "b", "c", "d", cpu="10"), *crowd)
    marks = {"cpu": 15, "memory": 15}
    even = policy_of("MoveToUnderusedNodes", useDeviationThresholds=True, thresholds=marks, targetThresholds=marks)
    moves = settle(here, even)
    assert {source for _, source, _ in moves} == {"a", "b"}
    assert {target for *_, target in moves} == {"c", "d"}
    assert nodes_of(here) == ["a"] * 6 + ["b"] * 6 + ["c"] * 3 + ["d"] * 3


def test_pods_come_to_the_nodes_that_they_prefer_and_stay_there() -> None:
    likes = [(100, node_term("disk=ssd"))]
    here = given(
        node("plain"), node("fast", labels={"disk": "ssd"}), *(web(f"w{i}", "plain", likes_nodes=likes) for i in "ab")
    )
    assert settle(here, policy_of("SatisfyPreferences")) == [("wa", "plain", "fast"), ("wb", "plain", "fast")]


def test_pods_that_would_be_apart_are_parted_by_their_scheduler() -> None:
    fields: dict[str, Any] = {"labels": {"app": "web"}, "dislikes": [(100, term("app=web", HOSTNAME))]}
    here = given(*zoned("a", "b", "c"), *(web(f"w{i}", "a", **fields) for i in range(3)))
    assert len(settle(here, policy_of("SatisfyPreferences"))) == 2
    assert nodes_of(here) == ["a", "b", "c"]


@pytest.mark.failure(77)
@pytest.mark.parametrize("kind", [True, False], ids=["soft", "hard"])
@pytest.mark.parametrize("other", [{"taints": ["team=db:NoSchedule"]}, {"cpu": "1"}], ids=["tainted", "full"])
def test_no_pod_is_evicted_for_a_spread_that_cannot_be_reached(kind: bool, other: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"labels": {"app": "web"}, "spread": [spread_over(ZONE, "app=web", soft=kind)], "cpu": "2"}
    here = given(*zoned("a"), *zoned("b", **other), *(web(f"w{i}", "a", **fields) for i in range(3)))
    assert settle(here, policy_of("SatisfyPreferences"), policy_of("RepairViolations")) == []


@pytest.mark.failure(77)
def test_an_uneven_spread_is_improved_as_far_as_possible() -> None:
    fields: dict[str, Any] = {"labels": {"app": "web"}, "spread": [spread_over(ZONE, "app=web")], "cpu": "1"}
    here = given(*zoned("a"), *zoned("b", cpu="1"), *(web(f"w{i}", "a", **fields) for i in range(5)))
    assert settle(here, policy_of("RepairViolations")) == [("w0", "a", "b")]


@pytest.mark.failure(76)
def test_duplicates_are_spread_once_and_then_stay() -> None:
    here = given(*zoned("a", "b", "c"), *(web(f"w{i}", "a", cpu="1") for i in range(6)))
    assert len(settle(here, policy_of("SpreadDuplicates"))) == 4
    assert nodes_of(here) == ["a", "a", "b", "b", "c", "c"]


def test_pods_that_do_not_tolerate_a_new_taint_leave_the_node() -> None:
    own = node("own", taints=["team=db:NoSchedule"])
    here = given(own, *zoned("a", "b"), *(web(f"w{i}", "own") for i in range(4)))
    assert {source for _, source, _ in settle(here, policy_of("RepairViolations"))} == {"own"}
    assert "own" not in nodes_of(here)


@pytest.mark.failure(79)
def test_a_big_pod_does_not_go_round_from_node_to_node() -> None:
    here = given(*zoned("a", "b", "c", cpu="10"), web("big", "a", cpu="8"), web("small", "a", cpu="1"))
    assert settle(here, policy_of("MoveToUnderusedNodes")) == []


@pytest.mark.failure(79)
def test_conflicting_policies_settle() -> None:
    likes = [(100, node_term("disk=ssd"))]
    ssd = node("fast", cpu="10", labels={"disk": "ssd", HOSTNAME: "fast", ZONE: "f"})
    crowd = [web(f"w{i}", "fast", cpu="1", likes_nodes=likes) for i in range(8)]
    here = given(ssd, *zoned("a", "b", cpu="10"), *crowd)
    settle(here, policy_of("MoveToUnderusedNodes"), policy_of("SatisfyPreferences"), policy_of("SpreadDuplicates"))
    both = [policy_of(name) for name in ("MoveToUnderusedNodes", "SatisfyPreferences", "SpreadDuplicates")]
    assert settle(here, *both) == []


def test_reasons_reach_the_plan() -> None:
    here = given(*zoned("a", "b"), *(web(f"w{i}", "a") for i in range(2)), pod("bare", on="a"))
    with planned(here, policy_of("SpreadDuplicates")) as (plan, _):
        (group,) = plan.planned
    assert group.reason == "default/w0 should leave a: 2 pods of ReplicaSet web are on it, and 2 nodes could have one"


def paired(*further: Any, priority: int = 1) -> Given:
    """Return a pod that would rather be where another is; both fill a node."""
    likes = [(100, node_term("disk=ssd"))]
    return given(
        node("fast", cpu="2", labels={"disk": "ssd"}),
        node("plain", cpu="2"),
        web("a", "plain", cpu="2", likes_nodes=likes, owner="ReplicaSet/a", priority=priority),
        web("b", "fast", cpu="2", owner="ReplicaSet/b", priority=0),
        *further,
    )


@pytest.mark.parametrize("priority", [1, 0], ids=["first in the queue", "kept apart by the avoid lists"])
def test_two_pods_change_places(priority: int) -> None:
    here = paired(priority=priority)
    assert settle(here, policy_of("SatisfyPreferences")) == [("a", "plain", "fast"), ("b", "fast", "plain")]


@pytest.mark.parametrize(
    ("guidance", "moves"),
    [(Guidance.EVICT, []), (Guidance.BIND, ["a", "b"])],
    ids=["evicted", "bound"],
)
def test_a_pod_that_would_go_elsewhere_while_the_room_is_made_is_only_moved_where_it_is_bound(
    guidance: Guidance, moves: list[str]
) -> None:
    here = paired(node("other", cpu="2"))
    with planned(here, policy_of("SatisfyPreferences"), settings=free_settings(guidance=guidance)) as (plan, _):
        assert [move.pod.name for group in plan.planned for move in group.moves] == moves
