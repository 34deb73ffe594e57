"""Steps that patch any object, use selectors, and repeat."""

from __future__ import annotations

import re
from typing import Any

import pytest

import podium
from podium.api.errors import InputError
from podium.sim.results.result import Result
from podium.sim.scenario.scenario import read_scenario
from tests.sim.objects import documents, scenario
from tests.store.objects import SECOND, replicated

NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"zone": zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}},
    }
    for number, zone in enumerate("aab")
]


def pod(name: str, **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}], **more}
    meta = {"name": name, "namespace": "default", "labels": {"app": name[0]}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def played(*steps: dict[str, Any], until: str | None = "10m", objects: list[dict[str, Any]] | None = None) -> Result:
    spec = {"steps": list(steps)} if until is None else {"until": until, "steps": list(steps)}
    scenario = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "s"}, "spec": spec}
    return podium.simulate([*NODES, *(objects or []), scenario])


def reported(result: Result, *reasons: str) -> list[tuple[float, str, str | None, str]]:
    found = [event.to_dict() for event in result.events]
    return [(e["time"], e["reason"], e.get("node"), e.get("message", "")) for e in found if e["reason"] in reasons]


def patch(kind: str, name: str, body: Any, at: str = "1m", **more: Any) -> dict[str, Any]:
    return {"at": at, "patch": {"kind": kind, "name": name, "patch": body, **more}}


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("strategic", {"spec": {"unschedulable": True}}),
        ("merge", {"spec": {"unschedulable": True}}),
        ("json", [{"op": "add", "path": "/spec", "value": {"unschedulable": True}}]),
        ("merge", '{"spec": {"unschedulable": true, "taints": null}}'),
    ],
)
def test_any_object_is_patched_in_the_ways_of_the_api(type_: str, body: Any) -> None:
    steps = [patch("Node", f"n{number}", body, type=type_) for number in range(3)]

    result = played(*steps, {"at": "2m", "apply": [pod("late")]})

    assert result.summary["pods"]["pending"] == 1


def test_without_a_type_lists_are_merged_by_their_keys() -> None:
    wider = {
        "spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "9"}}}]}}}
    }

    result = played(patch("Deployment", "web", wider), objects=[replicated("Deployment", "web", 1, pod("w")["spec"])])

    assert result.summary["pods"]["pending"] == 1


def test_a_status_is_patched_as_the_subresource_that_it_is() -> None:
    body = {"status": {"allocatable": {"cpu": "0"}}}
    steps = [patch("Node", f"n{number}", body, subresource="status") for number in range(3)]

    assert played(*steps, {"at": "2m", "apply": [pod("late")]}).summary["pods"]["pending"] == 1


def test_a_patch_that_the_api_server_refuses_is_an_error_at_its_step() -> None:
    with pytest.raises(InputError, match=r"Scenario s, \.spec\.steps\[0\]\.patch: .*metadata\.name"):
        played(patch("Node", "n0", {"metadata": {"name": "other"}}))
    with pytest.raises(InputError, match="there is no Node n9"):
        played(patch("Node", "n9", {"spec": {"unschedulable": True}}))


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (
            patch("Node", "n0", [1]),
            ".spec.steps[0].patch.patch: a list is not an object, as a patch of type strategic is",
        ),
        (patch("Node", "n0", {}, type="json"), ".spec.steps[0].patch.patch: an object is not a list of operations"),
        (patch("Node", "n0", "{"), ".spec.steps[0].patch.patch: is text, but not JSON:"),
        (patch("Node", "n0", {"spec": {"taints": None}}), ".spec.steps[0].patch.patch: has an empty object; to remove"),
        (patch("Nodule", "n0", {"a": 1}), '.spec.steps[0].patch.kind: the kind "Nodule" is not simulated'),
        (
            patch("Node", "n0", {"a": 1}, type="apply"),
            '.spec.steps[0].patch.type: "apply" is not one of "json", "merge", "strategic"',
        ),
        ({"at": "0s", "cordon": {"name": "n0", "selector": "a"}}, ".spec.steps[0].cordon: has a name and a selector"),
        ({"at": "0s", "cordon": {"selector": "a=="}}, ""),
        ({"at": "0s", "cordon": {"selector": "a in"}}, ".spec.steps[0].cordon.selector: "),
        (
            {"at": "0s", "repeat": {"every": "0s"}, "cordon": {"name": "n0"}},
            '.spec.steps[0].repeat.every: "0s" is too short; write more than 0s',
        ),
        (
            {"at": "0s", "repeat": {"every": "1m", "times": 0}, "cordon": {"name": "n0"}},
            ".repeat.times: 0 is out of range; it must be >= 1",
        ),
        ({"at": "0s", "repeat": {"every": "1ns"}, "cordon": {"name": "n0"}}, "at most 100,000 are allowed"),
        (
            {"at": "0s", "repeat": {"every": "1s", "times": 99_999}, "apply": [pod(f"p{n}") for n in range(20)]},
            "1,999,980 things happen; at most 1,000,000 may",
        ),
    ],
)
def test_patch_step_errors_name_their_place(step: dict[str, Any], problem: str) -> None:
    if not problem:
        played(step)
        return
    with pytest.raises(InputError, match=re.escape(problem)):
        played(step)


def test_a_repeat_without_times_needs_an_end() -> None:
    step = {"at": "0s", "repeat": {"every": "1m"}, "cordon": {"name": "n0"}}

    with pytest.raises(InputError, match=r"\.repeat: has no end; give times, or the scenario's until"):
        played(step, until=None)


def test_a_repeat_without_times_is_played_from_its_first_time_until_the_end() -> None:
    # If it began at 0, it would be played more often than is allowed.
    step = {"at": "100000s", "repeat": {"every": "1s"}, "cordon": {"name": "n0"}}
    (document,) = documents(scenario(step, until="100002s"))

    assert [each.at_ns // SECOND for each in read_scenario(document).steps] == [100_000, 100_001, 100_002]


def test_a_selector_means_all_nodes_that_match_when_the_step_is_played() -> None:
    result = played(
        {"at": "1m", "nodeDown": {"selector": "zone=a"}},
        {"at": "2m", "nodeUp": {"selector": "zone in (a, b)"}},
        {"at": "3m", "nodeDown": {"selector": "zone=c"}},
    )

    assert [event[:3] for event in reported(result, "NodeDown", "NodeUp")] == [
        (60, "NodeDown", "n0"),
        (60, "NodeDown", "n1"),
        (120, "NodeUp", "n0"),
        (120, "NodeUp", "n1"),
        (120, "NodeUp", "n2"),
    ]
    assert [event[3] for event in reported(result, "StepSkipped")] == ["no Node matches zone=c"]


def test_nodes_that_match_are_cordoned_and_drained() -> None:
    result = played({"at": "1m", "drain": {"selector": "zone", "force": True}}, objects=[pod("web", nodeName="n1")])

    assert sorted(drain["node"] for drain in result.summary["drains"]) == ["n0", "n1", "n2"]


def test_pods_that_match_are_deleted_in_their_namespace() -> None:
    objects = [pod("web", nodeName="n1"), pod("other", nodeName="n1")]

    result = played({"at": "1m", "delete": {"kind": "Pod", "selector": "app=w", "outright": True}}, objects=objects)

    assert [found["state"] for found in result.pods] == ["ready", "terminated"]


def test_a_step_is_repeated_so_often_or_to_the_end() -> None:
    up_and_down = [
        {"at": "1m", "repeat": {"every": "2m", "times": 2}, "nodeDown": {"name": "n0"}},
        {"at": "2m", "repeat": {"every": "4m"}, "nodeUp": {"name": "n0"}},
    ]

    assert [event[:2] for event in reported(played(*up_and_down), "NodeDown", "NodeUp")] == [
        (60, "NodeDown"),
        (120, "NodeUp"),
        (180, "NodeDown"),
        (360, "NodeUp"),
        (600, "NodeUp"),
    ]
