"""The Markdown of a document, whatever its format."""

from __future__ import annotations

import json
from typing import Any

from tools.site.navigation import ROOT

NOTEBOOK = ".ipynb"


def markdown_of(document: str) -> str:
    """Return a document's Markdown: its file, or the cells of a notebook with their outputs."""
    text = (ROOT / document).read_text()
    if not document.endswith(NOTEBOOK):
        return text
    return "\n\n".join(part for cell in json.loads(text)["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_fenced("python", source), *(_fenced("text", shown) for shown in map(_shown, cell["outputs"]) if shown)]


def _shown(output: dict[str, Any]) -> str:
    """Return an output as text."""
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))


def _fenced(language: str, text: str) -> str:
    """Return a block of code; its fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"
