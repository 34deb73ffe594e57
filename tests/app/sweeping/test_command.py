"""The `podium sweep` command, in this process unless processes are under test."""

import json
import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import podium
from podium.app.console import output
from podium.app.console.command import podium as command
from podium.app.console.page import Page
from podium.app.sweeping.command import sweep as sweep_command
from podium.app.sweeping.sweep import FILENAME, varied_names

EXAMPLES = Path(__file__).parents[3] / "examples"
LOOP = str(EXAMPLES / "preemption-loop.yaml")
SHORT = ["-f", LOOP, "--until", "1m"]
# Within the first minute the variants differ: there are six preemptions, or two.
VARIED = [*SHORT, "--vary", "maxFutilePreemptions=0,2", "--seeds", "2"]


def sweep(*args: str) -> Result:
    return CliRunner().invoke(command, ["sweep", "--jobs", "1", *args], catch_exceptions=False)


def test_each_run_is_what_simulate_makes_of_its_settings_and_seed() -> None:
    found = json.loads(sweep(*SHORT, "--seeds", "2", "--first-seed", "3", "-o", "json").stdout)

    assert [(run["settings"], run["seed"], run["error"]) for run in found["runs"]] == [({}, 3, None), ({}, 4, None)]
    for run in found["runs"]:
        assert run["summary"] == podium.simulate(LOOP, seed=run["seed"], until="1m").summary


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_bytes_are_the_same_with_one_process_with_two_and_on_a_dask_cluster() -> None:
    from distributed import LocalCluster  # noqa: PLC0415 - no other test needs it, and it takes half a second

    answer = sweep(*VARIED, "-o", "csv").stdout_bytes

    assert answer.count(b"\n") == 5
    assert sweep(*VARIED, "-o", "csv", "--jobs", "2").stdout_bytes == answer
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        assert sweep(*VARIED, "-o", "csv", "--dask", cluster.scheduler_address).stdout_bytes == answer


def test_files_can_be_varied(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.json" for name in ("small", "large")]
    for path, cpu in zip(paths, ("1", "3"), strict=True):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "spare"}}
        path.write_text(json.dumps({**node, "status": {"allocatable": {"cpu": cpu, "memory": "1Ti", "pods": "9"}}}))
    files = ",".join(map(str, paths))

    runs = json.loads(sweep(*SHORT, "--vary", f"{FILENAME}={files}", "-o", "json").stdout)["runs"]

    assert [run["settings"][FILENAME] for run in runs] == [str(path) for path in paths]
    assert runs[0]["summary"] != runs[1]["summary"]


def test_varied_files_need_no_others() -> None:
    runs = json.loads(sweep("--until", "1m", "--vary", f"{FILENAME}={LOOP}", "-o", "json").stdout)["runs"]

    assert runs[0]["summary"] == podium.simulate(LOOP, seed=0, until="1m").summary
    assert "Nothing to read" in sweep("--seeds", "2").stderr


def test_runs_without_result_are_reported_beside_the_others() -> None:
    result = sweep("-f", LOOP, "--vary", "until=1s,10m", "--max-events", "20")

    assert result.exit_code == 1
    assert "Without a result  1 run" in result.stdout
    assert "until=10m seed 0" in result.stdout
    assert "podium: error: 1 of 2 runs have no result; the answer says why" in result.stderr


def test_invalid_sweep_settings_are_reported_before_any_run() -> None:
    result = sweep("-f", LOOP, "--vary", "DefaultPreemption.evictionOrder=Nobody")

    assert result.exit_code == 1
    assert "DefaultPreemption.evictionOrder=Nobody" in result.stderr
    assert result.stdout == ""


def test_a_table_goes_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "runs.parquet"

    assert sweep(*SHORT, "-o", "parquet", "--save", str(target)).stdout == ""
    assert target.read_bytes().startswith(b"PAR1")


def test_text_that_goes_to_a_file_has_nothing_of_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "new_page", lambda: Page(40, coloured=True, shortened=True))
    target = tmp_path / "runs.txt"

    assert sweep(*VARIED, "--save", str(target)).stdout == ""
    assert "\x1b" not in target.read_text()
    assert target.read_text().startswith("4 runs of 2 combinations of settings\n")


def test_without_dask_its_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    result = sweep("-f", LOOP, "--dask", "tcp://127.0.0.1:8786")

    assert result.exit_code == 1
    assert 'install it with pip install "podium[dask]"' in result.stderr


def test_one_configuration_serves_all_combinations_though_it_can_be_read_once() -> None:
    profiles = "profiles: [{schedulerName: a}, {schedulerName: b}]"
    configuration = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{profiles}\n"

    answer = CliRunner().invoke(
        command, ["sweep", "--jobs", "1", *VARIED, "--config", "-", "-o", "csv"], input=configuration
    )

    assert answer.exit_code == 0, answer.output
    assert answer.stdout_bytes == sweep(*VARIED, "-o", "csv").stdout_bytes


def test_standard_input_is_not_read_for_several_inputs() -> None:
    answer = sweep("-f", "-", "--vary", "filename=a.yaml,b.yaml")

    assert answer.exit_code == 1
    assert "standard input can be read once" in answer.stderr


def test_the_help_names_all_that_can_be_varied() -> None:
    (option,) = (each for each in sweep_command.params if isinstance(each, click.Option) and "--vary" in each.opts)
    named = re.findall(r"[\w-]+", option.help or "")

    assert [name for name in varied_names() if name not in named and name != "PLUGIN.ARGUMENT"] == []
