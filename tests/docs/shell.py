"""The commands that documents show, run in this process."""

from __future__ import annotations

import gc
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.app.console.command import podium


def entered(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a session, given behind `$ `, with the output that is shown for it."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", "").partition("\n")
        yield command, shown


def agree(shown: str, printed: str) -> bool:
    """Return whether that was printed; a line `...` stands for any number of lines."""
    lines = (r"(?:.*\n)*?" if line.strip() == "..." else re.escape(f"{line}\n") for line in shown.splitlines())
    return re.fullmatch("".join(lines), printed) is not None


class Shell:
    """Knows `podium`, its output into a file or into another `podium`, `export PYTHONPATH=FOLDER` and `echo $?`.

    It works in a folder.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self.exit_code = 0
        monkeypatch.chdir(folder)
        # Runs of a sweep are played here: each process takes as long to start as they take.
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)

    def run(self, command: str) -> str:
        """Return what the command prints, errors included."""
        words = shlex.split(command)
        if "|" in words:
            place = words.index("|")
            given = self._podium(words[1:place])
            return self._podium(words[place + 2 :], given)
        match words:
            case ["podium", *arguments, ">", file]:
                Path(file).write_text(self._podium(arguments))
                return ""
            case ["podium", *arguments]:
                return self._podium(arguments)
            case ["echo", "$?"]:
                return f"{self.exit_code}\n"
            case ["export", setting] if setting.startswith("PYTHONPATH="):
                self._monkeypatch.syspath_prepend(setting.partition("=")[2])
                return ""
        raise AssertionError(f"documents do not show such a command: {command}")

    def _podium(self, arguments: list[str], given: str = "") -> str:
        try:
            result = CliRunner().invoke(podium, arguments, input=given, prog_name="podium", catch_exceptions=False)
        finally:
            # Some subcommands do without the garbage collector, as they have a process to themselves.
            gc.enable()
        self.exit_code = result.exit_code
        return result.output
