"""The notebook's outputs are those of its cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tools.notebook import NOTEBOOK, in_json, run_cells, with_outputs


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def test_recorded_cell_outputs_match_a_fresh_run(notebook: dict[str, Any]) -> None:
    shown = run_cells(notebook, NOTEBOOK.parent)
    written = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]

    # tools/notebook.py writes it anew.
    assert shown == written


def test_the_notebook_file_is_formatted_as_by_the_tool(notebook: dict[str, Any]) -> None:
    assert NOTEBOOK.read_text(encoding="utf-8") == in_json(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert {"cell_type", "id", "metadata", "source"} <= set.intersection(*(set(cell) for cell in notebook["cells"]))


def test_a_cell_shows_what_it_prints_and_the_value_of_its_last_line() -> None:
    cells = [
        {"cell_type": "code", "source": ["print('a')\n", "x = 1\n", "x + 1"]},
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["y = x"]},
    ]

    first, _, second = with_outputs({"cells": cells}, ROOT)["cells"]

    assert [output["output_type"] for output in first["outputs"]] == ["stream", "execute_result"]
    assert first["outputs"][0]["text"] == ["a\n"]
    assert first["outputs"][1]["data"] == {"text/plain": ["2"]}
    assert (second["outputs"], second["execution_count"]) == ([], 2)
