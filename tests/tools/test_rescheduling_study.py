"""The rescheduling study on a small part of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.app.console.command import podium
from podium.sim.trace_import import read_trace, with_owners
from tools.rescheduling_study.churn import save, store_after, would_evict
from tools.rescheduling_study.study import Part, play
from tools.rescheduling_study.tables import summary
from tools.rescheduling_study.tables import would_evict as would_evict_in

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["off", "consolidate", "HighNodeUtilization"])
def test_a_part_of_the_trace_is_played_and_comes_to_a_row(name: str, openb: Path) -> None:
    part = Part(str(openb / "nodes.csv"), str(openb / "pods.csv"), last=60, share=0.004, factor=30, seconds=4_000)

    run = play(name, part)

    assert len(run.samples) == 5
    assert max(sample.gpus_held for sample in run.samples) > 0
    assert summary([run]).splitlines()[2].startswith(f"| {name} | ")
    assert [line.split(" | ")[0] for line in would_evict_in(run).splitlines()[2:]] == [
        "| LowNodeUtilization",
        "| HighNodeUtilization",
    ]


def test_what_a_trace_leaves_behind_can_be_rescheduled(tmp_path: Path) -> None:
    store = store_after(with_owners(read_trace(ROOT / "examples/traces/dlrm.csv")), 1_600)
    save(store, tmp_path / "state.json")

    assert would_evict(store).splitlines() == [
        "3 nodes, 3 in use; 4 pods run, 1 wait",
        "LowNodeUtilization would evict 0 pods",
        "HighNodeUtilization would evict 0 pods",
    ]
    result = CliRunner().invoke(podium, ["reschedule", "-f", str(tmp_path / "state.json"), "-o", "json"])
    assert result.exit_code == 0, result.output
    assert "nodes-supposed" in result.output
