"""Preemption with configured costs over time: charged budgets, and protected pods."""

from __future__ import annotations

from typing import Any

from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import TEMPLATE, budget, scenario, workload
from tests.sim.played import instantly
from tests.store.objects import Raw, node, pod


def preempting(**arguments: Any) -> Configuration:
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def reported(result: Result, *reasons: str) -> list[tuple[float, str, str | None]]:
    return [(event.time, event.reason, event.pod) for event in result.events if event.reason in reasons]


def high(name: str, **fields: Any) -> Raw:
    return pod(name, cpu=1, priority=100, **fields)


def test_a_pod_is_preempted_as_soon_as_it_has_run_for_long_enough() -> None:
    steps = [{"at": "10s", "apply": [high("p")]}]
    story = scenario(*steps, until="2m")

    result = instantly(
        [node("n1", cpu=1), pod("low", cpu=1), story], configuration=preempting(minimumRunningTime="60s")
    )

    assert reported(result, "Preempted", "Started") == [
        (0, "Started", "default/low"),
        (60, "Preempted", "default/low"),
        (90, "Started", "default/p"),
    ]


def test_victims_that_are_evicted_charge_their_budgets_and_no_more_go_than_these_allow() -> None:
    """Two preemptors want a node each, and the budget lets one pod go until its replacement is ready again."""
    web = workload("ReplicaSet", "web", 2, template=TEMPLATE)
    objects = [node("n1", cpu=1), node("n2", cpu=1), web, budget("web", minAvailable=1)]
    story = scenario({"at": "10s", "apply": [high("p"), high("q")]}, until="5m")

    counted = instantly([*objects, story], configuration=preempting())
    required = instantly([*objects, story], configuration=preempting(budgets="Require"))

    assert counted.summary["preempted"] == 2
    assert (required.summary["preempted"], required.summary["evictedBy"]) == (0, {"scheduler": 1})
    assert [name for _, _, name in reported(required, "Started") if name in ("default/p", "default/q")] == ["default/p"]


def test_the_preemptor_of_evicted_pods_waits_and_takes_no_other_victims() -> None:
    pods = [pod(name, cpu=1) for name in ("a", "b")]
    story = scenario({"at": "10s", "apply": [high("p")]}, {"at": "20s", "apply": [pod("small", cpu=0)]}, until="2m")

    result = instantly([node("n1", cpu=2), *pods, story], configuration=preempting(budgets="Require"))

    assert sum(reason == "Preempted" for _, reason, _ in reported(result, "Preempted")) == 1
    assert (40, "Started", "default/p") in reported(result, "Started")
