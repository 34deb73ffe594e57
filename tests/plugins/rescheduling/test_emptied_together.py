"""The nearly unused nodes that are emptied together, and the destinations of their pods."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest

from podium.api.pod import Pod
from podium.framework.rescheduling.policy import Picture
from podium.framework.rescheduling.settings import Guidance
from podium.plugins.rescheduling import freed_nodes
from podium.plugins.rescheduling.freed_nodes import NodePacking, by_size, emptied_together
from tests.builders import node, pod
from tests.decide.rescheduling.planning import free_settings, given, planned, web
from tests.plugins.rescheduling.pictures import leaving, picture_of, policy_of


def pods_on(name: str, number: int, cpu: str = "1", **fields: Any) -> list[Pod]:
    return [pod(f"{name}{index}", on=name, cpu=cpu, owner="ReplicaSet/web", **fields) for index in range(number)]


def chosen(picture: Picture, *candidates: str) -> tuple[set[str], dict[str, str]]:
    """Return the nodes to empty, and a home for each of their pods, by name."""
    cluster = picture.cluster
    named = [(cluster.nodes.row_of[name], cluster.pods_on(cluster.nodes.row_of[name])) for name in candidates]
    pods = by_size(picture, [pod for _, found in named for pod in found])
    homes = np.flatnonzero(picture.targets[: cluster.nodes.count]).astype(np.int64)
    found = emptied_together(NodePacking(picture, homes, pods), named, np.ones(picture.cluster.nodes.count))
    names = {uid: picture.node_name(row) for uid, row in found[1].items()}
    return {picture.node_name(row) for row in found[0]}, {cluster.placed[uid].name: name for uid, name in names.items()}


def test_as_many_nodes_as_can_be_are_emptied_with_the_fewest_pods() -> None:
    picture = picture_of(*(node(name) for name in "abc"), *pods_on("a", 2), *pods_on("b", 3), *pods_on("c", 4, "500m"))
    assert chosen(picture, "a", "b", "c") == ({"a", "b"}, dict.fromkeys(("a0", "a1", "b0", "b1", "b2"), "c"))


def test_the_first_of_equally_sized_node_sets_is_chosen() -> None:
    picture = picture_of(
        *(node(name, cpu="4") for name in "abc"), *(item for name in "abc" for item in pods_on(name, 2))
    )
    assert chosen(picture, "a", "b", "c")[0] == {"a"}
    assert chosen(picture, "c", "b", "a")[0] == {"c"}


def test_large_pods_find_their_places_before_small_ones_fill_them() -> None:
    picture = picture_of(
        node("a"), node("b", cpu="4"), node("c", cpu="3"), *pods_on("a", 2, "1"), pod("big", on="a", cpu="3"),
        *pods_on("b", 1), *pods_on("c", 1),
    )  # fmt: skip
    assert chosen(picture, "a") == ({"a"}, {"big": "b", "a0": "c", "a1": "c"})


def test_a_node_whose_pods_may_be_nowhere_else_is_not_among_them() -> None:
    picture = picture_of(
        node("a", labels={"disk": "ssd"}), node("b"), node("c"),
        *pods_on("a", 1, node_selector={"disk": "ssd"}), *pods_on("b", 2), *pods_on("c", 3),
    )  # fmt: skip
    assert chosen(picture, "a", "b", "c")[0] == {"b", "c"}


def test_the_number_of_pods_that_a_node_takes_counts_too() -> None:
    picture = picture_of(node("a", pods=3), node("b", pods=3), *pods_on("a", 2), *pods_on("b", 2))
    assert chosen(picture, "a", "b") == (set(), {})


def test_without_a_candidate_no_nodes_are_chosen() -> None:
    assert chosen(picture_of(node("a"), *pods_on("a", 1))) == (set(), {})


@pytest.mark.parametrize("seed", range(25))
def test_no_other_set_frees_more_nodes_or_as_many_with_fewer_pods(seed: int) -> None:
    chance = Random(seed)
    counts = {name: chance.randrange(1, 6) for name in "abcdef"}
    picture = picture_of(
        *(node(name, cpu="6") for name in counts), *(p for name in counts for p in pods_on(name, counts[name]))
    )
    in_order = sorted(counts, key=lambda name: counts[name])

    def is_possible(names: tuple[str, ...]) -> bool:
        return sum(counts[name] for name in names) <= sum(6 - counts[name] for name in counts if name not in names)

    sets = [names for size in range(7) for names in combinations(counts, size) if is_possible(names)]
    best = min(sets, key=lambda names: (-len(names), sum(counts[name] for name in names)))
    found, homes = chosen(picture, *in_order)
    assert (len(found), len(homes)) == (len(best), sum(counts[name] for name in best))
    assert not found & set(homes.values())


def test_steps_are_counted_and_some_are_left_for_fewer_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{index:02}" for index in range(40)]
    # Two of them fit on a node, though the room that three nodes leave would be enough for more.
    picture = picture_of(*(node(name) for name in names), *(item for name in names for item in pods_on(name, 1, "3")))
    placed: list[int] = []
    places = NodePacking.places

    def counted(packing: NodePacking, emptied: frozenset[int]) -> dict[str, int] | None:
        placed.append(len(emptied))
        return places(packing, emptied)

    monkeypatch.setattr(NodePacking, "places", counted)
    assert len(chosen(picture, *names)[0]) == 20
    assert sum(placed) <= freed_nodes._MOST_STEPS


# What is proposed, and comes of it


def test_nodes_that_are_emptied_together_come_before_others_that_have_fewer_pods() -> None:
    objects = [
        *(node(name) for name in "bcd"), node("a", labels={"disk": "ssd"}),
        *pods_on("a", 1, node_selector={"disk": "ssd"}), *pods_on("b", 2), *pods_on("c", 3), *pods_on("d", 7),
    ]  # fmt: skip
    picture = picture_of(*objects)
    policy = policy_of("Consolidate", forWaitingPods=False)
    assert leaving(policy.proposals(picture)) == [["b0", "b1"], ["c0", "c1", "c2"], ["a0"]]


def test_pods_do_not_go_to_the_node_that_is_emptied_next() -> None:
    here = given(
        *(node(name) for name in "abcd"),
        *(web(f"a{index}", "a", cpu="1") for index in range(2)),
        *(web(f"b{index}", "b", cpu="1") for index in range(3)),
        *(web(f"c{index}", "c", cpu="500m") for index in range(4)),
        *(web(f"d{index}", "d", cpu="1") for index in range(8)),
    )
    settings = free_settings(guidance=Guidance.BIND)
    with planned(here, policy_of("Consolidate", forWaitingPods=False), settings=settings) as (plan, _):
        moves = [(move.source, move.target) for group in plan.planned for move in group.moves]
    assert moves == [("a", "c")] * 2 + [("b", "c")] * 3
