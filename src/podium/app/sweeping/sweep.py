"""A sweep: runs that differ in settings and seed, and what came of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from podium.api.basis import Caveat
from podium.api.errors import PodiumError
from podium.api.input.codec import Input
from podium.app.sweeping.variations import Combination
from podium.sim.results.result import Result
from podium.sim.run import play
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import split_documents
from podium.sim.scenario_components import components_of


class Run(NamedTuple):
    """A run by the place of its variant and its seed; runs are ordered by these."""

    variant: int
    seed: int


@dataclass(frozen=True, slots=True)
class Variant:
    """The settings of some runs: as they were written, which input they play, and the options, whatever the seed."""

    combination: Combination
    input: int
    options: RunOptions


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: the summary of its result, or why there is none; and what it rests on."""

    summary: dict[str, Any] | None
    rests_on: tuple[Caveat, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All that some runs need; `play` gives the same for the same run wherever it is called."""

    inputs: tuple[Input, ...]
    variants: tuple[Variant, ...]
    seeds: range

    @property
    def runs(self) -> list[Run]:
        """The runs in their order."""
        return [Run(variant, seed) for variant in range(len(self.variants)) for seed in self.seeds]

    def check(self) -> None:
        """Raise PodiumError for settings with which no run can begin, before any has taken its time."""
        scenarios = [split_documents(found.documents)[1] for found in self.inputs]
        for variant in self.variants:
            scenario = scenarios[variant.input]
            for component in components_of(scenario, variant.options):
                component.make()

    def play(self, run: Run) -> Outcome:
        """Play one run. What is wrong with it, such as that it goes beyond its limits, is its outcome."""
        try:
            result = self._played(run)
        except PodiumError as error:
            return Outcome(None, error=str(error))
        return Outcome(result.summary, result.rests_on)

    def result(self, run: Run) -> Result | None:
        """All that came of one run, and why pods are where they are: it is played for that. None without a result."""
        try:
            return self._played(run, tells_placements=True)
        except PodiumError:
            return None

    def _played(self, run: Run, *, tells_placements: bool = False) -> Result:
        variant = self.variants[run.variant]
        options = replace(variant.options, seed=run.seed, tells_placements=tells_placements)
        return play(self.inputs[variant.input], options)


@dataclass(frozen=True, slots=True)
class Played:
    """A run with its settings and its outcome."""

    combination: Combination
    seed: int
    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON shows it; `error` is null where there is a summary, and the other way round."""
        return {
            "settings": dict(self.combination),
            "seed": self.seed,
            "error": self.outcome.error or None,
            "summary": self.outcome.summary,
        }


def in_order(sweep: Sweep, outcomes: dict[Run, Outcome]) -> list[Played]:
    """All runs with their outcomes, in the order of the runs."""
    return [Played(sweep.variants[run.variant].combination, run.seed, outcomes[run]) for run in sweep.runs]


def caveats_of(played: Sequence[Played]) -> tuple[Caveat, ...]:
    """What any of the runs rests on, each told once, in the order of the runs."""
    return tuple(dict.fromkeys(caveat for run in played for caveat in run.outcome.rests_on))
