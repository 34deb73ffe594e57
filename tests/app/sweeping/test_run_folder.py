"""Sweeps whose outcomes are kept in a folder: what is played, what is read, what is refused."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import parquet

import podium
from podium.app.console.command import podium as command
from podium.app.sweeping import sweep as sweeping
from podium.app.sweeping.sweep import Run, RunOutcome, Sweep
from tests.app import processes
from tests.app.forked_workers import fork_spawned

EXAMPLES = Path(__file__).parents[3] / "examples"
LOOP = str(EXAMPLES / "preemption-loop.yaml")
# Within the first minute the variants differ: there are six preemptions, or two.
VARIED = ["-f", LOOP, "--until", "1m", "--vary", "maxFutilePreemptions=0,2", "--seeds", "3"]


def sweep(*args: str) -> Result:
    return CliRunner().invoke(command, ["sweep", "--jobs", "1", *args], catch_exceptions=False)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Return a list that receives each run that is played in this process."""
    runs: list[Run] = []
    play = Sweep.play

    def note(self: Sweep, run: Run) -> RunOutcome:
        runs.append(run)
        return play(self, run)

    monkeypatch.setattr(Sweep, "play", note)
    return runs


@pytest.fixture
def bucket() -> Iterator[str]:
    """Yield the address of an empty folder in an object store, which is in memory."""
    MemoryFileSystem.store.clear()
    yield "memory://bucket/runs-of-today"
    MemoryFileSystem.store.clear()


def test_a_run_with_an_outcome_in_the_folder_is_not_played_again(tmp_path: Path, played: list[Run]) -> None:
    whole = sweep(*VARIED, "-o", "json").stdout
    played.clear()

    first = sweep(*VARIED[:-1], "2", "--folder", str(tmp_path))
    kept = sweep(*VARIED, "--folder", str(tmp_path), "-o", "json").stdout

    assert first.exit_code == 0
    assert played == [Run(0, 0), Run(0, 1), Run(1, 0), Run(1, 1), Run(0, 2), Run(1, 2)]
    assert kept == whole


def test_an_object_store_serves_as_a_folder(bucket: str, played: list[Run]) -> None:
    answers = [sweep(*VARIED, "--folder", bucket, "-o", "csv").stdout_bytes for _ in range(2)]

    assert len(played) == 6
    assert answers == [sweep(*VARIED, "-o", "csv").stdout_bytes] * 2


def test_shards_of_a_sweep_complete_it_together(tmp_path: Path, played: list[Run]) -> None:
    for index in (2, 0, 1):
        assert sweep(*VARIED, "--folder", str(tmp_path), "--shard", f"{index}/3").exit_code == 0
    together = sweep(*VARIED, "--folder", str(tmp_path), "--known", "-o", "json").stdout

    assert sorted(played) == [Run(variant, seed) for variant in (0, 1) for seed in (0, 1, 2)]
    assert together == sweep(*VARIED, "-o", "json").stdout


def test_known_runs_are_shown_while_others_have_no_outcome(tmp_path: Path, played: list[Run]) -> None:
    none = sweep(*VARIED, "--folder", str(tmp_path), "--known")
    sweep(*VARIED, "--folder", str(tmp_path), "--shard", "1/3")
    played.clear()
    some = sweep(*VARIED, "--folder", str(tmp_path), "--known", "-o", "json")

    assert (none.exit_code, "it has the outcome of none of 6 runs yet" in none.stderr) == (1, True)
    assert [run["seed"] for run in json.loads(some.stdout)["runs"]] == [1, 1]
    assert "4 of 6 runs have no outcome in the folder yet" in some.stderr
    assert played == []


def test_a_failed_run_is_played_again_on_request_alone(tmp_path: Path, played: list[Run]) -> None:
    args = ["-f", LOOP, "--vary", "until=1s,10m", "--max-events", "20", "--folder", str(tmp_path)]

    results = [sweep(*args), sweep(*args), sweep(*args, "--again")]

    assert [result.exit_code for result in results] == [1, 1, 1]
    assert len({result.stdout for result in results}) == 1
    assert played == [Run(0, 0), Run(1, 0), Run(1, 0)]


def test_a_run_that_exceeded_a_limit_is_played_again_with_a_raised_one(tmp_path: Path, played: list[Run]) -> None:
    args = ["-f", LOOP, "--vary", "until=1s,10m", "--folder", str(tmp_path), "--max-events"]
    sweep(*args, "20")
    played.clear()

    raised = sweep(*args, "20000", "--again")

    assert raised.exit_code == 0
    assert played == [Run(1, 0)]


def test_each_run_is_a_row_that_other_programs_can_read(tmp_path: Path) -> None:
    sweep(*VARIED, "--folder", str(tmp_path))
    rows = podium.sweep(LOOP, {"maxFutilePreemptions": [0, 2]}, seeds=3, until="1m").rows()

    files = sorted((tmp_path / "runs").glob("*.parquet"))

    assert [row for file in files for row in parquet.read_table(file).to_pylist()] == rows


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (["--vary", "maxFutilePreemptions=0,3"], "the varied settings, the options of the runs"),
        (["--until", "1m"], "a difference in the options of the runs, or the configuration; name another folder"),
        (["-f", "NODE"], "a difference in the objects; name another folder"),
    ],
)
def test_the_folder_of_another_sweep_is_refused(tmp_path: Path, changed: list[str], says: str) -> None:
    plain = ["-f", LOOP, "--vary", "maxFutilePreemptions=0,2"]
    sweep(*plain, "--folder", str(tmp_path))
    node = tmp_path / "node.json"
    node.write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "further"}}')
    changed = [str(node) if text == "NODE" else text for text in changed]

    other = ["-f", LOOP, *changed] if "--vary" in changed else [*plain, *changed]
    result = sweep(*other, "--folder", str(tmp_path))

    assert result.exit_code == 1
    assert says in result.stderr


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("runs/000000-0.parquet", b"PAR1 is not all", "000000-0.parquet is not the outcome of a run"),
        ("runs/000000-0.parquet", b"", "delete it to play the run again"),
        ("sweep.json", b"[1]", "is not the description of a sweep"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, file: str, content: bytes, says: str) -> None:
    sweep("-f", LOOP, "--folder", str(tmp_path))
    (tmp_path / file).write_bytes(content)

    result = sweep("-f", LOOP, "--folder", str(tmp_path))

    assert result.exit_code == 1
    assert says in result.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--shard", "3/3"], "is not I/N"),
        (["--shard", "half"], "is not I/N"),
        (["--again"], "name it with --folder"),
        (["--folder", "nowhere://runs"], "nowhere"),
    ],
)
def test_invalid_folder_options_are_refused(args: list[str], says: str) -> None:
    result = sweep("-f", LOOP, *args)

    assert result.exit_code != 0
    assert says in result.stderr


def test_a_shard_beyond_the_last_run_has_nothing_to_do() -> None:
    result = sweep("-f", LOOP, "--shard", "4/9")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "shard 4/9 has no runs: there are 1" in result.stderr


def _die_now_and_then(run: Run) -> RunOutcome:
    """Play a run, or kill this process with the first of two that try it."""
    marks = Path(os.environ["PODIUM_TEST_MARKS"])
    mark = marks / f"{run.variant}-{run.seed}"
    if run.seed % 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sweeping._learnt[0].play(run)


def _die(_: Run) -> RunOutcome:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process lives on")


def test_runs_of_processes_that_died_are_played_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_TEST_MARKS", str(tmp_path))
    monkeypatch.setattr(sweeping, "_play", _die_now_and_then)
    fork_spawned(monkeypatch.setattr)

    # Two processes die, perhaps in a row: no run need end while a second process starts.
    killed, whole = (
        podium.sweep(LOOP, {"maxFutilePreemptions": [0, 2]}, seeds=2, until="1m", jobs=jobs) for jobs in (2, 1)
    )

    assert len(list(tmp_path.iterdir())) == 2
    assert killed.csv() == whole.csv()


class BreakingPool:
    """A pool in which the first run ends when a process dies with all others."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.number = 0

    def submit(self, _: Any, run: Run) -> Future[RunOutcome]:
        future, self.number = Future[RunOutcome](), self.number + 1
        if self.number == 1:
            future.set_result(RunOutcome(None, error="ended"))
        else:
            future.set_exception(BrokenProcessPool("a process died"))
        return future

    def shutdown(self, **_: Any) -> None:
        pass


def test_runs_that_ended_when_a_process_died_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "ProcessPoolExecutor", BreakingPool)
    monkeypatch.setattr(sweeping, "as_completed", reversed)
    runs = [Run(0, seed) for seed in range(5)]

    played = [run for run, _ in sweeping.processes(2)(cast("Sweep", None), runs)]

    # One run ends in each pool, so that no two deaths are in a row.
    assert played == runs


def test_a_run_that_kills_each_process_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "_play", _die)
    fork_spawned(monkeypatch.setattr)
    monkeypatch.setattr(sweeping, "_MOST_DEATHS", 2)

    with pytest.raises(podium.PodiumError, match="processes that played runs have died"):
        podium.sweep(LOOP, {}, seeds=2, jobs=2)


_INTERRUPTED = """
import os, signal
from podium.app.sweeping import sweep
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.kill(os.getpid(), signal.SIGINT)
sweep.unpickled = lambda pickled: print("learnt")
sweep._learn(b"")
"""


def test_processes_that_are_interrupted_at_their_start_end_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a process has learnt the sweep, it inherits that interruptions wait; then they end it."""
    blocked = []

    class Pool(BreakingPool):
        def submit(self, play: Any, run: Run) -> Future[RunOutcome]:
            blocked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            return super().submit(play, run)

    monkeypatch.setattr(sweeping, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(sweeping, "as_completed", reversed)
    list(sweeping.processes(1)(cast("Sweep", None), [Run(0, 0)]))
    ended = processes.run(code=_INTERRUPTED)

    assert blocked == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
