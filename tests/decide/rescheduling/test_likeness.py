"""Nodes that are equal for placement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.trial import MOST_KINDS, NodeEquivalence
from podium.framework.rescheduling.policy import NodeSignals, Picture, Signals
from tests.builders import node
from tests.decide.rescheduling.planning import NOW, free_settings, given, scratch_on, web


def picture_of(*objects: Kubernetes, signals: Signals | None = None) -> Picture:
    here = given(*objects)
    planner = Planner([], free_settings())
    return planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=here.inputs(), signals=signals)


def kinds(picture: Picture) -> int:
    """Return how many kinds of nodes there are."""
    return len(NodeEquivalence(picture).unlike(picture.cluster.nodes.all_rows())[0])


def test_nodes_that_differ_in_their_names_alone_are_alike() -> None:
    assert kinds(picture_of(node("a", zone="z"), node("b", zone="z"))) == 1


@pytest.mark.parametrize(
    "other",
    [
        node("b", zone="y"),
        node("b", zone="z", cpu=4),
        node("b", zone="z", pods=9),
        node("b", zone="z", labels={"disk": "ssd"}),
        node("b", zone="z", taints=["old:PreferNoSchedule"]),
        node("b", zone="z", example_com__gpu=1),
    ],
)
def test_nodes_that_say_different_things_are_unlike(other: Node) -> None:
    assert kinds(picture_of(node("a", zone="z"), other)) == 2


@pytest.mark.parametrize(
    ("of_a", "of_b", "number"),
    [
        ({"cpu": 1}, {"cpu": 1}, 1),
        ({"cpu": 1}, {"cpu": 2}, 2),
        ({"cpu": 1}, {"cpu": 1, "owner": "Job/j"}, 2),
        ({"labels": {"app": "a"}}, {"labels": {"app": "b"}}, 2),
    ],
)
def test_nodes_are_as_unlike_as_their_pods(of_a: dict[str, Any], of_b: dict[str, Any], number: int) -> None:
    assert kinds(picture_of(node("a"), node("b"), web("x", "a", **of_a), web("y", "b", **of_b))) == number


def test_nodes_of_which_different_things_are_known_are_unlike() -> None:
    signals = Signals(nodes={"a": NodeSignals(cpu_used_milli=5)})

    assert kinds(picture_of(node("a"), node("b"), signals=signals)) == 2


def test_likeness_follows_pods_and_nodes() -> None:
    here = given(node("a"), node("b"), web("x", "a", cpu=1), web("y", "b", cpu=1))
    planner = Planner([], free_settings())
    picture = planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=here.inputs())
    likeness, rows = NodeEquivalence(picture), np.array([0, 1])

    def number() -> int:
        return len(likeness.unlike(rows)[0])

    assert number() == 1
    with scratch_on(here) as transaction:
        transaction.take_off("default/x")
        assert number() == 2
        transaction.take_off("default/y")
        assert number() == 1
    assert number() == 1
    here.cluster.put_node(node("a", labels={"disk": "ssd"}))
    assert number() == 2


def test_likeness_is_limited_to_a_maximum_number_of_kinds() -> None:
    picture = picture_of(*(node(f"n{number}", labels={"rack": str(number)}) for number in range(MOST_KINDS + 1)))
    likeness, rows = NodeEquivalence(picture), picture.cluster.nodes.all_rows()

    found, is_all = likeness.unlike(rows)
    fewer, are_all = likeness.unlike(rows[1:])

    assert (len(found), is_all) == (MOST_KINDS, False)
    assert (len(fewer), are_all) == (MOST_KINDS, True)
    assert found[0] == likeness.first(rows)
