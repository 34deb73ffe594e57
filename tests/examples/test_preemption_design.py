"""The examples of the preemption design, by the second: nominations, victims, and the use of the freed room."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

import podium
from podium.framework.settings.configuration import NominationClearing, default_configuration
from podium.sim.results.result import Result

EXAMPLES = Path(__file__).parents[2] / "examples"


def story(result: Result) -> list[str]:
    """Return what happens, as `time reason pod node`; failed attempts are left out."""
    return [
        " ".join(
            str(part) for part in (event.time, event.reason, (event.pod or "").removeprefix("default/"), event.node)
        )
        for event in result.events
        if event.reason not in ("FailedScheduling", "Created", "Started", "Preempted")
    ]


def failed_attempts(result: Result, pod: str) -> list[tuple[float, float, int]]:
    """Return when the pod was tried in vain for one reason: first, last, and how often."""
    return [
        (e.time, e.last_time, e.count)
        for e in result.events
        if e.reason == "FailedScheduling" and e.pod == f"default/{pod}"
    ]


def ends(result: Result) -> dict[str, tuple[str, str | None]]:
    """Return the phase and the node of each pod at the end."""
    return {pod["pod"].removeprefix("default/"): (pod["phase"], pod["node"]) for pod in result.to_dict()["pods"]}


@pytest.fixture(params=get_args(NominationClearing))
def clearing(request: pytest.FixtureRequest) -> NominationClearing:
    """Provide each setting of nominationClearing: the examples hold with all of them."""
    which: NominationClearing = request.param
    return which


def played(name: str, clearing: NominationClearing) -> Result:
    return podium.simulate(
        EXAMPLES / name,
        configuration=replace(default_configuration(), nomination_clearing=clearing),
        latency=0,
    )


PREEMPTS_A_AND_B = ["0 Nominated c node-1", "0 Killing a node-1", "0 Killing b node-1"]


def test_the_room_is_kept_for_the_nominated_pod_until_its_last_victim_has_ended(clearing: NominationClearing) -> None:
    result = played("starvation-1.yaml", clearing)

    assert story(result) == [
        *PREEMPTS_A_AND_B,
        "30 Terminated b node-1",
        "60 Terminated a node-1",
        "60 Scheduled c node-1",
    ]
    assert failed_attempts(result, "c") == [(0, 0, 1), (30, 30, 1)]
    assert failed_attempts(result, "d") == [(0, 0, 1), (30, 30, 1), (60, 60, 1)]
    assert ends(result)["d"] == ("Pending", None)


def test_the_nominated_pod_takes_another_node_that_opens_and_leaves_its_room_to_others(
    clearing: NominationClearing,
) -> None:
    result = played("starvation-2.yaml", clearing)

    assert story(result) == [
        *PREEMPTS_A_AND_B,
        "10 Finished e node-2",
        "10 Scheduled c node-2",
        "30 Terminated b node-1",
        "30 Scheduled d node-1",
        "60 Terminated a node-1",
    ]


def test_a_pod_that_fits_elsewhere_is_bound_at_once(clearing: NominationClearing) -> None:
    result = played("starvation-3.yaml", clearing)

    assert story(result) == [
        *PREEMPTS_A_AND_B,
        "0 Scheduled d node-2",
        "30 Terminated b node-1",
        "60 Terminated a node-1",
        "60 Scheduled c node-1",
    ]


def test_a_more_important_pod_takes_over_the_nomination(clearing: NominationClearing) -> None:
    result = played("starvation-4.yaml", clearing)

    assert story(result) == [
        *PREEMPTS_A_AND_B,
        "10 Nominated f node-1",
        *(["10 NominationCleared c node-1"] if clearing == "Unfit" else []),
        "30 Terminated b node-1",
        "60 Terminated a node-1",
        "60 Scheduled f node-1",
        *(["60 NominationCleared c node-1"] if clearing == "AllLower" else []),
    ]
    assert ends(result)["c"] == ends(result)["d"] == ("Pending", None)


def test_only_the_pod_whose_removal_helps_is_a_victim(clearing: NominationClearing) -> None:
    result = played("one-victim.yaml", clearing)

    assert story(result) == [
        "0 Nominated ten node-1",
        "0 Killing two node-1",
        "30 Terminated two node-1",
        "30 Scheduled ten node-1",
    ]
    assert [ends(result)[pod][0] for pod in ("zero", "one", "three")] == ["Running"] * 3


def test_budgets_order_victims_but_never_stop_preemption(clearing: NominationClearing) -> None:
    result = played("budget.yaml", clearing)

    assert story(result) == [
        "0 Nominated urgent-1 node-3",
        "0 Killing batch node-3",
        "30 Terminated batch node-3",
        "30 Scheduled urgent-1 node-3",
        "40 Nominated urgent-2 node-1",
        "40 Killing web-1 node-1",
        "70 Terminated web-1 node-1",
        "70 Scheduled urgent-2 node-1",
    ]
