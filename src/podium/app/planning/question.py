"""A question that is played: steps of a scenario over the input, with and without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

from msgspec import Struct

from podium.api.basis import Caveat
from podium.api.collector import free_cycles
from podium.api.input.codec import Document, Input
from podium.api.input.documents import overridden
from podium.api.meta import Raw
from podium.app.console.page import Section
from podium.app.forking import forked
from podium.app.planning.answer import PlanAnswer, PlanProgress
from podium.app.planning.impact import WorkloadImpact, anyway_of, findings_of, impact_of, impact_text, nodes_of
from podium.app.planning.outcomes import SampledOutcomes, SampledRun, TieBreaks, WorkloadLoss, sampled
from podium.app.planning.scenarios import scenario_of_spec, with_scenario
from podium.app.simulating.simulation_result import SimulationResult, play_shown, shown_result
from podium.app.using import client
from podium.sim.latencies import USUAL_LATENCY_NS
from podium.sim.results.measures import ObjectSizes
from podium.sim.results.result import result_of
from podium.sim.run import Progress, basis_of, play_on, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import split_documents
from podium.sim.simulation import Simulation

_PLACED = ("Scheduled", "Nominated")
# The share of the run with the plan; the run without it has less to do.
_SHARE_OF_PLAN = 0.6


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A question: its `name` (drain, deploy, ...), and the `steps` that are played, as in a Scenario.

    `begins_with` are objects that replace those of the input from the start.
    """

    name: str
    steps: tuple[Raw, ...] = ()
    begins_with: tuple[Document, ...] = ()


@dataclass(frozen=True)
class PlayedPlan:
    """A question that was played: `result` with the steps, `baseline` without them, over the same time.

    `read` is the input, `scenario` what was played, with these `options`. `outcomes` are sampled ones, None if that was
    not asked for.
    """

    read: Input
    options: RunOptions
    question: PlanQuestion
    result: SimulationResult
    baseline: SimulationResult
    scenario: Raw
    outcomes: SampledOutcomes | None = None

    @cached_property
    def impact(self) -> tuple[WorkloadImpact, ...]:
        return impact_of(self.result, self.baseline)

    def answer(
        self, headline: str = "", *, sections: Sequence[Section] = (), caveats: Iterable[Caveat] = (), **others: Any
    ) -> PlanAnswer:
        """Return the answer, with further caveats and ``others`` of its fields; its default headline is the impact."""
        result, baseline, caveats = self.result, self.baseline, [*self.result.caveats, *caveats]
        if not self.options.start_delay_ns:
            message = "pods are assumed to run as soon as they are bound, which hides gaps; set --start-delay"
            caveats.append(Caveat("start-delay", message, 1))
        return PlanAnswer(
            self.question.name,
            headline or impact_text(self.impact),
            findings=tuple(findings_of(result, self.impact, baseline)),
            impact=self.impact,
            nodes=nodes_of(result, baseline),
            node_hours=(result.summary["nodeHours"], baseline.summary["nodeHours"]),
            caveats=tuple(caveats),
            result=result,
            baseline=baseline,
            anyway=anyway_of(result, baseline),
            read=self.read,
            scenario=self.scenario,
            options=self.options,
            sections=(*sections, *(() if self.outcomes is None else self.outcomes.sections())),
            **others,
        )


Side = tuple[Input, Mapping[str, Any]]
"""One of two settings: the cluster with it, and the fields in which its run options differ."""


class PlanRun(Struct, frozen=True):
    """A cluster for played questions, and the options of their runs.

    With `samples` a question is played that many times, with different tie-breaks, to find its possible outcomes. With
    `forks`, a forked copy of this process plays the run without the plan, so that the cluster is built once; and with
    `is_brief`, the results of these two runs are brief.
    """

    read: Input
    options: RunOptions
    progress: PlanProgress | None = None
    samples: int = 0
    forks: bool = False
    is_brief: bool = False

    def play(self, question: PlanQuestion) -> PlayedPlan:
        """Play a question, and the cluster without it for the same time.

        Raises InputError for wrong objects or steps, and LimitError as every run.
        """
        return self._sampled(partial(_play_once, self, question))

    def compare(self, name: str, before: Side, after: Side) -> PlayedPlan:
        """Play the cluster with two settings, for the same time and with the same seed. Raises as `play` does."""

        def play(options: RunOptions, progress: PlanProgress | None) -> PlayedPlan:
            read, deciding = after[0], replace(options, **after[1])
            sides = ((before[0], replace(options, on_attempt=None, **before[1])), (read, deciding))
            results, lasted = [], []
            for place, side in enumerate(sides):
                free_cycles()
                part = _part(progress, place * 0.4, place * 0.4 + 0.4, "playing both settings")
                results.append(play_shown(*side, part))
                lasted.append(results[-1].measures.end_ns - results[-1].measures.start_ns)
            for place, side in enumerate(sides):
                # The one that ends first is played for as long as the other.
                if lasted[place] < max(lasted):
                    free_cycles()
                    longer = replace(side[1], until_ns=max(lasted))
                    part = _part(progress, 0.8, 1, "extending the shorter run")
                    results[place] = play_shown(side[0], longer, part)
            baseline, result = results
            scenario = scenario_of_spec(read, name, {})
            return PlayedPlan(read, deciding, PlanQuestion(name), result, baseline, scenario)

        return self._sampled(play)

    def _sampled(self, play: Callable[[RunOptions, PlanProgress | None], PlayedPlan]) -> PlayedPlan:
        """Play a run `samples` times with different tie-breaks; once, without outcomes, for no samples."""
        options, samples, number = self.options, self.samples, count()
        if not samples:
            return play(options, self.progress)

        def run(options: RunOptions) -> PlayedPlan:
            place = next(number)
            part = _part(self.progress, place / samples, (place + 1) / samples, f"run {place + 1} of {samples}")
            return play(options, part)

        def sample(seed: int) -> SampledRun:
            # Only one run is in memory at a time.
            free_cycles()
            return _sampled_run(run(replace(options, draw_seed=seed, usual_latency_ns=USUAL_LATENCY_NS)))

        ties = TieBreaks(options.seed)
        played = run(replace(options, on_attempt=ties.on_attempt))
        start_ns = played.result.measures.start_ns
        return replace(played, outcomes=sampled(_sampled_run(played), ties, sample, samples, start_ns))


def _play_once(run: PlanRun, question: PlanQuestion, options: RunOptions, progress: PlanProgress | None) -> PlayedPlan:
    read, begins_with = run.read, question.begins_with
    begun = Input(overridden(read.documents, begins_with), read.left_out) if begins_with else read
    scenario = scenario_of_spec(begun, question.name, {}, question.steps)
    # The run without the plan has the steps of the input, and not the question's objects and components.
    is_all = not begins_with and len(scenario["spec"]["steps"]) == len(question.steps)
    is_all &= not (options.components and "rescheduler" in scenario["spec"])
    part = _part(progress, 0, _SHARE_OF_PLAN, "playing the plan")
    rest = _part(progress, _SHARE_OF_PLAN, 1, "playing without the plan")
    given = with_scenario(begun, scenario)
    if run.forks and is_all:
        result, baseline = _play_forked(run, given, options, part, rest)
    else:
        result, baseline = play_shown(given, options, part), None
    lasted_ns = result.measures.end_ns - result.measures.start_ns
    anyway = replace(options, until_ns=lasted_ns, on_attempt=None, components=())
    if not begins_with:
        # The same objects have the same start.
        anyway = replace(anyway, start_ns=result.measures.start_ns)
    if baseline is None:
        # The two runs are never in memory at the same time.
        free_cycles()
        baseline = play_shown(read, anyway, rest)
    return PlayedPlan(begun, options, question, result, baseline, scenario)


def simulation_before_steps(given: Input, options: RunOptions) -> Simulation:
    """Return an input's simulation after its first instant, before any step, with its basis. Raises as `play` does."""
    simulation = simulation_of(given.documents, options, holds_steps=True)
    simulation.basis = basis_of(given, simulation.scenario, options)
    simulation.basis.caveats()
    # Runs that differ only in their steps have the same first instant.
    simulation.quiet_until()
    return simulation


def _play_forked(
    run: PlanRun, given: Input, options: RunOptions, progress: Progress | None, rest: Progress | None
) -> tuple[SimulationResult, SimulationResult | None]:
    """Return the results with the steps and without them, for runs that differ in nothing but the steps.

    The simulation is the one that a session has prepared of the run's input, if it has; otherwise a new one of
    ``given``. A copy of this process is forked before the first step, and plays the run without steps for as long as
    the other lasts. The second result is brief unless placements are recorded, and None if the copy has failed.
    """
    session = client.answering
    prepared = None if session is None else session.prepared(run.read, options)
    simulation = simulation_before_steps(given, options) if prepared is None else prepared
    if prepared is not None:
        # The scenario comes last.
        prepared.take_steps_of(split_documents(given.documents[-1:])[1])

    def play_without_steps(lasted_ns: int, report: Progress) -> SimulationResult:
        simulation.end_after(lasted_ns)
        play_on(simulation, report)
        if options.records_placements:
            return shown_result(given, simulation, options)
        # Nothing shows this run's caveats, and what the other run knows of all pods.
        result = result_of(simulation, is_brief=True)
        measures = replace(result.measures, workload_of={}, top_of={}, sizes=ObjectSizes())
        return SimulationResult.of(replace(result, measures=measures))

    with forked(play_without_steps) as begin:
        simulation.add_steps(options.components)
        play_on(simulation, progress)
        # The copy plays while this process makes its result.
        finish = begin(simulation.elapsed_ns)
        return shown_result(given, simulation, options, is_brief=run.is_brief), finish(rest)


def _part(progress: PlanProgress | None, begin: float, end: float, what: str) -> Callable[[float, object], None] | None:
    if progress is None:
        return None
    return lambda share, _: progress(begin + (end - begin) * min(share, 1.0), what)


def _sampled_run(played: PlayedPlan) -> SampledRun:
    counts = ((impact, sum(impact.disruptions.values())) for impact in played.impact)
    losses = [WorkloadLoss(each.workload, number, each.missing) for each, number in counts if number or each.missing]
    placed = (event for event in played.result.events if event.reason in _PLACED)
    targets = ((event.pod, event.node) for event in placed if event.pod is not None and event.node is not None)
    return SampledRun(tuple(sorted(losses)), frozenset(targets))
