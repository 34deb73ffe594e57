"""The fenced blocks of the project's documents.

A fence opens with the block's language and, where the block is quoted from a file, the file's path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(r"^```(?P<language>\w*)(?: (?P<source>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(document: Path) -> str:
    """Return the document's path from the root."""
    return document.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``line`` is that of its fence; ``source`` the file that it is quoted from, "" for none."""

    document: Path
    line: int
    language: str
    source: str
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.document)}:{self.line}"


def blocks_of(document: Path, *languages: str) -> list[Block]:
    """Return the blocks of a document, or those in one of the languages."""
    content = document.read_text()
    found = [
        Block(
            document, content.count("\n", 0, match.start()) + 1, match["language"], match["source"] or "", match["text"]
        )
        for match in _BLOCK.finditer(content)
    ]
    return [block for block in found if not languages or block.language in languages]


def prose_of(document: Path) -> str:
    """Return the document without its blocks."""
    return _BLOCK.sub("", document.read_text())
