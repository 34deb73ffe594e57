"""Guiding replacements to their nodes: avoid lists, hints, nominations, bindings and node marks."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.node import Node
from podium.controllers.scheduling.scheduler import Scheduler
from podium.sim.simulation import Simulation
from tests.controllers.rescheduling.policies import BAD, PLACE
from tests.sim.objects import scenario, workload
from tests.sim.played import pods, reported, simulation_of
from tests.store.objects import Raw, node, pod

EAGER: Raw = {
    "aggressiveness": "Bold",
    "policies": [{"name": PLACE}],
    "interval": "10s",
    "scope": {"minimumAge": "30s"},
}


def template(**spec: Any) -> Raw:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {**pod("")["spec"], "terminationGracePeriodSeconds": 5, **spec},
    }


def moved(*steps: Raw, replicas: int = 1, template: Raw | None = None, nodes: int = 2, **settings: Any) -> Simulation:
    """Return a cluster whose pods are on the bad node when others come."""
    made = workload("ReplicaSet", "web", replicas, template=template or globals()["template"]())
    others = [node(f"n{number}") for number in range(2, nodes + 1)]
    plan = scenario({"at": "1s", "apply": others}, *steps, rescheduler={**EAGER, **settings})
    simulation = simulation_of(node(BAD), made, plan, schedulers=[Scheduler()])
    for _ in range(20_000):
        if not simulation.step():
            return simulation
    raise AssertionError("it never ends")


def places(simulation: Simulation) -> list[str]:
    return sorted(one.spec.node_name for one in pods(simulation).values())


def marks(simulation: Simulation) -> list[str]:
    return [
        event.message
        for event in simulation.history.events
        if event.reason == "NodeChanged" and "mark" in event.message
    ]


def test_eviction_alone_leaves_the_place_to_the_scheduler() -> None:
    simulation = moved()

    assert places(simulation) == ["n2"]
    assert reported(simulation, "Nominated") == []


def test_hints_use_the_avoid_list_for_schedulers_that_honour_it() -> None:
    simulation = moved(guidance="Hint", nodes=4)

    assert reported(simulation, "Nominated") == []
    (hinted,) = [event.message for event in simulation.history.events if "a try at" in event.message]
    (place,) = places(simulation)
    assert hinted.endswith(
        f"a try at {place} for the replacement of pod {reported(simulation, 'Killing')[0].split()[2].split('/')[1]}"
    )


def test_other_schedulers_receive_the_hint_as_a_nomination_of_the_replacement() -> None:
    simulation = moved(guidance="Hint", steering="ScoresAlone")

    assert reported(simulation, "Nominated")[0].endswith("on n2 by rescheduler")
    assert places(simulation) == ["n2"]


def test_a_binding_is_the_reschedulers_own() -> None:
    simulation = moved(guidance="Bind")

    assert reported(simulation, "Scheduled")[-1].endswith("on n2 by rescheduler")
    assert places(simulation) == ["n2"]


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulingGates": [{"name": "wait"}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
    ],
    ids=["gated", "with a volume"],
)
def test_a_replacement_that_needs_its_scheduler_is_not_bound(spec: Raw) -> None:
    simulation = moved(guidance="Bind", template=template(**spec))

    assert not [line for line in reported(simulation, "Scheduled") if line.endswith("by rescheduler")]


def test_a_node_is_marked_before_and_until_moves_off_it_are_over() -> None:
    simulation = moved(steering="SoftTaint", replicas=2, limits={"inFlight": {"owner": 1}})

    changes = [
        (event.reason, event.message.partition(":")[0])
        for event in simulation.history.events
        if event.by == "rescheduler" and (event.reason == "Killing" or "mark" in event.message)
    ]
    assert [reason for reason, _ in changes][:2] == ["NodeChanged", "Killing"]
    assert changes[0] == ("NodeChanged", "marked")
    assert changes[-1] == ("NodeChanged", "unmarked")
    assert places(simulation) == ["n2", "n2"]
    left = simulation.store.get("Node", BAD).object
    assert isinstance(left, Node)
    assert left.spec.taints == ()


def test_a_mark_that_an_earlier_life_left_is_taken_off() -> None:
    spoiled = {**node("n1"), "spec": {"taints": [{"key": "podium.dev/moving-pods-away", "effect": "PreferNoSchedule"}]}}
    simulation = simulation_of(spoiled, scenario(rescheduler=EAGER), schedulers=[Scheduler()])
    while simulation.step():
        pass

    assert marks(simulation) == ["unmarked: pods are moved off it"]


def test_other_taints_stay_as_they_were() -> None:
    taint = {"key": "team", "value": "a", "effect": "PreferNoSchedule"}
    tainted = {**node(BAD), "spec": {"taints": [taint]}}
    simulation = moved({"at": "2s", "apply": [tainted]}, steering="SoftTaint")

    assert len(marks(simulation)) == 2
    assert simulation.store.get("Node", BAD).raw["spec"]["taints"] == [taint]


def test_without_steering_no_node_is_written() -> None:
    simulation = moved(steering="ScoresAlone", replicas=3)

    assert not [event for event in simulation.history.events if event.reason == "NodeChanged"]
    # With equal scores the replacement might come back: then no pod moves.
    assert places(simulation) == [BAD, BAD, "n2"]


def test_blind_moves_end_though_all_nodes_are_equally_bad() -> None:
    bad = {**node("n2")}
    bad["metadata"] = {**bad["metadata"], "labels": {"bad": "yes"}}
    simulation = moved({"at": "2s", "apply": [bad]}, judgement="Blind", coolDown="10m")

    assert len(reported(simulation, "Descheduled")) < 20
    assert simulation.elapsed_ns < 86_400 * 10**9


def test_a_blind_move_may_leave_a_replacement_waiting() -> None:
    simulation = moved(
        {"at": "2s", "cordon": {"name": "n2"}}, {"at": "20s", "apply": [node(BAD, cpu=0)]}, judgement="Blind"
    )

    assert places(simulation) == [""]
