"""Decisions about many pods: they equal a simulation's, and leave no trace."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

import podium
from podium.app.planning.deciding.capacity import shapes_of
from podium.app.planning.deciding.causes import blocked_pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.search import helpful_changes
from podium.app.planning.questions.pending import pending_answer
from tests.app.planning.small import Raw, budget, node, pod, priority_class

GPU: Raw = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def some_cluster(random: Random, *, priorities: tuple[int, ...] = (0,)) -> list[Raw]:
    """Nodes with pods on them, a few tainted, cordoned or labelled, and pods of several sorts that wait."""
    objects: list[Raw] = [priority_class("high", 1000)]
    for number in range(5):
        labels = {"disk": "ssd"} if random.random() < 0.3 else {}
        taints = [GPU] if random.random() < 0.3 else None
        cordoned = random.random() < 0.15
        objects.append(
            node(f"n{number}", str(random.randint(2, 6)), labels=labels, taints=taints, unschedulable=cordoned)
        )
        objects += [
            pod(f"p{number}-{place}", "700m", on=f"n{number}", priority=random.choice(priorities), owner="run")
            for place in range(random.randint(0, 3))
        ]
    for name in ("x", "y", "z"):
        spec: Raw = {}
        if random.random() < 0.4:
            spec["nodeSelector"] = {"disk": "ssd"}
        if random.random() < 0.3:
            spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        cpu, priority = f"{random.choice((500, 900, 1500, 2500))}m", random.choice(priorities)
        objects += [
            pod(f"{name}-{place}", cpu, priority=priority, owner=name, **deepcopy(spec))
            for place in range(random.randint(1, 6))
        ]
    return objects


@pytest.mark.parametrize("seed", range(12))
def test_pods_get_the_nodes_that_a_simulation_gives_them(seed: int) -> None:
    objects = some_cluster(Random(seed))

    answer = pending_answer(podium.load(objects))

    played = podium.simulate(objects).pods
    on_node = {found["pod"]: found["node"] for found in played if found["pod"].split("/")[1][0] in "xyz"}
    (placed,) = (section.data for section in answer.sections if section.name == "placed")
    assert {fate["pod"]: fate["node"] for fate in placed} == {key: name for key, name in on_node.items() if name}


@pytest.mark.parametrize("seed", range(12))
def test_pending_predicts_the_preemptions_of_a_simulation(seed: int) -> None:
    objects = some_cluster(Random(seed), priorities=(0, 5, 10))

    answer = pending_answer(podium.load(objects))

    played = podium.simulate(objects).pods
    (placed,) = (section.data for section in answer.sections if section.name == "placed")
    gone = {found["pod"] for found in played if found["disruption"]}
    assert {victim for fate in placed for victim in fate["victims"]} == gone
    nodes = {found["pod"]: found["node"] for found in played if not found["disruption"]}
    assert {fate["pod"]: fate["node"] for fate in placed} == {
        key: name for key, name in nodes.items() if name and key.split("/")[1][0] in "xyz"
    }


@pytest.mark.parametrize("seed", range(6))
def test_nothing_stays_of_what_was_supposed(seed: int) -> None:
    objects = [*some_cluster(Random(seed), priorities=(0, 5, 10)), budget("run", maxUnavailable=1)]
    loaded = podium.load(objects)
    before = {key: loaded.explain(key).to_dict() for key in loaded.pending}

    pending_answer(loaded)

    assert {key: loaded.explain(key).to_dict() for key in loaded.pending} == before


@pytest.mark.parametrize("seed", range(8))
def test_an_applied_change_places_as_many_pods_as_announced(seed: int) -> None:
    """It is made when those have their nodes that get one as things are."""
    objects = some_cluster(Random(seed))
    answer = pending_answer(podium.load(objects))
    waiting = sum(cause["pods"] for cause in data_of(answer, "causes"))
    bound = [with_node(item, {fate["pod"]: fate["node"] for fate in data_of(answer, "placed")}) for item in objects]

    for change in data_of(answer, "changes"):
        making = MAKING.get(change["type"])
        if making is not None and " nodes" not in change["change"]:
            left = pending_answer(podium.load([making(deepcopy(item), change["change"]) for item in bound]))
            assert sum(cause["pods"] for cause in data_of(left, "causes")) == waiting - change["placed"], change


def data_of(answer: Any, name: str) -> Any:
    return next(section.data for section in answer.sections if section.name == name)


def with_node(item: Raw, nodes: dict[str, str]) -> Raw:
    """Return a pod on the node that it gets."""
    name = nodes.get(f"default/{item['metadata']['name']}") if item["kind"] == "Pod" else None
    return item if name is None else {**item, "spec": {**item["spec"], "nodeName": name}}


def without_taint(item: Raw, change: str) -> Raw:
    if item["kind"] == "Node":
        item["spec"].pop("taints", None)
    return item


def tolerating(item: Raw, change: str) -> Raw:
    if item["kind"] == "Pod" and not item["spec"].get("nodeName"):
        item["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    return item


def labelled(item: Raw, change: str) -> Raw:
    if item["kind"] == "Node" and item["metadata"]["name"] in change.partition(" on ")[2].split(", "):
        item["metadata"]["labels"]["disk"] = "ssd"
    return item


def asking_for_less(item: Raw, change: str) -> Raw:
    owner, _, amounts = change.removeprefix("ReplicaSet default/").partition(" requests.cpu ")
    if item["kind"] == "Pod" and item["metadata"]["labels"]["app"] == owner and not item["spec"].get("nodeName"):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = amounts.partition(" -> ")[2]
    return item


MAKING = {"taint": without_taint, "toleration": tolerating, "label": labelled, "request": asking_for_less}


def test_the_best_changes_come_first() -> None:
    decisions = Decisions(podium.load(some_cluster(Random(3))))
    with decisions.what_if():
        result = decisions.schedule(decisions.pending)
        found, untried = helpful_changes(
            decisions, blocked_pods(decisions, result), shapes_of(decisions.cluster, result.waiting)
        )

    assert untried == 0
    assert len(found) > 1
    assert found == sorted(found, key=lambda each: each.order)
    assert all(each.placed for each in found)
