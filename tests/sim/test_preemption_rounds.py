"""The check of invariant E8 detects violations."""

import pytest

from podium.sim.history import SimEvent
from tests.sim.preemption_rounds import unjustified_rounds


def event(time: int, reason: str, pod: str | None, node: str = "n1", by: str = "default-scheduler") -> SimEvent:
    return SimEvent(time, reason, pod, node, by, "", 1, time)


FIRST = event(1, "Preempted", "default/a", by="default/high")
ALSO = event(1, "Preempted", "default/b", by="default/high")
AGAIN = event(9, "Preempted", "default/c", "n2", by="default/high")


def test_the_victims_of_one_time_are_one_round() -> None:
    assert unjustified_rounds([FIRST, ALSO]) == []


def test_a_second_round_needs_a_reason() -> None:
    assert unjustified_rounds([FIRST, ALSO, AGAIN]) == ["default/high at 9 after 1"]


@pytest.mark.parametrize(
    "reason",
    [
        event(5, "NominationCleared", "default/high"),
        event(5, "NodeRemoved", None),
        event(5, "NodeChanged", None),
        event(5, "Scheduled", "default/top"),
    ],
)
def test_a_node_that_is_lost_is_one(reason: SimEvent) -> None:
    assert unjustified_rounds([FIRST, reason, AGAIN]) == []


@pytest.mark.parametrize(
    "elsewhere", [event(5, "NominationCleared", "default/low"), event(5, "Scheduled", "default/top", "n3")]
)
def test_events_of_other_pods_are_not_preemption_rounds(elsewhere: SimEvent) -> None:
    assert unjustified_rounds([FIRST, elsewhere, AGAIN]) == ["default/high at 9 after 1"]
