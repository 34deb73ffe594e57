"""What is drawn with rich, on terminals alone."""

import json
import re
import sys
from itertools import count
from pathlib import Path

import click
import pytest

from podium.app.console.command import SUBCOMMANDS, podium
from podium.app.console.page import WIDTH
from podium.app.console.progress import ProgressBar
from podium.app.console.reading import read_shown
from podium.app.console.rich_help import rich_help
from podium.app.explaining.command import explain
from tests.api.dumps import dump, dumped_pod


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that progress bars see: the last entry."""
    times = [100.0]
    monkeypatch.setattr("podium.app.console.progress.time.monotonic", lambda: times[-1])
    return times


@pytest.mark.parametrize("no_color", ["", "1"])
def test_help_is_drawn_in_boxes_and_in_colour_where_that_is_wanted(
    no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")

    text = rich_help(podium, click.Context(podium, info_name="podium"))

    assert "╭─" in text
    assert ("\x1b[1;36m" in text) is (no_color == "")
    plain = click.unstyle(text)
    assert re.findall(r"^│ (\w+) ", plain, re.MULTILINE) == list(SUBCOMMANDS)
    assert "\n   podium explain web -f cluster.json" in plain


def test_help_of_a_subcommand_has_its_options_its_example_and_no_line_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")

    text = rich_help(explain, click.Context(explain, info_name="explain", parent=click.Context(podium, None, "podium")))

    assert "Usage: podium explain [OPTIONS] TARGET" in text
    assert "--scheduler" in text
    assert "\n   podium explain shop/web -f nodes-and-pods.yaml -f web.yaml" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_progress_is_shown_on_a_terminal_when_a_run_takes_a_while(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")

    with ProgressBar() as bar:
        bar.update(0.1, lambda: "simulating, at 5s")
        assert capsys.readouterr().err == ""
        clock.append(102.0)
        bar.update(0.5, lambda: "simulating, at 1m30s")

    shown = capsys.readouterr()
    assert "simulating, at 1m30s" in shown.err
    assert shown.out == ""


def test_progress_is_not_shown_where_standard_error_is_no_terminal(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressBar() as bar:
        clock.append(200.0)
        bar.update(0.5, lambda: "simulating")

    assert "".join(capsys.readouterr()) == ""


def test_progress_is_shown_while_files_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seconds = count()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("podium.app.console.progress.time.monotonic", lambda: float(next(seconds)))
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump(*(dumped_pod(number) for number in range(8)))))

    found = read_shown([file], None)

    assert len(found.documents) == 8
    shown = capsys.readouterr()
    assert "reading" in shown.err
    assert shown.out == ""
