"""A question played, and what would happen anyway."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podium.api.input.codec import Document, Input, decode
from podium.app.planning import question as questions
from podium.app.planning.question import Question, play_question, step
from podium.app.simulating.simulation_result import SimulationResult, play_shown
from podium.sim.run_options import RunOptions
from tests.app.planning.small import Raw, budget, node, pod, replica_set

DRAIN = Question("drain", (step("drain", {"name": "a", "force": True}),))
LATER = Question("fail", (step("nodeDown", {"name": "a"}, "30s"), step("nodeUp", {"name": "a"}, "10m")))
SCENARIO = {
    "apiVersion": "podium.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "own"},
    "spec": {"steps": [step("cordon", {"name": "b"}, "10s")]},
}


def read(*objects: Raw) -> Input:
    return Input([Document("objects", place, raw, decode(raw)) for place, raw in enumerate(objects, 1)])


def cluster(*more: Raw) -> Input:
    return read(
        node("a"),
        node("b"),
        replica_set("web", 3),
        *(pod(f"web-{number}", on="ab"[number % 2], owner="web") for number in range(3)),
        budget("web", minAvailable=2),
        *more,
    )


def all_of(result: SimulationResult) -> dict[str, Any]:
    return {**result.to_dict(), "restsOn": [], "lives": result.measures.nodes, "lasts": result.measures.end_ns}


@pytest.mark.parametrize("question", [DRAIN, LATER])
@pytest.mark.parametrize(
    "more",
    [
        (),
        (pod("big", "3", priority=5),),
        (pod("never", "30"),),
        (SCENARIO,),
        (pod("lonely", on="b"), budget("lonely", minAvailable=2)),
        (replica_set("short", 2), pod("short-0", on="a", owner="short")),
    ],
)
@pytest.mark.parametrize("options", [RunOptions(), RunOptions(until_ns=3600 * 10**9, seed=3)])
def test_what_happens_anyway_is_what_a_run_without_the_steps_comes_to(
    question: Question, more: tuple[Raw, ...], options: RunOptions
) -> None:
    given = cluster(*more)

    played = play_question(given, question, options)

    lasted_ns = played.result.measures.end_ns - played.result.measures.start_ns
    alone = play_shown(given, replace(options, until_ns=lasted_ns))
    assert all_of(played.baseline) == all_of(alone)
    assert played.baseline.placement == alone.placement


def test_a_cluster_in_which_nothing_happens_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Input] = []

    def counted(given: Input, options: RunOptions, progress: Any = None) -> SimulationResult:
        runs.append(given)
        return play_shown(given, options, progress)

    monkeypatch.setattr(questions, "play_shown", counted)

    play_question(cluster(), DRAIN, RunOptions())
    assert not runs

    play_question(cluster(pod("never", "30")), DRAIN, RunOptions())
    play_question(cluster(SCENARIO), DRAIN, RunOptions())
    assert len(runs) == 2


def test_it_is_the_same_run_whether_its_steps_come_at_once_or_are_added() -> None:
    given = cluster(pod("big", "3", priority=5))

    played = play_question(given, DRAIN, RunOptions())

    whole = play_shown(questions.with_scenario(given, played.scenario), RunOptions())
    assert all_of(played.result) == all_of(whole)
