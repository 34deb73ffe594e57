"""The example scenarios of preemption across nodes, by the second."""

import pytest

import podium
from podium.sim.results.result import Result
from tests.examples.stories import EXAMPLES, story

TOLD = ("Nominated", "Preempted", "Killing", "Terminated", "Scheduled")
FOLDER = EXAMPLES / "preemption"


def played(name: str, *, settings: bool = True) -> Result:
    configuration = FOLDER / "scheduler.yaml" if settings else None
    return podium.simulate(FOLDER / f"{name}.yaml", configuration=configuration, latency=0)


def reported(result: Result, since: float = 0) -> list[str]:
    """Return the story from some time on; pods of the ReplicaSet are numbered."""
    return [line for line in story(result, TOLD, owners=("batch",)) if float(line.split()[0]) >= since]


def test_victims_on_other_nodes_leave_the_rack_and_their_replacements_stay_out_of_it() -> None:
    assert reported(played("racks"), since=30) == [
        "30 Nominated latency r1-a",
        "30 Killing batch-4 r1-b",
        "30 Preempted batch-4 r1-b",
        "30 Killing batch-3 r1-a",
        "30 Preempted batch-3 r1-a",
        "30 Scheduled batch-6 r2-a",
        "30 Scheduled batch-7 r2-a",
        "50 Terminated batch-4 r1-b",
        "50 Terminated batch-3 r1-a",
        "50 Scheduled latency r1-a",
    ]


def test_room_is_made_beside_the_partner() -> None:
    assert reported(played("partner")) == [
        "0 Nominated report a-1",
        "0 Killing batch a-1",
        "0 Preempted batch a-1",
        "20 Terminated batch a-1",
        "20 Scheduled report a-1",
    ]


def test_dependents_of_a_victim_go_with_it() -> None:
    assert reported(played("dependents")) == [
        "0 Nominated urgent a-1",
        "0 Killing database a-1",
        "0 Preempted database a-1",
        "0 Killing server a-2",
        "0 Preempted server a-2",
        "10 Terminated server a-2",
        "30 Terminated database a-1",
        "30 Scheduled urgent a-1",
    ]


@pytest.mark.parametrize(("name", "preempted"), [("racks", 0), ("partner", 0), ("dependents", 1)])
def test_without_the_settings_all_goes_as_with_kube_scheduler(name: str, preempted: int) -> None:
    assert played(name, settings=False).summary["preempted"] == preempted
