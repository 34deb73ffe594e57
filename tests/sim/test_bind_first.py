"""The preemptor is bound before its victims are gone, and its kubelet holds it; beside the way by nomination."""

from __future__ import annotations

from typing import Any

import podium
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import scenario
from tests.store.objects import Raw, node, pod

HOLDING = {"kubelets": {"waitForVictims": True}}


def binding(first: bool) -> Configuration:
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": {"bindFirst": first}}]}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def played(*objects: Raw, first: bool = True, **story: Any) -> Result:
    steps = story.pop("steps", [{"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}])
    made = scenario(*steps, until="5m", **{**HOLDING, **story})
    return podium.simulate([*objects, made], configuration=binding(first))


def told(result: Result, *reasons: str) -> list[str]:
    return [f"{event.time:g} {event.reason} {event.pod}" for event in result.events if event.reason in reasons]


SLOW = {"terminationGracePeriodSeconds": 60}
LOW = pod("low", cpu=1, spec=SLOW)


def test_it_is_bound_as_soon_as_its_victim_terminates_and_starts_when_that_is_gone() -> None:
    result = played(node("n1", cpu=1), LOW)

    assert told(result, "Preempted", "Scheduled", "Started")[2:] == [
        "10 Preempted default/low",
        "10 Scheduled default/urgent",
        "70 Started default/urgent",
    ]


def test_by_nomination_it_is_bound_when_its_victim_is_gone_and_starts_at_the_same_time() -> None:
    result = played(node("n1", cpu=1), LOW, first=False)

    assert told(result, "Scheduled", "Started")[2:] == ["70 Scheduled default/urgent", "70 Started default/urgent"]


def test_room_that_opens_elsewhere_meanwhile_is_taken_by_nomination_alone() -> None:
    """What binding first costs: the node is chosen for good."""
    steps = [
        {"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]},
        {"at": "20s", "apply": [node("n2", cpu=1)]},
    ]

    started = {
        first: told(played(node("n1", cpu=1), LOW, first=first, steps=steps), "Started")[1:] for first in (True, False)
    }

    assert started == {True: ["70 Started default/urgent"], False: ["20 Started default/urgent"]}


def test_room_is_kept_from_those_that_do_not_heed_nominations() -> None:
    """What it gains: a pod that is bound counts for everybody."""
    thief = pod("thief", cpu=1, priority=5, node="n1")
    steps = [{"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}, {"at": "69s", "apply": [thief]}]

    started = {
        first: told(played(node("n1", cpu=1), LOW, first=first, steps=steps), "Started")[1:] for first in (True, False)
    }

    assert started[True] == ["70 Started default/urgent"]
    assert started[False] == ["70 Started default/thief", "100 Started default/urgent"]


def test_a_kubelet_that_does_not_wait_turns_it_away() -> None:
    result = played(node("n1", cpu=1), LOW, kubelets={"waitForVictims": False})

    (urgent,) = (one for one in result.pods if one["pod"] == "default/urgent")
    assert urgent["phase"] == "Failed"


def test_room_that_is_promised_to_one_is_not_given_to_another() -> None:
    pods = [pod(name, cpu=1, spec=SLOW) for name in ("a", "b")]
    steps = [
        {"at": "10s", "apply": [pod("first", cpu=2, priority=9)]},
        {"at": "20s", "apply": [pod("second", cpu=1, priority=8)]},
    ]

    result = played(node("n1", cpu=2), *pods, steps=steps)

    assert told(result, "Scheduled")[2:] == ["10 Scheduled default/first"]
    assert result.summary["preempted"] == 2
