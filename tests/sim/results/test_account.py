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
