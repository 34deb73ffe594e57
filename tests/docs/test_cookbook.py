"""The cookbook answers every question of plans: with a cluster, a command, its answer and its picture."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from podium.app.console.command import podium
from podium.app.planning.command import plan
from tests.docs.blocks import DOCUMENTS, ROOT, blocks_of, prose_of
from tests.docs.shell import entered
from tests.docs.test_reference import rows_of, words_in
from tools import pictures

COOKBOOK = ROOT / "docs" / "cookbook.md"
RECIPES = sorted((ROOT / "docs" / "cookbook").glob("*.md"))
EXAMPLES = ROOT / "examples" / "cookbook"
SHOWN = pictures.commands()

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)


def test_there_are_eleven_questions_and_each_command_answers_one() -> None:
    rows = rows_of("docs/cookbook.md", "Cookbook")

    assert len(rows) == 11
    questions = plan.commands.keys() - {"check"}
    assert words_in([row[1] for row in rows]) == {f"podium plan {name}" for name in questions}
    assert {row[2][1:].partition("]")[0] for row in rows} == {recipe.stem for recipe in RECIPES}


@each_recipe
def test_a_recipe_is_titled_by_its_question(recipe: Path) -> None:
    questions = {row[2][1:].partition("]")[0]: row[0] for row in rows_of("docs/cookbook.md", "Cookbook")}

    assert recipe.read_text().splitlines()[0] == f"# {questions[recipe.stem]}"


@each_recipe
def test_a_recipe_has_its_cluster_its_answer_and_a_path_to_your_own(recipe: Path) -> None:
    (command, shown), *_ = (each for block in blocks_of(recipe, "console") for each in entered(block.text))
    own = [line for block in blocks_of(recipe, "sh") for line in block.text.splitlines() if "--context" in line]

    assert command.startswith("podium plan ")
    assert f"examples/cookbook/{recipe.stem}.yaml" in command
    assert not shown.startswith("...")
    assert own


@each_recipe
def test_a_recipe_shows_the_picture_of_its_first_command(recipe: Path) -> None:
    file = pictures.FOLDER / f"{recipe.stem}.png"
    picture = file.read_bytes()

    assert f"](../pictures/{recipe.stem}.png)" in prose_of(recipe)
    assert pictures.description_of(picture) == SHOWN[recipe.stem]
    assert len(picture) <= pictures.LARGEST_BYTES
    height, width, _ = pictures.pixels_of(picture).shape
    assert 900 < width < 1300
    assert 200 < height < 1300


@pytest.mark.parametrize("name", sorted(pictures.of_pages()))
def test_a_picture_in_a_page_shows_the_command_before_it(name: str) -> None:
    picture = (pictures.FOLDER / f"{name}.png").read_bytes()

    assert pictures.description_of(picture) == SHOWN[name]
    assert SHOWN[name].startswith("podium plan ")
    assert len(picture) <= pictures.LARGEST_BYTES


@pytest.mark.parametrize("name", sorted(pictures.VIEWS))
def test_a_picture_of_the_web_page_names_its_command(name: str) -> None:
    picture = (pictures.FOLDER / f"{name}.png").read_bytes()

    assert pictures.description_of(picture) == SHOWN[name]
    assert len(picture) <= pictures.LARGEST_BYTES


def test_no_picture_and_no_example_is_left_over() -> None:
    report = "".join(document.read_text() for document in DOCUMENTS)

    assert {file.stem for file in pictures.FOLDER.glob("*.png")} == set(SHOWN)
    assert [file.name for file in pictures.FOLDER.iterdir() if f"pictures/{file.name}" not in report] == []
    assert [file.name for file in EXAMPLES.iterdir() if f"examples/cookbook/{file.name}" not in report] == []


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_an_example_says_what_it_is_and_has_the_shape_of_a_dump(file: Path) -> None:
    text = file.read_text()
    (loaded, *others) = yaml.safe_load_all(text)

    assert text.startswith("# ")
    if loaded["kind"] == "List":
        nodes = [item for item in loaded["items"] if item["kind"] == "Node"]
        assert not others
        assert 3 <= len(nodes) <= 6
        assert all(item["metadata"]["uid"] for item in loaded["items"])
        assert {"Deployment", "ReplicaSet", "Pod", "PriorityClass"} <= {item["kind"] for item in loaded["items"]}


def test_a_constraint_can_ignore_tainted_zones(tmp_path: Path) -> None:
    """In this recipe `web` gets its pods back by preempting others."""
    loaded = yaml.safe_load((EXAMPLES / "fail.yaml").read_text())
    for item in loaded["items"]:
        spec = item.get("spec", {}).get("template", item).get("spec", {})
        for constraint in spec.get("topologySpreadConstraints", ()):
            constraint["nodeTaintsPolicy"] = "Honor"
    file = tmp_path / "honor.json"
    file.write_text(json.dumps(loaded))

    def web(cluster: Path) -> tuple[int, bool]:
        arguments = [
            "plan",
            "fail",
            "-l",
            "topology.kubernetes.io/zone=europe-west1-c",
            "-f",
            str(cluster),
            "-o",
            "json",
        ]
        answer = json.loads(CliRunner().invoke(podium, arguments).stdout)
        found = next(each for each in answer["impact"] if each["workload"] == "Deployment shop/web")
        return found["readyAfter"], any(finding["code"] == "preempt" for finding in answer["findings"])

    assert web(EXAMPLES / "fail.yaml") == (4, False)
    assert web(file) == (6, True)


def test_few_colours_leave_a_picture_as_it_is_where_it_has_no_more() -> None:
    pixels = np.full((3, 5, 3), 255, np.uint8)
    pixels[1, 2:4] = (8, 33, 107)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", 5, 3, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    drawn = pictures.SIGNATURE + b"".join(pictures.chunk(kind, body) for kind, body in parts)
    small = pictures.with_few_colours(drawn, "podium plan")

    assert pictures.description_of(small) == "podium plan"
    assert (pictures.pixels_of(small) >> 3 == pixels >> 3).all()
