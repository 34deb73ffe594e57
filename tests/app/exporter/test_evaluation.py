"""The exporter's answers besides failures, its metrics and its report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

import podium
from podium.api.errors import InputError
from podium.app.exporter import evaluation as evaluating
from podium.app.exporter.evaluation import (
    Evaluation,
    EvaluationSettings,
    Tasks,
    combined,
    evaluate,
    read_shapes,
    share_of,
)
from podium.app.exporter.exporter import MAX_NAMES, ExporterMetrics, report_of
from podium.app.planning.deciding.decisions import Decisions
from tests.app.exporter.clusters import Raw, Workload, budget, cluster_of, node

SECOND = 10**9
SHAPE = """\
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: default}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
"""


def evaluation(objects: Raw, settings: EvaluationSettings = EvaluationSettings()) -> Evaluation:  # noqa: B008
    return replace(evaluate(Decisions(podium.load(objects)), settings), at_ns=100 * SECOND, seconds=1.5)


def samples(found: Evaluation | None) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of each metric by the values of its labels, in the labels' order of names."""
    metrics = ExporterMetrics(lambda: 160 * SECOND)
    metrics.latest = found
    text = metrics.text().decode()
    by_name: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            by_name.setdefault(sample.name, {})[tuple(v for _, v in sorted(sample.labels.items()))] = sample.value
    return by_name


class TwoTasks(Tasks):
    """Tasks of which a process takes two, as if others took the rest."""

    def take(self, number: int) -> Iterator[int]:
        return islice(super().take(number), 2)


def test_a_pool_tolerates_the_failures_after_which_all_pods_fit() -> None:
    nodes = [*(node(f"n{index}") for index in range(3)), node("m1", pool="small"), node("m2", pool="small")]
    alone = {"nodeSelector": {"eks.amazonaws.com/nodegroup": "small"}}
    web, tight = Workload("web", ["n0", "n1"]), Workload("tight", ["m1"] * 3 + ["m2"] * 3, spec=alone)
    found = {pool.pool: pool for pool in evaluation(cluster_of(nodes, web, tight)).pools}
    assert {name: pool.tolerated for name, pool in found.items()} == {"big": 2, "small": 0}
    assert (found["small"].one, found["small"].two) == ("unplaced", "unplaced")


def test_the_two_nodes_of_a_pool_that_fail_together_are_those_with_the_most_pods() -> None:
    nodes = [node(f"n{index}") for index in range(4)]
    many, wide = Workload("many", ["n2"] * 4 + ["n3"] * 4, milli=500), Workload("wide", ["n0", "n1"], milli=3000)
    (pair,) = evaluation(cluster_of(nodes, many, wide)).of_kind("pair")
    assert pair.replaced == 8


def test_headroom_is_that_of_plan_fit_and_fragmentation_what_sums_promise_beyond_it(tmp_path: Path) -> None:
    (tmp_path / "shapes.yaml").write_text(SHAPE)
    shapes = read_shapes(str(tmp_path / "shapes.yaml"))
    objects = cluster_of([node(f"n{index}") for index in range(4)], Workload("web", ["n0", "n1", "n2"], milli=2000))
    (found,) = evaluation(objects, EvaluationSettings(shapes=shapes)).headroom
    assert (found.shape, found.pods, found.fragmentation) == ("large", 1, round(1 - 1 / 3, 4))
    assert podium.load(objects).plan().fit(tmp_path / "shapes.yaml").to_dict()["fit"]["fits"] == found.pods


def test_of_many_groups_those_with_the_most_nodes_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "MAX_GROUPS", 2)
    nodes = [node("n0", "a"), *(node(f"m{index}", "b") for index in range(2)), *(node(f"k{i}", "c") for i in range(3))]

    found = evaluation(cluster_of(nodes, Workload("web", ["n0"])))

    assert sorted(each.name for each in found.failures if each.scope == "zone") == ["b", "c"]
    assert found.skipped["zone"] == 1


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("Namespace", "is a Namespace; shapes are Pods"), ("Pod", "a pod has at least one container")],
)
def test_shapes_are_pods_with_containers(tmp_path: Path, kind: str, problem: str) -> None:
    (tmp_path / "shapes.yaml").write_text(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n")
    with pytest.raises(InputError, match=problem):
        read_shapes(str(tmp_path / "shapes.yaml"))


def test_pending_pods_are_counted_by_the_kind_of_obstacle() -> None:
    workloads = [
        Workload("huge", ["", ""], milli=9000),
        Workload("fits", [""]),
        Workload("lost", [""], spec={"nodeSelector": {"a": "b"}}),
    ]
    found = evaluation(cluster_of([node("n1"), node("n2")], *workloads)).pending
    assert found == {"too-large": 2, "placed": 1, "selection": 1}


def test_a_pod_waits_for_room_on_the_nodes_that_it_may_use_whatever_most_nodes_lack() -> None:
    nodes = [*(node(f"n{index}", cpu=1) for index in range(5)), node("large", cpu=4)]
    full = Workload("full", ["large"], milli=3000)
    assert evaluation(cluster_of(nodes, full, Workload("next", ["", ""], milli=2000))).pending == {"resource": 2}


def test_nodes_with_ready_pods_of_a_budget_that_allows_nothing_cannot_be_drained() -> None:
    objects = cluster_of([node("n1"), node("n2"), node("n3")], Workload("web", ["n1", "n2"]), Workload("free", ["n3"]))
    objects["items"] += [budget("web", 0), budget("free", 1)]
    found = evaluation(objects)
    assert (found.blocks, found.undrainable) == ({"default/web": ("n1", "n2")}, 2)
    for raw in objects["items"]:
        if raw["kind"] == "Pod" and raw["metadata"]["name"] == "web-0":
            raw["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert evaluation(objects).blocks == {"default/web": ("n2",)}


def test_metrics_count_failures_and_name_only_nodes_that_fail_the_test() -> None:
    number = MAX_NAMES + 10
    nodes = [node(f"n{index:03}", cpu=1) for index in range(number)]
    web = Workload("web", [f"n{index:03}" for index in range(number)])
    found = samples(evaluation(cluster_of([*nodes, node("free", cpu=1, unschedulable=True)], web)))
    assert found["podium_failure_scopes"]["unplaced", "node"] == number
    named = [key for key in found["podium_failure_unplaced_pods"] if "node" in key]
    assert len(named) == 2 * MAX_NAMES
    assert found["podium_evaluation_age_seconds"] == {(): 60.0}
    assert found["podium_evaluation_duration_seconds"] == {(): 1.5}


def test_metrics_have_no_answers_before_the_first_evaluation() -> None:
    assert not [name for name in samples(None) if name.startswith("podium_failure")]


def test_names_of_metrics_follow_the_conventions() -> None:
    objects = cluster_of([node("n1"), node("n2")], Workload("web", ["n1"]))
    metrics = ExporterMetrics(lambda: 0)
    metrics.latest = evaluation(objects)
    text = metrics.text().decode()
    for name, kind in re.findall(r"^# TYPE (podium_\S+) (\S+)$", text, re.MULTILINE):
        assert name.endswith("_total") is (kind == "counter") or name.endswith("_created")


def test_the_report_names_what_breaks_first() -> None:
    web = Workload("web", ["n1"] * 3 + ["n2"] * 3)
    answer = report_of(evaluation(cluster_of([node("n1"), node("n2")], web)))
    assert answer.headline == "pods find no place if one of these fails: 2 of 2 nodes, 1 of 1 zone, 1 of 1 pool"
    data = answer.to_dict()
    assert [each["first"] for each in data["failures/node"]] == ["ReplicaSet default/web"] * 2
    assert "ReplicaSet default/web" in answer.text
    assert "<html" in answer.html()


def test_the_report_names_budgets_and_workloads_and_has_them_all_in_json() -> None:
    nodes = [node(f"n{index}") for index in range(4)]
    web = Workload("web", ["n0", "n1", "n2", "n3"], milli=3000)
    answer = report_of(evaluation(cluster_of([*nodes, budget("web", 0, 4)], web, Workload("wait", [""]))))
    shown = {section.name: section for section in answer.sections}

    assert shown["budgets"].rows == (("default/web", "n0, n1 and 2 more"),)
    assert answer.to_dict()["budgets"] == [{"budget": "default/web", "nodes": ("n0", "n1", "n2", "n3")}]
    first = dict(zip(shown["failures/node"].headings, shown["failures/node"].rows[0], strict=True))
    assert (first["without preemption"], first["unplaced by workload"]) == ("1", "1 ReplicaSet default/web")
    assert not any("_" in heading for section in answer.sections for heading in section.headings)
    (evaluated,) = shown["evaluated"].rows
    assert evaluated[-1] == "none"
    assert answer.to_dict()["pending"] == [{"cause": "placed", "pods": 1}]


def test_the_report_says_that_there_is_none_yet() -> None:
    assert report_of(None).headline == "the cluster has not been evaluated yet"


def test_shares_are_parts_of_the_same_evaluation() -> None:
    objects = cluster_of([node("n1"), node("n2", "b")], Workload("web", ["n1"] * 3 + ["n2"] * 3))
    whole = evaluation(objects)
    decisions = Decisions(podium.load(objects))
    tasks = TwoTasks()
    shares = [share_of(decisions, EvaluationSettings(), tasks, is_first=place == 0) for place in range(3)]
    assert [len(share.failures) for share in shares] == [2, 2, 2]
    found = combined(shares)
    assert sorted(found.failures, key=lambda each: (each.scope, each.name)) == sorted(
        whole.failures, key=lambda each: (each.scope, each.name)
    )
    assert (found.pools, found.pending, found.blocks) == (whole.pools, whole.pending, whole.blocks)


def test_groups_that_are_not_evaluated_keep_their_answers_and_their_age() -> None:
    nodes = [node("n1"), node("n2", "b"), node("n3", "c")]
    decisions = Decisions(podium.load(cluster_of(nodes)))
    before = combined([share_of(decisions, EvaluationSettings(), Tasks())], None, 1, 7)
    assert set(before.groups.values()) == {(1, 7)}
    full = Workload("web", ["n1"] * 4 + ["n2"] * 4 + ["n3"] * 4)
    later = Decisions(podium.load(cluster_of([*nodes, node("n4", "d")], full)))
    share = share_of(later, EvaluationSettings(), Tasks(), [("zone", "b")])
    found = combined([share], before, 2, 9)
    outcomes = {(each.scope, each.name): each for each in found.failures}
    assert (outcomes["zone", "a"].replaced, outcomes["zone", "b"].replaced, outcomes["node", "n1"].replaced) == (
        0,
        4,
        4,
    )
    assert (found.groups["zone", "a"], found.groups["zone", "b"]) == ((1, 7), (2, 9))
    # Of the new zone nothing is known yet: it is the first one that is asked about next.
    assert ("zone", "d") not in outcomes
    assert min(found.groups, key=lambda key: found.groups[key]) == ("zone", "d")
