"""A rescheduler that a scenario requests, and its results."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.meta import Raw
from tests.controllers.rescheduling.policies import BAD, PLACE
from tests.sim.objects import budget, scenario, workload
from tests.sim.simulating import simulate
from tests.store.objects import disruption_policy, node, priority_class

EAGER: Raw = {
    "aggressiveness": "Bold",
    "policies": [{"name": PLACE}],
    "interval": "10s",
    "scope": {"minimumAge": "30s"},
}


def leaving(*others: Raw, replicas: int = 2, **settings: Any) -> list[Raw]:
    """Pods on the bad node, and another that comes later."""
    story = scenario({"at": "1s", "apply": [node("n2", cpu=20)]}, rescheduler={**EAGER, **settings})
    return [node(BAD), workload("ReplicaSet", "web", replicas), *others, story]


def test_the_result_counts_evictions_by_component() -> None:
    summary = simulate(leaving()).summary

    assert summary["evictedBy"] == {"rescheduler": 2}
    assert summary["disruptions"] == {"EvictionByEvictionAPI": 2}
    assert summary["preempted"] == 0


def test_each_eviction_is_reported_with_its_reason() -> None:
    report = [event for event in simulate(leaving()).events if event.reason == "Descheduled"]

    assert [(event.node, event.by, event.message) for event in report] == [
        (BAD, "rescheduler", "moved off bad by LeaveBad: bad is a bad node; there is room on n2")
    ] * 2


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"policies": [{"name": "NoSuch"}]}, ".spec.rescheduler.policies[0].name"),
        ({"policies": [{"name": "Consolidate", "args": {"no": 1}}]}, ".spec.rescheduler.policies[0].args"),
        ({"aggressiveness": "Wild"}, ".spec.rescheduler.aggressiveness"),
        ({"limits": {"hourly": {"total": "some"}}}, ".spec.rescheduler.limits.hourly.total"),
        ({"nothing": 1}, ".spec.rescheduler"),
    ],
)
def test_scenario_errors_name_their_place(settings: Raw, path: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(leaving(**settings))

    assert caught.value.path == path


def moved_at(objects: list[Raw]) -> list[float]:
    """Return when the pods were moved, in seconds."""
    return [event.time for event in simulate(objects).events if event.reason == "Descheduled"]


def test_limits_of_an_hour_are_waited_for() -> None:
    assert moved_at(leaving(replicas=3, limits={"hourly": {"total": 1}})) == [30, 3630, 7230]


def test_the_rate_of_a_budget_is_waited_for() -> None:
    times = moved_at(leaving(budget("web", rate="1/20m", maxUnavailable=2), replicas=3))

    assert len(times) == 3
    assert all(later - before >= 1200 for before, later in itertools.pairwise(times))


@pytest.mark.parametrize("scope", [{"component": "rescheduler"}, {"per": "Namespace"}])
def test_a_cap_on_the_component_or_the_namespace_is_kept_to(scope: Raw) -> None:
    policy = disruption_policy(caps=[{"max": "1/10m", **scope}])
    times = moved_at(leaving(policy, budget("web", maxUnavailable=2), replicas=3))

    assert len(times) == 3
    assert all(later - before >= 600 for before, later in itertools.pairwise(times))


def test_a_second_scheduler_s_pods_are_judged_by_its_own_profile() -> None:
    objects = leaving(priority_class("high", 10))
    objects[-1]["spec"]["schedulers"] = [{"name": "default-scheduler"}, {"name": "second"}]
    objects[1]["spec"]["template"]["spec"]["schedulerName"] = "second"

    assert simulate(objects).summary["evictedBy"] == {"rescheduler": 2}


def test_the_same_seed_gives_the_same_moves() -> None:
    first, second = (simulate(leaving(replicas=5), seed=3) for _ in range(2))

    assert [event.to_dict() for event in first.events] == [event.to_dict() for event in second.events]
