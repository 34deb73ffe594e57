"""Budgets that are stricter than the DisruptionPolicy allows."""

from __future__ import annotations

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.sim.objects import budget, workload
from tests.store.objects import Raw, disruption_policy, pod, priority_class, running
from tests.store.refusals import answer, refusal

BOUNDS: list[Raw] = [
    {"minPriority": 1000, "minRate": "1/24h"},
    {"minPriority": 100, "minRate": "1/1h"},
    {"minDisruptions": 1, "minRate": "1/10m"},
]


def store_with(*objects: Raw, bounds: list[Raw] = BOUNDS) -> Store:
    store = Store()
    for one in (disruption_policy(budgetBounds=bounds), *objects):
        store.create(one, now=0)
    return store


def of_web(priority: int) -> Raw:
    return running("web-0", labels={"app": "web"}, priority=priority)


@pytest.mark.parametrize(
    ("priority", "made", "problem"),
    [
        (0, budget("pdb", maxUnavailable=0), "maxUnavailable 0 of 1 pods is stricter than minDisruptions, 1"),
        (0, budget("pdb", minAvailable="100%"), "minAvailable 100% of 1 pods is stricter than minDisruptions, 1"),
        (0, budget("pdb", rate="1/1h", maxUnavailable=1), "its rate of 1/1h is stricter than minRate, 1/10m"),
        (100, budget("pdb", rate="1/2h", maxUnavailable=1), "its rate of 1/2h is stricter than minRate, 1/1h"),
    ],
)
def test_a_budget_that_is_stricter_than_its_pods_priority_allows_is_refused(
    priority: int, made: Raw, problem: str
) -> None:
    store = store_with(of_web(priority))

    error = refusal(store, lambda: store.create(made, now=0))

    assert answer(error) == (403, "Forbidden")
    expected = f"stricter than the DisruptionPolicy allows for pods of priority {priority}: {problem}"
    assert expected in error.message


@pytest.mark.parametrize(
    ("priority", "made"),
    [
        (0, budget("pdb", maxUnavailable=1)),
        (0, budget("pdb", rate="1/10m", maxUnavailable="50%")),
        (100, budget("pdb", maxUnavailable=0)),
        (100, budget("pdb", rate="1/1h", maxUnavailable=0)),
        (1000, budget("pdb", rate="1/24h", maxUnavailable=0)),
    ],
)
def test_more_important_pods_may_have_stricter_budgets(priority: int, made: Raw) -> None:
    assert store_with(of_web(priority)).create(made, now=0)


def test_the_least_important_of_the_pods_decides() -> None:
    other = running("web-1", labels={"app": "web"}, priority=0)

    with pytest.raises(StoreError, match="for pods of priority 0"):
        store_with(of_web(1000), other).create(budget("pdb", maxUnavailable=0), now=0)


def test_pods_that_a_workload_is_yet_to_make_count() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod("")["spec"], "priorityClassName": "high"}}
    deployment = workload("Deployment", "web", 3, template=template)
    store = store_with(priority_class("high", 1000), deployment)
    plain = store_with(workload("Deployment", "web", 3))

    assert store.create(budget("pdb", minAvailable=3), now=0)
    with pytest.raises(StoreError, match="minAvailable 3 of 3 pods is stricter than minDisruptions, 1"):
        plain.create(budget("pdb", minAvailable=3), now=0)
    assert plain.create(budget("pdb", minAvailable=2), now=0)


def test_while_there_are_no_pods_only_that_is_refused_which_is_too_strict_for_any() -> None:
    store = store_with()

    assert store.create(budget("mine", maxUnavailable=0), now=0)
    with pytest.raises(StoreError, match="for pods of any priority: its rate of 1/48h is stricter than minRate, 1/24h"):
        store.create(budget("pdb", rate="1/48h", maxUnavailable=1), now=0)


def test_an_update_is_held_to_the_bounds_where_it_asks_for_something_else() -> None:
    """A budget that was there before the policy may go on, and get labels."""
    store = Store()
    store.create(of_web(0), now=0)
    made = store.create(budget("pdb", maxUnavailable=0), now=0)
    store.create(disruption_policy(budgetBounds=BOUNDS), now=0)

    labelled = store.update({**made.raw, "metadata": {**made.raw["metadata"], "labels": {"team": "a"}}})
    with pytest.raises(StoreError, match="stricter than the DisruptionPolicy allows"):
        store.update({**labelled.raw, "spec": {**made.raw["spec"], "maxUnavailable": "0%"}})
    assert store.update({**labelled.raw, "spec": {**made.raw["spec"], "maxUnavailable": 1}})


def test_budgets_of_a_cluster_that_is_taken_over_are_let_in() -> None:
    strict = budget("pdb", maxUnavailable=0)
    store = store_with(of_web(0))

    assert store.create({**strict, "metadata": {**strict["metadata"], "uid": "from-a-dump"}}, now=0)


def test_without_bounds_everything_is_let_in() -> None:
    assert store_with(of_web(0), bounds=[]).create(budget("pdb", maxUnavailable=0), now=0)
