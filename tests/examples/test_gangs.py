"""The example scenarios of gangs, by the second."""

import podium
from podium.sim.results.result import Result
from tests.examples.stories import EXAMPLES, story

TOLD = ("Nominated", "Preempted", "Terminated", "Scheduled", "Finished", "GangReleased")
FOLDER = EXAMPLES / "gangs"


def played(name: str, *, settings: bool = True, by: str = "scheduler") -> Result:
    configuration = FOLDER / f"{by}.yaml" if settings else None
    return podium.simulate(FOLDER / f"{name}.yaml", configuration=configuration, latency=0)


def reported(result: Result, since: float = 0) -> list[str]:
    """Return the story from some time on; pods of ReplicaSets are numbered."""
    return [line for line in story(result, TOLD, owners=("batch", "red")) if float(line.split()[0]) >= since]


def test_a_gang_starts_when_all_fit_and_not_before_and_a_later_pod_goes_on_its_own() -> None:
    assert reported(played("waits")) == [
        "60 Finished batch node-2",
        "60 Scheduled worker-0 node-2",
        "60 Scheduled worker-1 node-1",
        "60 Scheduled worker-2 node-1",
        "90 Scheduled worker-3 node-2",
    ]


def test_two_gangs_are_placed_one_after_the_other() -> None:
    scheduled = [line for line in reported(played("competes")) if "Scheduled" in line]

    assert [line.split()[0] for line in scheduled] == ["10"] * 3 + ["60"] * 3
    assert scheduled[3:] == ["60 Scheduled blue-0 node-2", "60 Scheduled blue-1 node-1", "60 Scheduled blue-2 node-1"]


def test_pod_by_pod_each_of_them_would_hold_half() -> None:
    result = played("competes", settings=False)

    assert [line.split()[2][:3] for line in reported(result) if line.startswith("10 Scheduled")] == ["red", "blu"] * 2


def test_a_gang_comes_into_the_rack_that_takes_all_of_it() -> None:
    assert reported(played("racks")) == [
        "10 Scheduled worker-0 r2-b",
        "10 Scheduled worker-1 r2-b",
        "10 Scheduled worker-2 r2-a",
    ]


def test_a_gang_that_fits_in_another_arrangement_starts_where_one_is_looked_for() -> None:
    assert reported(played("arranges")) == []
    assert reported(played("arranges", by="arranging")) == [
        "10 Scheduled worker-0 node-2",
        "10 Scheduled worker-1 node-2",
        "10 Scheduled x-leader node-1",
    ]


def test_victims_go_together_once_the_gang_can_be_complete() -> None:
    assert reported(played("preempts"), since=1) == [
        "30 Nominated worker-0 node-3",
        "30 Nominated worker-1 node-1",
        "30 Nominated worker-2 node-2",
        "30 Preempted batch-1 node-1",
        "30 Preempted batch-4 node-2",
        "50 Terminated batch-1 node-1",
        "50 Terminated batch-4 node-2",
        "50 Scheduled worker-0 node-3",
        "50 Scheduled worker-1 node-1",
        "50 Scheduled worker-2 node-2",
    ]


def test_a_gang_in_part_gives_its_nodes_back_and_another_gets_them() -> None:
    assert reported(played("in-part"), since=60) == [
        "370 GangReleased red-2 node-1",
        "370 GangReleased red-3 node-2",
        "380 Terminated red-2 node-1",
        "380 Terminated red-3 node-2",
        "380 Scheduled blue-0 node-2",
        "380 Scheduled blue-1 node-1",
    ]
