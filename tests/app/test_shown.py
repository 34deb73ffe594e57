"""Answers in notebooks look as in the terminal, and their repr is one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

import podium
from podium.app.answers import in_html
from podium.app.console.command import podium as command
from podium.app.explaining.on_node import answer_on
from tests.docs.blocks import ROOT

STARVING, BUDGET, PLAN = "examples/starvation-1.yaml", "examples/budget.yaml", "examples/plan/cluster.yaml"
NODE = "ip-10-0-1-11.eu-west-1.compute.internal"
# By the command line that prints it, each kind of answer.
ANSWERS: dict[str, Callable[[], Any]] = {
    f"explain urgent-1 -f {BUDGET}": lambda: podium.explain(BUDGET, "urgent-1"),
    f"explain urgent-1 --node node-1 -f {BUDGET}": lambda: answer_on(podium.explain(BUDGET, "urgent-1"), "node-1"),
    f"explain deploy/shop/report -f {PLAN}": lambda: podium.load(PLAN).ask("deploy/shop/report"),
    f"simulate -f {STARVING} --until 45s": lambda: podium.simulate(STARVING, until="45s"),
    f"simulate -f {STARVING} --until 2m": lambda: podium.simulate(STARVING, until="2m"),
    f"plan drain {NODE} -f {PLAN}": lambda: podium.plan(PLAN).drain(NODE),
    f"sweep -f {STARVING} --until 30s --vary start-delay=0s,5s -j 1": lambda: podium.sweep(
        STARVING, {"start-delay": ["0s", "5s"]}, until="30s"
    ),
}
each_answer = pytest.mark.parametrize("line", ANSWERS)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@each_answer
def test_an_answer_is_what_its_command_prints(line: str) -> None:
    answer = ANSWERS[line]()

    printed = CliRunner().invoke(command, line.split(), prog_name="podium", catch_exceptions=False).output

    assert answer.text == str(answer) == printed
    bundle = answer._repr_mimebundle_()
    assert bundle["text/plain"] == printed
    assert bundle["text/html"].startswith("<pre")


@each_answer
def test_its_picture_is_that_of_its_command(line: str) -> None:
    printed = CliRunner().invoke(command, [*line.split(), "-o", "html"], prog_name="podium", catch_exceptions=False)

    assert ANSWERS[line]().html() == printed.output


def test_placement_reasons_are_computed_for_pictures_alone() -> None:
    result = podium.simulate(STARVING, until="2m")

    assert result.placements == {}
    assert result._with_pictures().placements


@each_answer
def test_an_answer_as_a_value_is_one_line(line: str) -> None:
    shown = repr(ANSWERS[line]())

    assert shown.startswith("<")
    assert "\n" not in shown
    assert len(shown) < 300


def test_other_fields_are_shown_as_one_line_values() -> None:
    assert repr(podium.load(PLAN)) == "<Cluster: 3 nodes, 6 pods, 16 objects>"
    assert repr(podium.plan(PLAN)).startswith("<Plans: deploy, drain, ")
    assert repr(podium.simulate(STARVING, until="45s")).startswith("<SimulationResult: 45s from 2026-01-01T00:00:00Z: ")


def test_the_result_of_a_plan_is_shown_as_well() -> None:
    answer = podium.plan(PLAN).drain(NODE)

    assert answer.result is not None
    assert "Timeline" in answer.result.text


def test_colours_are_kept_and_markup_is_text() -> None:
    html = in_html('\x1b[1;36m<b>title</b>\x1b[0m & "rest"\n')

    assert "<b>" not in html
    assert "&lt;b&gt;title&lt;/b&gt;</span> &amp; &quot;rest&quot;" in html
    assert "color:#00838f" in html


def test_a_cluster_names_what_it_has() -> None:
    cluster = podium.load(BUDGET)

    assert cluster.nodes == sorted(cluster.nodes)
    assert set(cluster.pending) < set(cluster.pods)
