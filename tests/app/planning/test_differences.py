"""A plan counts only the difference to the run without the change."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import podium
from podium.app.console.command import podium as command
from podium.app.reporting.pictures import picture_of_plan
from tests.app.planning.small import Raw, ask, node, pod, priority_class, replica_set, reported, written
from tests.store.objects import replicated

COOKBOOK = str(Path(__file__).parents[3] / "examples/cookbook/reschedule.yaml")


def _preempting(folder: Path) -> str:
    """Return a cluster in which a waiting pod preempts one pod of `batch` at once, whatever the plan does."""
    return written(
        folder,
        node("n1", cpu="2"),
        node("n2", cpu="2"),
        priority_class("high", 1000),
        replica_set("batch", 2),
        pod("batch-1", on="n1", owner="batch"),
        pod("batch-2", on="n1", owner="batch"),
        pod("fixed", "1500m", on="n2", priority=2000),
        pod("urgent", "1", priority=1000, priorityClassName="high"),
    )


def _manifest(folder: Path, *objects: Raw) -> str:
    return written(folder, *objects, name="change.json")


def _questions(folder: Path) -> dict[str, list[str]]:
    cluster = _preempting(folder)
    harmless = _manifest(folder, {**pod("tiny", "10m"), "status": {}})
    patch = folder / "patch.yaml"
    patch.write_text("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: batch, labels: {a: b}}\n")
    empty = _manifest_of_nodes(folder)
    with_spare = written(folder, *_objects(cluster), node("spare", cpu="100m"), name="spare.json")
    return {
        "deploy": ["deploy", "-f", cluster, harmless],
        "nodes": ["nodes", "-f", cluster, empty],
        "set": ["change", "-f", cluster, "rs/batch", "labels.a=b"],
        "patch": ["change", "-f", cluster, "--patch-file", str(patch)],
        "fail": ["fail", "-f", with_spare, "spare"],
        "drain": ["drain", "-f", with_spare, "spare"],
    }


def _objects(file: str) -> list[Raw]:

    items: list[Raw] = json.loads(Path(file).read_text())["items"]
    return items


def _manifest_of_nodes(folder: Path) -> str:
    return written(folder, node("small", cpu="100m"), name="nodes.json")


@pytest.mark.parametrize("question", ["deploy", "nodes", "set", "patch", "fail", "drain"])
def test_preemptions_that_happen_anyway_are_in_no_count(tmp_path: Path, question: str) -> None:
    args = _questions(tmp_path)[question]

    answer = reported(*args, "--fail-on", "preempt,evict,unschedulable")
    text = ask(*args).stdout
    page = ask(*args, "-o", "html").stdout
    rows = list(csv.DictReader(io.StringIO(ask(*args, "-o", "csv").stdout)))

    assert answer["anyway"]["preempted"] == 1
    assert "1 pod preempted" in text.split("Anyway", 1)[1]
    assert "preempt" not in answer["headline"].replace("no pod is preempted", "")
    assert "find no other node" not in text
    assert "Preemptions" not in text
    assert '"Preemptions"' not in page
    assert answer.get("cascade", []) == []
    assert not any(impact["disruptions"] for impact in answer["impact"])
    assert not any(row["disruptions"] for row in rows)


def test_a_rescheduling_does_not_count_preemptions_that_happen_anyway(tmp_path: Path) -> None:
    """The rescheduler moves a pod of the cookbook's cluster while `urgent` preempts a pod on `n1`."""
    *others, urgent = _objects(_preempting(tmp_path))
    urgent["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    # The pods of `batch` neither move nor are replaced on the node that pods are moved to.
    batch = next(each["spec"]["template"] for each in others if each["kind"] == "ReplicaSet")
    for each in (batch, *(other for other in others if other["metadata"]["name"].startswith("batch-"))):
        each["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    cluster = written(tmp_path, *others, urgent, name="urgent.json")

    answer = reported("reschedule", "-f", COOKBOOK, "-f", cluster)

    assert {row["workload"]: row["disruptions"] for row in answer["impact"] if row["disruptions"]} == {
        "Deployment shop/web": {"rescheduler": 1}
    }
    assert answer["anyway"]["preempted"] == 1
    assert [finding["code"] for finding in answer["findings"]] == ["evict"]


def test_only_the_preemptions_that_a_deployment_causes_are_counted(tmp_path: Path) -> None:
    cluster = _preempting(tmp_path)
    second = {**pod("second", "1", priority=1000, priorityClassName="high"), "status": {}}

    answer = reported("deploy", "-f", cluster, _manifest(tmp_path, second))

    assert "1 pod is preempted; 1 of these finds no other node" in answer["headline"]
    assert [preemption["preemptorWorkload"] for preemption in answer["cascade"]] == ["Pod default/second"]
    assert answer["anyway"]["preempted"] == 1
    assert sum(impact["disruptions"].get("preemption", 0) for impact in answer["impact"]) == 1


def test_all_pods_of_a_deployment_are_counted_though_others_are_created_without_it(tmp_path: Path) -> None:
    # Both runs create pods at the same instant: those of `missing` in both, those of `extra` in one.
    cluster = written(tmp_path, node("n1", cpu="90"), replica_set("missing", 7, "10m"))
    extra = replicated("ReplicaSet", "extra", 60, {"containers": _containers("10m")}, uid="uid-extra")

    answer = reported("deploy", "-f", cluster, _manifest(tmp_path, extra))

    assert "all 60 pods find a node" in answer["headline"]
    assert answer["placed"] == [{"workload": "ReplicaSet default/extra", "nodes": {"n1": 60}, "waiting": 0}]


def test_pods_that_a_workload_creates_anyway_are_not_those_of_a_deployment(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1", cpu="90"), replica_set("web", 2, "10m"))
    more = replica_set("web", 5, "10m")

    answer = reported("deploy", "-f", cluster, _manifest(tmp_path, more))

    assert "all 3 pods find a node" in answer["headline"]


def test_pods_that_wait_anyway_are_not_in_the_findings(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1", cpu="2"), replica_set("web", 3, "1"))

    answer = reported("change", "-f", cluster, "rs/web", "replicas=5")

    finding = next(found for found in answer["findings"] if found["code"] == "unschedulable")
    assert finding["message"].startswith("2 pods of ReplicaSet default/web wait: ")
    assert answer["impact"][0]["pending"] == 2
    assert answer["anyway"]["pending"] == 1


def test_the_drain_of_a_scenario_in_the_input_is_not_that_of_the_plan(tmp_path: Path) -> None:
    scenario: Raw = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "own"},
        "spec": {"steps": [{"at": "0s", "drain": {"name": "n1"}}]},
    }
    cluster = written(tmp_path, node("n1"), node("n2"), pod("alone", on="n1"), scenario)

    answer = reported("drain", "-f", cluster, "n2", "--fail-on", "refused")

    assert answer["headline"].startswith("drain of n2 takes ")
    assert [drain["node"] for drain in answer["drains"]] == ["n2"]
    assert "unblock" not in answer
    assert not answer["findings"]


def _containers(cpu: str) -> list[Any]:
    return [{"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}]


def test_a_lasting_shortage_is_reported_in_every_output_format(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"), replica_set("web", 1), pod("web-1", on="n1", owner="web"))
    args = ["drain", "-f", cluster, "n1"]

    row = next(csv.DictReader(io.StringIO(ask(*args, "-o", "csv").stdout)))
    impact = reported(*args)["impact"][0]
    tables = picture_of_plan(podium.plan(cluster).drain("n1")).tables
    table = next(table for table in tables if table.title == "Impact")

    assert " and on" in ask(*args).stdout
    assert row["shortLasts"] == "true"
    assert impact["shortLasts"] is True
    assert str(table.rows[0][table.headings.index("short for")]).endswith(" and on")


def test_wrong_usage_ends_with_one_everywhere(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"))

    for args in (["drain", "--no-such-option"], ["drain", "n1"], ["deploy", "-f", cluster], ["no-such-question"]):
        ask(*args, code=1)
    assert CliRunner().invoke(command, ["--no-such-option"]).exit_code == 1
    assert CliRunner().invoke(command, ["explain", "--no-such-option"]).exit_code == 1
    ask("drain", "-f", cluster, "n1", "--fail-on", "any")


def test_a_question_about_a_file_says_how_to_name_the_file_and_the_cluster(tmp_path: Path) -> None:
    change = _manifest(tmp_path, pod("new"))

    without_change = " ".join(ask("deploy", "-f", change, code=1).output.split())
    without_cluster = " ".join(ask("deploy", change, code=1).output.split())

    assert "podium plan deploy FILE -f CLUSTER" in without_change
    assert "Nothing to read: give files with -f, a cluster with --context" in without_cluster


def test_the_first_part_of_a_name_of_several_nodes_suggests_them(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("ip-10-0-1-23.ec2.internal"), node("ip-10-0-1-23.example"))

    problem = ask("drain", "-f", cluster, "ip-10-0-1-23", code=1).output

    assert "did you mean ip-10-0-1-23.ec2.internal or ip-10-0-1-23.example?" in problem


def test_advice_of_a_command_names_its_options(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"), pod("alone", on="n1"))

    shown = " ".join(ask("drain", "-f", cluster, "n1").output.split())

    assert "--force evicts it" in shown
    assert "force: true" not in shown
    as_json = ask("drain", "-f", cluster, "n1", "-o", "json").output
    assert json.loads(as_json)["drains"][0]["pods"][0]["reason"].endswith("--force evicts it")
    assert "force: true" not in as_json
