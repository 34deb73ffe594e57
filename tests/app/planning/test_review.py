"""Plans for reviewers: the sums, Markdown and GitHub's annotations."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import podium
from podium.api.basis import Caveat
from podium.app.console.command import podium as podium_command
from podium.app.console.page import Section
from podium.app.planning.answer import MOST_BYTES, diff_line, plan_markdown, workflow_commands
from podium.app.planning.impact import PlanFinding, WorkloadImpact
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, written

HIGH = priority_class("high", 1000)
WAITING = pod("waits", "3", priority=1000, priorityClassName="high")


def cluster(folder: Path, *further: Raw) -> str:
    """Return a node that two pods of a ReplicaSet fill."""
    pods = [pod(f"web-{number}", "2", on="n1", owner="web") for number in range(2)]
    return written(folder, node("n1"), HIGH, replica_set("web", 2, "2"), *pods, *further)


def test_the_sums_count_only_what_differs_from_the_run_without_the_change(tmp_path: Path) -> None:
    plan = podium.load(cluster(tmp_path, WAITING)).plan()
    harmless = pod("harmless", "0")

    assert (
        plan.deploy(harmless).summary
        == "Plan: 1 placed, 0 evicted, 0 preempted (2 happen anyway), 0 missing at the end"
    )
    one = pod("waits", "1", priority=1000, priorityClassName="high")
    assert "(1 happens anyway)" in podium.load(cluster(tmp_path, one)).plan().deploy(harmless).summary


def test_the_sums_count_victims_and_pods_that_are_missing_at_the_end(tmp_path: Path) -> None:
    plan = podium.load(cluster(tmp_path)).plan()

    line = plan.deploy(WAITING).summary

    assert line.startswith("Plan: 1 placed, 0 evicted, 2 preempted, 2 missing at the end; 1 workload short, longest ")
    assert line.endswith(" and on")


def test_one_waiting_pod_is_counted_in_the_singular(tmp_path: Path) -> None:
    answer = podium.load(cluster(tmp_path)).plan().deploy(pod("large", "9"))

    assert answer.headline.startswith("deploying Pod default/large: 1 of 1 pod waits for a node; ")


def test_a_question_that_is_not_played_has_its_headline_as_its_sums(tmp_path: Path) -> None:
    answer = podium.load(cluster(tmp_path, WAITING)).plan().pending()

    assert answer.summary == ""
    assert plan_markdown(answer).startswith("**the one pending pod gets a node without a change")


def test_markdown_has_a_line_for_each_workload_and_folds_the_answer_away(tmp_path: Path) -> None:
    markdown = ask(
        "deploy", "-f", cluster(tmp_path), written(tmp_path, WAITING, name="w.json"), "-o", "markdown"
    ).stdout

    diff = markdown.partition("```diff\n")[2].partition("\n```")[0].splitlines()
    assert [line.partition(":")[0] for line in diff] == ["- ReplicaSet default/web", "+ Pod default/waits"]
    assert "<details><summary>The whole answer</summary>" in markdown


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"missing": 1, "short_seconds": 9.0}, "-"),
        ({"stuck": 1}, "-"),
        ({"short_seconds": 9.0, "disruptions": {"preemption": 1}}, "!"),
        ({"disruptions": {"preemption": 1}}, "~"),
        ({"ready_after": 3, "disruptions": {"preemption": 1}}, "~"),
        ({"pending_seconds": 5.0}, "~"),
        ({"ready_after": 3}, "+"),
        ({"short_seconds": -9.0}, "+"),
        ({"is_new": True, "short_seconds": 9.0}, "+"),
        ({"is_new": True, "missing": 1}, "-"),
    ],
)
def test_the_sign_of_a_workload_is_its_worst_difference(tmp_path: Path, changes: Raw, sign: str) -> None:
    same = WorkloadImpact("ReplicaSet default/web", 2, 2, 2, 2, 2, 0, 0, 0, 0.0, 0.0, {}, (), False, "")
    answer = podium.load(cluster(tmp_path)).plan().deploy(WAITING)
    answer = replace(answer, impact=(msgspec.structs.replace(same, **changes),))

    assert f"{sign} ReplicaSet default/web  " in answer.text
    assert f"\n{sign} ReplicaSet default/web: " in plan_markdown(answer)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"short_seconds": -9.0, "pending_seconds": -5.0}, "+ A: short for 9s less, waits for 5s less"),
        ({"pending_seconds": 5.0}, "~ A: waits for 5s longer"),
        ({"wanted": 1}, "~ A: 2 ready"),
        ({"ready_after": 3, "why": "exceeded quota"}, "+ A: 1 more ready"),
        ({"stuck": 1, "why": "no room"}, "- A: 1 of a rollout waits for a node at the end, no room"),
        ({"missing": 2, "why": "no room"}, "- A: 2 missing at the end, no room"),
    ],
)
def test_the_line_of_a_workload_says_what_differs_and_why_pods_are_missing(changes: Raw, line: str) -> None:
    same = WorkloadImpact("A", 2, 2, 2, 2, 2, 0, 0, 0, 0.0, 0.0, {}, (), False, "")

    assert diff_line(msgspec.structs.replace(same, **changes)) == line


def test_markdown_of_a_large_answer_is_cut_at_lines_and_keeps_all_its_parts(tmp_path: Path) -> None:
    answer = podium.load(cluster(tmp_path)).plan().deploy(WAITING)
    large = replace(
        answer,
        headline="ü" * 2 * MOST_BYTES,
        impact=answer.impact * 2_000,
        caveats=(Caveat("many", "ü" * 500, 1),) * 100,
        sections=(Section("rows", "Rows", tuple((f"ü {number}",) for number in range(20_000))),),
    )

    markdown = plan_markdown(large)

    assert MOST_BYTES - 100 < len(markdown.encode()) <= MOST_BYTES
    _, diff, caveats, text, end = markdown.split("```")
    *shown, left = diff.strip().removeprefix("diff\n").split("\n")
    assert set(shown) == {diff_line(impact) for impact in answer.impact}
    assert left == f"  and {4_000 - len(shown):,} more workloads"
    assert caveats.count("\n- " + "ü" * 500 + "\n") > 1
    assert text.endswith("\n(cut: podium plan -o text prints the whole answer)\n")
    assert end == "\n\n</details>\n"


def test_a_workload_that_only_a_budget_holds_says_so_in_markdown(tmp_path: Path) -> None:
    folder = written(
        tmp_path, node("n1"), replica_set("web", 1), pod("web-0", on="n1", owner="web"), budget("web", minAvailable=1)
    )

    markdown = ask("drain", "n1", "-f", folder, "--timeout", "5m", "-o", "markdown").stdout

    assert "\n~ ReplicaSet default/web: held by budget default/web for 5m\n" in markdown


def test_names_are_no_markup(tmp_path: Path) -> None:
    answer = replace(podium.load(cluster(tmp_path)).plan().deploy(WAITING), headline="<b>*x*</b> [a](b)")

    assert "\\<b\\>\\*x\\*\\</b\\> \\[a\\](b)" in plan_markdown(answer)


@pytest.mark.parametrize(
    ("subject", "file"), [("Pod default/waits", "waits.json"), ("ReplicaSet default/web", "first.json")]
)
def test_a_finding_is_annotated_on_the_file_of_its_object_or_the_first(tmp_path: Path, subject: str, file: str) -> None:
    changed = podium.load(written(tmp_path, WAITING, name="waits.json"))
    answer = podium.load(cluster(tmp_path)).plan().deploy(WAITING)
    answer = replace(answer, findings=(PlanFinding("preempt", "100% of: a, b\nand c", (subject,)),))

    first, second = workflow_commands(answer, changed.read.documents, "first.json")

    assert first.startswith("::notice title=podium plan deploy::Plan: 1 placed")
    found = re.fullmatch(r"::warning file=(.*),title=podium preempt::(.*)", second)
    assert found is not None
    assert found[1].endswith(file)
    assert found[2] == "100%25 of: a, b%0Aand c"


def test_github_gets_annotations_and_the_summary_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    change = written(tmp_path, WAITING, name="waits.json")

    printed = ask("deploy", "-f", cluster(tmp_path), change, "-o", "github", "--fail-on", "preempt", code=2).stdout

    levels = [line.partition(" ")[0] for line in printed.splitlines()]
    assert levels[0] == "::notice"
    assert {"::warning", "::error"} >= set(levels[1:])
    assert summary.read_text().startswith("before\n**Plan: 1 placed")


def test_a_finding_about_other_objects_is_annotated_on_the_first_file_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    file = written(folder, WAITING, name="waits.json")

    printed = ask("deploy", "-f", cluster(tmp_path), str(folder), "-o", "github").stdout

    assert f"::warning file={file},title=podium preempt::" in printed


def test_findings_about_standard_input_name_no_file(tmp_path: Path) -> None:
    command = ["plan", "deploy", "-", "-f", cluster(tmp_path), "-o", "github"]

    printed = CliRunner().invoke(podium_command, command, input=json.dumps(WAITING)).stdout

    assert "::warning title=podium preempt::" in printed
    assert "file=" not in printed
