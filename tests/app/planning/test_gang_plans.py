"""What plans that decide say of gangs: enough pods of one get nodes together, or none does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import podium
from podium.app.planning.questions.pending import pending_answer
from tests.app.planning.small import Raw, node, pod, told, written
from tests.app.planning.test_decisions import some_cluster

CONFIGURATION: Raw = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}],
}


def group(name: str, least: int) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def member(name: str, of: str, cpu: str = "2", priority: int = 0) -> Raw:
    return pod(name, cpu, priority=priority, schedulingGroup={"podGroupName": of})


def pending(folder: Path, *objects: Raw) -> Raw:
    settings = written(folder, CONFIGURATION, name="scheduler.json")
    return told("pending", "-f", written(folder, *objects), "--config", settings)


def test_a_gang_of_which_too_few_fit_waits_as_a_whole_for_what_the_others_lack(tmp_path: Path) -> None:
    members = [member(f"w{number}", "training") for number in range(3)]

    answer = pending(tmp_path, node("a"), group("training", 3), *members)

    assert answer["headline"].startswith("3 of 3 pending pods get no node; one more node like a lets 3 in")
    assert [(cause["cause"], cause["pods"], cause["freed"]) for cause in answer["causes"]] == [
        ("1 node: Insufficient cpu", 3, 3)
    ]
    assert answer["placed"] == []


def test_a_gang_preempts_by_one_plan_or_takes_nobody(tmp_path: Path) -> None:
    running = [pod(f"batch-{name}", "4", on=name, priority=-10) for name in "ab"]
    small = [member(f"w{number}", "small", "3") for number in range(2)]
    large = [member(f"x{number}", "large", "3") for number in range(3)]

    answer = pending(tmp_path, node("a"), node("b"), *running, group("small", 2), *small, group("large", 3), *large)

    assert {fate["pod"]: fate["node"] for fate in answer["placed"]}.keys() == {"default/w0", "default/w1"}
    assert sum(cause["pods"] for cause in answer["causes"]) == 3


@pytest.mark.parametrize("seed", range(12))
def test_gangs_get_the_nodes_that_a_simulation_gives_them(seed: int) -> None:
    random = Random(seed)
    objects = some_cluster(random)
    for raw in objects:
        if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"):
            raw["spec"]["schedulingGroup"] = {"podGroupName": raw["metadata"]["name"][0]}
    objects += [group(name, random.randint(1, 4)) for name in "xyz"]

    answer = pending_answer(podium.load(objects, configuration=CONFIGURATION))

    played = podium.simulate(objects, configuration=CONFIGURATION).pods
    on_node = {found["pod"]: found["node"] for found in played if found["pod"].split("/")[1][0] in "xyz"}
    (placed,) = (section.data for section in answer.sections if section.name == "placed")
    assert {fate["pod"]: fate["node"] for fate in placed} == {key: name for key, name in on_node.items() if name}
