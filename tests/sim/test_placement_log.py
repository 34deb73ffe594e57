"""The log of reasons for placements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import podium
from podium.api.input.codec import Document, Input, decode
from podium.sim import placement_log
from podium.sim.results.result import Result
from podium.sim.run import play
from podium.sim.run_options import RunOptions
from tests.app.planning.small import Raw, node, pod

TOLD = RunOptions(records_placements=True)


def played(*objects: Raw, options: RunOptions = TOLD) -> Result:
    documents = [Document("objects", place, raw, decode(raw)) for place, raw in enumerate(objects, 1)]
    return play(Input(documents), options)


def dump() -> list[Raw]:
    return [
        *(node(f"node-{number}", f"{number + 2}") for number in range(5)),
        node("taken", taints=[{"key": "gpu", "value": "true", "effect": "NoSchedule"}]),
        pod("old", "1", on="node-4", priority=1),
        *(pod(f"web-{number}", "2") for number in range(7)),
        pod("big", "6", priority=10),
    ]


def test_placement_and_explain_report_the_same_rationale() -> None:
    objects = [*dump()[:7], pod("web", "2")]

    (rationale,) = played(*objects).placements.values()

    report = podium.load(objects).explain("default/web")
    scores: dict[str, Any] = report.to_dict()["scores"]
    assert (rationale.node, rationale.fitting, rationale.nodes) == (report.node, 5, 6)
    assert rationale.reasons == "1 node(s) had untolerated taint(s)"
    assert rationale.total == report.totals[report.node]
    assert {score.plugin: score.normalized * score.weight for score in rationale.scores} == scores[report.node]
    best = max(total for name, total in report.totals.items() if name != report.node)
    assert (rationale.next_total, report.totals[rationale.next_node]) == (best, best)


def test_recorded_placements_match_the_nodes_of_pods_and_change_no_decision() -> None:
    report, plain = played(*dump()), played(*dump(), options=RunOptions())

    assert report.to_dict() == plain.to_dict()
    assert plain.placements == {}
    placed = {each["uid"]: each["node"] for each in report.pods if each["node"] and each["pod"] != "default/old"}
    assert {uid: rationale.node for uid, rationale in report.placements.items()} == placed


def test_a_placement_on_a_reserved_node_omits_the_number_of_feasible_nodes() -> None:
    objects = [node("a"), node("b"), pod("old-a", "3", on="a"), pod("old-b", "3", on="b"), pod("web", "3", priority=5)]

    (rationale,) = played(*objects).placements.values()

    assert (rationale.fitting, rationale.total, rationale.scores) == (None, None, ())


@pytest.mark.parametrize(("name", "most"), [("MOST_PLACEMENTS", 3), ("MOST_ROWS", 18)])
def test_the_placement_log_is_bounded(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(placement_log, name, most)

    report = played(*dump())

    assert len(report.placements) <= 3
    assert report.placements_left_out > 3


def test_each_of_several_schedulers_reports_its_placements() -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "two"},
        "spec": {"schedulers": [{"name": "one"}, {"name": "two"}]},
    }
    objects = [node("a"), node("b"), *(pod(f"web-{name}", schedulerName=name) for name in ("one", "two"))]

    report = played(*objects, scenario, options=replace(TOLD, seed=3))

    assert len(report.placements) == 2
