"""Attempts of the scheduler to make room for deferred resizes, one observation at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from podium.api.node import Node, NodePodPreemptionPolicy
from podium.api.pod import ContainerStatus, Pod, PodCondition, Quantity, ResourceRequirements
from podium.controllers.actions import Action, Record
from tests.builders import node, pod
from tests.controllers.driving import Driver, all_of, deletions, terminating

GATE = "InPlacePodVerticalScalingSchedulerPreemption=true"
N1 = node("n1", cpu=8)
DEFERRED = PodCondition(type="PodResizePending", status="True", reason="Deferred")
A = pod("a", cpu=2, priority=1, on="n1")
B = pod("b", cpu=2, priority=2, on="n1")


def growing(name: str = "web", *, wants: int = 6, has: int = 4, priority: int = 10, reason: str = "Deferred") -> Pod:
    """Return a pod on n1 with a pending resize."""
    bound = pod(name, cpu=wants, priority=priority, on="n1")
    held: dict[str, Quantity] = {"cpu": has}
    reported = ContainerStatus(
        name=bound.spec.containers[0].name, resources=ResourceRequirements(requests=held), allocated_resources=held
    )
    conditions = (replace(DEFERRED, reason=reason),)
    return replace(bound, status=replace(bound.status, container_statuses=(reported,), conditions=conditions))


def resized(grown: Pod) -> Pod:
    """Return the pod after its kubelet has resized it."""
    wanted = grown.spec.containers[0].resources.requests
    (reported,) = grown.status.container_statuses
    done = replace(reported, resources=ResourceRequirements(requests=wanted), allocated_resources=wanted)
    return replace(grown, status=replace(grown.status, container_statuses=(done,), conditions=()))


def driver(*objects: Node | Pod) -> Driver:
    return Driver(*objects, version="1.37", gates=GATE)


def messages(actions: Sequence[Action]) -> list[str]:
    return [record.message for record in all_of(Record, actions) if record.reason == "FailedScheduling"]


def test_the_least_important_pod_is_deleted_and_the_other_nodes_are_named() -> None:
    found = driver(N1, node("n2", cpu=64), A, B, growing())

    actions = found.attempts()

    assert deletions(actions) == ["mark default/a"]
    assert messages(actions) == [
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeName]."
    ]


def test_a_pod_that_fits_waits_for_its_kubelet() -> None:
    """When the victim is gone, nothing more is asked for; another pod that grows makes a further preemption."""
    found = driver(N1, A, B, growing())
    found.carry_out(found.attempts())
    found.see(terminating(A))
    assert found.attempts() == []

    found.miss(A)
    assert found.attempts() == []

    found.see(growing("b2", wants=1, has=1, priority=20))
    found.see(growing("b2", wants=2, has=1, priority=20))
    assert deletions(found.attempts()) == ["mark default/b"]


def test_no_further_victim_is_deleted_once_the_resize_is_done() -> None:
    found = driver(N1, A, B, growing(wants=8))
    mark, *_ = (action for action in found.attempts() if not isinstance(action, Record))

    found.see(resized(growing(wants=4)))

    assert deletions(found.answer(mark)) == []
    assert found.attempts() == []


@pytest.mark.parametrize("reason", ["Infeasible", ""])
def test_only_deferred_resizes_are_attempted(reason: str) -> None:
    assert driver(N1, A, B, growing(reason=reason)).attempts() == []


def test_the_most_important_pod_is_attempted_first() -> None:
    pods = [growing("low", wants=3, has=2, priority=5), growing("high", wants=3, has=2, priority=9)]

    actions = driver(N1, A, B, *pods).attempts()

    assert [record.pod for record in all_of(Record, actions)] == ["default/high", "default/low"]


def test_a_policy_of_the_node_forbids_the_preemption_until_it_ends() -> None:
    policy = NodePodPreemptionPolicy(disable_resize_preemption=("example.com/autoscaler",))
    found = driver(replace(N1, spec=replace(N1.spec, pod_preemption_policy=policy)), A, B, growing())
    actions = found.attempts()
    assert messages(actions) == ["0/1 nodes are available: 1 node had resize preemption disabled."]
    assert deletions(actions) == []

    found.see(N1)

    assert deletions(found.attempts()) == ["mark default/a"]


def test_changes_on_other_nodes_do_not_wake_a_pod() -> None:
    there = pod("there", cpu=1, on="n2")
    found = driver(N1, node("n2", cpu=2), there, pod("peer", cpu=4, priority=10, on="n1"), growing())
    assert messages(found.attempts()) != []

    found.miss(there)
    found.see(node("n2", cpu=4))
    assert found.attempts() == []

    found.miss(pod("peer", cpu=4, priority=10, on="n1"))
    assert found.attempts() == []
    assert not found.scheduler.resizes.due
