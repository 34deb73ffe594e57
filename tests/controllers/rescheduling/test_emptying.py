"""When the rescheduler continues to empty a node pod by pod, and when it gives up."""

from __future__ import annotations

from typing import Any

from podium.controllers.rescheduling.rescheduler import Emptying
from podium.decide.rescheduling.round_robin import PartOf, PlannedMove, PlannedMoves, ReschedulingPlan
from tests.builders import cluster_of, node, pod

HOUR = 3_600 * 10**9


def planned(*groups: tuple[str, PartOf | None]) -> ReschedulingPlan:
    """Plans to move a pod of each node."""
    found = []
    for name, part_of in groups:
        record = cluster_of(node(name)).read(pod("p", on=name))
        found.append(PlannedMoves("Consolidate", "so", (PlannedMove(record, name, "z"),), 0.0, None, part_of))
    empty: dict[str, Any] = {"left_alone": (), "before": {}, "after": {}, "trials": 0, "is_cut": False}
    return ReschedulingPlan(tuple(found), **empty)


PART = PartOf(3, 2.0)


def test_a_started_emptying_continues_until_the_rest_can_leave_at_once() -> None:
    emptying = Emptying()

    emptying.on_plan(planned(("a", PART)), 0)
    assert emptying.node == "a"
    emptying.on_plan(planned(("b", None)), 1)
    assert emptying.node == "a"
    emptying.on_plan(planned(("a", None)), 2)
    assert emptying.node == ""


def test_emptying_is_given_up_after_an_idle_hour_and_retried_with_growing_waits() -> None:
    emptying, begun = Emptying(), 0
    for cool_down in (HOUR, 2 * HOUR, 4 * HOUR):
        emptying.on_plan(planned(("a", PART)), begun)
        emptying.update(begun + HOUR - 1, HOUR)
        assert (emptying.node, emptying.given_up(begun + HOUR - 1)) == ("a", frozenset())

        emptying.update(begun + HOUR, HOUR)
        assert emptying.node == ""
        assert emptying.given_up(begun + HOUR + cool_down - 1) == {"a"}
        assert emptying.given_up(begun + HOUR + cool_down) == frozenset()
        begun += HOUR + cool_down


def test_each_evicted_part_extends_the_emptying_by_an_hour() -> None:
    emptying = Emptying()

    for hour in range(3):
        emptying.on_plan(planned(("a", PART)), hour * HOUR - hour)
        emptying.update((hour + 1) * HOUR - hour - 1, HOUR)

    assert emptying.node == "a"


def test_nothing_is_remembered_of_nodes_that_are_gone_or_of_what_is_long_ago() -> None:
    emptying = Emptying()
    emptying.on_plan(planned(("a", PART)), 0)
    emptying.update(HOUR, HOUR)
    emptying.on_plan(planned(("b", PART)), HOUR)

    emptying.forget("b")
    emptying.update(5 * HOUR, HOUR)

    assert (emptying.node, emptying._cooling) == ("", {})
