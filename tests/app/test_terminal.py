"""Output that is drawn with rich, on terminals only."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Event, active_count
from types import SimpleNamespace

import click
import pytest
from rich.progress import Progress

from podium.app.console import progress
from podium.app.console.command import FOR_KUBECTL, LOADED_FIRST, SUBCOMMANDS, podium
from podium.app.console.page import WIDTH
from podium.app.console.progress import ProgressBar
from podium.app.console.reading import read_shown
from podium.app.console.rich_help import rich_help
from podium.app.explaining.command import explain
from tests.api.dumps import dump, dumped_pod


def context_of(command: click.Command) -> click.Context:
    """Return the context in which a user calls the command: its settings remain in the commands, which tests share."""
    above = click.Context(podium, None, "podium", **podium.context_settings)
    return above if command is podium else click.Context(command, above, command.name)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_help_is_drawn_in_boxes_and_in_colour_where_that_is_wanted(
    no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")

    text = rich_help(podium, context_of(podium))

    assert "╭─" in text
    assert ("\x1b[1;36m" in text) is (no_color == "")
    plain = click.unstyle(text)
    assert re.findall(r"^│ (\w+) ", plain, re.MULTILINE) == [name for name in SUBCOMMANDS if name not in FOR_KUBECTL]
    assert "\n   podium explain web -f cluster.json" in plain


def test_help_is_plain_text_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    context = context_of(explain)

    shown = []
    for terminal in ("xterm", "dumb"):
        monkeypatch.setenv("TERM", terminal)
        shown.append("╭─" in explain.get_help(context))

    assert shown == [True, False]


def test_help_of_a_subcommand_has_its_options_its_example_and_no_line_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")

    text = rich_help(explain, context_of(explain))

    assert "Usage: podium explain [OPTIONS] TARGET" in text
    assert "--scheduler" in text
    assert "\n   podium explain shop/web -f cluster.json -f web.yaml" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def be_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard error a terminal on which a bar appears at once. Only a test knows the target of its output."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0)


def watched(bar: ProgressBar, share: float, what: str) -> None:
    """Tell the bar, and wait until it has been drawn with that."""
    drawn = Event()

    def reported() -> str:
        if asked:
            drawn.set()
        asked.append(what)
        return what

    asked: list[str] = []
    bar.update(share, reported)
    assert drawn.wait(60)


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    be_a_terminal(monkeypatch)

    with ProgressBar("preparing") as bar:
        watched(bar, 0.5, "simulating, at 1m30s")

    shown = capsys.readouterr()
    assert "simulating, at 1m30s" in shown.err
    assert "50%" in shown.err
    assert shown.out == ""


def test_progress_is_drawn_without_updates(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    be_a_terminal(monkeypatch)
    drawn = Event()
    refresh = Progress.refresh

    def refreshed(bar: Progress) -> None:
        refresh(bar)
        drawn.set()

    monkeypatch.setattr(Progress, "refresh", refreshed)

    with ProgressBar("reading"):
        assert drawn.wait(60)

    assert "reading" in capsys.readouterr().err


def test_progress_is_not_shown_where_all_is_done_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    be_a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 3600)
    monkeypatch.setattr(progress, "_began", [])

    with ProgressBar("reading") as bar:
        bar.update(0.5, lambda: "reading")

    assert "".join(capsys.readouterr()) == ""


def test_progress_is_not_shown_where_standard_error_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    threads = active_count()

    with ProgressBar("simulating") as bar:
        bar.update(0.5, lambda: "simulating")
        assert active_count() == threads

    assert "".join(capsys.readouterr()) == ""


def test_an_error_ends_the_bar_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    be_a_terminal(monkeypatch)
    threads = active_count()
    bar = ProgressBar("dividing")

    def divide() -> None:
        with bar:
            watched(bar, 0.5, "dividing")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        divide()

    assert active_count() == threads


def test_progress_is_reported_while_files_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shares: list[float] = []
    monkeypatch.setattr(ProgressBar, "update", lambda _bar, share, _reported: shares.append(share))
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump(*(dumped_pod(number) for number in range(8)))))

    assert len(read_shown([file], None).documents) == 8
    assert shares
    assert shares == sorted(shares)


_WATCHED = """
import sys
from podium.app.console import command, progress

sys.stderr.isatty = lambda: True
seen = []
enter = progress.ProgressBar.__enter__

def entered(bar):
    known = [name for name in command.LOADED_FIRST[sys.argv[1]] if name in sys.modules]
    seen.append((bar._describe(), known, "podium.app.console.reading" in sys.modules))
    return enter(bar)

progress.ProgressBar.__enter__ = entered
try:
    command.main(sys.argv[1:])
except SystemExit as end:
    print(end.code, seen)
"""


@pytest.mark.parametrize(
    "arguments", [("explain", "web", "-f", "missing"), ("plan", "drain", "a", "-f", "missing", "--fail-on", "any")]
)
def test_there_is_a_bar_before_anything_is_loaded_that_takes_its_time(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    report = subprocess.run(
        [sys.executable, "-c", _WATCHED, *arguments], env=environment, capture_output=True, text=True, check=True
    )

    code, _, seen = report.stdout.partition(" ")
    assert code == "1", report.stderr
    assert seen.startswith("[('starting', [], False), ('starting', [], False), ('reading', "), seen


@pytest.mark.parametrize("name", LOADED_FIRST)
def test_modules_loaded_with_a_progress_bar_exist_in_a_command(name: str) -> None:
    assert name in SUBCOMMANDS
    assert all(find_spec(module) is not None for module in LOADED_FIRST[name])
