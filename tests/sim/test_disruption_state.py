"""The state of budgets, caps, quotas and avoid lists in simulations and explanations."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

import podium
from podium.api.pod import PodCondition
from tests.builders import budget as typed_budget
from tests.builders import explain, scheduler_cap
from tests.builders import node as typed_node
from tests.builders import pod as typed_pod
from tests.sim.objects import budget, owned, scenario, template, workload
from tests.store.objects import Raw, disruption_policy, node, quota, running

HOUR = "2026-01-01T01:00:00Z"


def state(*objects: Raw) -> dict[str, Any]:
    """Return what a simulation tells in the end."""
    found: dict[str, Any] = podium.simulate(objects).to_dict().get("disruptions", {})
    return found


def web(replicas: int = 4, **annotations: str) -> Raw:
    return workload("ReplicaSet", "web", replicas, template=template(**annotations), uid="rs")


def test_without_limits_no_disruption_state_is_reported() -> None:
    assert state(node("n"), web()) == {}


def test_a_budget_reports_its_numbers_and_disruptions_by_cause() -> None:
    """Two evictions are voluntary; a stopped machine takes two more pods down."""
    nodes = [node("n1", cpu=2), node("n2", cpu=2), node("spare", cpu=1)]
    steps = [
        {"at": "10s", "drain": {"name": "n1"}},
        {"at": "2m", "nodeDown": {"name": "n2"}},
    ]

    (found,) = state(*nodes, web(), budget("pdb", rate="4/2h", maxUnavailable=4), scenario(*steps, until="5m"))[
        "budgets"
    ]

    assert (found["budget"], found["expected"], found["desired"]) == ("default/pdb", 4, 0)
    assert (found["healthy"], found["allowed"]) == (1, 1)
    assert found["down"] == {"voluntary": 0, "unplanned": 2, "starting": 1}
    assert found["rate"] == {"max": "4/2h", "used": 2, "left": 2}
    assert found["experienced"] == {
        "voluntary": 2,
        "unplanned": 2,
        "period": "2h",
        "voluntaryInPeriod": 2,
        "unplannedInPeriod": 2,
    }


def test_disruptions_of_the_last_period_are_counted_separately() -> None:
    pods = [running(f"web-{number}", node="n") for number in (0, 1)]
    evictions = [{"at": "1m", "evict": {"name": "web-0"}}, {"at": "30m", "evict": {"name": "web-1"}}]

    (found,) = state(node("n"), *pods, budget("pdb", rate="9/10m", minAvailable=0), scenario(*evictions, until="35m"))[
        "budgets"
    ]

    assert (found["experienced"]["voluntary"], found["experienced"]["voluntaryInPeriod"]) == (2, 1)


def test_a_pod_that_succeeds_is_not_disrupted_and_one_that_fails_is() -> None:
    ends = template(duration="10s")
    job: Raw = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"completions": 2, "template": {**ends, "spec": {**ends["spec"], "restartPolicy": "Never"}}},
    }

    (found,) = state(node("n"), job, budget("pdb", minAvailable=0), scenario(until="1m"))["budgets"]

    assert (found["experienced"]["voluntary"], found["experienced"]["unplanned"]) == (0, 0)


def test_caps_show_their_remaining_tokens() -> None:
    policy = disruption_policy(caps=[{"component": "drain", "max": "2/4h"}, {"component": "scheduler", "max": "1/1h"}])
    drain = scenario({"at": "10s", "drain": {"name": "n1"}})

    caps = state(node("n1", cpu=1), web(2), node("n2", cpu=1), budget("pdb", maxUnavailable=2), policy, drain)["caps"]

    assert caps == [
        {
            "component": "drain",
            "rate": {"max": "2/4h", "used": 1, "left": 1},
        },
        {"component": "scheduler", "rate": {"max": "1/1h", "used": 0, "left": 1}},
    ]


def test_namespace_caps_list_the_namespaces_with_usage() -> None:
    policy = disruption_policy(
        caps=[
            {"max": "2/4h", "per": "Namespace"},
            {"max": "9/1h"},
            {"component": "a", "max": "1/1h", "per": "Namespace"},
        ]
    )
    drain = scenario({"at": "10s", "drain": {"name": "n1"}})

    caps = state(node("n1", cpu=1), web(2), node("n2", cpu=1), budget("pdb", maxUnavailable=2), policy, drain)["caps"]

    assert [(cap.get("component"), cap.get("per"), cap.get("namespace"), cap["rate"]["left"]) for cap in caps] == [
        (None, "Namespace", "default", 1),
        (None, None, None, 8),
        ("a", "Namespace", None, 1),
    ]


def test_quotas_report_usage_and_their_priority_classes() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low", "high"]}]}
    found = state(node("n"), web(2), quota("all", {"pods": "9"}), quota("some", {"pods": "5"}, scopeSelector=selector))

    assert found["quotas"] == [
        {"quota": "default/all", "hard": {"pods": "9"}, "used": {"pods": "2"}},
        {"quota": "default/some", "priorityClasses": ["high", "low"], "hard": {"pods": "5"}, "used": {"pods": "0"}},
    ]


def test_avoid_lists_name_their_controllers_and_expiry() -> None:
    evict = {"at": "0s", "evict": {"name": "web-0", "avoidNode": True}}
    there = owned(running("web-0", node="n1"), web(1))

    assert state(node("n1"), web(1), there, scenario(evict, until="1m")) == {
        "avoidLists": [
            {
                "node": "n1",
                "entries": [
                    {
                        "controller": "ReplicaSet web",
                        "since": "2026-01-01T00:00:00Z",
                        "until": HOUR,
                        "reason": "scenario",
                    }
                ],
            }
        ],
    }


def test_replacement_hints_are_reported_until_the_pods_have_a_node() -> None:
    evict = {"at": "1s", "evict": {"name": "web-0", "replacement": {"first": True, "nodeName": "n2"}}}
    there = owned(running("web-0", node="n1"), web(1))
    cordon, later = {"at": "0s", "cordon": {"name": "n1"}}, {"at": "10s", "apply": [node("n2")]}

    found = state(node("n1"), web(1), there, scenario(cordon, evict, until="5s"))

    assert found["avoidLists"] == [
        {
            "node": "n1",
            "entries": [],
            "replacements": [
                {
                    "pod": "web-0",
                    "controller": "ReplicaSet web",
                    "first": True,
                    "nodeName": "n2",
                    "since": "2026-01-01T00:00:01Z",
                    "until": "2026-01-01T00:10:31Z",
                }
            ],
        }
    ]
    assert state(node("n1"), web(1), there, scenario(cordon, evict, later, until="20s")) == {}


def test_an_explanation_from_files_equals_that_from_typed_objects() -> None:
    crashed = typed_pod("t", on="n", labels={"app": "db"})
    there = [
        typed_node("n", cpu=1),
        typed_pod("q", on="n", cpu=1, labels={"app": "db"}, ready=True),
        typed_pod("r", labels={"app": "db"}),
        typed_pod("s", on="n", labels={"app": "db"}, terminating=True),
        replace(crashed, status=replace(crashed.status, conditions=(PodCondition(type="Ready", status="False"),))),
        typed_budget("b", "app=db", 2, rate="2/1h", used=1),
        scheduler_cap("1/1h", used=1),
    ]
    explanation = explain([*there, typed_pod("p", priority=5, cpu=1)])

    found, report = explanation.to_dict(), explanation.disruptions_found().to_dict()

    (one,) = report["budgets"]
    assert (one["allowed"], one["rate"]["left"], "experienced" in one) == (2, 1, False)
    assert one["down"] == {"voluntary": 1, "unplanned": 1, "starting": 1}
    assert [cap["rate"]["left"] for cap in report["caps"]] == [0]
    assert found["preemption"]["putOff"] == {
        "victims": 1,
        "cap": "1/1h",
        "left": 0,
        "next": "1970-01-01T01:00:00Z",
    }
