"""The Job that plays a sweep on a cluster: its pods together play all runs, whichever of them are killed."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import podium
from podium.api.input.codec import load_files
from podium.api.input.documents import Document
from podium.app.console.command import podium as command
from tests.docs.blocks import ROOT

JOB = ROOT / "deploy" / "sweep" / "job.yaml"
SCENARIO = ROOT / "examples" / "preemption-loop.yaml"
SEEDS = 2


def job() -> dict[str, Any]:
    documents: list[Document] = list(load_files([str(JOB)], "strict"))
    assert [document.raw["kind"] for document in documents] == ["PersistentVolumeClaim", "Job"]
    return documents[1].raw


def arguments(inputs: Path, runs: Path, index: int) -> list[str]:
    """Return the arguments of the pod with an index, with fewer seeds, and folders of this machine for its volumes."""
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    text = "\n".join(container["args"]).replace("$(JOB_COMPLETION_INDEX)", str(index))
    changed = {"=/inputs": f"={inputs}", "=/runs": f"={runs}", "seeds=100": f"seeds={SEEDS}", "jobs=2": "jobs=1"}
    for before, after in changed.items():
        assert before in text
        text = text.replace(before, after)
    return text.split("\n")


def test_the_pods_of_the_job_play_all_runs_together(tmp_path: Path) -> None:
    inputs, runs = tmp_path / "inputs", tmp_path / "runs"
    inputs.mkdir()
    whole = SCENARIO.read_text()
    (inputs / SCENARIO.name).write_text(whole.replace("until: 10m", "until: 1m"))
    completions = job()["spec"]["completions"]

    def play(index: int) -> Result:
        return CliRunner().invoke(command, arguments(inputs, runs, index))

    results = [play(0)]
    lost = next((runs / "runs").iterdir())
    # More shards than runs: the last ones have nothing to do.
    results += [play(index) for index in range(1, completions)]
    # The first pod is replaced after it has lost a part of its work.
    lost.unlink()
    results.append(play(0))

    assert [result.exit_code for result in results] == [0] * (completions + 1)
    assert lost.exists()
    played = podium.sweep(str(inputs), {"maxFutilePreemptions": [0, 2]}, seeds=SEEDS, folder=str(runs))
    assert played.csv() == podium.sweep(str(inputs), {"maxFutilePreemptions": [0, 2]}, seeds=SEEDS).csv()


def test_the_job_has_a_shard_for_each_completion() -> None:
    spec = job()["spec"]
    (container,) = spec["template"]["spec"]["containers"]

    assert spec["completionMode"] == "Indexed"
    assert f"--shard=$(JOB_COMPLETION_INDEX)/{spec['completions']}" in container["args"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in spec["template"]["spec"]["volumes"]
    }
