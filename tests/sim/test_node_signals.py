"""Troubled nodes, announced maintenance and usage, as steps of a scenario and in objects."""

from typing import Any

import pytest

from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.errors import InputError
from podium.api.node import MAINTENANCE_TIME
from podium.api.times import format_time
from podium.controllers.kubelets.pod_run import TROUBLE
from podium.sim.simulation import Simulation
from tests.sim.objects import owned, scenario, workload
from tests.sim.played import played, pods, reported
from tests.store.objects import SECOND, Raw, node, pod


def annotations_of(simulation: Simulation, kind: str, key: str) -> dict[str, str]:
    return simulation.store.get(kind, key).object.metadata.annotations


def annotated(name: str, text: str) -> Raw:
    made = node("n1")
    return {**made, "metadata": {**made["metadata"], "annotations": {name: text}}}


def troubled(**fields: Any) -> Raw:
    return {"at": "5s", "trouble": {"name": "n1", **fields}}


def test_trouble_lets_containers_on_a_node_fail_until_it_is_over() -> None:
    steps = scenario(troubled(crashAfter="10s"), {"at": "60s", "trouble": {"name": "n1"}}, until="10m")
    simulation = played(node("n1"), node("n2"), pod("a", node="n1"), pod("b", node="n2"), steps)

    assert reported(simulation, "Restarted") == [
        "15 Restarted default/a on n1 by kubelet",
        "35 Restarted default/a on n1 by kubelet",
        "65 Restarted default/a on n1 by kubelet",
    ]
    assert TROUBLE not in annotations_of(simulation, "Node", "n1")


def test_trouble_may_concern_some_pods_alone() -> None:
    web, db = (pod(name, node="n1", metadata={"labels": {"app": name}}) for name in ("web", "db"))
    simulation = played(node("n1"), web, db, scenario(troubled(crashAfter="10s", pods="app=web"), until="16s"))

    assert reported(simulation, "Restarted") == ["15 Restarted default/web on n1 by kubelet"]


def test_trouble_without_an_end_needs_one_of_the_run() -> None:
    with pytest.raises(InputError, match="for ever; say when to stop with `until`"):
        played(node("n1"), scenario(troubled(crashAfter="10s")))
    with pytest.raises(InputError, match="for ever; say when to stop with `until`"):
        played(annotated(TROUBLE, "10s"))
    assert annotations_of(played(node("n1"), scenario(troubled())), "Node", "n1") == {}


@pytest.mark.parametrize(("name", "text"), [(TROUBLE, "soon"), (TROUBLE, "5s app in"), (MAINTENANCE_TIME, "soon")])
def test_a_nodes_annotation_that_cannot_be_read_is_an_error_with_its_place(name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        played(annotated(name, text))
    assert f'Node n1, .metadata.annotations["{name}"]' in str(caught.value)


def test_maintenance_is_announced_on_the_node_until_it_is_over() -> None:
    step = {"at": "5s", "maintenance": {"name": "n1", "in": "10m", "for": "5m"}}
    before = played(node("n1"), scenario(step, until="1m"))
    assert annotations_of(before, "Node", "n1")[MAINTENANCE_TIME] == format_time(DEFAULT_START_NS + 605 * SECOND)

    after = played(node("n1"), scenario(step))
    assert reported(after, "NodeDown", "NodeUp") == ["605 NodeDown on n1 by scenario", "905 NodeUp on n1 by scenario"]
    assert MAINTENANCE_TIME not in annotations_of(after, "Node", "n1")


def test_maintenance_of_a_node_that_is_gone_by_then_is_skipped() -> None:
    gone = {"at": "1s", "delete": {"kind": "Node", "name": "n1"}}
    simulation = played(node("n1"), scenario(gone, {"at": "5s", "maintenance": {"name": "n1", "in": "10s"}}))

    assert reported(simulation, "StepSkipped") == ["5 StepSkipped n1 by scenario"]


def test_a_pod_may_come_to_use_cpu_and_memory() -> None:
    use = {"at": "5s", "usage": {"name": "a", "cpu": "1500m", "memory": "1Gi"}}
    more = {"at": "6s", "usage": {"name": "a", "cpu": 2}}
    simulation = played(node("n1"), pod("a", node="n1"), scenario(use, more))

    annotations = annotations_of(simulation, "Pod", "default/a")
    assert (annotations["podium.dev/cpu-usage"], annotations["podium.dev/memory-usage"]) == ("2", "1Gi")


def test_the_oldest_running_pod_of_a_workload_changes_its_usage() -> None:
    owner = workload("ReplicaSet", "web", 2, uid="rs")
    mine = [owned(pod(name, node="n1"), owner) for name in ("web-1", "web-2")]
    use = {"at": "5s", "usage": {"kind": "ReplicaSet", "name": "web", "cpu": "2"}}
    simulation = played(node("n1"), owner, *mine, scenario(use, until="10s"))

    said = [name for name, each in pods(simulation).items() if "podium.dev/cpu-usage" in each.metadata.annotations]
    assert said == ["web-1"]


def test_a_container_that_exceeds_its_memory_limit_is_killed_with_an_event() -> None:
    hungry = pod("a", node="n1")
    hungry["spec"]["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
    use = {"at": "5s", "usage": {"name": "a", "memory": "2Gi"}}
    simulation = played(node("n1"), hungry, scenario(use, until="12s"))

    (container,) = simulation.store.get("Pod", "default/a").raw["status"]["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert reported(simulation, "Restarted") == ["5 Restarted default/a on n1 by kubelet"]
