"""The reference documents are complete, and their figures are right."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

import podium
from podium.api.input.codec import load_files
from podium.app.explaining.explainer import Explainer
from podium.app.planning.command import plan as plan_command
from podium.app.planning.constants import FINDING_CODES
from podium.framework.settings.configuration import DEFAULT_PLUGINS
from podium.plugins.registry import IN_TREE
from tests.conformance.test_conformance import ALL
from tests.conformance.test_dynamic_resources import THEMES
from tests.conformance.test_stories import STORIES, WITHOUT_CONSEQUENCE
from tests.docs.blocks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def text_of(name: str) -> str:
    """Return the document, its lines joined."""
    return " ".join((ROOT / name).read_text().split())


def rows_of(name: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under the first heading of that text, without the two rows of its head."""
    _, _, rest = (ROOT / name).read_text().partition(f"# {heading}\n")
    table = re.search(r"(?:^\|.*\|\n)+", rest, re.MULTILINE)
    if table is None:
        raise AssertionError(f"{name}: no table under {heading}")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def keys_listed(name: str, heading: str) -> set[str]:
    """Return the keys of the first list under a heading: what is written as code before the colon of each item."""
    _, _, rest = (ROOT / name).read_text().partition(f"# {heading}\n")
    items = re.search(r"(?:^- .*\n(?:^  .*\n)*)+", rest, re.MULTILINE)
    if items is None:
        raise AssertionError(f"{name}: no list under {heading}")
    return words_in(re.findall(r"^- ((?:`[^`]+`(?:, )?)+):", items[0], re.MULTILINE))


def arguments_listed(name: str, heading: str) -> dict[str, str]:
    """Return the items below a heading that begin with an argument: its meaning by its name."""
    section = (ROOT / name).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", section, re.MULTILINE))


def words_in(cells: list[str]) -> set[str]:
    """Return what is written as code in some cells."""
    return set(chain.from_iterable(re.findall(r"`([^`]+)`", cell) for cell in cells))


def test_the_figures_of_conformance_are_those_of_its_tests() -> None:
    small, harder = (sum(number for suffix, _, number in ALL if suffix == wanted) for wanted in ("cases", "cases-2"))

    for document in ("README.md", "docs/proof.md", "CONTRIBUTING.md"):
        assert f"{small + harder:,} decisions" in text_of(document)
    readme = text_of("README.md")
    assert f"All {small + harder:,} agree" in readme
    assert f"{small} are of small clusters, {harder} of harder ones" in readme
    assert f"{sum(THEMES.values())} more about devices" in readme
    assert f"{STORIES} stories" in readme
    assert f"{STORIES - WITHOUT_CONSEQUENCE} count, and agree" in readme


def test_every_default_plugin_is_listed_in_order_with_its_weight() -> None:
    listed = [(plugin, weight) for plugin, weight, _ in rows_of("docs/configuration.md", "Plugins")]

    assert listed == [(one.name, str(one.weight or "")) for one in DEFAULT_PLUGINS.multi_point.enabled]


def test_every_argument_is_listed() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text()
    plugins = page.partition("\n## Arguments of the scheduler's plugins\n")[2].partition("\n## ")[0]
    listed = {
        part.splitlines()[0]: set(re.findall(r"^- `(\w+)", part, re.MULTILINE)) for part in plugins.split("\n### ")[1:]
    }

    assert listed == dict(arguments_of_plugins())
    assert "(reference/settings.md)" in text_of("docs/configuration.md")


def arguments_of_plugins() -> Iterator[tuple[str, set[str]]]:
    for name, factory in IN_TREE.items():
        struct = getattr(sys.modules[factory.__module__], f"{name}Args", None)
        if struct is not None:
            yield name, {field.encode_name for field in msgspec.structs.fields(struct)}


@pytest.mark.parametrize(
    ("command", "document"),
    [
        ("podium-explain", "docs/explain.md"),
        ("podium-simulate", "docs/scenarios.md"),
        ("podium-plan", "docs/plans.md"),
        ("podium-use", "docs/plans.md"),
        ("podium-up", "docs/up.md"),
        ("podium-ledger", "docs/ledger.md"),
        ("podium-sweep", "docs/sweep.md"),
        ("podium-snapshot", "docs/snapshots.md"),
        ("podium-record", "docs/recordings.md"),
        ("kubectl-podium-delete", "docs/kubectl-plugin.md"),
        ("podium-scheduler", "docs/scheduler.md"),
        ("podium-reschedule", "docs/rescheduler.md"),
        ("podium-exporter", "docs/exporter.md"),
        ("podium-admission", "docs/admission.md"),
        ("podium-mcp", "docs/mcp.md"),
    ],
)
def test_the_page_of_a_command_links_to_its_options(command: str, document: str) -> None:
    """The reference is generated from the options, so that it has all of them."""
    assert f"(reference/commands.md#{command})" in text_of(document)


def test_every_question_and_finding_code_is_documented() -> None:
    report = text_of("docs/plans.md")

    assert [name for name in plan_command.commands if f"plan {name}" not in report] == []
    assert [cells[0].strip("`") for cells in rows_of("docs/plans.md", "For continuous integration")] == list(
        FINDING_CODES
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_field_of_a_simulation_result_is_documented(example: Path) -> None:
    report = text_of("docs/scenarios.md") + text_of("docs/ledger.md")
    reasons = keys_listed("docs/scenarios.md", "Events")
    result = podium.simulate(example).to_dict()

    assert {event["reason"] for event in result["events"]} <= reasons
    assert [key for key in keys_of(result) if f'"{key}"' not in report and f"`{key}`" not in report] == []


def test_every_caveat_of_explanations_simulations_and_plans_is_documented() -> None:
    source = ROOT / "src/podium"
    folders = ("api", "app/explaining", "app/planning", "framework/settings", "sim")
    files = [source / "framework/extenders.py", *chain.from_iterable((source / each).rglob("*.py") for each in folders)]
    codes = {code for file in files for code in re.findall(r'(?:Caveat|caveat_of)\(\s*"([\w-]+)"', file.read_text())}

    assert len(codes) > 20
    assert codes - keys_listed("docs/explain.md", "Caveats") == set()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_field_of_an_explanation_is_documented(example: Path) -> None:
    keys = keys_listed("docs/explain.md", "Machine-readable output")
    explainer = Explainer(one.object for one in load_files([str(example)]) if one.object is not None)

    for pod in explainer.pending:
        assert set(explainer.explain(pod).to_dict()) <= keys


def keys_of(value: Any) -> Iterator[str]:
    """Yield the keys of all objects in a value."""
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from keys_of(one)
