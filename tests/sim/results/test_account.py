"""The account of a run's disruptions."""

from __future__ import annotations

import podium
from tests.sim.objects import scenario
from tests.store.objects import Raw, node, pod


def web(replicas: int) -> Raw:
    """Return a Deployment."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "main"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def reported(*steps: Raw) -> list[tuple[str, str, str]]:
    """Of each disruption of a story the pod or its owner, the cause, and who did it."""
    story = [node("n", cpu=9), pod("a", cpu=1), web(2), scenario(*steps, until="5m")]
    return [(found.owner or found.pod, found.cause, found.by) for found in podium.simulate(story).ledger]


def test_a_pod_that_a_step_deletes_outright_is_disrupted_by_the_scenario() -> None:
    step = {"at": "1m", "delete": {"kind": "Pod", "name": "a", "outright": True}}

    assert reported(step) == [("default/a", "deletion", "scenario")]


def test_a_scenario_deletion_within_budgets_is_an_eviction() -> None:
    assert reported({"at": "1m", "delete": {"kind": "Pod", "name": "a"}}) == [("default/a", "eviction", "scenario")]


def test_scale_downs_and_owner_deletions_are_not_disruptions() -> None:
    scale = {"at": "1m", "scale": {"kind": "Deployment", "name": "web", "replicas": 1}}
    delete = {"at": "2m", "delete": {"kind": "Deployment", "name": "web"}}

    assert reported(scale, delete) == []


def test_a_pod_lost_with_its_node_is_a_disruption_and_its_event_says_why() -> None:
    delete = {"at": "1m", "delete": {"kind": "Node", "name": "n"}}
    result = podium.simulate([node("n", cpu=9), pod("a", cpu=1, node="n"), scenario(delete, until="5m")])

    assert [(found.pod, found.cause, found.by) for found in result.ledger] == [
        ("default/a", "node-gone", "pod-garbage-collector")
    ]
    assert [event.message for event in result.events if event.reason == "Failed"] == ["PodGC: node no longer exists"]
    assert result.summary["disruptions"] == {"DeletionByPodGC": 1}


def test_a_pod_that_had_ended_before_its_node_is_lost_is_not_disrupted() -> None:
    ended = pod("a", cpu=1, node="n", metadata={"annotations": {"podium.dev/duration": "10s"}})
    nodes, down = [node("n", cpu=9), node("m", cpu=9)], scenario({"at": "1m", "nodeDown": {"name": "n"}}, until="10m")
    result = podium.simulate([*nodes, ended, pod("b", cpu=1, node="n"), down])

    assert [found.pod for found in result.ledger] == ["default/b"]
    assert [found["pod"] for found in result.pods if found["disruption"]] == ["default/b"]
    assert result.summary["disruptions"] == {"DeletionByTaintManager": 1}


def test_the_first_of_several_reasons_is_that_of_a_disruption() -> None:
    """The taint evicts the pod, and later its node is deleted."""
    steps = ({"at": "1m", "nodeDown": {"name": "n"}}, {"at": "8m", "delete": {"kind": "Node", "name": "n"}})
    nodes = [node("n", cpu=9), node("m", cpu=9)]
    result = podium.simulate([*nodes, pod("a", cpu=1, node="n"), scenario(*steps, until="10m")])

    assert [found.cause for found in result.ledger] == ["taint"]
    assert result.summary["disruptions"] == {"DeletionByTaintManager": 1}
