"""The capacity of nodes and the requests of pods over a run."""

from __future__ import annotations

from typing import Any

from tests.sim.objects import scenario
from tests.sim.simulating import simulate


def node(name: str, cpu: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"a": name}}, "status": status}


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def test_deleted_objects_keep_their_recorded_size() -> None:
    gone = scenario(
        {"at": "1s", "delete": {"kind": "Pod", "name": "web"}}, {"at": "2s", "delete": {"kind": "Node", "name": "n"}}
    )

    result = simulate([node("n", "4"), pod("web", "1500m"), gone], termination=0)

    sizes = result.measures.sizes
    assert [dict(sizes.requests[each["uid"]]) for each in result.pods] == [{"cpu": 1500}]
    assert sizes.offers["n"]["cpu"] == 4000
    assert sizes.labels["n"]["a"] == "n"


def test_a_pod_that_never_finds_a_node_has_its_size_too() -> None:
    result = simulate([pod("web", "2")], until=1)

    assert [dict(sizes) for sizes in result.measures.sizes.requests.values()] == [{"cpu": 2000}]


def test_equal_sizes_are_one_object() -> None:
    result = simulate([node("n", "4"), *(pod(f"web-{number}", "1") for number in range(3))])

    assert len({id(sizes) for sizes in result.measures.sizes.requests.values()}) == 1
