"""The rescheduling study on a small part of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.rescheduling_study.study import Part, play
from tools.rescheduling_study.tables import summary, would_evict


@pytest.mark.parametrize("name", ["off", "consolidate", "HighNodeUtilization"])
def test_a_part_of_the_trace_is_played_and_comes_to_a_row(name: str, openb: Path) -> None:
    part = Part(str(openb / "nodes.csv"), str(openb / "pods.csv"), last=60, share=0.004, factor=30, seconds=4_000)

    run = play(name, part)

    assert len(run.samples) == 5
    assert max(sample.gpus_held for sample in run.samples) > 0
    assert summary([run]).splitlines()[2].startswith(f"| {name} | ")
    assert [line.split(" | ")[0] for line in would_evict(run).splitlines()[2:]] == [
        "| LowNodeUtilization",
        "| HighNodeUtilization",
    ]
