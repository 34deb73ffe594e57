"""The reasons why pods are held before any attempt."""

from __future__ import annotations

from typing import Any

from tests.app.planning.small import PLACES_GROUPS, Raw, group, member, node, pod, replica_set
from tests.sim.played import instantly


def quota(pods: int) -> Raw:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(pods)}}}


def of(group_name: str, replicas: int) -> Raw:
    return replica_set(group_name, replicas, "2", schedulingGroup={"podGroupName": group_name})


def later(at: str, **change: Any) -> Raw:
    return timeline_of({"at": at, **change})


def timeline_of(*steps: Raw) -> Raw:
    metadata = {"name": "story"}
    spec = {"until": "10m", "steps": list(steps)}
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": metadata, "spec": spec}


def patched(kind: str, name: str, spec: Raw) -> Raw:
    return {"kind": kind, "name": name, "namespace": "default", "patch": {"spec": spec}}


def test_a_pod_is_held_for_its_gates_for_its_group_and_for_others_of_it() -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])

    result = instantly(
        [node("a"), group("red", 3), member("w", "red"), member("lost", "nowhere"), gated, pod("web")],
        configuration=PLACES_GROUPS,
    )

    assert result.to_dict()["held"] == {
        "default/gated": "waiting for scheduling gates: [example.com/quota]",
        "default/lost": 'waiting for pod\'s pod group "nowhere" to appear in scheduling queue',
        "default/w": "waiting for minCount pods from a gang to appear in scheduling queue: "
        "1 of 3 of default/red are there",
    }


def test_a_pod_under_attempt_is_not_held() -> None:
    result = instantly([node("a", "1"), pod("web", "2")], configuration=PLACES_GROUPS)

    assert "held" not in result.to_dict()


def test_gangs_that_a_quota_keeps_from_being_whole_hold_no_node_and_say_what_is_missing() -> None:
    alone = pod("alone", "2")
    story = [node("a", "8"), group("red", 3), group("blue", 3), quota(5), of("red", 2), of("blue", 2), alone]

    result = instantly([*story, later("10s", patch=patched("ReplicaSet", "red", {"replicas": 3}))])
    as_gangs = instantly(
        [*story, later("10s", patch=patched("ReplicaSet", "red", {"replicas": 3}))], configuration=PLACES_GROUPS
    )

    assert sum(bool(found["node"]) for found in result.pods) == 4
    assert [found["pod"] for found in as_gangs.pods if found["node"]] == ["default/alone"]
    assert set(as_gangs.held.values()) == {
        f"waiting for minCount pods from a gang to appear in scheduling queue: 2 of 3 of default/{name} are there"
        for name in ("red", "blue")
    }
    assert [(short["workload"], short["wants"], short["has"]) for short in as_gangs.summary["short"]] == [
        ("ReplicaSet default/red", 3, 2)
    ]


def test_a_gang_is_placed_as_soon_as_a_quota_admits_its_last_member() -> None:
    raised = later("2m", patch=patched("ResourceQuota", "q", {"hard": {"pods": "3"}}))

    result = instantly([node("a", "8"), group("red", 3), quota(2), of("red", 3), raised], configuration=PLACES_GROUPS)

    assert [found["scheduledAt"] for found in result.pods] == [120, 120, 120]
    assert result.held == {}


def test_a_gang_short_of_pods_under_a_quota_keeps_its_nodes_and_is_reported() -> None:
    lost = timeline_of({"at": "10s", "apply": [quota(2)]}, {"at": "30s", "delete": {"kind": "Node", "name": "b"}})

    result = instantly(
        [node("a", "4"), node("b", "2"), group("red", 3), of("red", 3), lost], configuration=PLACES_GROUPS
    )

    assert sorted(str(found["node"]) for found in result.pods if found["state"] == "ready") == ["a", "a"]
    assert "GangReleased" not in {event["reason"] for event in result.to_dict()["events"]}
    (short,) = result.summary["short"]
    assert (short["workload"], short["wants"], short["has"]) == ("ReplicaSet default/red", 3, 2)
