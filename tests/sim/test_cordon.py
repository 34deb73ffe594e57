"""Nodes that take no more pods for a while."""

import pytest

from podium.api.errors import InputError
from podium.sim.run import SettlingScheduler
from tests.sim.objects import scenario
from tests.sim.played import played, told
from tests.store.objects import node, pod


def test_a_cordoned_node_keeps_its_pods_and_gets_no_others_until_it_is_uncordoned() -> None:
    steps = scenario(
        {"at": "1s", "cordon": {"name": "n1"}},
        {"at": "2s", "apply": [pod("b")]},
        {"at": "9s", "uncordon": {"name": "n1"}},
    )

    simulation = played(node("n1"), pod("a", node="n1"), steps, schedulers=[SettlingScheduler()])

    assert told(simulation, "NodeChanged", "Scheduled", "Terminated") == [
        "1 NodeChanged on n1 by scenario",
        "9 NodeChanged on n1 by scenario",
        "9 Scheduled default/b on n1 by default-scheduler",
    ]
    assert [event.message for event in simulation.history.events if event.reason == "NodeChanged"] == [
        "cordoned",
        "uncordoned",
    ]


def test_a_node_that_is_not_there_cannot_be_cordoned() -> None:
    with pytest.raises(InputError, match="there is no Node n9") as caught:
        played(node("n1"), scenario({"at": "1s", "cordon": {"name": "n9"}}))

    assert ".spec.steps[0].cordon" in str(caught.value)
