"""The generator of recorded months: repeatable files, which replay as they were recorded."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.api.input.codec import Input, read_input
from podium.sim.latencies import USUAL_LATENCY_NS
from podium.sim.recording.excerpt import Excerpt, excerpt
from podium.sim.run import play
from podium.sim.run_options import RunOptions
from tools.recorded_month.play import Size, Written, record_month

TASKS = Path(__file__).parents[2] / "examples/openb/excerpt/pods.csv"
SIZE = Size(nodes=12, pods=240, hours=3, hours_per_file=2, load=0.4)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> list[Written]:
    return list(record_month(SIZE, TASKS, tmp_path_factory.mktemp("month")))


def items(written: Written) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(gzip.decompress(written.file.read_bytes()))["items"]
    return found


def test_files_follow_one_another_and_repeat_for_a_seed(month: list[Written], tmp_path: Path) -> None:
    again = list(record_month(SIZE, TASKS, tmp_path))

    assert [written.file.name for written in month] == ["2026-01-01T00-00-00Z.podium", "2026-01-01T02-00-00Z.podium"]
    assert [written.file.read_bytes() for written in again] == [written.file.read_bytes() for written in month]
    assert [items(written)[-1]["length"] for written in month] == ["2h", "1h"]
    assert sum(written.steps for written in month) > 200


def test_pods_of_the_recording_do_not_say_how_long_they_run(month: list[Written]) -> None:
    steps = [step for written in month for step in items(written)[-2]["spec"]["steps"]]

    assert {"apply", "delete", "finish"} <= {name for step in steps for name in step}
    assert not any(b"podium.dev/duration" in gzip.decompress(written.file.read_bytes()) for written in month)


def test_a_file_replays_as_it_was_recorded(month: list[Written]) -> None:
    for written in month:
        found = read_input([str(written.file)])
        recorded = play(found, RunOptions(seed=3, usual_latency_ns=USUAL_LATENCY_NS)).recorded

        assert recorded is not None
        assert recorded.recorded.bindings > 30
        assert recorded.simulated == recorded.recorded
        assert recorded.other_node == ()


def test_parts_of_a_file_replay_as_the_whole_if_no_pod_waits_between_them(month: list[Written]) -> None:
    found = read_input([str(month[0].file)])
    half_ns = 3600 * 10**9

    parts = [excerpt(found, Excerpt(start_ns, start_ns + half_ns)) for start_ns in (0, half_ns)]

    whole, (first, second) = decisions(found), map(decisions, parts)
    assert len(first) > 10
    assert len(second) > 10
    assert sorted(first + second) == sorted(whole)


def decisions(found: Input) -> list[tuple[str, str | None, str | None]]:
    """Return the bindings, preemptions and evictions of a replay."""
    events = play(found, RunOptions(seed=3, usual_latency_ns=USUAL_LATENCY_NS)).events
    decided = ("Scheduled", "Preempted", "Evicted")
    return [(event.reason, event.pod, event.node) for event in events if event.reason in decided]
