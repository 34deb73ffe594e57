"""The evictions that disruption budgets allow a rescheduler."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.policy import PodDisruptionBudget
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.guards import BudgetRoom, PlanInputs
from tests.builders import budget, pod
from tests.decide.rescheduling.planning import NOW, free_settings

CLUSTER = Cluster()


def pods(number: int, **fields: Any) -> list[PodRecord]:
    """Ready pods of app web."""
    fields = {"labels": {"app": "web"}, "ready": True, **fields}
    return [CLUSTER.read(pod(f"web-{index}", **fields)) for index in range(number)]


def budget_of(expected: int, desired: int, healthy: int | None = None, **spec: Any) -> PodDisruptionBudget:
    """Return a budget whose controller has counted so many pods, of which so many must stay."""
    healthy = expected if healthy is None else healthy
    made = budget("b", "app=web", max(healthy - desired, 0))
    status = replace(made.status, expected_pods=expected, desired_healthy=desired, current_healthy=healthy)
    return replace(made, status=status, spec=replace(made.spec, **spec))


def room(
    *budgets: PodDisruptionBudget, cap: int | None = None, requires_all: bool = False, **settings: Any
) -> BudgetRoom:
    known = Budgets()
    known.requires_all = requires_all
    for each in budgets:
        known.put(each)
    return BudgetRoom(PlanInputs((), known, component_may_evict=cap), free_settings(**settings), NOW)


def most(of: BudgetRoom, **fields: Any) -> int:
    """Return how many of ten pods may go together."""
    return next(number for number in range(10, -1, -1) if not of.why(pods(number, **fields)))


def test_without_a_reserve_as_many_go_as_the_budget_allows() -> None:
    assert most(room(budget_of(8, 4))) == 4
    assert most(room(budget_of(8, 4, healthy=5))) == 1
    assert most(room(budget_of(8, 4, healthy=3))) == 0


def test_a_number_of_disruptions_is_left_to_others() -> None:
    one = room(budget_of(8, 4), budget_reserve=3)

    assert most(one) == 1
    words = "default/web-1 may not be evicted: the disruption budget default/b allows 4, of which 3 are left to others"
    assert one.why(pods(2)) == words


@pytest.mark.parametrize(("share", "left"), [(0.0, 4), (0.25, 3), (0.3, 2), (0.5, 2), (1.0, 0)])
def test_a_share_of_what_it_allows_with_all_pods_up_is_left_to_others(share: float, left: int) -> None:
    assert most(room(budget_of(8, 4), budget_reserve_share=share)) == left


def test_the_share_does_not_shrink_as_pods_fail() -> None:
    assert most(room(budget_of(8, 4, healthy=6), budget_reserve_share=0.5)) == 0


def test_a_budget_reserve_is_the_larger_of_number_and_share() -> None:
    assert most(room(budget_of(8, 4), budget_reserve=1, budget_reserve_share=0.5)) == 2
    assert most(room(budget_of(8, 4), budget_reserve=3, budget_reserve_share=0.5)) == 1


def test_planned_moves_count_against_the_budget() -> None:
    one = room(budget_of(8, 4))
    one.take(pods(3))

    assert most(one) == 1


def test_a_rate_leaves_the_tokens_that_it_has_now() -> None:
    tokens = budget("b", "app=web", 9, rate="3/1h")

    assert most(room(tokens)) == 3
    one = room(tokens)
    one.take(pods(2))
    assert most(one) == 1
    assert "has a rate of 3/1h, which leaves 3" in one.why(pods(2))


def test_pods_with_several_budgets_go_where_all_of_them_allow_it_or_never() -> None:
    several = [budget("b", "app=web", 5), budget("c", "app", 1)]

    assert room(*several).why(pods(1)) == "default/web-0 has several disruption budgets: default/b, default/c"
    assert most(room(*several, requires_all=True)) == 1


def test_the_cap_of_the_component_counts_pods_that_have_a_budget() -> None:
    one = room(budget_of(8, 4), cap=1)

    assert most(one) == 1
    assert most(one, namespace="shop") == 10
    one.take(pods(1))
    words = "the rescheduler's cap on disruptions of pods with a budget leaves 1"
    assert one.why(pods(1)) == words


def test_a_budget_not_yet_seen_by_its_controller_allows_no_disruption() -> None:
    changed = budget_of(8, 4)
    changed = replace(changed, metadata=replace(changed.metadata, generation=2))

    assert "default/b is still being processed" in room(changed).why(pods(1))


@pytest.mark.parametrize(
    ("healthy", "policy", "may_go"),
    [(4, None, True), (3, None, False), (4, "IfHealthyBudget", True), (3, "AlwaysAllow", True)],
)
def test_pods_that_are_not_ready_go_without_being_counted_where_the_eviction_api_lets_them(
    healthy: int, policy: str | None, may_go: bool
) -> None:
    one = room(budget_of(8, 4, healthy=healthy, unhealthy_pod_eviction_policy=policy))

    assert most(one, ready=False) == (10 if may_go else 0)


def test_pods_without_a_budget_go() -> None:
    one = room(budget_of(8, 8))

    assert most(one, namespace="shop") == 10
    assert [one.is_protected(each) for each in (*pods(1), *pods(1, namespace="shop"))] == [True, False]
