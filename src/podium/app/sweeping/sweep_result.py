"""What came of a sweep, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.api.basis import Caveat
from podium.app.sweeping.sweep import Played, caveats_of
from podium.app.sweeping.tables import Row, rows_of


class SweepResult:
    """The runs of a sweep in their order: by combination of settings, then by seed."""

    def __init__(self, runs: Sequence[Played]) -> None:
        self.runs = tuple(runs)

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What any of the runs rests on, each told once."""
        return caveats_of(self.runs)

    def rows(self) -> list[Row]:
        """A row for each run: its settings, `seed`, `error`, and the figures of its summary by path (`waiting.0.p95`).

        Times are in seconds, shares between 0 and 1. A figure that a run does not have is None.
        """
        return rows_of(self.runs)

    def to_dict(self) -> dict[str, Any]:
        """The runs as JSON shows them."""
        return {
            "runs": [run.to_dict() for run in self.runs],
            "restsOn": [caveat.to_dict() for caveat in self.rests_on],
        }
