"""The autoscaler adds nodes: for which pods, how many, and with what result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podium.api.devices import ResourcePool, ResourceSlice, ResourceSliceSpec
from podium.api.meta import ObjectMeta, Raw
from podium.api.node import CSINode, CSINodeDriver, CSINodeSpec
from podium.controllers.actions import Action, CreateObject, PatchObject
from podium.controllers.autoscaling.autoscaler import Autoscaler, AutoscalerSettings
from podium.controllers.observations import Problem
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.autoscaling import STARTUP_TAINT, NodeGroup, ScaleDownSettings
from tests.controllers.node_rig import BROKEN, LOST, MINUTE, SECOND, UNSENT, Rig, crash_after, in_group, pod
from tests.store.objects import node

FORBIDDEN = Problem(403, "Forbidden", "no more machines")
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
NOMINATED_ANNOTATION = "scheduler.kubernetes.io/nominated-node-name"


def group(name: str = "pool", maximum: int = 3, *, cpu: int = 4, start_up: int = 40, **spec: Any) -> NodeGroup:
    template = {"spec": spec, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}}
    return NodeGroup(name, 0, maximum, start_up * SECOND, template)


def autoscaled(*groups: NodeGroup, **settings: Any) -> Rig:
    return Rig(lambda: Autoscaler(groups or (group(),), AutoscalerSettings(**settings)))


def pending(name: str, *, reason: str = "Unschedulable", nominated: str = "", **more: Any) -> Raw:
    """Return a pod for which the scheduler has found no node."""
    status: Raw = {"phase": "Pending", "conditions": [{**UNSCHEDULABLE, "reason": reason}]}
    if nominated:
        status["nominatedNodeName"] = nominated
    return pod(name, status=status, **more)


def autoscaler_of(rig: Rig) -> Autoscaler:
    machine = rig.machines[0]
    assert isinstance(machine, Autoscaler)
    return machine


def created(rig: Rig) -> list[str]:
    """Return what was created, with the time."""
    return [one for one in rig.log if " create " in one]


def test_a_node_is_created_for_an_unschedulable_pod_and_is_ready_after_its_start_up_time() -> None:
    rig = autoscaled(group(start_up=40))
    rig.apply(pending("p", cpu=3))
    rig.pass_to(49)

    assert rig.log == ["10 create pool-0"]
    assert rig.taints("pool-0") == [STARTUP_TAINT]
    assert [(one.type, one.status) for one in rig.nodes()["pool-0"].status.conditions] == [("Ready", "False")]

    rig.pass_to(50)

    assert rig.log[1:] == ["50 patch pool-0: ready", "50 patch pool-0: started"]
    assert rig.taints("pool-0") == []
    assert [(one.type, one.status) for one in rig.nodes()["pool-0"].status.conditions] == [("Ready", "True")]
    assert rig.events == ["TriggeredScaleUp p: pod triggered scale-up: pool 0->1 (max: 3)"]


def test_a_group_may_start_without_delay() -> None:
    rig = autoscaled(group(start_up=0))
    rig.apply(pending("p"))
    rig.pass_to(10)

    assert rig.log == ["10 create pool-0", "10 patch pool-0: ready", "10 patch pool-0: started"]


def test_pods_that_come_within_the_scan_interval_are_planned_for_together() -> None:
    rig = autoscaled(scan_interval_ns=20 * SECOND)
    for number in range(4):
        rig.pass_to(number)
        rig.apply(pending(f"p{number}", cpu=2))
    rig.pass_to(30)

    assert created(rig) == ["20 create pool-0", "20 create pool-1"]


def test_a_pod_gets_no_second_node_while_the_first_is_starting() -> None:
    rig = autoscaled()
    rig.apply(pending("p0", cpu=3))
    rig.pass_to(20)
    rig.apply(pending("p1", cpu=1))
    rig.pass_to(45)
    rig.apply(pending("p2", cpu=4))
    rig.pass_to(300)

    assert created(rig) == ["10 create pool-0", "55 create pool-1"]


def test_expected_daemon_pods_reduce_the_room_of_a_starting_node() -> None:
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": 2}}}]},
            },
        },
    }
    rig = autoscaled()
    rig.apply(agent, pending("p0", cpu=1))
    rig.pass_to(20)
    rig.apply(pending("p1", cpu=2))
    rig.pass_to(300)

    assert created(rig) == ["10 create pool-0", "30 create pool-1"]


def test_no_node_is_added_when_there_is_room_after_all() -> None:
    rig = autoscaled()
    rig.apply(node("n1", cpu=4), pending("p", cpu=3))
    rig.rest()

    assert rig.log == []


def test_groups_respect_their_maximum_and_leftover_pods_are_reported() -> None:
    rig = autoscaled(group(maximum=2))
    rig.apply(*(pending(f"p{number}", cpu=4) for number in range(3)))
    rig.rest()

    assert created(rig) == ["10 create pool-0", "10 create pool-1"]
    left_over = "NotTriggerScaleUp p2: pod didn't trigger scale-up: pool: at its maximum of 2 nodes"
    assert rig.events.count(left_over) == 1
    assert len(rig.events) == 3


def test_existing_nodes_belong_to_a_group_by_label_not_name() -> None:
    rig = autoscaled(group(maximum=2))
    rig.apply(in_group("old", cpu=1), node("pool-0", cpu=1), pending("p0", cpu=4), pending("p1", cpu=4))
    rig.pass_to(300)

    assert created(rig) == ["10 create pool-1"]


def test_a_pod_hears_why_other_groups_were_not_taken() -> None:
    small, large = group("small", cpu=2), group("large", cpu=16)
    rig = autoscaled(small, large, group("right", cpu=4))
    rig.apply(pending("p", cpu=3))
    rig.pass_to(10)

    assert rig.events == [
        "TriggeredScaleUp p: pod triggered scale-up: right 0->1 (max: 3); "
        "large: wastes 90.6% instead of 62.5%; small: Insufficient cpu"
    ]


def test_of_groups_that_waste_alike_the_first_by_name_is_taken_and_pods_hear_that() -> None:
    rig = autoscaled(group("b", cpu=4), group("a", cpu=4))
    rig.apply(pending("p", cpu=3))
    rig.pass_to(10)

    assert rig.events == [
        "TriggeredScaleUp p: pod triggered scale-up: a 0->1 (max: 3); b: wastes 62.5% as well, and is later by name"
    ]


def test_without_groups_pods_hear_that() -> None:
    rig = Rig(lambda: Autoscaler([]))
    rig.apply(pending("p"))
    rig.rest()

    assert rig.events == ["NotTriggerScaleUp p: pod didn't trigger scale-up: there is no node group"]


def test_two_groups_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Autoscaler([group(), group()])


# Pods that trigger a scale-up


@pytest.mark.parametrize(
    "one",
    [
        pod("p"),
        pending("p", reason="SchedulingGated"),
        pending("p", priority=-11),
        pending("p", metadata={"deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 30}),
        pending("p", nominated="n1"),
        pending("p", annotations={NOMINATED_ANNOTATION: "n1"}),
    ],
)
def test_pods_that_do_not_count_get_no_node(one: Raw) -> None:
    rig = autoscaled()
    rig.apply(one)
    rig.pass_to(300)

    assert (created(rig), rig.events) == ([], [])


def test_the_cutoff_says_from_which_priority_on_pods_get_nodes() -> None:
    rig = autoscaled(priority_cutoff=5)
    rig.apply(pending("low", priority=4, cpu=4), pending("high", priority=5, cpu=4))
    rig.rest()

    assert created(rig) == ["10 create pool-0"]
    assert [one.split(":")[0] for one in rig.events] == ["TriggeredScaleUp high"]


def preempting(*groups: NodeGroup) -> Rig:
    """Return a scheduler beside the autoscaler, and a node that is full with one pod, which takes 60 s to end."""
    rig = Rig(lambda: Autoscaler(groups or (group(),)), Scheduler)
    batch = pod("batch", cpu=3, priority=1, node="n1", owner="", spec={"terminationGracePeriodSeconds": 60})
    rig.apply(node("n1", cpu=4), batch)
    return rig


@pytest.mark.failure(81)
def test_no_node_is_added_for_a_pod_for_which_preemption_is_making_room() -> None:
    rig = preempting()
    rig.apply(pod("urgent", cpu=4, priority=100))

    assert rig.pods()["urgent"].status.nominated_node_name == "n1"

    rig.pass_to(300)

    assert created(rig) == []
    assert rig.pods()["urgent"].spec.node_name == "n1"


@pytest.mark.failure(81)
def test_a_new_node_is_provided_for_the_replacement_of_a_victim() -> None:
    rig = preempting(group(start_up=90))
    rig.apply(pod("urgent", cpu=4, priority=100), pod("replacement", cpu=3, priority=1))
    rig.pass_to(300)

    assert created(rig) == ["10 create pool-0"]
    assert rig.pods()["replacement"].spec.node_name == "pool-0"


@pytest.mark.failure(82)
def test_a_nomination_by_any_scheduler_counts() -> None:
    rig = autoscaled()
    foreign = pending("foreign", cpu=4, priority=5, nominated="n1", spec={"schedulerName": "another"})
    rig.apply(node("n1", cpu=4), foreign)
    rig.pass_to(300)

    assert created(rig) == []

    rig.apply(pending("p", cpu=1))
    rig.pass_to(400)

    assert created(rig) == ["310 create pool-0"]


@pytest.mark.failure(82)
def test_the_room_that_a_small_nominated_pod_leaves_of_a_large_victim_needs_no_node() -> None:
    rig = autoscaled()
    rig.apply(node("n1", cpu=8), pending("small", cpu=1, priority=5, nominated="n1"), pending("p", cpu=4))
    rig.rest()

    assert created(rig) == []


@pytest.mark.failure(82)
def test_a_pod_that_loses_its_nomination_gets_a_node() -> None:
    rig = autoscaled()
    rig.apply(node("n1", cpu=1), pending("p", cpu=4, nominated="n1"))
    rig.pass_to(100)
    rig.patch("Pod", "default/p", {"status": {"nominatedNodeName": None}}, status=True)
    rig.rest()

    assert created(rig) == ["110 create pool-0"]


# What goes wrong


def test_a_group_whose_nodes_are_refused_pauses_and_another_is_taken() -> None:
    rig = autoscaled(group("a"), group("b"))
    rig.fault = lambda action: FORBIDDEN if _creates(action, "a") else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(300)

    assert created(rig) == ["10 create a-0 (403)", "20 create b-0"]


def test_a_pause_grows_and_a_simulation_does_not_wait_for_it_for_ever() -> None:
    rig = autoscaled()
    rig.fault = lambda action: FORBIDDEN if isinstance(action, CreateObject) else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(3_000)

    assert created(rig) == [f"{seconds} create pool-0 (403)" for seconds in (10, 310, 910, 2_110)]
    assert "tried again from 2026-01-01T00:05:10Z" in rig.events[1]

    rig.rest()
    assert autoscaler_of(rig).deadline().time_ns is not None


def test_a_node_whose_creation_was_not_answered_is_asked_for_again_and_not_twice() -> None:
    rig = autoscaled()
    rig.fault = lambda action: UNSENT if isinstance(action, CreateObject) and rig.seconds < 12 else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(100)

    assert created(rig) == ["10 create pool-0 (0)", "11 create pool-0 (0)", "13 create pool-0"]

    rig = autoscaled()
    rig.fault = lambda action: LOST if isinstance(action, CreateObject) else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(100)

    assert created(rig) == ["10 create pool-0 (0)"]


def test_a_name_that_turns_out_to_be_taken_is_left_alone() -> None:
    rig = autoscaled()
    rig.apply(pending("p", cpu=4))
    rig.lags = True
    rig.apply(node("pool-0", cpu=1))
    rig.pass_to(9)
    rig.miss()
    rig.lags = False
    rig.pass_to(40)

    assert created(rig)[:2] == ["10 create pool-0 (409)", "20 create pool-0 (409)"]
    rig.restart()
    rig.pass_to(100)
    assert created(rig)[-1] == "50 create pool-1"


def test_a_start_that_cannot_be_written_down_is_tried_again() -> None:
    rig = autoscaled()
    rig.fault = lambda action: BROKEN if isinstance(action, PatchObject) and rig.seconds < 52 else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(60)

    assert rig.log[1:] == [
        "50 patch pool-0: ready (500)",
        "51 patch pool-0: ready (500)",
        "53 patch pool-0: ready",
        "53 patch pool-0: started",
    ]


def test_a_starting_node_gets_its_groups_devices_and_drivers_before_it_is_ready() -> None:
    """They are copies for the node, created again until they are accepted, and belong to the node."""
    drivers = CSINode(metadata=ObjectMeta(name="some"), spec=CSINodeSpec(drivers=(CSINodeDriver(name="disk"),)))
    pool = ResourcePool(name="some", resource_slice_count=1)
    devices = ResourceSlice(
        metadata=ObjectMeta(name="some-gpus"), spec=ResourceSliceSpec(driver="gpu", pool=pool, node_name="some")
    )
    rig = autoscaled(replace(group(), reports=(drivers, devices)))
    rig.fault = lambda action: BROKEN if _makes_slice(action) and rig.seconds < 52 else None
    rig.apply(pending("p", cpu=4))
    rig.pass_to(60)

    assert rig.log[1:] == [
        "50 create pool-0",
        "50 create pool-0-gpus (500)",
        "51 create pool-0-gpus (500)",
        "53 create pool-0-gpus",
        "53 patch pool-0: ready",
        "53 patch pool-0: started",
    ]
    made = rig.store.get("ResourceSlice", "pool-0-gpus").raw
    assert (made["spec"]["nodeName"], made["spec"]["pool"]["name"]) == ("pool-0", "pool-0")
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [rig.nodes()["pool-0"].metadata.uid]


def test_a_condition_written_by_another_client_is_not_overwritten() -> None:
    rig = autoscaled()
    rig.apply(pending("p", cpu=4))
    rig.pass_to(20)
    reported = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    rig.patch("Node", "pool-0", {"status": {"conditions": reported}}, status=True)
    rig.pass_to(60)

    assert rig.log[1:] == ["50 patch pool-0: started"]
    assert rig.nodes()["pool-0"].status.conditions[0].status == "Unknown"


@pytest.mark.parametrize("seconds", range(5, 60, 5))
def test_an_autoscaler_resumes_after_a_restart_at_any_moment(seconds: int) -> None:
    rig = autoscaled(group(maximum=2))
    rig.apply(*(pending(f"p{number}", cpu=4) for number in range(3)))
    rig.pass_to(seconds)
    rig.restart()
    rig.rest()

    assert sorted(rig.nodes()) == ["pool-0", "pool-1"]
    assert [rig.taints(name) for name in rig.nodes()] == [[], []]
    assert len(created(rig)) == 2


@pytest.mark.parametrize("after", range(5))
def test_a_crash_between_two_actions_leaves_the_group_within_its_maximum(after: int) -> None:
    rig = autoscaled(group(maximum=2))
    rig.fault = crash_after(after)
    rig.apply(*(pending(f"p{number}", cpu=4) for number in range(3)))
    rig.pass_to(10)
    rig.fault = lambda action: None
    rig.restart()
    rig.rest()

    assert sorted(rig.nodes()) == ["pool-0", "pool-1"]


def test_an_autoscaler_without_work_is_idle() -> None:
    rig = autoscaled()
    assert autoscaler_of(rig).deadline().time_ns is None

    rig.apply(node("n1"), pod("a", node="n1"))
    rig.rest()

    assert autoscaler_of(rig).deadline().time_ns is None
    assert rig.seconds == 10


def test_heartbeats_and_other_reports_do_not_wake_it() -> None:
    rig = autoscaled(scale_down=ScaleDownSettings(unneeded_time_ns=MINUTE))
    rig.apply(node("n1"), pod("a", node="n1"))
    rig.rest()
    ready = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}]
    rig.patch("Node", "n1", {"status": {"conditions": ready}}, status=True)
    rig.rest()
    rig.patch("Node", "n1", {"status": {"conditions": [{**ready[0], "message": "still well"}]}}, status=True)
    rig.patch("Pod", "default/a", {"status": {"conditions": ready}}, status=True)

    assert autoscaler_of(rig).deadline().time_ns is None


def _makes_slice(action: Action) -> bool:
    return isinstance(action, CreateObject) and action.raw["kind"] == "ResourceSlice"


def _creates(action: Action, group_: str) -> bool:
    return isinstance(action, CreateObject) and action.raw["metadata"]["name"].startswith(group_)
