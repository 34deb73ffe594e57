"""Whole runs with the real scheduler, through the interface of `podium.simulate`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.sim.results.result import Result
from tests.sim.objects import documents, scenario
from tests.sim.simulating import simulate
from tests.store.objects import Raw, node, pod

FULL = [
    node("n1", cpu=10),
    pod("a", cpu=5, priority=100, node="n1", spec={"terminationGracePeriodSeconds": 60}),
    pod("b", cpu=5, priority=100, node="n1", spec={"terminationGracePeriodSeconds": 30}),
    pod("c", cpu=10, priority=1000),
    pod("d", cpu=2, priority=50),
]


def story(result: Result, *reasons: str) -> list[tuple[int | float, str, str | None, str | None]]:
    return [(one.time, one.reason, one.pod, one.by) for one in result.events if one.reason in reasons]


def test_a_preemptor_waits_for_its_victims_and_holds_off_the_lesser_pod() -> None:
    result = simulate(FULL)

    assert story(result, "Preempted", "Nominated", "Terminated", "Scheduled") == [
        (0, "Nominated", "default/c", "default-scheduler"),
        (0, "Preempted", "default/a", "default/c"),
        (0, "Preempted", "default/b", "default/c"),
        (30, "Terminated", "default/b", "kubelet"),
        (60, "Terminated", "default/a", "kubelet"),
        (60, "Scheduled", "default/c", "default-scheduler"),
    ]
    assert {one["pod"]: one["phase"] for one in result.pods} == {
        "default/a": "Terminated",
        "default/b": "Terminated",
        "default/c": "Running",
        "default/d": "Pending",
    }


def test_a_simulation_ends_before_unschedulable_pods_are_flushed_by_default() -> None:
    assert simulate(FULL).summary["end"] == 60
    flushed = simulate(FULL, until="10m").events
    assert max(event.last_time for event in flushed if event.reason == "FailedScheduling") >= 300


def test_the_end_and_the_delays_can_be_set() -> None:
    result = simulate([node("n1"), pod("a")], until="30s", bind_delay="2s", start_delay=0.5)

    assert story(result, "Scheduled", "Started") == [
        (2, "Scheduled", "default/a", "default-scheduler"),
        (2.5, "Started", "default/a", "kubelet"),
    ]
    assert result.summary["end"] == 30


def test_a_given_until_overrides_that_of_the_scenario() -> None:
    objects = [node("n1"), scenario(until="2m")]

    assert simulate(objects).summary["end"] == 120
    assert simulate(objects, until="1m").summary["end"] == 60


def test_the_start_can_be_set() -> None:
    created = pod("a", metadata={"creationTimestamp": "2026-03-01T12:00:00Z"})

    assert simulate([created]).pods[0]["createdAt"] == 0
    assert simulate([created], start="2026-03-01T12:00:30Z").pods[0]["createdAt"] == -30


def test_documents_and_plain_objects_give_the_same() -> None:
    assert simulate(documents(*FULL)).to_dict() == simulate(FULL).to_dict()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"until": "soon"}, 'until: "soon" is not a duration'),
        ({"until": "-1s"}, 'until: "-1s" is negative'),
        ({"start": "today"}, 'start: "today" is not a time'),
        ({"bind_delay": "-1s"}, 'bind_delay: "-1s" is negative'),
    ],
)
def test_an_option_that_cannot_be_read_is_an_error(options: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        simulate([], **options)


def test_a_plain_object_that_is_wrong_is_an_error_with_its_field() -> None:
    with pytest.raises(InputError, match=r"Pod default/a, \.spec\.containers\[0\]\.resources\.requests\.cpu"):
        simulate([pod("a", cpu="much")])


def test_progress_is_reported_as_time_passes() -> None:
    report: list[tuple[float, int]] = []
    steps: list[Raw] = [{"at": f"{at}s", "apply": [pod(f"p{at}")]} for at in (10, 20)]

    simulate([node("n1"), scenario(*steps)], progress=lambda share, elapsed_ns: report.append((share, elapsed_ns)))

    assert report == sorted(report)
    assert report[-1] == (1.0, 20 * 10**9)


def test_a_run_has_seed_0_without_another_one() -> None:
    objects = [*(node(f"n{number}") for number in range(20)), pod("a")]

    places = [simulate(objects, seed=seed).pods[0]["node"] for seed in range(4)]

    assert simulate(objects).pods[0]["node"] == places[0]
    assert places[0] not in places[1:]


PROGRAM = """
import json
from tests.sim.test_run import FULL
from tests.sim.simulating import simulate
print(json.dumps(simulate(FULL, seed=3, until="6m").to_dict()))
"""


def test_one_seed_gives_the_same_bytes_under_every_hash_seed() -> None:
    root = Path(__file__).parents[2]

    def output(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{root}:{root / 'src'}"}
        return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True).stdout

    assert output("1") == output("2")
