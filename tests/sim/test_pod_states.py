"""Pods in an unknown state do not count as running."""

from typing import Any

from podium.sim.results.result import Result, result_of
from tests.sim.objects import scenario
from tests.sim.played import played
from tests.store.objects import node, pod

SECOND = 10**9


def states(result: Result) -> dict[str, str]:
    return {one["pod"].removeprefix("default/"): one["state"] for one in result.pods}


def test_each_pod_is_in_one_state_and_the_summary_counts_them() -> None:
    objects = [
        node("n1", cpu=8),
        pod("serves", cpu=1),
        pod("ends", cpu=1, annotations={"podium.dev/duration": "3s"}),
        pod("lingers", cpu=1, annotations={"podium.dev/termination": "1m"}),
        pod("waits", cpu=99),
    ]
    steps: list[dict[str, Any]] = [{"at": "5s", "delete": {"kind": "Pod", "name": "lingers"}}]

    result = result_of(played(*objects, scenario(*steps), until_ns=10 * SECOND))

    assert states(result) == {"serves": "ready", "ends": "succeeded", "lingers": "terminating", "waits": "pending"}
    counted = {state: number for state, number in result.summary["pods"].items() if number and state != "total"}
    assert counted == {"ready": 1, "succeeded": 1, "terminating": 1, "pending": 1}
    assert sum(counted.values()) == result.summary["pods"]["total"]


def test_pods_of_a_node_that_has_stopped_are_lost_at_once_and_serve_again_when_it_is_back() -> None:
    down: dict[str, Any] = {"at": "5s", "nodeDown": {"name": "n1"}}
    up: dict[str, Any] = {"at": "20s", "nodeUp": {"name": "n1"}}
    objects = [node("n1", cpu=8), pod("p", cpu=1)]

    assert states(result_of(played(*objects, scenario(down), until_ns=6 * SECOND))) == {"p": "lost"}
    assert states(result_of(played(*objects, scenario(down), until_ns=90 * SECOND))) == {"p": "lost"}
    assert states(result_of(played(*objects, scenario(down, up), until_ns=90 * SECOND))) == {"p": "ready"}


def test_a_pod_that_has_not_started_is_starting() -> None:
    result = result_of(played(node("n1", cpu=8), pod("p", cpu=1), until_ns=SECOND, start_delay_ns=5 * SECOND))

    assert states(result) == {"p": "starting"}
