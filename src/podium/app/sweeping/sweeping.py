"""Sweeps for programs: what is varied as Python values, and the runs played here or in processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.api.errors import PodiumError
from podium.app.plain import in_one_line
from podium.app.sweeping.engines import here, processes
from podium.app.sweeping.sweep import Outcome, Run, Sweep, in_order
from podium.app.sweeping.sweep_result import SweepResult
from podium.app.sweeping.variations import Variation, variations_of


def read_variations(vary: Mapping[str, Sequence[Any]]) -> tuple[Variation, ...]:
    """What is varied, each value as it would be written on a command line. Raises PodiumError for what cannot be."""
    found: dict[str, list[str]] = {}
    for name, values in vary.items():
        if isinstance(values, str):
            raise PodiumError(f"vary {name}: a list of values is needed, not the text {values!r}")
        found[name] = [value if isinstance(value, str) else in_one_line(value, f"vary {name}") for value in values]
    return variations_of(found)


def played(sweep: Sweep, jobs: int = 1, progress: Callable[[float], None] | None = None) -> SweepResult:
    """The runs with their outcomes, `jobs` at a time, each in a process of its own where that is more than 1.

    `progress` is told the share that is done. Raises PodiumError for less than one job, and where a process dies.
    """
    if jobs < 1:
        raise PodiumError(f"jobs: {jobs} at a time play nothing; 1 or more are needed")
    outcomes: dict[Run, Outcome] = {}
    count = len(sweep.runs)
    for run, outcome in (here if jobs == 1 else processes(jobs))(sweep):
        outcomes[run] = outcome
        if progress is not None:
            progress(len(outcomes) / count)
    return SweepResult(in_order(sweep, outcomes), sweep)
