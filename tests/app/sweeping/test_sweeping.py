"""Sweeps from Python."""

from typing import Any

import pytest

import podium
from podium.framework.settings.configuration import load_configuration
from tests.docs.blocks import ROOT

STARVING = ROOT / "examples/starvation-1.yaml"
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def test_there_is_a_run_for_each_combination_and_seed() -> None:
    report: list[float] = []

    swept = podium.sweep(
        STARVING,
        {"nominationClearing": ["AllLower", "Unfit"], "start-delay": ["0s", 5]},
        seeds=2,
        until="1m",
        progress=report.append,
    )

    assert [(dict(run.combination)["start-delay"], run.seed) for run in swept.runs[:4]] == [
        ("0s", 0), ("0s", 1), ("5", 0), ("5", 1)
    ]  # fmt: skip
    assert len(swept.runs) == len(swept.rows()) == len(report) == 8
    assert report[-1] == 1
    assert not any(run.outcome.error for run in swept.runs)


def test_a_run_is_that_of_simulate_with_the_same_settings() -> None:
    cluster = podium.load(STARVING, {**CONFIGURATION, "maxFutilePreemptions": 3})

    swept = cluster.sweep({"nominationClearing": ["Unfit"]}, first_seed=7, until="1m")

    same = cluster.with_(
        configuration={**CONFIGURATION, "maxFutilePreemptions": 3, "nominationClearing": "Unfit"}
    ).simulate(seed=7, until="1m")
    assert swept.runs[0].outcome.summary == same.summary


@pytest.mark.parametrize(
    ("vary", "others", "says"),
    [
        ({"weather": ["fine"]}, {}, "cannot be varied"),
        ({"until": []}, {}, "has no values"),
        ({"until": "1m"}, {}, "a list of values"),
        ({"until": ["1m", "1m"]}, {}, "given twice"),
        ({"until": ["1m"]}, {"seeds": 0}, "seeds: 0 is not 1 or more"),
        ({"until": ["1m"]}, {"jobs": 0}, "jobs"),
        ({"until": [object()]}, {}, "is not plain JSON"),
    ],
)
def test_an_unsupported_sweep_variation_is_reported(vary: Any, others: Any, says: str) -> None:
    with pytest.raises(podium.PodiumError, match=says):
        podium.sweep(STARVING, vary, **others)


def test_a_configuration_that_was_read_counts_and_is_not_varied(tmp_path: Any) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}')
    cluster = podium.load(STARVING, load_configuration(str(file)))

    assert len(cluster.sweep({"until": ["30s"]}).runs) == 1
    with pytest.raises(podium.PodiumError, match="give it as a dictionary or a file"):
        cluster.sweep({"nominationClearing": ["Unfit"]})


def test_a_further_file_of_objects_may_be_varied(tmp_path: Any) -> None:
    file = tmp_path / "node.json"
    file.write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "further"}}')

    swept = podium.sweep(STARVING, {"filename": [str(file)]}, until="30s")

    assert swept.runs[0].outcome.summary
