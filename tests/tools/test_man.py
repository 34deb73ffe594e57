"""The manual pages in deploy/man: they follow from the help of the commands, and groff formats them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from podium.app.console.command import SUBCOMMANDS
from tools import man

PAGES = man.pages()
each_page = pytest.mark.parametrize("name", PAGES)


@each_page
def test_a_manual_page_follows_from_the_help(name: str) -> None:
    """If it does not, run `.venv/bin/python -m tools.man`."""
    assert (man.FOLDER / name).read_text() == PAGES[name]


def test_every_command_has_a_manual_page() -> None:
    assert {file.name for file in man.FOLDER.iterdir()} == set(PAGES)
    assert {name.removesuffix(".1").rpartition("-")[2] for name in PAGES} == {"podium", *SUBCOMMANDS}


@each_page
def test_a_manual_page_has_the_sections_of_one(name: str) -> None:
    titles = re.findall(r"^\.SH \"?([A-Z ]+)", PAGES[name], re.MULTILINE)

    assert titles[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert titles[-1] == "SEE ALSO"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_finds_nothing_wrong_in_the_manual_pages() -> None:
    files = [str(file) for file in sorted(man.FOLDER.iterdir())]
    formatted = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8", *files], capture_output=True, text=True, check=True
    )

    assert formatted.stderr == ""
