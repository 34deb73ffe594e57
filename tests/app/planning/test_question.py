"""A simulated question beside the run without the change."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any
from weakref import ReferenceType, ref

import msgspec
import pytest

from podium.api.input.codec import Document, Input, decode
from podium.app.console.output import in_json
from podium.app.planning import question as questions
from podium.app.planning.question import PlanQuestion, PlanRun
from podium.app.planning.scenarios import step, with_scenario
from podium.app.simulating.simulation_result import SimulationResult, play_shown
from podium.sim import run
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.simulation import Simulation
from tests.app.planning.small import Raw, budget, node, pod, replica_set

DRAIN = PlanQuestion("drain", (step("drain", {"name": "a", "force": True}),))
LATER = PlanQuestion("fail", (step("nodeDown", {"name": "a"}, "30s"), step("nodeUp", {"name": "a"}, "10m")))
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


@pytest.mark.parametrize("message", ["as it is", "half \ud800"])
def test_the_json_of_an_answer_is_that_of_its_dictionary(message: str) -> None:
    answer = PlanRun(cluster(), RunOptions()).play(DRAIN).answer()
    assert answer.result is not None
    answer.result.events[0] = msgspec.structs.replace(answer.result.events[0], message=message)

    assert in_json(answer.json_value()) == in_json(answer.to_dict())
    assert answer.json_value()["result"]["events"] is answer.result.events


def all_of(result: SimulationResult) -> dict[str, Any]:
    return {**result.to_dict(), "caveats": [], "lives": result.measures.nodes, "lasts": result.measures.end_ns}


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
def test_baseline_changes_are_those_of_a_run_without_the_steps(
    question: PlanQuestion, more: tuple[Raw, ...], options: RunOptions
) -> None:
    given = cluster(*more)

    played = PlanRun(given, options).play(question)

    lasted_ns = played.result.measures.end_ns - played.result.measures.start_ns
    alone = play_shown(given, replace(options, until_ns=lasted_ns))
    assert all_of(played.baseline) == all_of(alone)
    assert played.baseline.placement == alone.placement


@pytest.mark.parametrize("question", [DRAIN, LATER])
@pytest.mark.parametrize("options", [RunOptions(), RunOptions(until_ns=3600 * 10**9, seed=3, records_placements=True)])
def test_a_forked_copy_plays_the_same_baseline(question: PlanQuestion, options: RunOptions) -> None:
    given = cluster(pod("big", "3", priority=5), pod("never", "30"), replica_set("short", 2))

    forked = PlanRun(given, options, forks=True).play(question)

    plain = PlanRun(given, options).play(question)
    assert all_of(forked.result) == all_of(plain.result)
    assert forked.result.caveats == plain.result.caveats
    assert forked.baseline.is_brief is not options.records_placements
    if options.records_placements:
        assert all_of(forked.baseline) == all_of(plain.baseline)
    assert forked.impact == plain.impact


def test_the_baseline_is_played_here_if_the_forked_copy_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    given = cluster(pod("never", "30"))
    plain = PlanRun(given, RunOptions()).play(LATER)

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Simulation, "end_after", killed)

    assert all_of(PlanRun(given, RunOptions(), forks=True).play(LATER).baseline) == all_of(plain.baseline)


def test_two_simulations_are_never_in_memory_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ReferenceType[Simulation]] = []

    def noted(*args: Any, **options: Any) -> Simulation:
        assert [reference() for reference in made] == [None] * len(made)
        simulation = simulation_of(*args, **options)
        made.append(ref(simulation))
        return simulation

    monkeypatch.setattr(questions, "simulation_of", noted)
    monkeypatch.setattr(run, "simulation_of", noted)

    PlanRun(cluster(SCENARIO), RunOptions()).play(DRAIN)

    assert len(made) == 2


def test_a_question_that_begins_with_other_objects_is_compared_with_a_run_of_those_that_were_read() -> None:
    other = replace(DRAIN, begins_with=tuple(read(node("a", cpu="1")).documents))

    played = PlanRun(cluster(SCENARIO), RunOptions()).play(other)

    lasted_ns = played.result.measures.end_ns - played.result.measures.start_ns
    assert all_of(played.baseline) == all_of(play_shown(cluster(SCENARIO), RunOptions(until_ns=lasted_ns)))


def test_a_plan_runs_the_same_with_steps_given_at_once_or_one_by_one() -> None:
    given = cluster(pod("big", "3", priority=5))

    played = PlanRun(given, RunOptions()).play(DRAIN)

    whole = play_shown(with_scenario(given, played.scenario), RunOptions())
    assert all_of(played.result) == all_of(whole)
