"""The index of pods by workload."""

from typing import Any

from msgspec.structs import replace

from podium.api.pod import Pod, PodCondition
from podium.controllers.observations import Changed
from podium.controllers.workloads.owned_pods import OwnedPodChange, OwnedPods
from tests import builders
from tests.builders import at, owned_pod

SECOND = 10**9


def see(pods: OwnedPods, pod: Pod) -> list[OwnedPodChange]:
    return pods.see(pod, Changed(pod))


def pod(name: str, owner: str = "ReplicaSet/web", **fields: Any) -> Any:
    return builders.pod(name, owner=owner, **fields)


def test_pods_are_known_by_the_uid_of_their_controller_if_it_is_of_a_kind_that_counts() -> None:
    pods = OwnedPods("ReplicaSet")

    for one in (pod("a"), pod("b", owner="ReplicaSet/db"), pod("c", owner="Job/web"), pod("d", owner="")):
        see(pods, one)

    assert list(pods.of("ReplicaSet/web").all) == ["default/a"]
    assert list(pods.of("ReplicaSet/db").all) == ["default/b"]
    assert not pods.of("Job/web").all


def test_a_change_has_the_pods_state_before_and_now() -> None:
    pods = OwnedPods("ReplicaSet")
    old, new = pod("a"), pod("a", on="n1")
    see(pods, old)

    (seen,) = see(pods, new)

    assert seen.before is not None
    assert (seen.owner_uid, seen.before.pod, seen.now.pod, seen.is_gone) == ("ReplicaSet/web", old, new, False)
    (gone,) = pods.lose(new)
    assert gone.before == gone.now == seen.now
    assert gone.is_gone


def test_a_namesake_takes_the_place_of_a_pod_whose_end_was_not_seen() -> None:
    pods = OwnedPods("ReplicaSet")
    see(pods, pod("a", uid="1"))

    gone, come = see(pods, pod("a", uid="2", owner="ReplicaSet/db"))

    assert (gone.owner_uid, gone.is_gone) == ("ReplicaSet/web", True)
    assert (come.owner_uid, come.before) == ("ReplicaSet/db", None)
    assert not pods.of("ReplicaSet/web").all


def test_a_pod_that_is_gone_takes_a_namesake_with_it_that_was_not_seen_to_go() -> None:
    pods = OwnedPods("ReplicaSet")
    see(pods, pod("a", uid="1"))

    (gone,) = pods.lose(pod("a", uid="2"))

    assert gone.now.uid == "1"
    assert pods.lose(pod("a", uid="2")) == []


def test_a_released_pod_counts_as_gone_for_its_owner() -> None:
    pods = OwnedPods("ReplicaSet")
    see(pods, pod("a"))

    (gone,) = see(pods, pod("a", owner=""))

    assert gone.is_gone
    assert pods.named("default/a") is None


def test_active_pods_have_not_ended_and_were_not_deleted_and_some_are_ready() -> None:
    pods = OwnedPods("ReplicaSet")
    ready = PodCondition(type="Ready", status="True")
    running = pod("a", on="n1")
    running = replace(running, status=replace(running.status, conditions=(ready,)))
    failed = pod("b")
    failed = replace(failed, status=replace(failed.status, phase="Failed"))

    for one in (running, failed, pod("c", terminating=True), pod("d")):
        see(pods, one)

    found = pods.of("ReplicaSet/web")
    assert list(found.active) == ["default/a", "default/d"]
    assert list(found.ready) == ["default/a"]
    see(pods, replace(running, metadata=replace(running.metadata, deletion_timestamp=at(0))))
    assert list(found.active) == ["default/d"]
    assert list(found.ready) == []


def test_a_pod_is_available_once_it_has_been_ready_for_long_enough() -> None:
    one = pod("a", on="n1")
    ready = replace(one, status=replace(one.status, conditions=(PodCondition(type="Ready", status="True"),)))
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(7)}]}

    assert owned_pod(one, status).available_ns(0) is None
    assert owned_pod(ready, status).available_ns(0) == 0
    assert owned_pod(ready, status).available_ns(5) == builders.DAY_ONE_NS + 12 * SECOND


def test_times_that_cannot_be_read_count_as_always() -> None:
    one = pod("a", on="n1")
    ready = replace(one, status=replace(one.status, conditions=(PodCondition(type="Ready", status="True"),)))

    for time in (None, "yesterday", 7):
        status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}]}
        assert owned_pod(ready, status).available_ns(5) == 5 * SECOND
