"""MoveToUnderusedNodes: pods leave overused nodes if others are nearly empty."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.cluster.arrays import Int64s
from podium.framework.rescheduling.policy import Picture, PodSignals, Signals
from podium.plugins.rescheduling.move_to_underused_nodes import NodeLoads
from tests.builders import node, pod
from tests.plugins.rescheduling.pictures import carry_out, first, move, names, picture_of, places, policy_of, reported


def underused(**args: Any) -> Any:
    return policy_of("MoveToUnderusedNodes", **args)


def web(number: int, on: str, *, cpu: str = "1", first: int = 0, owner: str = "ReplicaSet/web") -> list[Pod]:
    return [pod(f"{owner[11:]}-{i}", on=on, cpu=cpu, owner=owner) for i in range(first, first + number)]


def test_after_a_scale_up_pods_leave_the_full_nodes_for_the_empty_one() -> None:
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), *web(9, "full"))
    moved = carry_out(underused(), seen)
    assert [(source, target) for _, source, target in moved] == [("full", "empty")] * 4
    assert sorted(places(seen).values()) == ["empty"] * 4 + ["full"] * 5


def test_deviation_mode_moves_pods_until_all_nodes_are_near_the_cluster_share() -> None:
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), *web(9, "full"))
    marks = {"cpu": 5, "memory": 5}
    carry_out(underused(useDeviationThresholds=True, thresholds=marks, targetThresholds=marks), seen)
    assert sorted(places(seen).values()) == ["empty"] * 4 + ["full"] * 5


def test_a_node_that_pods_do_not_tolerate_any_more_is_no_target_of_the_next_plan() -> None:
    seen = picture_of(node("full", cpu="10"), node("b", cpu="10"), node("c", cpu="10"), *web(9, "full"))
    asked = underused()
    assert names(seen, first(asked, seen).relocations[0].targets) == {"b", "c"}

    seen.cluster.put(node("b", cpu="10", taints=["kept:NoSchedule"]))

    assert names(seen, first(asked, replace(seen)).relocations[0].targets) == {"c"}


def test_only_rows_that_changed_are_read_again_for_the_next_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), node("c", cpu="10"), *web(9, "full"))
    asked = underused()
    asked.objective(seen)
    read, measure = list[list[int]](), NodeLoads._read

    def measured(loads: NodeLoads, picture: Picture, rows: Int64s) -> None:
        read.append(rows.tolist())
        measure(loads, picture, rows)

    monkeypatch.setattr(NodeLoads, "_read", measured)

    move(seen, "default/web-0", "empty")
    asked.objective(replace(seen))

    assert read == [sorted(seen.cluster.nodes.row_of[name] for name in ("full", "empty"))]


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((node("a", cpu="10"), node("b", cpu="10"), *web(4, "a")), "nobody is over-used"),
        ((node("a", cpu="10"), node("b", cpu="10"), *web(9, "a"), *web(3, "b", first=9)), "nobody is under-used"),
        ((node("a", cpu="10"), *web(9, "a")), "there is no other node"),
    ],
)
def test_nothing_is_proposed_unless_there_are_over_used_and_under_used_nodes(
    objects: tuple[Any, ...], why: str
) -> None:
    assert reported(underused().proposals(picture_of(*objects))) == [], why


def test_the_objective_is_the_number_of_pods_above_the_high_mark() -> None:
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), *web(9, "full"))
    asked = underused()
    found = [asked.objective(seen)]
    for number in range(5):
        move(seen, f"default/web-{number}", "empty")
        found.append(asked.objective(seen))
    assert found == pytest.approx([4, 3, 2, 1, 0, 0], abs=1e-5)


def test_small_pods_beside_large_ones_count_little() -> None:
    large, small = web(2, "full", cpu="4.7"), web(50, "full", cpu="1m", owner="ReplicaSet/tiny")
    nodes = node("full", cpu="10"), node("empty", cpu="10")
    alone, together = picture_of(*nodes, *large), picture_of(*nodes, *large, *small)
    assert underused().objective(together) < 2 * underused().objective(alone)
    assert {name for name, *_ in carry_out(underused(), together)} == {"web-0"}


def test_pods_without_requests_relieve_no_node() -> None:
    idle = [pod(f"idle-{i}", on="full", owner="ReplicaSet/idle") for i in range(20)]
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), pod("alone", on="full", cpu="9"), *idle)
    assert reported(underused().proposals(seen)) == []


@pytest.mark.failure(79)
def test_a_big_pod_that_would_only_take_its_load_elsewhere_stays() -> None:
    seen = picture_of(
        node("a", cpu="10"), node("b", cpu="10"), *web(1, "a", cpu="9"), *web(1, "a", cpu="500m", first=1)
    )
    assert carry_out(underused(), seen) == []


@pytest.mark.failure(79)
def test_a_load_is_not_passed_on_from_node_to_node() -> None:
    nodes = [node(name, cpu="10") for name in "abcd"]
    seen = picture_of(*nodes, *web(3, "a", cpu="3"))
    first = carry_out(underused(), seen)
    assert first
    assert not carry_out(underused(), seen)


def test_closed_nodes_are_neither_underused_nor_overused() -> None:
    objects = node("full", cpu="10"), node("empty", cpu="10"), *web(9, "full")
    assert reported(underused().proposals(picture_of(*objects, closed=("empty",)))) == []
    drained = picture_of(*objects, closed=("full",))
    assert underused().objective(drained) == 0
    assert reported(underused().proposals(drained)) == []


def test_the_most_over_used_node_comes_first_and_each_has_a_turn() -> None:
    seen = picture_of(
        node("a", cpu="10"),
        node("b", cpu="10"),
        *(node(f"empty-{i}", cpu="10") for i in range(4)),
        *web(7, "a"),
        *web(9, "b", owner="ReplicaSet/api"),
    )
    left = [source for _, source, _ in carry_out(underused(), seen)]
    assert left[:4] == ["b", "a", "b", "a"]
    assert left.count("b") == 4


def test_the_largest_gain_of_all_nodes_comes_first() -> None:
    seen = picture_of(
        node("many", cpu="10"),
        node("few", cpu="10"),
        *(node(f"empty-{i}", cpu="20") for i in range(2)),
        *web(9, "many"),
        *web(1, "few", cpu="6", owner="ReplicaSet/api"),
        *web(3, "few", owner="ReplicaSet/log"),
    )
    left = [source for _, source, _ in carry_out(underused(), seen)]
    assert left == ["few", "many", "many", "many", "many"]


@pytest.mark.parametrize(("there", "moved"), [("3", [("web-0", "full", "target")]), ("4", [])])
def test_a_node_becomes_over_used_only_if_that_costs_less_than_half_of_the_relief(
    there: str, moved: list[tuple[str, str, str]]
) -> None:
    ssd: dict[str, Any] = {"node_selector": {"disk": "ssd"}}
    seen = picture_of(
        *(node(name, cpu="10", labels={"disk": "ssd"}) for name in ("full", "target")),
        node("empty", cpu="10"),
        *(pod(f"web-{i}", on="full", cpu="3", owner="ReplicaSet/web", **ssd) for i in range(3)),
        pod("other", on="target", cpu=there),
    )
    assert carry_out(underused(), seen) == moved


def test_pods_that_relieve_a_node_most_leave_first_then_less_important_ones() -> None:
    seen = picture_of(
        node("full", cpu="10"),
        node("empty", cpu="10"),
        pod("small", on="full", cpu="1", owner="ReplicaSet/s"),
        pod("important", on="full", cpu="3", owner="ReplicaSet/i", priority=10),
        pod("lesser", on="full", cpu="3", owner="ReplicaSet/l"),
        pod("rest", on="full", cpu="2"),
    )
    assert reported(underused().proposals(seen)) == ["lesser", "important", "small"]


def test_only_pods_that_may_be_moved_are_proposed() -> None:
    seen = picture_of(node("full", cpu="10"), node("empty", cpu="10"), *web(9, "full"), is_movable=lambda pod: False)
    assert reported(underused().proposals(seen)) == []


def test_pods_go_where_they_are_let_in() -> None:
    picky = [
        pod(f"picky-{i}", on="full", cpu="1", owner="ReplicaSet/p", node_selector={"disk": "ssd"}) for i in range(9)
    ]
    seen = picture_of(node("full", cpu="10", labels={"disk": "ssd"}), node("empty", cpu="10"), *picky)
    assert reported(underused().proposals(seen)) == []


def test_the_reason_says_how_full_the_node_is_and_how_many_are_nearly_empty() -> None:
    empty = [node(f"empty-{i}", cpu="10") for i in range(2)]
    seen = picture_of(node("node-3", cpu="10"), *empty, *web(9, "node-3"))
    (first, *_) = underused().proposals(seen)
    assert first.reason == "cpu requested: 90 % on node-3, at most 20 % on 2 nodes"
    marks = {"thresholds": {"cpu": 10, "memory": 30}, "targetThresholds": {"cpu": 50, "memory": 50}}
    (first, *_) = underused(**marks).proposals(picture_of(node("node-3", cpu="10"), empty[0], *web(9, "node-3")))
    assert first.reason == "cpu requested: 90 % on node-3, at most 10 % of cpu and 30 % of memory on 1 node"


def test_extended_resources_and_numbers_of_pods_count_where_they_are_named() -> None:
    gpus = [pod(f"train-{i}", on="a", example_com__gpu="1", owner="ReplicaSet/train") for i in range(8)]
    nodes = node("a", cpu="64", example_com__gpu="8"), node("b", cpu="64", example_com__gpu="8"), node("plain", pods=4)
    marks = {"thresholds": {"example.com/gpu": 20}, "targetThresholds": {"example.com/gpu": 50}}
    assert underused().objective(picture_of(*nodes, *gpus)) == 0
    seen = picture_of(*nodes, *gpus)
    assert {target for _, _, target in carry_out(underused(**marks), seen)} == {"b"}
    assert list(places(seen).values()).count("b") == 4
    many = {"thresholds": {"pods": 20}, "targetThresholds": {"pods": 50}}
    idle = [pod(f"idle-{i}", on="plain", owner="ReplicaSet/idle") for i in range(4)]
    assert underused(**many).objective(picture_of(*nodes, *idle)) == pytest.approx(2, abs=1e-5)


def test_by_use_a_node_is_as_full_as_its_pods_are_busy() -> None:
    objects = node("a", cpu="10"), node("b", cpu="10"), *web(9, "a", cpu="100m")
    busy = Signals(pods={f"default/web-{i}": PodSignals(cpu_used_milli=1000) for i in range(8)})
    assert underused().objective(picture_of(*objects, signals=busy)) == 0
    seen = picture_of(*objects, signals=busy)
    asked = underused(useMetrics=True)
    assert next(iter(asked.proposals(seen))).reason == "cpu used: 81 % on a, at most 20 % on 1 node"
    assert [target for _, _, target in carry_out(asked, seen)] == ["b"] * 3


def test_few_under_used_nodes_may_be_left_as_they_are() -> None:
    objects = node("full", cpu="10"), node("e1"), node("e2"), *web(9, "full")
    assert reported(underused(numberOfNodes=2).proposals(picture_of(*objects))) == []
    assert reported(underused(numberOfNodes=1).proposals(picture_of(*objects))) != []


def test_without_pods_or_nodes_nothing_is_wrong() -> None:
    for seen in (picture_of(), picture_of(node("a", cpu="0", memory="0", pods=0))):
        assert underused().objective(seen) == 0
        assert reported(underused().proposals(seen)) == []


@pytest.mark.parametrize(
    ("args", "refusal"),
    [
        ({"thresholds": {}}, "thresholds must name a resource at least"),
        ({"thresholds": {"cpu": 20}}, "must name the same resources, not cpu and cpu, memory"),
        ({"thresholds": {"cpu": 60, "memory": 20}}, "must not be above its targetThresholds, 50"),
        ({"thresholds": {"cpu": -1, "memory": 20}}, "from 0 to 100 per cent"),
        ({"targetThresholds": {"cpu": float("nan"), "memory": 20}}, "from 0 to 100 per cent"),
        ({"numberOfNodes": -1}, "numberOfNodes must not be below 0"),
        ({"numberOfNodes": "many"}, "numberOfNodes"),
        ({"thresholds": {"cpu": "much", "memory": 1}}, "thresholds"),
        ({"treshold": {}}, "treshold"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(args: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InputError, match=re.escape(refusal)):
        underused(**args)
