"""`podium examples` writes the example files that the documents use."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podium.app.console.command import podium
from podium.app.examples import command
from tests.docs.blocks import ROOT


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(podium, arguments, catch_exceptions=False)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_examples_are_written_unchanged_so_that_documented_commands_work() -> None:
    report = ask("examples")

    assert files(Path("examples")) == files(ROOT / "examples")
    assert report.output.startswith(f"{len(files(Path('examples')))} files in examples; ")
    assert ask("plan", "pending", "-f", "examples/cookbook/pending.yaml").output.startswith("8 of 8 pending pods")


def test_examples_may_be_written_to_another_folder_but_never_overwrite() -> None:
    assert ask("examples", "mine/of-podium").exit_code == 0
    assert Path("mine/of-podium/cookbook/drain.yaml").is_file()

    again = ask("examples", "mine")

    assert again.exit_code == 1
    assert again.output == "podium: error: mine already exists; name another folder, or remove it\n"
    assert not Path("mine/cookbook").exists()


def test_a_copy_without_examples_reports_where_to_find_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "_PACKAGE", tmp_path / "a" / "b")

    assert (
        ask("examples").output == "podium: error: this copy of Podium has no examples; they are in its source archive\n"
    )
