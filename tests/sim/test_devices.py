"""Device claims in simulations with the whole scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from podium.apirequests.request import Request
from podium.controllers.scheduling.scheduler import Scheduler
from podium.runtime.runtime import Component
from podium.sim.faults import Faults
from podium.sim.simulation import Simulation
from tests.devices import (
    DRIVER,
    allocated,
    claim,
    claim_template,
    device,
    device_class,
    devices_of,
    request,
    resource_slice,
    using,
)
from tests.fuzzing import FUZZ_RUNS, FUZZ_SEED
from tests.sim.device_invariants import check_devices, claims, held
from tests.sim.faults import DrawnFaults, Fault
from tests.sim.objects import scenario
from tests.sim.played import pods, reported, simulation_of
from tests.store.objects import Raw, node, pod

SCHEDULER = "default-scheduler"
RATES = {
    Fault.REQUEST_REFUSED: 0.1,
    Fault.REQUEST_CONFLICT: 0.05,
    Fault.REQUEST_LOST: 0.05,
    Fault.ANSWER_LOST: 0.1,
    Fault.REQUEST_TWICE: 0.1,
    Fault.WATCH_LATE: 0.3,
    Fault.WATCH_TWICE: 0.1,
    Fault.CRASH_AFTER: 0.02,
}
WORSE = {
    **RATES,
    Fault.REQUEST_LOST: 0.1,
    Fault.ANSWER_LATE: 0.2,
    Fault.WATCH_BREAKS: 0.05,
    Fault.WATCH_MERGES: 0.1,
}
CLAIMING = tuple(f"p{i}" for i in range(5))
EXTENDED = tuple(f"x{i}" for i in range(3))
ENDS = {"podium.dev/duration": "30s"}


def simulated(*objects: Raw, faults: Faults | None = None, **settings: Any) -> Simulation:
    component = Component(SCHEDULER, Scheduler, waits=True)
    return simulation_of(device_class(), *objects, schedulers=[component], faults=faults, **settings)


def played(*objects: Raw, **settings: Any) -> Simulation:
    simulation = simulated(*objects, **settings)
    while simulation.step():
        check_devices(simulation.store)
    return simulation


def asking(name: str, **requests: str) -> Raw:
    """Return a pod that runs for 30 s and requests these resources; `gpu` is the extended one."""
    amounts = {"example.com/gpu" if key == "gpu" else key: value for key, value in requests.items()}
    containers = [{"name": "main", "resources": {"requests": amounts}}]
    return pod(name, annotations=ENDS, spec={"containers": containers, "restartPolicy": "Never"})


def lasting(name: str, **more: Any) -> Raw:
    return pod(name, annotations=ENDS, spec={"restartPolicy": "Never"}, **more)


def where(simulation: Simulation) -> dict[str, str]:
    return {name: one.spec.node_name for name, one in pods(simulation).items()}


def test_a_pod_gets_devices_and_gives_them_back_when_it_ends() -> None:
    first, second = using(lasting("a"), template="gpu"), using(lasting("b"), template="gpu")
    simulation = played(node("n1"), devices_of("n1", device("g")), claim_template("gpu"), first, second)

    assert where(simulation) == {"a": "n1", "b": "n1"}
    assert [line for line in reported(simulation, "Scheduled") if " on " in line] == [
        "0 Scheduled default/a on n1 by default-scheduler",
        "30 Scheduled default/b on n1 by default-scheduler",
    ]
    assert claims(simulation.store) == {}


def test_pods_share_a_claim_where_its_devices_are() -> None:
    simulation = played(
        node("n1"),
        node("n2"),
        devices_of("n2", device("g")),
        claim("c"),
        using(pod("a"), "c"),
        using(pod("b"), "c"),
        scenario(until="1m"),
    )

    assert where(simulation) == {"a": "n2", "b": "n2"}
    (found,) = claims(simulation.store).values()
    assert sorted(one.name for one in found.status.reserved_for) == ["a", "b"]


def test_extended_resources_get_devices_where_the_node_has_none_of_them_itself() -> None:
    stands_for = device_class("extended", extendedResourceName="example.com/gpu")
    simulation = played(
        node("n1"),
        stands_for,
        devices_of("n1", device("g")),
        asking("a", cpu="1", gpu="1"),
        asking("b", cpu="1", gpu="1"),
    )

    assert [line.split()[:3] for line in reported(simulation, "Scheduled")] == [
        ["0", "Scheduled", "default/a"],
        ["30", "Scheduled", "default/b"],
    ]
    status = simulation.store.get("Pod", "default/a").raw["status"]["extendedResourceClaimStatus"]
    assert status["requestMappings"] == [
        {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-0-request-1"}
    ]
    assert status["resourceClaimName"].startswith("a-extended-resources-")
    assert claims(simulation.store) == {}


def test_an_unused_claim_is_freed_only_for_a_pod_that_needs_it() -> None:
    full = pod("full", node="n1", cpu=4, priority=1_000)
    simulation = played(
        node("n1", cpu=4),
        node("n2", cpu=4),
        devices_of("n1", device("g")),
        devices_of("n2", device("g")),
        claim("c", status=allocated("n1", "g")),
        full,
        using(pod("a"), "c"),
        scenario(until="5m"),
    )

    assert where(simulation)["a"] == "n2"
    assert held(simulation.store) == {("n2", "g"): 1}


def test_a_pod_waits_until_its_devices_are_ready() -> None:
    slow = device("g", bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    ready = allocated("n1", "g", to=["a"], bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    said = {"driver": DRIVER, "pool": "n1", "device": "g", "conditions": [{"type": "Ready", "status": "True"}]}
    objects = (node("n1"), devices_of("n1", slow), claim("c"), using(pod("a"), "c"))
    simulation = simulated(*objects, scenario(until="15m"))
    while simulation.elapsed_ns < 12 * 10**9 and simulation.step():
        pass
    assert where(simulation)["a"] == ""

    stored = simulation.store.get("ResourceClaim", "default/c")
    status = {**stored.raw["status"], "devices": [said]}
    report = Request(
        verb="update", kind=stored.kind, key=stored.key, subresource="status", body={**stored.raw, "status": status}
    )
    assert simulation.server.ask(report, "driver", simulation.now).error is None
    while simulation.step():
        check_devices(simulation.store)

    assert where(simulation)["a"] == "n1"
    assert [line.split()[0] for line in reported(simulation, "Scheduled")] == ["15"]
    assert ready["reservedFor"][0]["name"] == "a"


def test_devices_that_are_not_ready_in_time_are_taken_back_and_others_tried() -> None:
    slow = device("g", bindingConditions=["Ready"], bindingFailureConditions=[])
    simulation = played(node("n1"), devices_of("n1", slow), claim("c"), using(pod("a"), "c"), scenario(until="11m"))

    assert "device binding timeout" in " ".join(event.message or "" for event in simulation.history.events)
    assert where(simulation)["a"] == ""


def test_a_pod_is_woken_by_devices_classes_and_claims_that_come() -> None:
    steps = [
        {"at": "5s", "apply": [device_class("new")]},
        {"at": "10s", "apply": [claim("c", request(of="new"))]},
        {"at": "60s", "apply": [devices_of("n1", device("g"))]},
    ]
    simulation = played(node("n1"), using(pod("a"), "c"), scenario(*steps, until="5m"))

    assert reported(simulation, "Scheduled") == ["60 Scheduled default/a on n1 by default-scheduler"]


def test_a_removed_device_taint_wakes_the_waiting_pods() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain"},
        "spec": {"taint": {"key": "drain", "effect": "NoSchedule"}},
    }
    steps = [{"at": "60s", "delete": {"kind": "DeviceTaintRule", "name": "drain"}}]
    simulation = played(
        node("n1"), rule, devices_of("n1", device("g")), claim("c"), using(pod("a"), "c"), scenario(*steps, until="5m")
    )

    assert [line.split()[0] for line in reported(simulation, "Scheduled")] == ["60"]


def test_a_claim_that_fails_in_every_node_is_an_error_that_is_tried_again() -> None:
    wrong = claim("c", request("r", 'device.attributes["none"].model == "a"'))
    simulation = played(node("n1"), devices_of("n1", device("g")), wrong, using(pod("a"), "c"), scenario(until="1m"))

    failed = [event for event in simulation.history.events if event.reason == "FailedScheduling"]
    assert "CEL runtime error: no such key: model" in (failed[0].message or "")
    assert sum(event.count for event in failed) > 1


def random_story(seed: int, rates: Mapping[Fault, float], *steps: Raw) -> Simulation:
    """Eight pods for five devices, with claims of their own and for extended resources, until nothing happens any more.

    It goes on for longer than the five minutes after which every pod is tried again: kube-scheduler is woken by claims
    that come and change, and by none that goes. A pod that is tried between the last change of the claim that was made
    for it and that claim's end, which a late watch brings apart, is turned down, and waits for these five minutes.
    """
    stands_for = device_class("extended", extendedResourceName="example.com/gpu")
    network = resource_slice("net", *({"name": f"net-{i}"} for i in range(2)), allNodes=True)
    simulation = simulated(
        node("n1"),
        node("n2"),
        devices_of("n1", device("g")),
        devices_of("n2", device("g"), device("h")),
        network,
        stands_for,
        claim_template("gpu"),
        *(using(lasting(name), template="gpu") for name in CLAIMING),
        *(asking(name, cpu="1", gpu="1") for name in EXTENDED),
        scenario(*steps, until="20m"),
        faults=DrawnFaults(rates, seed),
        seed=seed,
    )
    count = 0
    while simulation.step():
        check_devices(simulation.store)
        count += 1
        assert count < 20_000
    assert held(simulation.store) == {}
    return simulation


def story_with_deletions(seed: int) -> None:
    """Half of the pods go at some time, some of them at once; requests and watches fare worse."""
    random = Random(f"deletions:{seed}")
    times_ms = sorted(random.choices(range(12_000), k=4))
    names = random.sample((*CLAIMING, *EXTENDED), k=len(times_ms))
    steps = [
        {"at": f"{time_ms}ms", "delete": {"kind": "Pod", "name": name, "outright": random.random() < 0.3}}
        for time_ms, name in zip(times_ms, names, strict=True)
    ]

    simulation = random_story(seed, WORSE, *steps)

    assert {one.status.phase for one in pods(simulation).values()} <= {"Succeeded"}
    scheduler = next(one.controller for one in simulation.runtime.components if one.name == SCHEDULER)
    assert isinstance(scheduler, Scheduler)
    assert not scheduler.bindings.reservations.doubted
    assert scheduler.cluster.devices.in_flight == {}


# Besides the first ones, those that have found something.
@pytest.mark.parametrize("seed", [*range(6), 37, 55, 80, 157, 167, 220, 279])
def test_devices_are_never_shared_and_all_pods_get_theirs_under_any_failure(seed: int) -> None:
    simulation = random_story(seed, RATES)

    assert {one.status.phase for one in pods(simulation).values()} == {"Succeeded"}


@pytest.mark.parametrize("seed", [*range(4), 90, 125, 218, 7769])
def test_devices_are_never_shared_and_all_return_under_failures_and_deletions(seed: int) -> None:
    story_with_deletions(seed)


@pytest.mark.fuzz
def test_no_device_is_given_twice_in_many_more_stories() -> None:
    for seed in range(FUZZ_SEED, FUZZ_SEED + FUZZ_RUNS):
        simulation = random_story(seed, RATES)
        assert {one.status.phase for one in pods(simulation).values()} == {"Succeeded"}, seed
        story_with_deletions(seed)
