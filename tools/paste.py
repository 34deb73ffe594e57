"""Pastes the output of commands into the documents that show it.

`.venv/bin/python tools/paste.py [DOCUMENT]...` runs the commands of console blocks and replaces their outputs, by
default in all documents. If a line `...` stands for omitted output, nothing is replaced: commands whose output has
changed are listed, to be edited by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs.blocks import DOCUMENTS, Block, blocks_of, name_of  # noqa: E402
from tests.docs.shell import Shell, agree  # noqa: E402


def renewed(block: Block, shell: Shell) -> tuple[str, list[str]]:
    """Return a console block with new outputs, and the commands that must be edited by hand."""
    head, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    text, left = head, []
    for part in parts:
        command, shown = _command_of(part)
        printed = shell.run(command.replace("\\\n", ""))
        if not agree(shown, printed):
            if "..." in (line.strip() for line in shown.splitlines()):
                left.append(command)
            else:
                shown = printed
        text += f"$ {command}\n{shown}"
    return text, left


def _command_of(part: str) -> tuple[str, str]:
    """Return a command with its continuation lines, and its shown output."""
    lines = part.splitlines(keepends=True)
    last = next(index for index, line in enumerate(lines) if not line.endswith("\\\n"))
    return "".join(lines[: last + 1]).rstrip("\n"), "".join(lines[last + 1 :])


def paste(document: Path, shell: Shell) -> list[str]:
    """Update a document; return what must be edited by hand."""
    content = document.read_text()
    left: list[str] = []
    for block in blocks_of(document, "console"):
        text, commands = renewed(block, shell)
        content = content.replace(f"```console\n{block.text}```", f"```console\n{text}```", 1)
        left += [f"{block.place}: {command}" for command in commands]
    if content != document.read_text():
        document.write_text(content)
        print(f"renewed {name_of(document)}")
    return left


def main(names: list[str]) -> int:
    """Update the named documents, or all."""
    documents = [Path(name).resolve() for name in names] or list(DOCUMENTS)
    left: list[str] = []
    for document in documents:
        with pytest.MonkeyPatch.context() as monkeypatch:
            left += paste(document, Shell(monkeypatch, ROOT))
    for place in left:
        print(f"choose anew what is shown: {place}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
