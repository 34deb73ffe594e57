"""The pod garbage collector: pods that no kubelet ends (row 61 of the scenarios)."""

from typing import Any

import pytest

from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.nodes.pod_deletion import PodGarbageCollector
from podium.controllers.observations import Problem
from tests.controllers.cluster_rig import BROKEN, CONFLICT, CRASH_AFTER, CRASH_BEFORE, LOST, Rig
from tests.store.objects import Raw, node, pod

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


def running(name: str, on: str = "n1", **more: Any) -> Raw:
    return pod(name, node=on, status={"phase": "Running"}, **more)


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(PodGarbageCollector)
    rig.apply(*objects)
    return rig


@pytest.mark.upstream(61)
def test_pods_of_a_node_that_is_gone_fail_and_are_deleted_after_40s() -> None:
    rig = rig_of(node("n1"), node("n2"), running("a"), running("b", on="n2"))
    rig.pass_to(5)

    rig.delete("Node", "n1")
    rig.pass_to(44.9)
    assert rig.log == []
    rig.pass_to(100)

    assert rig.log == ["45 Failed a", "45 delete a: its node n1 is gone"]
    assert rig.pods() == {"b": "Running"}
    assert rig.is_at_rest()


def test_a_pod_that_ended_before_its_mark_is_deleted() -> None:
    rig = rig_of(running("a"))

    def ends_first(action: Action) -> Problem | None:
        if isinstance(action, ReportStatus) and rig.pods() == {"a": "Running"}:
            rig.store.patch("Pod", "default/a", {"status": {"phase": "Succeeded"}}, "merge", "status")
            return Problem(422, "Invalid", "status.phase: Succeeded is for good")
        return None

    rig.fault = ends_first
    rig.pass_to(100)

    assert rig.pods() == {}
    assert rig.is_at_rest()


@pytest.mark.parametrize("code", [400, 403, 422])
def test_an_orphan_whose_deletion_is_refused_is_not_forgotten(code: int) -> None:
    rig = rig_of(running("a"))
    rig.fault = lambda action: Problem(code, "", "") if isinstance(action, DeleteObject) else None
    rig.pass_to(100)
    assert rig.is_settled()

    rig.fault = lambda action: None
    rig.pass_to(200)

    assert rig.pods() == {}


@pytest.mark.upstream(61)
def test_a_finalizer_holds_an_orphan_that_has_failed() -> None:
    rig = rig_of(running("a", metadata={"finalizers": ["example.com/hold"]}))

    rig.pass_to(100)

    assert rig.pods() == {"a": "Failed terminating"}
    target = rig.pod_condition("a", "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "DeletionByPodGC")
    assert rig.is_at_rest()

    asked = len(rig.actions)
    rig.restart()
    rig.pass_to(200)
    assert len(rig.actions) == asked


def test_a_node_that_comes_in_time_keeps_its_pods() -> None:
    rig = rig_of(running("a"))
    rig.pass_to(39)

    rig.apply(node("n1"))
    rig.pass_to(100)

    assert rig.log == []
    assert rig.is_at_rest()


def test_a_node_that_goes_again_is_waited_for_again() -> None:
    rig = rig_of(running("a"))
    rig.pass_to(39)
    rig.apply(node("n1"))
    rig.pass_to(60)

    rig.delete("Node", "n1")
    rig.pass_to(200)

    assert rig.log[0] == "100 Failed a"


def test_a_pod_that_changes_meanwhile_is_not_an_orphan_sooner() -> None:
    rig = rig_of(running("a"))
    rig.pass_to(10)

    rig.patch("Pod", "a", {"metadata": {"labels": {"new": "yes"}}})
    rig.pass_to(39)
    assert rig.log == []
    rig.pass_to(40)
    assert rig.log[0] == "40 Failed a"


def test_a_held_orphan_does_not_delay_the_next_pod() -> None:
    rig = rig_of(running("a", metadata={"finalizers": ["example.com/hold"]}))
    rig.pass_to(100)

    rig.apply(running("b"))

    assert rig.log[-2:] == ["100 Failed b", "100 delete b: its node n1 is gone"]


def test_a_pod_bound_to_a_missing_node_later_is_an_orphan() -> None:
    rig = rig_of(running("a"))
    rig.pass_to(50)

    rig.apply(running("b"))
    rig.pass_to(100)

    assert rig.log[-2:] == ["90 Failed b", "90 delete b: its node n1 is gone"]


def test_orphans_that_have_ended_are_deleted_as_they_are() -> None:
    rig = rig_of(pod("a", node="n1", status={"phase": "Succeeded"}))

    rig.pass_to(100)

    assert rig.log == ["40 delete a: its node n1 is gone"]


@pytest.mark.upstream(61)
def test_deleted_pods_of_a_node_out_of_service_go_at_once() -> None:
    rig = rig_of(node("n1"), running("a"), running("b"))
    rig.delete("Pod", "a", grace=3600)

    rig.condition("n1", "Ready", "Unknown")
    rig.patch("Node", "n1", {"spec": {"taints": [OUT_OF_SERVICE]}})
    rig.pass_to(1)
    rig.delete("Pod", "b", grace=3600)

    assert rig.log == [
        "0 Failed a",
        "0 delete a: its node n1 is out of service",
        "1 Failed b",
        "1 delete b: its node n1 is out of service",
    ]


def test_a_ready_node_is_not_out_of_service_despite_its_taints() -> None:
    rig = rig_of({**node("n1"), "spec": {"taints": [OUT_OF_SERVICE]}}, running("a"))

    rig.delete("Pod", "a", grace=3600)

    assert rig.log == []


def test_deleted_pods_without_a_node_are_removed() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T13:00:00Z", "deletionGracePeriodSeconds": 3600}

    rig = rig_of(pod("a", metadata=deleted), pod("b"))

    assert rig.log == ["0 Failed a", "0 delete a: it never had a node"]
    assert rig.pods() == {"b": "Pending"}


def test_a_namesake_on_another_node_stays() -> None:
    rig = rig_of(node("n1"), node("n2"), running("a"))
    rig.delete("Node", "n1")

    with rig.holding("Pod"):
        rig.delete("Pod", "a", grace=0)
        rig.apply(running("a", on="n2"))
    rig.pass_to(100)

    assert rig.log == []
    assert rig.is_at_rest()


@pytest.mark.parametrize("kind", [ReportStatus, DeleteObject])
@pytest.mark.parametrize("problem", [BROKEN, CONFLICT, LOST, CRASH_BEFORE, CRASH_AFTER])
def test_orphans_are_deleted_only_after_their_failed_status_under_any_failure(
    kind: type[Action], problem: Problem
) -> None:
    rig = rig_of(running("a", metadata={"finalizers": ["example.com/hold"]}))
    asked = rig.fail_once(kind, problem)

    def check() -> None:
        assert rig.pods()["a"] in ("Running", "Failed", "Failed terminating")

    rig.after_each = check
    rig.pass_to(200)

    assert asked
    assert rig.pods() == {"a": "Failed terminating"}
    assert rig.is_at_rest()
