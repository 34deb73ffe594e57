"""Cordoned nodes."""

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.controllers.actions import Action
from podium.controllers.disruption.drain import NodeDrain
from podium.controllers.observations import Changed, Observation
from podium.controllers.scheduling.scheduler import Scheduler
from tests.sim.objects import scenario
from tests.sim.played import played, reported
from tests.store.objects import node, pod


def test_a_cordoned_node_keeps_its_pods_and_gets_no_others_until_it_is_uncordoned() -> None:
    steps = scenario(
        {"at": "1s", "cordon": {"name": "n1"}},
        {"at": "2s", "apply": [pod("b")]},
        {"at": "9s", "uncordon": {"name": "n1"}},
    )

    simulation = played(node("n1"), pod("a", node="n1"), steps, schedulers=[Scheduler()])

    assert reported(simulation, "Scheduled", "Terminated") == ["9 Scheduled default/b on n1 by default-scheduler"]
    changes = [event for event in simulation.history.events if event.reason == "NodeChanged"]
    assert [(event.time, event.by, event.message) for event in changes] == [
        (1, "scenario", "cordoned"),
        (1, "node-lifecycle-controller", "taint node.kubernetes.io/unschedulable added"),
        (9, "scenario", "uncordoned"),
        (9, "node-lifecycle-controller", "taint node.kubernetes.io/unschedulable removed"),
    ]


def test_a_node_that_is_not_there_cannot_be_cordoned() -> None:
    with pytest.raises(InputError, match="there is no Node n9") as caught:
        played(node("n1"), scenario({"at": "1s", "cordon": {"name": "n9"}}))

    assert ".spec.steps[0].cordon" in str(caught.value)


def test_a_drain_is_shown_the_existing_pods_of_its_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, handle = set(), NodeDrain.handle

    def noting(drain: NodeDrain, observation: Observation, now: int) -> list[Action]:
        if isinstance(observation, Changed) and isinstance(observation.object, Pod):
            shown.add(observation.object.key)
        return handle(drain, observation, now)

    monkeypatch.setattr(NodeDrain, "handle", noting)
    pods = (pod("a", node="n1"), pod("b", node="n2"))

    simulation = played(node("n1"), node("n2"), *pods, scenario({"at": "1s", "drain": {"name": "n1", "force": True}}))

    assert shown == {"default/a"}
    assert [event.pod for event in simulation.history.events if event.reason == "Terminated"] == ["default/a"]
