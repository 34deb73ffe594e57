"""Latencies of requests: the order of actions, the end of a run, and determinism by seed."""

from __future__ import annotations

from functools import partial

import pytest

from podium.api.errors import PodiumError
from podium.controllers.actions import Action, PatchObject, Record
from podium.controllers.deadlines import NEVER, Deadline
from podium.controllers.observations import Changed, Observation
from podium.runtime.runtime import Component
from podium.sim import simulation as standstill
from podium.sim.latencies import RequestsInFlight, in_words, step_times
from podium.sim.results.result import result_of
from podium.sim.run_options import RunOptions
from podium.sim.simulation import Simulation
from tests.sim.objects import scenario, workload
from tests.sim.played import played, reported, simulation_of
from tests.sim.simulating import simulate
from tests.store.objects import Raw, node, pod

MILLISECOND = 10**6
USUAL = 5 * MILLISECOND
GPU: list[Raw] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu'"}}]},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpu"},
        "spec": {
            "driver": "gpu",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    },
]


def test_a_binding_takes_one_request_and_the_report_of_a_kubelet_two() -> None:
    simulation = played(node("n1"), scenario({"at": "1s", "apply": [pod("a")]}, until="5s"), latency_ns=USUAL)

    assert reported(simulation, "Created", "Scheduled", "Started") == [
        "1 Created default/a by scenario",
        "1.005 Scheduled default/a on n1 by default-scheduler",
        "1.015 Started default/a on n1 by kubelet",
    ]


def test_steps_of_one_time_come_one_after_another() -> None:
    assert step_times([0, 0, 0, 7], USUAL, None) == [0, 25 * MILLISECOND, 50 * MILLISECOND, 50 * MILLISECOND]


def test_many_steps_of_one_time_take_no_longer_than_a_tenth_of_a_second() -> None:
    times = step_times([0] * 1_000, USUAL, None)

    assert times == [index * MILLISECOND // 10 for index in range(1_000)]


def test_steps_of_the_last_time_are_all_played() -> None:
    second = 10**9

    assert step_times([second, second, 2 * second], USUAL, second) == [second, second, 2 * second]


def test_without_latency_steps_keep_their_times() -> None:
    assert step_times([0, 0, 5, 5], 0, 5) == [0, 0, 5, 5]


def test_requests_on_their_way_at_the_end_take_effect() -> None:
    simulation = played(node("n1"), scenario({"at": "5s", "apply": [pod("a")]}, until="5s"), latency_ns=USUAL)

    assert reported(simulation, "Scheduled", "Started") == [
        "5 Scheduled default/a on n1 by default-scheduler",
        "5 Started default/a on n1 by kubelet",
    ]


def waiting_for_the_device(latency: str) -> list[tuple[float, str]]:
    """Return when a pod is attempted that waits for the device of another, which has ended."""
    claim = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}], "restartPolicy": "Never"}
    first, second = (pod(name, cpu=1, spec=claim) for name in ("first", "second"))
    first["metadata"]["annotations"] = {"podium.dev/duration": "10s"}
    steps = [{"at": "0s", "apply": [first]}, {"at": "1s", "apply": [second]}]
    result = simulate([node("n1", cpu=1), *GPU, scenario(*steps, until="30s")], latency=latency)
    events = [event for event in result.events if event.pod == "default/second"]
    return [(event.time, event.reason) for event in events if event.time > 5]


def test_the_scheduler_tries_a_pod_before_the_claim_is_freed_that_it_waits_for() -> None:
    assert waiting_for_the_device("0")[0][1] == "Nominated"

    assert waiting_for_the_device("5ms")[0][1] == "FailedScheduling"


def test_a_victim_that_two_preemptors_delete_is_preempted_once() -> None:
    steps = [{"at": "1s", "apply": [pod(name, cpu=1, priority=10) for name in ("a", "b")]}]
    budget: Raw = {"terminationGracePeriodSeconds": 5}
    objects = [node("n1", cpu=2), pod("victim", cpu=2, node="n1", spec=budget), scenario(*steps, until="20s")]

    result = simulate(objects, latency="20ms")

    assert [event.pod for event in result.events if event.reason == "Preempted"] == ["default/victim"]


def test_the_first_of_several_preemptors_that_report_a_victim_has_preempted_it() -> None:
    history = simulation_of(node("n1")).history

    for preemptor in ("default/a", "default/b"):
        history.record(Record("default/v", "uid-v", "Normal", "Preempted", "", "n1", preemptor), "scheduler", 0)
    history.record(Record("default/v", "uid-of-its-namesake", "Normal", "Preempted", "", "n1", "default/b"), "s", 0)

    assert [event.by for event in history.events if event.reason == "Preempted"] == ["default/a", "default/b"]


def test_the_same_seed_draws_the_same_latencies() -> None:
    objects = [node("n1"), scenario({"at": "1s", "apply": [workload("ReplicaSet", "web", 3)]}, until="5s")]

    def bound(seed: int | None) -> list[str]:
        simulation = simulation_of(*objects, latency_ns=USUAL, latency_seed=seed)
        while simulation.step():
            pass
        return reported(simulation, "Scheduled", "Started")

    assert bound(1) == bound(1)
    assert len({tuple(bound(seed)) for seed in (None, 1, 2)}) == 3


class _Contradicting:
    """A machine that writes its own name into every node as soon as another one stands there."""

    watches = frozenset({"Node"})

    def __init__(self, name: str) -> None:
        self._name = name

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if not isinstance(observation, Changed) or observation.object.metadata.labels.get("by") == self._name:
            return []
        metadata = observation.object.metadata
        patch = {"metadata": {"labels": {"by": self._name}}}
        return [PatchObject("Node", metadata.name, metadata.uid, patch, "test")]

    def deadline(self) -> Deadline:
        return NEVER


@pytest.mark.parametrize("latency_ns", [0, 1, USUAL])
def test_components_that_undo_what_others_wrote_are_an_error_however_long_requests_take(
    latency_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the error the time that the requests take passes, and the two go on until the end of time."""
    monkeypatch.setattr(standstill, "_SPARE_WRITES", 500)
    monkeypatch.setattr(standstill, "_WRITES_AN_OBJECT", 1)
    step = {"at": "1s", "apply": [node("n1")]}

    simulation = simulation_of(
        scenario(step, until="1h"),
        schedulers=[Component(name, partial(_Contradicting, name)) for name in ("a", "b")],
        latency_ns=latency_ns,
    )

    with pytest.raises(PodiumError, match=r"^(a|b) goes on for ever at one instant: \d+ of 5\d\d writes are its own$"):
        _step_often(simulation)


def _step_often(simulation: Simulation) -> None:
    for _ in range(10_000):
        simulation.step()


def test_a_scenario_says_how_long_requests_take() -> None:
    steps = {"at": "1s", "apply": [pod("a")]}
    objects = [node("n1"), scenario(steps, until="5s", latency="20ms")]

    assert simulate(objects).to_dict()["latencies"] == {"seconds": 0.02, "drawn": False}
    assert simulate(objects, latency=0).to_dict()["latencies"] == {"seconds": 0, "drawn": False}
    drawn = [result_of(simulation_of(*objects, latency_ns=latency_ns, latency_seed=1)) for latency_ns in (0, 1)]
    assert [result.draws_latencies for result in drawn] == [False, True]
    assert RunOptions().latency_ns is None


def test_latencies_have_a_text_form() -> None:
    assert in_words(USUAL).startswith("latencies: 5ms for a scheduler's request, 10ms for")
    assert in_words(0) == "latencies: none; requests take no time"
    assert RequestsInFlight(USUAL).next_time() is None
