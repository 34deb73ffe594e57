"""The picture of each answer, and its description in words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner, Result

from podium.app.console.command import podium
from podium.app.library import load, simulate
from podium.app.planning.question import PlanQuestion, PlanRun
from podium.app.planning.scenarios import step
from podium.app.reporting import report
from podium.app.reporting.picture import AnswerPicture
from podium.app.reporting.pictures import picture_of
from podium.sim import placement_log
from podium.sim.run_options import RunOptions
from tests import builders
from tests.app.live.test_decision import recorded
from tests.app.reporting.test_file import data_of
from tests.docs.blocks import ROOT

STARVATION = ROOT / "examples" / "starvation-1.yaml"
LOOP = ROOT / "examples" / "preemption-loop.yaml"
WORK_LOST = ROOT / "examples" / "preemption" / "work-lost.yaml"
WORK_LOST_CONFIG = ROOT / "examples" / "preemption" / "work-lost-config.yaml"
CLUSTER = ROOT / "examples" / "plan" / "cluster.yaml"
NODE = "ip-10-0-1-12.eu-west-1.compute.internal"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(podium, [str(argument) for argument in arguments])


def page_of(*arguments: str | Path) -> Any:
    """Return the data of the page that a command prints."""
    result = run(*arguments, "-o", "html")
    assert result.exit_code == 0, result.output
    return data_of(result.output)


def decision(pod: str) -> AnswerPicture:
    return picture_of(load([STARVATION]).explain(pod))


def test_a_run_page_shows_its_sums() -> None:
    outcome = page_of("simulate", "-f", STARVATION, "--latency", "0")

    assert outcome["headline"] == "2m: 1 bound, 2 preempted, 1 pod waiting at the end"
    assert [table["title"] for table in outcome["more"]] == ["Waits", "Requested"]
    assert outcome["more"][0]["rows"] == [["priority 1000", 1, "1m", "1m", "1m", "1m"]]
    assert len(outcome["stories"]) == 1


def test_a_plan_page_shows_its_impact_beside_the_baseline() -> None:
    outcome = page_of("plan", "drain", NODE, "--timeout", "5m", "-f", CLUSTER)

    assert outcome["headline"] == f"drain of {NODE} timed out after 5m: budget shop/fe holds shop/fe-66b5f7c9d8-m7p4d"
    assert outcome["facts"][0].startswith("Plan: 0 placed, ")
    impact = next(table for table in outcome["tables"] if table["title"] == "Impact")
    assert impact["headings"][:5] == ["workload", "before", "lowest", "after", "wanted"]
    assert ["~ Deployment shop/report", 3, 3, 3, 3] in [row[:5] for row in impact["rows"]]
    assert "workload Deployment shop/report" in impact["subjects"]
    assert [story["name"] for story in outcome["stories"]] == ["without the plan", "with the plan"]
    assert outcome["stories"][0]["events"]["time"] == []


def test_settings_side_by_side_bear_their_names() -> None:
    cookbook = ROOT / "examples" / "cookbook"

    outcome = page_of("plan", "diff", "-f", cookbook / "compare.yaml", "--after", cookbook / "compare-after.yaml")

    assert [story["name"] for story in outcome["stories"]] == ["the cluster as it is", "compare-after.yaml"]


def test_a_plan_without_impact_has_no_table_of_it() -> None:
    read = load([CLUSTER]).read
    played = PlanRun(read, RunOptions()).play(PlanQuestion("nothing", (step("cordon", {"name": NODE}),)))

    outcome = picture_of(played.answer())

    assert "Impact" not in [table.title for table in outcome.tables]


def test_a_decision_covers_every_node_once() -> None:
    outcome = decision("default/c").decision

    assert outcome is not None
    assert outcome.nodes == ["node-1"]
    assert [outcome.groups[group] for group in outcome.group_of] == ["Insufficient cpu (NodeResourcesFit)"]
    assert (outcome.taken, outcome.role, outcome.fits) == (0, "the node on which it preempts", False)
    [candidate] = outcome.candidates
    assert (candidate.node, candidate.violations, candidate.priority, candidate.count) == (0, 0, 100, 2)
    assert candidate.victims == ["default/a", "default/b"]


def test_candidates_are_shown_by_the_configured_criteria_as_in_the_text() -> None:
    outcome = page_of("explain", "ml/urgent", "-f", WORK_LOST, "--config", WORK_LOST_CONFIG)["decision"]

    assert outcome["criteria"] == ["work lost", "grace"]
    assert [(outcome["nodes"][each["node"]], each["costs"]) for each in outcome["candidates"]] == [
        ("gpu-2", ["1.0 node-hours", "30s"]),
        ("gpu-1", ["8.0 node-hours", "30s"]),
    ]


def test_candidates_are_shown_by_kube_schedulers_criteria_by_default() -> None:
    outcome = page_of("explain", "ml/urgent", "-f", WORK_LOST)["decision"]

    assert outcome["criteria"] is None
    assert [(each["violations"], each["priority"], each["costs"]) for each in outcome["candidates"]] == [
        (0, 5, None),
        (0, 6, None),
    ]


def test_a_decision_has_what_would_have_to_change_and_the_text_of_the_terminal() -> None:
    outcome = decision("default/c")

    assert outcome.facts == ["priority 1000, Burstable, asks for 10 cpu"]
    assert outcome.changes_title == "What would have to change to run without preempting"
    assert outcome.changes == ["node-1: cpu short by 10 (10 asked, 0 of 10 free)"]
    assert outcome.text.startswith("default/c preempts on node-1: victims default/a, default/b\n")


def test_scores_are_by_total_and_the_node_that_is_taken_goes_before_its_equals() -> None:
    outcome = picture_of(load([CLUSTER]).ask("deploy/fe", "shop")).decision

    assert outcome is not None
    assert outcome.totals == sorted(outcome.totals, reverse=True)
    assert outcome.rated[0] == outcome.taken
    assert [sum(scores) for scores in outcome.scores] == outcome.totals


def test_an_explanation_states_the_workload_before_its_pod() -> None:
    outcome = picture_of(load([CLUSTER]).ask("deploy/fe", "shop"))

    assert outcome.facts[0] == "Deployment shop/fe: 3 of 3 wanted have a node"


def test_a_one_node_page_shows_the_verdict_of_every_plugin() -> None:
    outcome = page_of("explain", "c", "--node", "node-1", "-f", STARVATION)

    assert outcome["headline"] == "default/c does not fit on node-1 as it is, and preempts there"
    filters = next(table for table in outcome["tables"] if table["title"] == "Filters")
    assert ["NodeResourcesFit", "Unschedulable", "Insufficient cpu"] in filters["rows"]
    assert ["NodeUnschedulable", "passes", ""] in filters["rows"]


def test_a_sweep_has_the_figures_of_all_runs_and_stories_of_the_first_seed(tmp_path: Path) -> None:
    file = tmp_path / "sweep.html"
    arguments = ("--vary", "maxFutilePreemptions=0,1,2", "--seeds", "2", "--jobs", "1", "-o", "html", "--save", file)

    result = run("sweep", "-f", LOOP, *arguments)

    assert result.exit_code == 0, result.output
    outcome = data_of(file.read_text())
    assert outcome["headline"] == "6 runs of 3 combinations of settings"
    settings = ["maxFutilePreemptions=0", "maxFutilePreemptions=1", "maxFutilePreemptions=2"]
    assert outcome["runs"]["settings"] == [story["name"] for story in outcome["stories"]] == settings
    assert outcome["runs"]["places"] == [0, 0, 1, 1, 2, 2]
    assert outcome["runs"]["seeds"] == [0, 1, 0, 1, 0, 1]
    preempted = outcome["runs"]["figures"].index("preempted")
    assert outcome["runs"]["values"][0][preempted] == 60
    assert "end" not in outcome["runs"]["figures"]
    # Each of these has reasons for placements.
    assert all(story["placements"]["pod"] for story in outcome["stories"])


def test_a_cluster_without_nodes_or_pods_can_be_seen() -> None:
    outcome = picture_of(simulate([], until="1s"))

    assert outcome.stories[0].nodes["name"] == outcome.stories[0].pods["name"] == []
    assert outcome.stories[0].resources == ["cpu"]


def test_a_picture_is_not_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("podium.app.console.options.sys", terminal)

    for command in (["simulate"], ["explain", "c"], ["plan", "drain", NODE]):
        result = run(*command, "-f", "no-such-file.yaml", "-o", "html")

        assert result.exit_code == 1
        assert "append > answer.html to the command" in result.output


def test_every_picture_can_be_shown_in_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def browser(url: str) -> bool:
        shown.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", browser)

    for command in (["simulate"], ["plan", "drain", NODE], ["sweep", "--until", "1s"]):
        result = run(*command, "-f", str(CLUSTER), "--open")

        assert (result.exit_code, result.stdout) == (0, ""), result.output
        file = Path(unquote(urlsplit(shown.pop()).path))
        assert (file.stat().st_mode & 0o077, "<html" in file.read_text()) == (0, True)
        file.unlink()


def test_only_html_is_for_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)

    other_form = run("simulate", "-f", str(CLUSTER), "--open", "-o", "json")
    no_browser = run("simulate", "-f", str(CLUSTER), "--open")

    assert "--open shows HTML" in other_form.output
    assert (other_form.exit_code, no_browser.exit_code) == (1, 1)
    file = Path(no_browser.output.rpartition("the answer is in ")[2].strip())
    assert "<html" in file.read_text()
    file.unlink()


def test_the_same_answer_is_the_same_file() -> None:
    assert report(simulate([LOOP])) == report(simulate([LOOP]))


def test_the_page_says_when_a_picture_is_missing() -> None:
    with pytest.raises(TypeError, match="there is no picture of str"):
        picture_of("answer")  # type: ignore[arg-type]


def test_the_page_tells_why_a_pod_was_placed() -> None:
    outcome = page_of("simulate", "-f", ROOT / "examples" / "two-schedulers.yaml")

    story = outcome["stories"][0]
    placements = story["placements"]
    assert placements["pod"]
    names = [story["words"][plugin] for scores in placements["scores"] for plugin, *_ in scores]
    assert all(name.isalpha() for name in names)
    assert outcome["facts"] == []


def test_page_reports_how_many_placements_have_no_recorded_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_log, "MOST_PLACEMENTS", 1)

    outcome = page_of("simulate", "-f", ROOT / "examples" / "drain.yaml")

    assert outcome["facts"][-1].startswith("reasons are shown for the first 1 placement; ")


def test_a_decision_that_was_written_down_is_seen_by_the_nodes_that_its_line_names(tmp_path: Path) -> None:
    file = recorded(tmp_path, *(builders.node(f"n{number}", cpu=4) for number in range(30)), builders.pod("web", cpu=1))

    outcome = page_of("explain", "web", "--decision", file)

    decision = outcome["decision"]
    assert outcome["headline"].startswith("Pod default/web fits: n")
    assert (decision["groups"], decision["counts"]) == (["fits"], [30])
    assert 20 <= len(decision["nodes"]) <= 30
    assert decision["nodes"][decision["taken"]] in outcome["headline"]
    assert len(decision["rated"]) == 10
    assert any("of 30 nodes: the first of each verdict" in fact for fact in outcome["facts"])
    assert [table["title"] for table in outcome["tables"]] == ["Asked for"]


def test_a_preemption_that_was_written_down_is_seen_with_its_victims(tmp_path: Path) -> None:
    low = builders.pod("low", cpu=4, priority=1, on="n1")
    file = recorded(
        tmp_path, builders.node("n1", cpu=4), builders.node("n2", cpu=1), low, builders.pod("web", cpu=3, priority=9)
    )

    decision = page_of("explain", "web", "--decision", file)["decision"]

    assert [candidate["victims"] for candidate in decision["candidates"]] == [["default/low"]]
    assert decision["candidates"][0]["priority"] is None
    assert decision["nodes"][decision["taken"]] == "n1"
