"""What came of a sweep, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.errors import PodiumError
from podium.app.shown import Shown
from podium.app.sweeping.sweep import Played, Sweep, caveats_of
from podium.app.sweeping.tables import Row, rows_of

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.frames import Frame
    from podium.app.reporting.runs import SweepAnswer

# How many combinations of settings are seen side by side.
_MOST_SEEN = 4


class SweepResult(Shown):
    """The runs of a sweep in their order: by combination of settings, then by seed."""

    def __init__(self, runs: Sequence[Played], sweep: Sweep | None = None) -> None:
        self.runs = tuple(runs)
        # Runs whose story is to be seen are played once more.
        self._sweep = sweep

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What any of the runs rests on, each told once."""
        return caveats_of(self.runs)

    def _in_a_line(self) -> str:
        failed = sum(bool(run.outcome.error) for run in self.runs)
        combinations = len({tuple(run.combination.items()) for run in self.runs})
        without = f", {failed:,} without a result" if failed else ""
        return f"{len(self.runs):,} runs of {combinations:,} combinations of settings{without}"

    def write(self, page: Page) -> None:
        """Write it as `podium sweep` does."""
        from podium.app.sweeping.text import write_sweep

        write_sweep(page, self.runs)

    def _pictured(self) -> SweepAnswer:
        """The figures of all runs, and what happened in the first run of some settings, which is played once more."""
        from podium.app.reporting.runs import SweepAnswer, in_words

        sweep = self._sweep
        if sweep is None:
            return SweepAnswer(self.runs, ())
        seen = [run for run in sweep.runs if run.seed == sweep.seeds[0]][:_MOST_SEEN]
        results = ((sweep.variants[run.variant].combination, sweep.result(run)) for run in seen)
        return SweepAnswer(self.runs, [(in_words(settings), result) for settings, result in results if result])

    def frame(self, name: str = "runs") -> Frame:
        """A table of the sweep: `runs`, the only one, with what `rows` has. Raises PodiumError for another."""
        from podium.app.frames import Frame

        if name != "runs":
            raise PodiumError(f"a sweep has no table {name}; it has: runs")
        return Frame.of_rows(name, self.rows())

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
