"""A question as something to play: steps of a scenario over what was read, with and without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from podium.api.basis import Caveat
from podium.api.collector import collector_paused
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.input.overrides import overridden
from podium.api.meta import Raw
from podium.app.planning.answer import WorkloadImpact
from podium.app.planning.chances.draws import Draws
from podium.app.planning.chances.stories import Outcomes, Story, Suffering, outcomes_of
from podium.app.planning.impact import impact_of
from podium.app.simulating.simulation_result import SimulationResult, play_shown, shown_result, telling_more
from podium.sim.results.at_rest import kept, lasting
from podium.sim.run import Progress, play_on, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import API_VERSION

SCENARIO = "Scenario"
PlanProgress = Callable[[float, str], None]
"""Is told the share of the work that is done, from 0 to 1, and what is being done."""

_GOES = ("Scheduled", "Nominated")
# How much of the work is the run with the plan; then comes the one without, which has less to do.
_SHARE_OF_PLAN = 0.6


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: its `name` (drain, deploy, ...), and the `steps` that are played, as a Scenario has them.

    `begins_with` are objects that are so from the start, in the place of those that were read. `settings` go into the
    scenario's `spec` beside the steps. `until_ns` ends the run; None: when all is quiet.
    """

    name: str
    steps: tuple[Raw, ...] = ()
    begins_with: tuple[Document, ...] = ()
    settings: Raw | None = None
    until_ns: int | None = None


@dataclass(frozen=True)
class Played:
    """What came of it: `result` with the steps, `baseline` without them, over the same time; `scenario` was played.

    `read` is what it began with. `outcomes` are how it may come out by chance, None where that was not asked for.
    """

    read: Input
    question: Question
    result: SimulationResult
    baseline: SimulationResult
    scenario: Raw
    assumed: tuple[Caveat, ...] = ()
    outcomes: Outcomes | None = None

    @cached_property
    def impact(self) -> tuple[WorkloadImpact, ...]:
        """What the steps do to workloads."""
        return impact_of(self.result, self.baseline)

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What the answer cannot know, and what it assumes."""
        return (*self.result.rests_on, *self.assumed)


def play_question(
    read: Input,
    question: Question,
    options: RunOptions,
    progress: PlanProgress | None = None,
    *,
    stories: int = 0,
) -> Played:
    """Play it, and what would happen anyway for as long. `progress` is told the share that is done, and of what.

    With `stories` it is played so often, with other draws, to find out how it may come out. Raises InputError for what
    is wrong with the objects or the steps, and LimitError as every run.
    """
    return played_again(lambda options, told: _play_once(read, question, options, told), options, progress, stories)


def _play_once(read: Input, question: Question, options: RunOptions, progress: PlanProgress | None) -> Played:
    begun = Input(overridden(read.documents, question.begins_with), read.left_out) if question.begins_with else read
    scenario = scenario_of(begun, question)
    options = options if question.until_ns is None else replace(options, until_ns=question.until_ns)
    given = with_scenario(begun, scenario)
    # What a question sets in the scenario is not there without it, and steps that were read happen anyway.
    is_other = bool(question.settings or question.begins_with)
    is_all = not is_other and len(scenario["spec"]["steps"]) == len(question.steps)
    part = _part(progress, 0, _SHARE_OF_PLAN, "playing the plan")
    result, baseline = _played(given, options, part, is_all=is_all)
    lasted_ns = result.measures.end_ns - result.measures.start_ns
    anyway = replace(options, until_ns=lasted_ns, on_attempt=None)
    if baseline is None:
        rest = _part(progress, _SHARE_OF_PLAN, 1, "playing what happens anyway")
        baseline = play_shown(read, anyway, rest)
    elif baseline.told_more is not None:
        baseline = replace(baseline, told_more=telling_more(read, anyway))
    return Played(begun, question, result, baseline, scenario, assumed(options))


def _played(
    given: Input, options: RunOptions, progress: Progress | None, *, is_all: bool
) -> tuple[SimulationResult, SimulationResult | None]:
    """The run, and the one without its steps where nothing happens in that; None where something does.

    Both begin as the same cluster, and are the same until the first step: where nothing is left to happen by then,
    nothing ever happens without steps. It has to be known that the steps are `all` in which they differ.
    """
    with collector_paused():
        simulation = simulation_of(given.documents, options, holds_steps=True)
        baseline = None
        if is_all and simulation.come_to_rest():
            baseline = kept(shown_result(given, simulation, options))
        simulation.add_steps()
        play_on(simulation, progress)
        result = shown_result(given, simulation, options)
        return result, None if baseline is None else lasting(baseline, simulation.now)


def scenario_of(read: Input, question: Question) -> Raw:
    """The scenario to play: that among the objects, if there is one, with the question's steps and settings."""
    return scenario_of_spec(read, question.name, question.settings or {}, question.steps)


def scenario_of_spec(read: Input, name: str, settings: Raw, steps: Sequence[Raw] = ()) -> Raw:
    """The same of a plan's name, with settings in the place of those of the scenario, and further steps."""
    given = [document.raw for document in read.documents if is_scenario(document)]
    base: Raw = given[0] if given else {"apiVersion": API_VERSION, "kind": SCENARIO, "metadata": {}, "spec": {}}
    spec = base.get("spec", {})
    if not isinstance(spec, dict) or not isinstance(spec.get("steps", []), list):
        raise InputError("is not a Scenario with a list of steps", path=".spec.steps")
    return {
        **base,
        "metadata": {**base.get("metadata", {}), "name": f"plan-{name}"},
        "spec": {**spec, **settings, "steps": [*spec.get("steps", []), *steps]},
    }


def play_both(
    sides: Sequence[tuple[Input, RunOptions]], progress: Callable[[float, str], None] | None = None
) -> tuple[SimulationResult, SimulationResult]:
    """Play two inputs for as long as each other: where one is quiet before the other, it is played on.

    Raises as `play_question` does.
    """
    results = [
        play_shown(read, options, _part(progress, place * 0.4, place * 0.4 + 0.4, "playing both settings"))
        for place, (read, options) in enumerate(sides)
    ]
    lasted = [result.measures.end_ns - result.measures.start_ns for result in results]
    for place, (read, options) in enumerate(sides):
        if lasted[place] < max(lasted):
            longer = replace(options, until_ns=max(lasted))
            results[place] = play_shown(read, longer, _part(progress, 0.8, 1, "playing the shorter one on"))
    return results[0], results[1]


def with_scenario(read: Input, scenario: Raw) -> Input:
    """What was read with this scenario in the place of its own."""
    documents = [document for document in read.documents if not is_scenario(document)]
    return Input([*documents, Document("the plan", 1, scenario, None)], read.left_out)


def is_scenario(document: Document) -> bool:
    """Whether a document is a Scenario."""
    return (
        document.object is None
        and document.raw.get("kind") == SCENARIO
        and document.raw.get("apiVersion") == API_VERSION
    )


def objects_of(read: Input, kind: str) -> dict[str, Document]:
    """The objects of a kind that were read, by key."""
    return {
        document.object.key: document
        for document in read.documents
        if document.object is not None and type(document.object).__name__ == kind
    }


def step(name: str, what: Any, at: str = "0s") -> Raw:
    """One step of a scenario."""
    return {"at": at, name: what}


def applied(objects: Sequence[Raw], at: str = "0s") -> Raw:
    """The step that creates objects, or brings them to what they are to be."""
    return step("apply", list(objects), at)


def played_again(
    play: Callable[[RunOptions, PlanProgress | None], Played],
    options: RunOptions,
    progress: PlanProgress | None,
    stories: int,
) -> Played:
    """Play something, and again with other draws until so many stories are told; none but itself without any."""
    if not stories:
        return play(options, progress)
    draws = Draws(options.seed)
    first = _telling(progress, 0, stories)
    played = play(replace(options, on_attempt=draws.attempted), first)
    told = iter(range(1, stories))

    def tell(seed: int) -> Story:
        return _story(play(replace(options, draw_seed=seed), _telling(progress, next(told), stories)))

    start_ns = played.result.measures.start_ns
    return replace(played, outcomes=outcomes_of(_story(played), draws, tell, stories, start_ns))


def _story(played: Played) -> Story:
    """Who suffers, and where pods went."""
    suffering = (
        Suffering(impact.workload, sum(impact.disruptions.values()), impact.missing)
        for impact in played.impact
        if impact.missing or sum(impact.disruptions.values()) > 0
    )
    went = (
        (event.pod, event.node)
        for event in played.result.events
        if event.reason in _GOES and event.pod is not None and event.node is not None
    )
    return Story(tuple(sorted(suffering)), frozenset(went))


def _telling(progress: PlanProgress | None, number: int, stories: int) -> PlanProgress | None:
    if progress is None:
        return None
    what = f"story {number + 1} of {stories}"
    return lambda share, _: progress((number + share) / stories, what)


def _part(progress: Callable[[float, str], None] | None, begin: float, end: float, what: str) -> Progress | None:
    if progress is None:
        return None
    return lambda share, _: progress(begin + (end - begin) * min(share, 1.0), what)


def assumed(options: RunOptions) -> tuple[Caveat, ...]:
    """What is taken for granted unless an option says otherwise."""
    if options.start_delay_ns:
        return ()
    message = (
        "pods are taken to run as soon as they are bound, which hides gaps; --start-delay says how long that takes"
    )
    return (Caveat("start-delay", message, 1),)
