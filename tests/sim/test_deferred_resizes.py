"""Resizes in place that the kubelet has deferred: when they are carried out, and the preemption for them in 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.versions.choice import read_choice
from podium.controllers.scheduling.scheduler import Scheduler
from podium.sim.simulation import Simulation
from tests.sim.objects import scenario
from tests.sim.played import played, reported
from tests.store.objects import Raw, node, pod

GATE = "InPlacePodVerticalScalingSchedulerPreemption=true"
START = "2026-01-01T00:00:00Z"
AT_ONCE = {"terminationGracePeriodSeconds": 0}


def deferred(name: str, *, wants: int, has: int, priority: int, **spec: Any) -> Raw:
    """Return a running pod on n1 that waits for room for more CPUs."""
    held = {"cpu": has}
    main = {"name": "main", "image": "app:1", "imageID": "", "ready": True, "restartCount": 0}
    main |= {"allocatedResources": held, "resources": {"requests": held}, "state": {"running": {"startedAt": START}}}
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "PodResizePending", "status": "True", "reason": "Deferred"},
    ]
    status = {"phase": "Running", "startTime": START, "conditions": conditions, "containerStatuses": [main]}
    return pod(name, cpu=wants, node="n1", priority=priority, status=status, spec={**AT_ONCE, **spec})


def low(name: str, cpu: int = 2, on: str = "n1", priority: int = 1) -> Raw:
    status = {"phase": "Running", "startTime": START}
    return pod(name, cpu=cpu, node=on, priority=priority, status=status, spec=AT_ONCE)


def story(*objects: Raw, gates: str = GATE, version: str = "1.37", steps: tuple[Raw, ...] = ()) -> Simulation:
    """Return the end of a run of two minutes."""
    release = read_choice(version, gates).of()
    schedulers = [Scheduler(release=release)]
    return played(*objects, scenario(*steps, until="2m"), schedulers=schedulers, release=release)


def preempted(simulation: Simulation) -> list[str]:
    return [line.split()[2] for line in reported(simulation, "Preempted")]


def is_resized(simulation: Simulation, name: str) -> bool:
    """Return whether a pod has the CPUs that it wants."""
    found = simulation.store.get("Pod", f"default/{name}").raw
    status = found["status"]
    is_pending = any(condition["type"] == "PodResizePending" for condition in status["conditions"])
    wanted = found["spec"]["containers"][0]["resources"]["requests"]
    main = status["containerStatuses"][0]
    assert is_pending == (main["allocatedResources"] != wanted)
    assert is_pending == (main["resources"]["requests"] != wanted)
    return not is_pending


@pytest.mark.parametrize(("gates", "victims"), [(GATE, ["default/least"]), ("", [])])
def test_a_deferred_resize_preempts_on_its_node_with_the_gate_alone(gates: str, victims: list[str]) -> None:
    """The pod preempts the least important pods of its node that suffice, and its kubelet resizes it then."""
    nodes = [node("n1", cpu=8), node("n2", cpu=2)]
    others = [low("less", priority=2), low("least"), low("there", on="n2", priority=0)]

    end = story(*nodes, deferred("web", wants=6, has=4, priority=10), *others, gates=gates)

    assert preempted(end) == victims
    assert is_resized(end, "web") == bool(victims)
    raw = end.store.get("Pod", "default/web").raw
    assert "nominatedNodeName" not in raw["status"]
    assert not any(condition["type"] == "PodScheduled" for condition in raw["status"]["conditions"])


@pytest.mark.parametrize("version", ["1.33", "1.37"])
def test_a_kubelet_carries_out_a_deferred_resize_when_there_is_room(version: str) -> None:
    steps = ({"at": "30s", "delete": {"kind": "Pod", "name": "other", "outright": True}},)

    end = story(
        node("n1", cpu=6),
        deferred("web", wants=6, has=4, priority=0),
        low("other"),
        gates="",
        version=version,
        steps=steps,
    )

    assert is_resized(end, "web")


def test_resizes_are_carried_out_by_priority() -> None:
    """Two pods want the same room: the more important one gets it."""
    pods = [deferred("a", wants=4, has=3, priority=1), deferred("b", wants=4, has=3, priority=2)]

    end = story(node("n1", cpu=7), *pods, gates="")

    assert is_resized(end, "b")
    assert not is_resized(end, "a")


@pytest.mark.parametrize(
    ("fields", "policy"),
    [({"preemptionPolicy": "Never"}, []), ({"schedulerName": "other"}, []), ({}, ["example.com/autoscaler"])],
)
def test_no_preemption_for_pods_and_nodes_that_forbid_it(fields: Raw, policy: list[str]) -> None:
    n1 = node("n1", cpu=6)
    n1["spec"] = {"podPreemptionPolicy": {"disableResizePreemption": policy}}

    end = story(n1, deferred("web", wants=6, has=4, priority=10, **fields), low("other"))

    assert preempted(end) == []
    assert not is_resized(end, "web")


def test_a_resize_without_lower_pods_waits_for_the_node() -> None:
    """No pod of equal priority is a victim; a larger node wakes the pod, which preempts what is still needed."""
    pods = [deferred("web", wants=8, has=4, priority=10), low("equal", priority=10), low("less")]
    steps = ({"at": "30s", "apply": [node("n1", cpu=10)]},)

    end = story(node("n1", cpu=8), *pods, steps=steps)

    assert reported(end, "Preempted") == ["30 Preempted default/less on n1 by default/web"]
    assert is_resized(end, "web")


def test_victims_that_terminate_slowly_are_asked_once() -> None:
    """After the end of the first victim the pod is attempted again, and chooses the same ones."""
    slow = [low("v1"), low("v2")]
    slow[0]["spec"]["terminationGracePeriodSeconds"], slow[1]["spec"]["terminationGracePeriodSeconds"] = 10, 40
    for victim, seconds in zip(slow, (10, 40), strict=True):
        victim["metadata"]["annotations"] = {"podium.dev/termination": f"{seconds}s"}

    end = story(node("n1", cpu=8), deferred("web", wants=8, has=4, priority=10), *slow, low("more", cpu=1, on="n2"))

    assert preempted(end) == ["default/v1", "default/v2"]
    assert is_resized(end, "web")


def test_a_request_for_more_than_the_node_has_preempts_nothing() -> None:
    end = story(node("n1", cpu=6), deferred("web", wants=7, has=4, priority=10), low("other"))

    assert preempted(end) == []
    assert not is_resized(end, "web")


def test_a_pending_pod_does_not_take_the_room_of_a_deferred_resize() -> None:
    """The scheduler counts what the pod wants from the beginning."""
    end = story(node("n1", cpu=6), deferred("web", wants=6, has=4, priority=10), low("other"), pod("new", cpu=2))

    assert preempted(end) == ["default/other"]
    assert "nodeName" not in end.store.get("Pod", "default/new").raw["spec"]
