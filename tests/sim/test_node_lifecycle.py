"""The taints that follow from the reports of nodes."""

from typing import Any

import pytest

from tests.sim.objects import scenario
from tests.sim.played import played
from tests.store.objects import Raw, node


def reported(type_: str, status: str, **more: Any) -> Raw:
    return {**node("n1", **more), "status": {**node("n1")["status"], "conditions": [{"type": type_, "status": status}]}}


def taints(*steps: Raw, start: Raw) -> list[str]:
    simulation = played(start, scenario(*({"at": "1s", "apply": [step]} for step in steps)))
    found = simulation.store.get("Node", "n1").raw.get("spec", {}).get("taints", [])
    return [f"{taint['key']}:{taint['effect']}" for taint in found]


@pytest.mark.parametrize(
    ("condition", "taint"),
    [
        ("MemoryPressure", "node.kubernetes.io/memory-pressure:NoSchedule"),
        ("DiskPressure", "node.kubernetes.io/disk-pressure:NoSchedule"),
        ("PIDPressure", "node.kubernetes.io/pid-pressure:NoSchedule"),
        ("NetworkUnavailable", "node.kubernetes.io/network-unavailable:NoSchedule"),
    ],
)
def test_a_condition_that_becomes_true_taints_the_node_and_one_that_ends_frees_it(condition: str, taint: str) -> None:
    assert taints(reported(condition, "True"), start=node("n1")) == [taint]
    assert taints(reported(condition, "True"), reported(condition, "False"), start=node("n1")) == []


def test_other_taints_stay() -> None:
    own = {"key": "gpu", "effect": "NoSchedule"}
    start = {**node("n1"), "spec": {"taints": [own]}}
    pressed = {**reported("DiskPressure", "True"), "spec": {"taints": [own]}}

    assert taints(pressed, start=start) == ["gpu:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"]


def test_the_taints_of_the_start_stand_as_they_are_given() -> None:
    tainted = {**node("n1"), "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}}

    assert taints(start=reported("DiskPressure", "True")) == []
    assert taints(start=tainted) == ["node.kubernetes.io/disk-pressure:NoSchedule"]
