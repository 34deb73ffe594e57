"""Preemptors that budgets hold back are retried when a budget allows more, and name these budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import podium
from podium.sim.results.result import Result
from tests.sim.objects import TEMPLATE, budget, scenario, workload
from tests.sim.played import instantly
from tests.sim.test_victim_cost import preempting
from tests.store.objects import Raw, node, pod, running

WEB = {"app": "web"}
FULL = {**TEMPLATE, "spec": pod("", cpu=1)["spec"]}
ONE_NODE = [node("n1", cpu=1), running("low", node="n1")]
STRICT = budget("web", minAvailable="100%")


def times(result: Result, reason: str, name: str) -> list[float]:
    return [event.time for event in result.events if event.reason == reason and event.pod == f"default/{name}"]


def played(*objects: Raw, steps: Sequence[Raw] = (), until: str = "4m", **settings: Any) -> Result:
    """Return the run in which p, more important than all others, comes at 10 s."""
    arrival = {"at": "10s", "apply": [pod("p", cpu=1, priority=100)]}
    story = scenario(arrival, *steps, until=until)
    return instantly([*objects, story], configuration=preempting(**settings or {"budgets": "Require"}))


@pytest.mark.parametrize(
    "change",
    [
        {"delete": {"kind": "PodDisruptionBudget", "name": "web"}},
        {"apply": [budget("web", minAvailable=0)]},
        {"apply": [budget("web", minAvailable="100%", selector={"matchLabels": {"app": "other"}})]},
        {"patch": {"kind": "Pod", "name": "low", "patch": {"metadata": {"labels": {"app": "other"}}}}},
    ],
    ids=["deleted", "relaxed", "another-selector", "victim-relabelled"],
)
def test_a_preemptor_is_tried_again_when_its_budget_allows_it(change: Raw) -> None:
    result = played(*ONE_NODE, STRICT, steps=[{"at": "60s", **change}])

    assert times(result, "Killing", "low") == [60]
    assert times(result, "Started", "p") == [90]


def test_a_preemptor_is_tried_again_when_the_budget_s_other_pods_are_ready() -> None:
    """The budget wants one pod; the second one, on a node that only comes at 60 s, is ready then."""
    others = [
        pod("other", cpu="100m", labels=WEB, spec={"nodeSelector": {"disk": "ssd"}}),
        budget("web", minAvailable=1),
    ]
    joined = {"at": "60s", "apply": [node("n2", cpu="500m", disk="ssd")]}

    result = played(*ONE_NODE, *others, steps=[joined])

    assert times(result, "Killing", "low") == [60]


def test_a_preemptor_is_tried_again_when_a_rate_has_a_token() -> None:
    web = workload("ReplicaSet", "web", 3, template=FULL)
    nodes = [node(f"n{number}", cpu=1) for number in range(3)]
    arrivals = [pod(name, cpu=1, priority=100) for name in ("q", "r")]
    steps = [{"at": "10s", "apply": arrivals}]

    result = played(*nodes, web, budget("web", minAvailable=0, rate="1/60s"), steps=steps, until="10m")

    begun = sorted(event.time for event in result.events if event.reason == "Killing")
    assert begun == [10, 70, 130]


def test_equals_are_tried_again_when_a_rate_has_a_token() -> None:
    """Three pods of one owner fill three nodes; of an equal owner with none, one may be taken a minute."""
    web = workload("ReplicaSet", "web", 4, template=FULL)
    others = workload("ReplicaSet", "others", 4, template={**FULL, "metadata": {"labels": {"app": "others"}}})
    others["spec"]["selector"] = {"matchLabels": {"app": "others"}}
    nodes = [node(f"n{number}", cpu=1) for number in range(4)]
    story = scenario({"at": "10s", "apply": [others]}, until="10m")
    objects = [*nodes, web, budget("web", minAvailable=0, rate="1/60s"), story]

    result = instantly(objects, configuration=preempting(equalPriorityPreemption=True))

    assert sorted(event.time for event in result.events if event.reason == "Preempted") == [10, 70]


def test_a_tighter_budget_or_another_one_wakes_no_preemptor() -> None:
    """Attempts are made when p comes, and then by the flush of pods that wait for long: at 5 minutes and some."""
    changes = [
        {"at": "60s", "apply": [budget("web", minAvailable="100%", rate="1/1h")]},
        {"at": "70s", "apply": [budget("more", minAvailable=1)]},
    ]

    result = played(*ONE_NODE, STRICT, steps=changes, until="4m")

    assert result.summary["attempts"] == 1


def test_the_event_and_the_explanation_name_the_budget() -> None:
    objects = [*ONE_NODE, STRICT, pod("p", cpu=1, priority=100)]
    result = instantly(objects, configuration=preempting(budgets="Require"), until="1s")
    explanation = podium.explain(objects, "p", preempting(budgets="Require"))

    (message,) = [event.message for event in result.events if event.reason == "FailedScheduling"]
    assert message.endswith("; budget default/web allows too few disruptions")
    assert explanation.headline == "default/p is unschedulable: budget default/web allows too few disruptions"
    assert explanation.to_dict()["preemption"]["heldBack"] == {
        "budgets": ["default/web"],
        "node": "n1",
        "victims": ["default/low"],
    }
    text = str(explanation)
    assert "Preemption  no way: budget default/web allows too few disruptions" in text
    assert "if budget default/web allowed it, it would preempt default/low on n1" in text


def test_without_required_budgets_a_budget_is_no_reason() -> None:
    """The pod is as important as the one in its way, with the budget and without it."""
    explanation = podium.explain([*ONE_NODE, STRICT, pod("p", cpu=1, priority=0)], "p", preempting(budgets="Require"))

    assert "heldBack" not in str(explanation.to_dict())
    assert "budget" not in explanation.headline
