"""Bursts larger than the watch log have the same results."""

from __future__ import annotations

from functools import partial

import pytest

import podium
from podium.sim import simulation
from podium.store.store import Store
from tests.app.planning.small import Raw, node, pod, replica_set

_MANY = 60


def scenario(*steps: Raw) -> Raw:
    return {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "burst"},
        "spec": {"until": "5m", "steps": list(steps)},
    }


def deleted(kind: str, name: str, **rest: str) -> Raw:
    return scenario({"at": "10s", "delete": {"kind": kind, "name": name, **rest}})


def in_team(raw: Raw) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "namespace": "team"}}


NAMESPACE: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
STORIES = {
    "a namespace with many pods is deleted": [
        NAMESPACE,
        *map(in_team, (pod(f"p{number}", "1m", terminationGracePeriodSeconds=0) for number in range(_MANY))),
        deleted("Namespace", "team"),
    ],
    "the owner of many pods is deleted": [
        replica_set("web", _MANY, "1m", terminationGracePeriodSeconds=0),
        deleted("ReplicaSet", "web", namespace="default"),
    ],
    "a namespace with the owners of many pods is deleted": [
        NAMESPACE,
        *map(in_team, (replica_set(f"web-{number}", 3, "1m") for number in range(_MANY // 3))),
        deleted("Namespace", "team"),
    ],
    "the node of many pods is deleted": [
        *(pod(f"p{number}", "1m") for number in range(_MANY)),
        deleted("Node", "n"),
    ],
    "many objects are applied": [
        scenario({"at": "10s", "apply": [pod(f"p{number}", "1m") for number in range(_MANY)]}),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_the_result_of_a_run_does_not_depend_on_the_log_capacity(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [node("n"), *STORIES[story]]
    usual = podium.simulate(objects).to_dict()
    monkeypatch.setattr(simulation, "Store", partial(Store, log_capacity=20))

    assert podium.simulate(objects).to_dict() == usual
