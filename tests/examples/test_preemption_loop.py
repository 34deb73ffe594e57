"""A loop of preemptions between two schedulers, and the waits that break it, by the second."""

from pathlib import Path

import pytest

import podium
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from podium.sim.results.result import Result

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "preemption-loop.yaml"
ACROSS = EXAMPLES / "preemption" / "loop-across.yaml"
ACROSS_SETTINGS = EXAMPLES / "preemption" / "loop-across-config.yaml"


def times(result: Result, reason: str) -> list[int | float]:
    return [event.time for event in result.events if event.reason == reason]


def played(most_futile: int) -> Result:
    """Return the example with so many futile preemptions borne."""
    profiles = [{"schedulerName": name} for name in ("a", "b")]
    written = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles, "maxFutilePreemptions": most_futile}
    return podium.simulate(EXAMPLE, configuration=read_configuration(written, "test"), latency=0)


@pytest.mark.failure(12)
def test_the_wait_grows_after_three_wasted_preemptions() -> None:
    result = played(3)

    assert times(result, "Killing") == [10, 20, 30, 40 + 60, 110 + 120, 240 + 240]
    assert times(result, "PreemptionBackoff") == [40, 110, 240, 490]
    [first, *_] = [event for event in result.events if event.reason == "PreemptionBackoff"]
    assert (first.pod, first.node, first.by) == ("default/urgent", "node-1", "a")
    assert first.message.startswith(
        "3 preemptions were futile: other pods took the room, last on node node-1 default/bat"
    )
    assert "the next is tried at 2026-01-01T00:16:10Z" in last_rejection(result)


@pytest.mark.failure(12)
def test_without_the_waits_a_pod_dies_for_it_every_ten_seconds() -> None:
    result = podium.simulate(EXAMPLE, latency=0)

    assert times(result, "Killing") == [10 * turn for turn in range(1, 61)]
    assert times(result, "PreemptionBackoff") == []
    assert all(pod["phase"] == "Pending" for pod in result.pods if pod["pod"] == "default/urgent")


@pytest.mark.failure(12)
def test_the_wait_is_as_long_when_victims_and_successors_are_on_another_node() -> None:
    result = podium.simulate(ACROSS, configuration=ACROSS_SETTINGS, latency=0)

    assert times(result, "Killing") == [10, 20, 30, 40 + 60, 110 + 120, 240 + 240]
    assert times(result, "PreemptionBackoff") == [40, 110, 240, 490]
    [first, *_] = [event for event in result.events if event.reason == "PreemptionBackoff"]
    assert (first.pod, first.node) == ("default/urgent", "r1-a")
    assert first.message.startswith(
        "3 preemptions were futile: other pods took the room, last on node r1-a default/bat"
    )


def last_rejection(result: Result) -> str:
    rejections = [one.message for one in result.events if one.reason == "FailedScheduling" and one.by == "a"]
    return rejections[-1]
