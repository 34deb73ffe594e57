"""The preemption design's race between two schedulers, by the second."""

import json
from pathlib import Path

import pytest

import podium
from podium.app.console.command import podium as command

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-schedulers.yaml"
TOLD = ("Nominated", "Scheduled", "Started", "Failed", "Killing", "Terminated")


def test_the_room_of_a_preemption_goes_to_another_scheduler_and_the_first_one_tries_again() -> None:
    result = podium.simulate(EXAMPLE, latency=0)
    names: dict[str, str] = {}
    for event in result.events:
        if event.pod and event.pod.startswith("default/urgent-"):
            names.setdefault(event.pod, f"urgent-{len(names) + 1}")
    story = [
        f"{event.time} {event.reason} {names.get(event.pod or '', (event.pod or '').removeprefix('default/'))}"
        for event in result.events
        if event.reason in TOLD
    ]

    assert story == [
        "10 Nominated urgent-1",
        "10 Killing batch",
        "40 Terminated batch",
        "40.1 Scheduled small",
        "40.1 Started small",
        "40.2 Scheduled urgent-1",
        "40.2 Failed urgent-1",
        "40.2 Nominated urgent-2",
        "40.2 Killing small",
        "45.2 Terminated small",
        "45.4 Scheduled urgent-2",
        "45.4 Started urgent-2",
    ]
    [failed] = [event for event in result.events if event.reason == "Failed"]
    assert failed.message.startswith("OutOfcpu: ")


def test_the_command_plays_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["simulate", "-f", str(EXAMPLE), "-o", "json"], standalone_mode=False)

    assert json.loads(capsys.readouterr().out) == podium.simulate(EXAMPLE).to_dict()
