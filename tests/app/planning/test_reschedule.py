"""The schedule of a rescheduling: when each pod is evicted, and what its eviction waited for."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

import pytest

from podium.app.planning.questions import reschedule as question
from podium.controllers.rescheduling.planning import Planners
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from tests.app.planning.small import Raw, ask, budget, node, pod, replica_set, reported, written
from tests.store.objects import disruption_policy

BOLD: Raw = {
    "apiVersion": "podium.dev/v1alpha1",
    "kind": "ReschedulerConfiguration",
    "aggressiveness": "Bold",
    "policies": [{"name": "MoveToUnderusedNodes"}],
    "scope": {"minimumAge": "0s"},
}


def asked(folder: Path, *others: Raw, free: bool = True, **settings: Any) -> list[str]:
    """Return a question about eight pods on a full node, with further objects; ``free``: beside an empty node."""
    pods = [pod(f"web-{number}", on="full", owner="web") for number in range(8)]
    nodes = [node("full", "8"), *([node("empty", "40")] if free else [])]
    cluster = written(folder, *nodes, replica_set("web", 8), *pods, *others)
    rescheduler = folder / "rescheduler.json"
    rescheduler.write_text(str({**BOLD, **settings}).replace("'", '"'))
    return ["reschedule", "-f", cluster, "--rescheduler", str(rescheduler)]


def steps(*args: str) -> list[Raw]:
    found: list[Raw] = reported(*args)["schedule"]["steps"]
    return found


def test_evictions_are_as_far_apart_as_a_rate_demands(tmp_path: Path) -> None:
    rated = budget("web", maxUnavailable="100%")
    rated["metadata"]["annotations"] = {"podium.dev/max-disruptions": "1/1m"}

    found = steps(*asked(tmp_path, rated))

    assert len(found) == 4
    assert [later["time"] - before["time"] for before, later in itertools.pairwise(found)] == [60, 60, 60]
    assert found[0]["waitedFor"] == "the first plan, 10s after the start"
    assert "has a rate of 1/1m, which leaves 0" in found[1]["waitedFor"]


def test_an_eviction_waits_until_the_replacement_of_the_one_before_is_ready_if_a_budget_demands_that(
    tmp_path: Path,
) -> None:
    found = steps(*asked(tmp_path, budget("web", maxUnavailable=1)), "--start-delay", "25s")

    assert len(found) == 4
    for before, later in itertools.pairwise(found):
        assert before["readyAt"] == before["boundAt"] + 25
        assert before["readyAt"] <= later["time"] <= before["readyAt"] + 10
        assert "the disruption budget default/web allows 0" in later["waitedFor"]


@pytest.mark.parametrize("cap", [{"component": "rescheduler"}, {"per": "Namespace"}])
def test_an_eviction_waits_for_a_cap(tmp_path: Path, cap: Raw) -> None:
    policy = disruption_policy(caps=[{"max": "2/2m", **cap}])

    found = steps(*asked(tmp_path, budget("web", maxUnavailable="100%"), policy))

    assert [step["time"] for step in found] == [10, 10, 70, 130]
    assert all(step["waitedFor"] == "the cap on disruptions in default" for step in found[2:])


def test_an_eviction_waits_for_a_limit_of_the_configuration(tmp_path: Path) -> None:
    found = steps(*asked(tmp_path, limits={"inFlight": {"owner": 1}}), "--start-delay", "25s")

    assert all(later["time"] >= before["readyAt"] for before, later in itertools.pairwise(found))
    assert "1 move of its owner is under way" in found[1]["waitedFor"]


def test_all_forms_of_the_answer_agree_on_the_number_of_evictions(tmp_path: Path) -> None:
    question = [*asked(tmp_path, budget("web", maxUnavailable=1)), "--start-delay", "25s"]
    file = tmp_path / "scenario.yaml"

    answer = reported(*question, "--save", str(file))
    text, table = ask(*question).stdout, ask(*question, "-o", "csv").stdout

    schedule = answer["schedule"]
    assert f"the rescheduler moves {len(schedule['steps'])} pods in {schedule['seconds'] // 60}m" in answer["headline"]
    assert sum(answer["impact"][0]["disruptions"].values()) == len(schedule["steps"])
    assert schedule["seconds"] == schedule["steps"][-1]["readyAt"]
    assert not schedule["isCut"]
    assert [row["pod"] for row in csv.DictReader(io.StringIO(table))] == [step["pod"] for step in schedule["steps"]]
    assert f"Schedule  {len(schedule['steps'])} evictions in {schedule['plans']} plans" in text
    assert file.read_text().count("avoidNode: true") == len(schedule["steps"])


def test_a_schedule_ends_after_sixty_plans(tmp_path: Path) -> None:
    rated = budget("web", maxUnavailable="100%")
    rated["metadata"]["annotations"] = {"podium.dev/max-disruptions": "1/10m"}

    answer = reported(*asked(tmp_path, rated))

    assert answer["schedule"]["plans"] == 60
    assert answer["schedule"]["isCut"]
    assert "within its first 60 plans" in answer["headline"]


def test_the_plan_now_is_the_first_one_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is made besides those of the run."""
    made, plan = list[ReschedulingPlan](), Planners.plan

    def counted(*args: Any) -> ReschedulingPlan:
        made.append(plan(*args))
        return made[-1]

    monkeypatch.setattr(Planners, "plan", counted)
    answer = reported(*asked(tmp_path, budget("web", maxUnavailable=1)))

    assert len(made) == answer["schedule"]["plans"] > 1
    assert answer["moves"]["trials"] == made[0].trials
    moved = [move["pod"] for planned in answer["moves"]["planned"] for move in planned["moves"]]
    assert moved[0] == answer["schedule"]["steps"][0]["pod"]


def test_moves_of_later_plans_are_shown_if_the_plan_now_moves_nothing(tmp_path: Path) -> None:
    later = {"at": "5m", "uncordon": {"name": "empty"}}
    scenario = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "own"}}
    cordoned = node("empty", "40") | {"spec": {"unschedulable": True}}

    answer = reported(*asked(tmp_path, cordoned, scenario | {"spec": {"steps": [later]}}, free=False))

    assert answer["moves"]["planned"] == []
    assert len(answer["schedule"]["steps"]) == 4
    assert answer["schedule"]["steps"][0]["time"] > 300
    assert answer["headline"].startswith("the rescheduler moves 4 pods in 5m")


def test_a_run_that_ends_before_the_first_plan_has_an_empty_schedule(tmp_path: Path) -> None:
    answer = reported(*asked(tmp_path), "--until", "1s")

    assert (answer["schedule"]["steps"], answer["schedule"]["plans"], answer["schedule"]["isCut"]) == ([], 0, True)
    assert "moves 0 pods in 0s within its first 0 plans; the plan now moves" in answer["headline"]


def test_a_schedule_ends_after_a_number_of_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "_MOST_MOVES", 3)

    answer = reported(*asked(tmp_path, budget("web", maxUnavailable="100%")))

    assert len(answer["schedule"]["steps"]) == 3
    assert answer["schedule"]["isCut"]
    assert "moves 3 pods" in answer["headline"]
    assert sum(len(planned["moves"]) for planned in answer["moves"]["planned"]) > 3


def test_a_run_with_the_rescheduler_of_the_input_is_compared_with_that_one(tmp_path: Path) -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "own"},
        "spec": {"rescheduler": {key: value for key, value in BOLD.items() if key not in ("apiVersion", "kind")}},
    }

    answer = reported(*asked(tmp_path, scenario))

    assert len(answer["schedule"]["steps"]) == 4
    assert answer["anyway"]["evicted"] == 4
