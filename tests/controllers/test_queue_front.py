"""The front of the queue for replacements of evicted pods, and the node that is tried first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.avoid_list import Replacement
from podium.api.node import Node
from podium.api.pod import Pod
from podium.controllers.actions import Bind, DeleteObject, Nominate
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from tests.builders import left, node, pod
from tests.controllers.driving import REFUSED, Driver, all_of, nominated, on, the

WEB = "ReplicaSet/web"


def web(name: str, created: int = 0, priority: int = 0, cpu: int | None = None) -> Pod:
    return pod(name, created=created, priority=priority, cpu=cpu, owner=WEB)


def bound(driver: Driver, tries: int = 20) -> list[str]:
    """Let pods be attempted until none is; the pods that are bound, in that order, with their nodes."""
    found: list[str] = []
    for _ in range(tries):
        for bind in all_of(Bind, driver.tick()):
            found.append(f"{bind.pod.removeprefix('default/')} {bind.node_name}")
            driver.answer(bind)
    return found


def test_a_replacement_is_attempted_before_more_important_pods_of_which_it_is_none() -> None:
    driver = Driver(node("n1", leaves=[left("gone")]), pod("high", priority=100), web("new"), pod("low"))

    assert [found.split()[0] for found in bound(driver)] == ["new", "high", "low"]


def test_a_pod_that_is_in_the_queue_already_goes_to_the_front_when_the_list_is_seen() -> None:
    """Kinds overtake one another on their way."""
    driver = Driver(node("n1"), pod("high", priority=100), web("new"))

    driver.see(node("n1", leaves=[left("gone")]))

    assert [found.split()[0] for found in bound(driver)] == ["new", "high"]


def test_a_pod_goes_back_to_its_own_place_when_what_was_left_is_taken_off() -> None:
    driver = Driver(node("n1", leaves=[left("gone")]), pod("high", priority=100), web("new"))

    driver.see(node("n1"))

    assert [found.split()[0] for found in bound(driver)] == ["high", "new"]


def test_a_scale_up_moves_only_as_many_pods_to_the_front_as_were_evicted() -> None:
    lists = node("n1", leaves=[left("gone-1"), left("gone-2")])
    driver = Driver(lists, pod("high", priority=100), *(web(f"p{number}") for number in range(6)))

    order = [found.split()[0] for found in bound(driver)]

    assert order == ["p0", "p1", "high", "p2", "p3", "p4", "p5"]


def test_prioritized_replacements_keep_the_queue_sort_order() -> None:
    lists = node("n1", leaves=[left("gone-1"), left("gone-2")])
    driver = Driver(lists, web("a"), web("b", priority=5), pod("high", priority=100))

    assert [found.split()[0] for found in bound(driver)] == ["b", "a", "high"]


def test_a_restarted_scheduler_uses_the_observed_order() -> None:
    """Nodes are listed before pods, and the pods by their keys."""
    lists = node("n1", leaves=[left("gone-1", 5), left("gone-2", 6)])
    pods = [web("a-old", 2), web("b-used", 7), web("c-new", 8), pod("d-high", priority=100)]
    pods[1] = on(pods[1], "n1")

    driver = Driver(lists, *pods)

    assert [found.split()[0] for found in bound(driver)] == ["c-new", "d-high", "a-old"]


def test_the_front_is_a_place_and_no_priority() -> None:
    """A pod at the front preempts only pods that it could preempt anyway."""
    driver = Driver(node("n1", cpu=8, leaves=[left("gone")]), on(pod("runs", cpu=8), "n1"), web("new", cpu=8))

    actions = driver.tick()

    assert not all_of(DeleteObject, actions)
    assert not all_of(Nominate, actions)
    assert driver.where(web("new", cpu=8)) is QueuePlace.UNSCHEDULABLE


def test_a_replacement_without_room_backs_off_and_blocks_no_pod() -> None:
    new = web("new", cpu=8)
    driver = Driver(node("n1", cpu=8, leaves=[left("gone")]), on(pod("runs", cpu=4), "n1"), new, pod("other", cpu=1))

    assert bound(driver) == ["other n1"]

    driver.miss(on(pod("runs", cpu=4), "n1"))
    driver.see(pod("late", cpu=1))
    assert driver.where(new) is QueuePlace.BACKOFF
    assert bound(driver, 1) == ["late n1"]


def test_backoffs_that_end_together_keep_the_queue_order() -> None:
    driver = Driver(node("n1", cpu=8, leaves=[left("gone")]), on(pod("runs", cpu=8), "n1"))
    driver.see(pod("high", cpu=4, priority=-1), web("new", cpu=4, priority=-2))
    driver.tick()
    driver.tick()

    driver.miss(on(pod("runs", cpu=8), "n1"))
    driver.wait(5)

    assert [found.split()[0] for found in bound(driver)] == ["new", "high"]


def test_a_replacement_whose_binding_failed_is_first_again() -> None:
    driver = Driver(node("n1", leaves=[left("gone")]), web("new"))
    bind = the(Bind, driver.tick())
    driver.answer(bind, REFUSED)
    driver.see(pod("high", priority=100))
    driver.wait(5)

    assert [found.split()[0] for found in bound(driver)] == ["new", "high"]


# Where room is thought to be


def test_a_replacement_is_tried_first_where_room_is_thought_to_be() -> None:
    nodes = [node("n1", cpu=64, leaves=[left("gone", first=False, hint="n3")]), node("n2", cpu=64), node("n3", cpu=4)]
    driver = Driver(*nodes, on(pod("runs", cpu=2), "n3"), web("new", cpu=1), pod("other", cpu=1))

    found = bound(driver)

    assert "new n3" in found
    assert "other n3" not in found


@pytest.mark.parametrize("hint", ["n3", "nowhere", "n4"])
def test_all_nodes_are_examined_when_the_pod_does_not_fit_the_suggested_node(hint: str) -> None:
    """It is full, it is not there, or a taint keeps the pod off."""
    nodes = [node("n2"), node("n3", cpu=1), node("n4", taints=["gpu=yes:NoSchedule"])]
    driver = Driver(node("n1", leaves=[left("gone", hint=hint)], avoids=[WEB]), *nodes, web("new", cpu=2))

    assert bound(driver) == ["new n2"]


def test_the_node_that_it_is_nominated_to_is_tried_before() -> None:
    nodes = [node("n1", leaves=[left("gone", hint="n3")]), node("n2"), node("n3")]
    driver = Driver(*nodes, nominated(web("new"), "n2"))

    assert bound(driver) == ["new n2"]


def test_no_room_is_kept_where_it_is_thought_to_be() -> None:
    nodes = [node("n1", cpu=1, leaves=[left("gone", first=False, hint="n3")]), node("n2", cpu=4), node("n3", cpu=8)]
    driver = Driver(*nodes, pod("high", cpu=8, priority=5), web("new", cpu=2))

    assert bound(driver) == ["high n3", "new n2"]
    assert not driver.scheduler.cluster.nominations


def test_only_the_replacement_is_tried_there() -> None:
    nodes = [node("n1", cpu=64, leaves=[left("gone", first=False, hint="n3")]), node("n3", cpu=2)]
    driver = Driver(*nodes, on(pod("runs", cpu=1), "n3"), web("a", cpu=1), web("b", cpu=1))

    assert bound(driver) == ["a n3", "b n1"]


# Whatever the lists say

OWNERS = ("ReplicaSet/x", "ReplicaSet/y", "ReplicaSet/z")


@st.composite
def lists(draw: st.DrawFn) -> tuple[Replacement, ...]:
    found = {
        name: left(
            name,
            draw(st.integers(0, 3)),
            first=draw(st.booleans()),
            hint=draw(st.sampled_from(("", "n0", "n1", "none"))),
            owner=draw(st.sampled_from(OWNERS)),
        )
        for name in draw(st.lists(st.sampled_from([f"gone-{number}" for number in range(6)]), unique=True))
    }
    return tuple(found.values())


@st.composite
def fleets(draw: st.DrawFn) -> Mapping[str, Pod]:
    pods = {}
    for number in range(draw(st.integers(1, 10))):
        owner = draw(st.sampled_from(("", *OWNERS)))
        created, priority = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        found = pod(f"p{number}", created=created, priority=priority, owner=owner)
        pods[found.key] = found
    return pods


@given(lists(), lists(), fleets(), st.permutations(range(12)))
def test_prioritized_pods_are_popped_first_and_each_pod_once(
    some: tuple[Replacement, ...], others: tuple[Replacement, ...], pods: Mapping[str, Pod], order_seen: list[int]
) -> None:
    """This holds for any lists, and for any order of lists and pods."""
    objects = [node("n0", leaves=some), node("n1", leaves=others), *pods.values()]
    seen = [objects[index] for index in order_seen if index < len(objects)]
    with_lists, plain = (
        Driver(*seen),
        Driver(*(node(one.metadata.name) if isinstance(one, Node) else one for one in seen)),
    )
    first = {one.key for one in pods.values() if one.metadata.uid in with_lists.scheduler.cluster.replacements.first}

    order = [f"default/{found.split()[0]}" for found in bound(with_lists)]

    as_ever = [f"default/{found.split()[0]}" for found in bound(plain)]
    assert sorted(order) == sorted(pods)
    assert order == [key for key in as_ever if key in first] + [key for key in as_ever if key not in first]
    assert len(first) <= sum(one.first for one in (*some, *others))
