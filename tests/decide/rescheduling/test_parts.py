"""Proposals carried out in parts, if limits or budgets do not allow them at once."""

from __future__ import annotations

from typing import Any

from podium.api.policy import PodDisruptionBudget
from podium.decide.rescheduling.round_robin import PartOf, ReschedulingPlan
from podium.framework.rescheduling.settings import MoveLimitSettings
from tests.builders import node
from tests.decide.rescheduling.planning import Given, KeepOff, Proposes, free_settings, given, moves, plan, web, why
from tests.decide.rescheduling.test_budget_room import budget_of

ONE_OF_NODE = MoveLimitSettings(None, 1, None, None)
PODS = ("p1", "p2", "p3")


def here(*others: Any) -> Given:
    """Three pods on a, room for them on b and c."""
    nodes = (node("a", cpu=4), node("b", cpu=8), node("c", cpu=8))
    return given(*nodes, *(web(name, "a", cpu=1, labels={"app": "web"}) for name in PODS), *others)


def freed(picture: Any) -> float:
    """Node a counts two while anybody is on it."""
    return 2.0 * any(pod.node_name == "a" for pod in picture.cluster.placed.values())


def emptying(
    of: Given, *groups: tuple[str, ...], judge: Any = freed, in_parts: bool = True, **report: Any
) -> ReschedulingPlan:
    names = {name: ("b", "c") for group in groups or (PODS,) for name in group}
    policy = Proposes(groups or (PODS,), judge, targets=names, in_parts=in_parts)
    settings = {"in_flight": ONE_OF_NODE, "threshold": 0.5, **report.pop("settings", {})}
    hinted = {"guidance": report.pop("guidance")} if "guidance" in report else {}
    return plan(of, policy, settings=free_settings(**settings, **hinted), **report)


def test_the_whole_group_is_tried_and_as_many_pods_move_as_may() -> None:
    made = emptying(here())

    (group,) = made.planned
    assert [move.pod.name for move in group.moves] == ["p3"]
    assert (group.part_of, group.gain) == (PartOf(3, 2.0), 0.0)
    assert made.before == made.after == {"Proposes": 2.0}


def test_an_indivisible_proposal_is_made_at_once_or_not_at_all() -> None:
    made = emptying(here(), in_parts=False)

    assert moves(made) == {}
    assert why(made) == {"p1": "0 moves of node a are under way, 3 more are needed, and the limit is 1"}


def test_pods_that_may_leave_at_once_are_not_split_into_parts() -> None:
    made = emptying(here(), settings={"in_flight": MoveLimitSettings(None, 3, None, None)})

    assert [(group.part_of, group.gain) for group in made.planned] == [(None, 2.0)]


def test_a_started_emptying_continues_before_another_node_is_started() -> None:
    other = [web(name, "c", cpu=1) for name in ("q1", "q2")]

    begun = emptying(here(*other), ("q1", "q2"), PODS, emptying="a", judge=lambda picture: 2 * freed(picture))

    assert list(moves(begun)) == ["p3"]
    assert why(begun)["q1"].endswith("the limit is 1; and a is already being emptied pod by pod")


def test_an_abandoned_emptying_is_not_restarted_before_its_cool_down() -> None:
    made = emptying(here(), given_up={"a"})

    assert moves(made) == {}
    assert why(made)["p1"].endswith("and emptying a pod by pod was given up recently, and has to cool down")


def test_a_whole_that_gains_too_little_is_not_begun() -> None:
    made = emptying(here(), settings={"threshold": 0.7})

    assert moves(made) == {}
    assert "would make it better by 2, and the threshold is 0.7 for each of them" in why(made)["p1"]


def test_a_part_that_makes_it_worse_by_itself_is_not_begun() -> None:
    def crowded(picture: Any) -> float:
        on_a = [pod for pod in picture.cluster.placed.values() if pod.node_name == "a"]
        return 4 * freed(picture) + (len(on_a) < 3)

    made = emptying(here(), judge=crowded)

    assert moves(made) == {}
    assert why(made) == {"p1": "a part of its moves alone would make it worse by 1"}


def test_emptying_does_not_start_if_a_budget_would_block_the_rest() -> None:
    strict: PodDisruptionBudget = budget_of(3, 3)

    made = emptying(here(strict), settings={"in_flight": MoveLimitSettings(None, 3, None, None)})

    assert moves(made) == {}
    assert "can never move" in why(made)["p1"]


def test_pods_are_not_moved_to_a_node_that_is_being_emptied() -> None:
    stray = web("s1", "b", cpu=1)
    nodes = (node("a", cpu=4), node("b", cpu=8))
    of = given(*nodes, stray, web("p1", "a", cpu=1))
    policy = KeepOff(("b",))

    assert moves(plan(of, policy)) == {"s1": "a"}
    assert moves(plan(of, policy, emptying="a")) == {}
