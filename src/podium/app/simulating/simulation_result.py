"""The result of a simulation that is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING

from podium.api.collector import collector_paused
from podium.api.input.codec import Input
from podium.app.shown import Shown
from podium.app.simulating.placement import FilledNode, placement_of
from podium.sim.results.pod_states import NodeStates
from podium.sim.results.result import Result
from podium.sim.run import Progress, played, result_of_run
from podium.sim.run_options import RunOptions
from podium.sim.simulation import Simulation

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.frames import Frame


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Shown, Result):
    """What came of a simulation, as it is shown: a `Result` with where pods are at its end (`placement`).

    `told_more` plays the same run again and says as well why pods are where they are; None where this result does.
    """

    placement: tuple[FilledNode, ...] = ()
    told_more: Callable[[], SimulationResult] | None = field(default=None, compare=False)

    @property
    def headline(self) -> str:
        """What the run comes to, in a line."""
        from podium.app.simulating.text import headline_of

        return headline_of(self)

    def _in_a_line(self) -> str:
        return self.headline

    def write(self, page: Page) -> None:
        """Write it as `podium simulate` does."""
        from podium.app.simulating.text import write_simulation

        write_simulation(page, self, every_event=False)

    def _pictured(self) -> SimulationResult:
        return self if self.told_more is None else self.told_more()

    def frame(self, name: str) -> Frame:
        """A table of the result. Raises PodiumError for one that there is not.

        - `events`: `time`, `reason`, `pod`, `node`, `by`, `message`, `count`, `lastTime`.
        - `pods`: `pod`, `uid`, `workload`, `priority`, `phase`, `state`, `node`, `nominatedNode`, `createdAt`,
          `scheduledAt`, `startedAt`, `endedAt`, `disruption`, `evictedBy`.
        - `nodes`, at the end: `node`, `marks` with commas between them, `podsBefore`, `pods`, `addedAt`, `goneAt`, and
          `requested.RESOURCE`: cpu in thousandths, all else in whole units.
        - `series`, a row for each time at which something changes: `time`, `nodes`, `ready`, `pending`, and
          `requested.RESOURCE`, a share between 0 and 1.
        - `workloads`: `workload`, pods wanted and ready, `shortSeconds`, `pendingSeconds`.
        - `readiness`, a row for each workload and time: `workload`, `time`, `ready`, `wanted`.

        Times are seconds since the start, negative before it; None where something has not happened.
        """
        from podium.app.simulating.tables import frame_of

        return frame_of(self, name)


def shown_result(found: Input, simulation: Simulation, options: RunOptions) -> SimulationResult:
    """The result of a simulation as far as it has come."""
    result = result_of_run(found, simulation, options)
    states = NodeStates(simulation.store, simulation.control_plane.is_down)
    told = {each.name: getattr(result, each.name) for each in fields(Result)}
    told_more = None if options.tells_placements else telling_more(found, options)
    return SimulationResult(**told, placement=placement_of(simulation.store, states), told_more=told_more)


def telling_more(found: Input, options: RunOptions) -> Callable[[], SimulationResult]:
    """The same run of an input for a picture, which takes longer and is not wanted of every run."""
    return partial(play_shown, found, replace(options, on_attempt=None, tells_placements=True))


def play_shown(found: Input, options: RunOptions, progress: Progress | None = None) -> SimulationResult:
    """The result of one run of an input. Raises as `podium.sim.run.play` does."""
    with collector_paused():
        return shown_result(found, played(found, options, progress), options)
