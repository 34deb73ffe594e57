"""A followed cluster decides as one that is loaded anew, and notices which changes matter."""

from __future__ import annotations

import random

import msgspec
import pytest

import podium
from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.api.versions.release import DEFAULT_RELEASE
from podium.app.exporter.evaluation import Evaluation, EvaluationSettings, evaluate
from podium.app.live.followed_cluster import FollowedCluster
from podium.app.planning.deciding.decisions import Decisions
from podium.controllers.observations import Changed, Deleted
from podium.framework.settings.configuration import default_configuration
from tests.app.exporter.clusters import Raw, random_cluster

NOW = 1_767_225_900 * 10**9


def followed() -> FollowedCluster:
    return FollowedCluster(default_configuration(), DEFAULT_RELEASE, NOW)


def read(raw: Raw) -> Kubernetes:
    object_ = decode(raw)
    assert object_ is not None
    return object_


def place(raw: Raw) -> tuple[str, str]:
    return raw["kind"], f"{raw['metadata'].get('namespace', '')}/{raw['metadata']['name']}"


def by_place(objects: Raw) -> dict[tuple[str, str], Raw]:
    return {place(raw): raw for raw in objects["items"]}


def answers(found: Evaluation) -> object:
    return msgspec.to_builtins(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_followed_cluster_has_the_answers_of_a_loaded_one(seed: int) -> None:
    draw, cluster = random.Random(seed), followed()
    known: dict[tuple[str, str], Raw] = {}
    for step in range(4):
        wanted = by_place(random_cluster(seed * 100 + step))
        # A part of the objects goes over to the next cluster at a time, in any order.
        places = sorted(known.keys() | wanted.keys())
        draw.shuffle(places)
        for each in places:
            before, after = known.pop(each, None), wanted.get(each)
            if after is not None:
                if before and "nodeName" in before.get("spec", {}) and "nodeName" not in after["spec"]:
                    # No pod leaves its node: this is another one of its name.
                    after["metadata"]["uid"] = f"{before['metadata']['uid']}-again"
                known[each] = after
                cluster.handle(Changed(read(after)), NOW)
            elif before is not None:
                cluster.handle(Deleted(read(before)), NOW)
        loaded = podium.load({"apiVersion": "v1", "kind": "List", "items": list(known.values())})
        expected = answers(evaluate(Decisions(loaded), EvaluationSettings()))
        assert answers(evaluate(cluster.decisions(NOW), EvaluationSettings())) == expected


def changes(cluster: FollowedCluster, raw: Raw) -> int:
    before = cluster.changes
    cluster.handle(Changed(read(raw)), NOW)
    return cluster.changes - before


def test_heartbeats_and_what_containers_do_are_no_changes() -> None:
    objects = by_place(random_cluster(3))
    cluster = followed()
    for raw in objects.values():
        assert changes(cluster, raw) == 1
    for raw in objects.values():
        beat = {**raw, "metadata": {**raw["metadata"], "resourceVersion": "7"}}
        if raw["kind"] == "Node":
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00Z"}
            beat["status"] = {**raw["status"], "conditions": [ready]}
        if raw["kind"] == "ReplicaSet":
            beat["status"] = {"replicas": 3}
        if raw["kind"] == "Pod" and raw.get("status"):
            beat["status"] = {**raw["status"], "message": "restarted"}
        assert changes(cluster, beat) == 0, beat


def test_a_cordon_and_a_pod_that_ends_are_changes() -> None:
    objects = by_place(random_cluster(3))
    cluster = followed()
    for raw in objects.values():
        changes(cluster, raw)
    node = next(raw for raw in objects.values() if raw["kind"] == "Node" and not raw["spec"])
    assert changes(cluster, {**node, "spec": {"unschedulable": True}}) == 1
    pod = next(raw for raw in objects.values() if raw["kind"] == "Pod" and raw.get("status"))
    assert changes(cluster, {**pod, "status": {**pod["status"], "phase": "Succeeded"}}) == 1
