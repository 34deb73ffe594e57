"""Recorded decisions, as `podium` shows them later."""

import errno
import json
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podium.api.errors import InputError, PodiumError
from podium.app.console.command import podium as command
from podium.app.live import decisions
from podium.app.live.decisions import DecisionFile, DecisionRecorder, find_decision, grouped
from podium.app.live.live_scheduler import ObservedScheduler
from podium.app.live.metrics import Metrics
from podium.controllers.observations import Changed, Tick
from podium.controllers.scheduling.scheduler import Scheduler
from tests.builders import node, pod

WEB = pod("web", cpu=3, priority=100)


def recorded(folder: Path, *objects: Any) -> str:
    """Return a file with the decisions that a scheduler makes about these objects."""
    path = str(folder / "decisions.jsonl")
    file = DecisionFile(path)
    recorder = DecisionRecorder("me", file.write)
    machine = ObservedScheduler(Scheduler(), Metrics(), recorder)
    for each in objects:
        machine.handle(Changed(each), 0)
    while machine.deadline().time_ns == 0:
        machine.handle(Tick(), 0)
    file.close()
    return path


def shown(path: str, *options: str) -> str:
    result = CliRunner().invoke(command, ["explain", "web", "--decision", path, *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_decision_is_shown_with_the_nodes_the_scores_and_what_was_done(tmp_path: Path) -> None:
    path = recorded(tmp_path, node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=1), WEB)

    text = shown(path)

    assert "Pod default/web fits: n" in text
    assert "by me for profile default-scheduler: attempt 1, woken by PodAdd, priority 100." in " ".join(text.split())
    assert "1  Insufficient cpu (NodeResourcesFit)  n3" in text
    assert "bind default/web node=n" in text


def test_a_preemption_is_shown_with_its_victims(tmp_path: Path) -> None:
    path = recorded(tmp_path, node("n1", cpu=4), pod("low", cpu=4, priority=1, on="n1"), WEB)

    text = shown(path)

    assert "fits after preemption: n1" in text
    assert "n1 1 victim default/low" in " ".join(text.split())
    assert "mark default/low for=default/web" in text


def test_the_json_output_of_a_decision_is_its_line_in_the_file(tmp_path: Path) -> None:
    path = recorded(tmp_path, node("n1", cpu=4), WEB)

    line = json.loads(shown(path, "-o", "json"))

    assert (line["pod"], line["outcome"], line["version"]) == ("default/web", "schedulable", 1)


def test_the_last_decision_counts_and_a_partial_line_does_not(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path, node("n1", cpu=1), WEB))
    first = path.read_text()
    later = json.loads(first) | {"attempt": 2}
    path.write_text(f'{first}{json.dumps(later)}\n{{"version": 1, "po')

    decision, _ = find_decision(str(path), "default/web")

    assert (decision.attempt, decision.outcome) == (2, "unschedulable")


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense",
        b"[]",
        b'{"pod": "default/web"}',
        b'{"version": 1, "pod": "default/web"}',
        b'{"version": 1, "pod": "\xff"}',
        b'{"version": 1, "pod": "default/web", "outcome": "\xff"}',
    ],
)
def test_a_file_with_other_content_is_rejected(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(text + b"\n")

    with pytest.raises(InputError, match="line 1 is not a decision"):
        find_decision(str(path), "default/web")


def test_a_pod_without_decision_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="no decision is about pod default/other"):
        find_decision(recorded(tmp_path, node("n1"), WEB), "default/other")


def test_a_full_decision_file_is_rotated_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "decisions"
    file = DecisionFile(str(path), max_bytes=30)
    for number in range(5):
        file.write(f"line {number} of this")
    file.close()

    assert path.read_text() == "line 4 of this\n"
    assert (tmp_path / "decisions.1").read_text() == "line 2 of this\nline 3 of this\n"
    assert path.stat().st_mode & 0o077 == 0


def test_nodes_with_equal_verdicts_share_one_entry() -> None:
    nodes = {f"n{number:02}": {"status": "Unschedulable", "reasons": ["full"]} for number in range(30)}
    nodes["a"] = {"status": "Success"}

    full, fits = grouped(nodes)

    assert (full["count"], len(full["names"]), full["reasons"]) == (30, 20, ["full"])
    assert (fits["count"], fits["names"]) == (1, ["a"])


def test_decisions_are_made_though_they_cannot_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, problems = tmp_path / "decisions", list[str]()
    left = [0]
    write = FileIO.write

    class Disk(FileIO):
        """Has room for some bytes."""

        def write(self, data: Any) -> int:
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(self, data[: left[0]])

    monkeypatch.setattr(decisions, "FileIO", Disk)
    file = DecisionFile(str(path), on_problem=problems.append)
    file.write("first")
    file.write("second")
    left[0] = 3
    file.write("third")
    left[0] = 100
    file.write("fourth")
    file.close()

    assert path.read_text() == "thi\nfourth\n"
    assert problems == ["No space left on device", ""]


def test_a_failed_rotation_of_the_decision_file_is_retried(tmp_path: Path) -> None:
    path, problems = tmp_path / "decisions", list[str]()
    aside = tmp_path / "decisions.1"
    aside.mkdir()
    file = DecisionFile(str(path), max_bytes=10, on_problem=problems.append)
    for line in ("first", "second", "third"):
        file.write(line)
    aside.rmdir()
    file.write("fourth")
    file.close()

    assert path.read_text() == "fourth\n"
    assert len(problems) == 2
