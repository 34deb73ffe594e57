"""Runs the cells of docs/notebook.ipynb and stores their outputs, as Jupyter does.

`.venv/bin/python tools/notebook.py` updates the notebook; a test runs the cells and compares.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
WIDEST = 100


def run_cells(notebook: dict[str, Any], folder: Path) -> list[list[dict[str, Any]]]:
    """Return the output of each code cell, run in order in one namespace and folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with chdir(folder):
        return [_run("".join(cell["source"]), names, number) for number, cell in enumerate(code, start=1)]


def with_outputs(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells."""
    shown = iter(run_cells(notebook, folder))
    numbers = iter(range(1, len(notebook["cells"]) + 1))
    cells = [
        {**cell, "execution_count": next(numbers), "outputs": next(shown)} if cell["cell_type"] == "code" else cell
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def in_json(notebook: dict[str, Any]) -> str:
    """Return the notebook as its file's text."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _run(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return a cell's outputs: printed text, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body else None
    if last is not None and not isinstance(last, ast.Expr):
        body, last = [*body, last], None
    printed = io.StringIO()
    place = f"<cell {number}>"
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), place, "exec"), names)  # noqa: S102 - the project's own cells
        value = None if last is None else eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {form: _lines(text) for form, text in _shown(value).items()}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """Return a notebook's representations of a value, by content type."""
    if hasattr(value, "_repr_mimebundle_"):
        bundle: dict[str, str] = value._repr_mimebundle_()
        return bundle
    shown = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        shown["text/html"] = value._repr_html_()
    return shown


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Update the notebook."""
    sys.path.insert(0, str(NOTEBOOK.parents[1] / "examples" / "plugins"))
    os.environ.setdefault("COLUMNS", str(WIDEST))
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    NOTEBOOK.write_text(in_json(with_outputs(notebook, NOTEBOOK.parent)), encoding="utf-8")


if __name__ == "__main__":
    main()
