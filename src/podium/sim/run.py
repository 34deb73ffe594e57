"""From objects to a result: one simulation from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import msgspec

from podium.api.basis import Caveat, basis_of
from podium.api.collector import collector_paused
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, Reader
from podium.api.present import present_time
from podium.api.times import MAX_TIME_NS, parse_duration, parse_time
from podium.driver.component import Component
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.departures import departures
from podium.framework.settings.extenders import without_extenders
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.scheduling.queue.queued_pod import QueuedPod
from podium.machines.scheduling.scheduler import OnAttempt
from podium.plane.components import autoscaler, rescheduler, scheduler
from podium.plane.switches import SCHEDULER
from podium.sim.limits import Limits
from podium.sim.placement_log import PlacementLog
from podium.sim.recording.comparison import Comparison, compare
from podium.sim.recording.tape import recordings_of, termination_of
from podium.sim.results.result import Result, result_of
from podium.sim.results.unbound_claims import unbound_claims
from podium.sim.scenario.changes import Apply
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.simulation import Settings, Simulation

Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""

Progress = Callable[[float, int], None]
"""Is told the share of the run that is done, from 0 to 1, and the virtual time since the start in nanoseconds."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run is told beside its objects; times in nanoseconds.

    `start_ns` None stands for the newest time in the objects, `until_ns` None for the scenario's end, `configuration`
    None for that of a default kube-scheduler, and `priority_cutoff` None for that of the scenario's autoscaler. A
    configuration with extenders is refused unless they are to be ignored. Schedulers draw among equals by `draw_seed`,
    by `seed` where that is None; `on_attempt` is shown each pod right before their attempt at it. A deleted pod takes
    `termination_ns` to end, at most its grace period; None stands for what a recording among the objects says, and for
    all of that. With `tells_placements` the result says why pods are where they are (`podium.sim.placement_log`).
    """

    seed: int = 0
    start_ns: int | None = None
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0
    termination_ns: int | None = None
    configuration: Configuration | None = None
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    limits: Limits = field(default_factory=Limits)
    ignore_extenders: bool = False
    priority_cutoff: int | None = None
    tells_placements: bool = False
    draw_seed: int | None = None
    on_attempt: OnAttempt | None = None


def simulate(  # noqa: PLR0913 - each is an option that people set on its own
    objects: Input | Sequence[Document] | Sequence[dict[str, Any]],
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    configuration: Configuration | None = None,
    feature_gates: FeatureGates | None = None,
    limits: Limits | None = None,
    ignore_extenders: bool = False,
    priority_cutoff: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play what happens to a cluster in virtual time.

    `objects` are an input or documents of `podium.api.input.codec`, or Kubernetes objects as dictionaries, with at most
    one Scenario among them. The run starts at `start` (RFC 3339), or the newest time in the objects. It ends `until`
    after the start, which overrides the scenario's, or when nothing is left to happen. A pod starts `start_delay` after
    it is bound, and a binding takes `bind_delay`. A deleted pod takes `termination` to end, at most its grace period;
    without it as long as in a recording among the objects, or all of that. To the scenario's autoscaler pods below
    `priority_cutoff` are nothing, whatever the scenario says. The same arguments give the same result. Raises
    InputError for what is wrong with them, and LimitError for a run that takes more than `limits` allow.
    """
    options = run_options(
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        termination=termination,
        limits=limits,
        priority_cutoff=priority_cutoff,
    )
    options = replace(
        options,
        configuration=configuration,
        feature_gates=feature_gates or FeatureGates(),
        ignore_extenders=ignore_extenders,
    )
    return play(objects if isinstance(objects, Input) else _input(objects), options, progress)


def run_options(  # noqa: PLR0913 - each is an option that people set on its own
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    limits: Limits | None = None,
    priority_cutoff: int | None = None,
) -> RunOptions:
    """The options of a run as people write them: see `simulate`. Raises InputError for what is no time or duration."""
    return RunOptions(
        seed=seed,
        start_ns=None if start is None else _start(start),
        until_ns=None if until is None else _duration("until", until),
        start_delay_ns=_duration("start_delay", start_delay),
        bind_delay_ns=_duration("bind_delay", bind_delay),
        termination_ns=None if termination is None else _duration("termination", termination),
        limits=limits or Limits(),
        priority_cutoff=priority_cutoff,
    )


def play(found: Input, options: RunOptions, progress: Progress | None = None) -> Result:
    """The result of one run of an input. Raises as `simulate` does."""
    with collector_paused():
        return result_of_run(found, played(found, options, progress), options)


def played(found: Input, options: RunOptions, progress: Progress | None = None) -> Simulation:
    """The simulation of an input, at its end. Raises as `simulate` does."""
    simulation = simulation_of(found.documents, options)
    play_on(simulation, progress)
    return simulation


def play_on(simulation: Simulation, progress: Progress | None = None) -> None:
    """Play a simulation to its end."""
    while simulation.step():
        if progress is not None:
            progress(share_done(simulation), simulation.elapsed_ns)


def result_of_run(found: Input, simulation: Simulation, options: RunOptions) -> Result:
    """The result of a simulation of an input as far as it has come."""
    basis = (*rests_on(found, simulation.scenario, options), *unbound_claims(simulation.store))
    return result_of(simulation, basis, compared(found, simulation))


def simulation_of(documents: Sequence[Document], options: RunOptions, *, holds_steps: bool = False) -> Simulation:
    """The simulation of documents, at its beginning. Raises InputError for what is wrong with them.

    With ``holds_steps`` the scenario's steps come when they are added (`Simulation.add_steps`).
    """
    _without_extenders(options)
    objects, scenario = split_documents(documents)
    start_ns = present_time(documents, objects) if options.start_ns is None else options.start_ns
    settings = Settings(
        seed=options.seed,
        start_ns=start_ns,
        until_ns=_within_time(start_ns, scenario.until_ns if options.until_ns is None else options.until_ns),
        start_delay_ns=options.start_delay_ns,
        bind_delay_ns=options.bind_delay_ns,
        termination_ns=termination_of(documents) if options.termination_ns is None else options.termination_ns,
        limits=options.limits,
        feature_gates=options.feature_gates,
    )
    log = PlacementLog(_draw_seed(options)) if options.tells_placements else None
    if log is not None:
        options = replace(options, on_attempt=_shown_to(log.attempted, options.on_attempt))
    components = components_of(scenario, options)
    return Simulation(
        objects, scenario, settings=settings, components=components, placements=log, holds_steps=holds_steps
    )


def compared(found: Input, simulation: Simulation) -> Comparison | None:
    """What was recorded held against what a simulation made of it; None where nothing was recorded."""
    for recording, _ in recordings_of(found.documents):
        objects = [document.object for document in found.documents if document.object is not None]
        return compare(recording, objects, simulation)
    return None


def rests_on(found: Input, scenario: Scenario, options: RunOptions) -> tuple[Caveat, ...]:
    """What a run of the input cannot know or does not do."""
    profiles = (options.configuration or default_configuration()).profiles
    names = [scheduler.name for scheduler in scenario.schedulers] or [profile.scheduler_name for profile in profiles]
    applied = list(
        chain.from_iterable(step.change.warnings for step in scenario.steps if isinstance(step.change, Apply))
    )
    further = (*_without_extenders(options), *departures(options.configuration or default_configuration()))
    return basis_of(found, names, simulates=True, warnings=applied, further=further).caveats()


def _within_time(start_ns: int, until_ns: int | None) -> int | None:
    """How long the run may be: no longer than up to the last time that there is."""
    return None if until_ns is None else min(until_ns, MAX_TIME_NS - start_ns)


def components_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The components that differ from scenario to scenario. Raises InputError for what is wrong with them."""
    return [
        *schedulers_of(scenario, options),
        *autoscalers_of(scenario, options),
        *reschedulers_of(scenario, options),
    ]


def schedulers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The schedulers of a scenario, each a component of its own, or the one of the configuration.

    Each has the profile of its name, the default one without a configuration. Raises InputError where the
    configuration has none of that name.
    """
    if not scenario.schedulers:
        return [_scheduler(SCHEDULER, options)]
    return [
        _scheduler(named.name, replace(options, configuration=configuration_of(named.name, options.configuration)))
        for named in scenario.schedulers
    ]


def autoscalers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The cluster autoscaler that a scenario asks for, if any. Raises InputError for a cut-off of none."""
    wanted, cutoff = scenario.autoscaling, options.priority_cutoff
    if wanted is None:
        if cutoff is not None:
            raise InputError("a priority cut-off is given, and the scenario has no autoscaler")
        return []
    settings = wanted.settings if cutoff is None else replace(wanted.settings, priority_cutoff=cutoff)
    return [autoscaler(wanted.groups, settings, options.configuration, seed=options.seed)]


def reschedulers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The rescheduler that a scenario asks for, if any: it knows what each of its schedulers would do."""
    if scenario.rescheduling is None:
        return []
    configuration = options.configuration or default_configuration()
    if scenario.schedulers:
        named = [configuration_of(found.name, options.configuration) for found in scenario.schedulers]
        configuration = replace(configuration, profiles=tuple(chain.from_iterable(one.profiles for one in named)))
    return [rescheduler(scenario.rescheduling, configuration, seed=options.seed)]


def configuration_of(name: str, configuration: Configuration | None) -> Configuration:
    """What is configured for the scheduler of a name: the profile of that name, or the default one under it."""
    if configuration is None:
        plain = default_configuration()
        return replace(plain, profiles=(msgspec.structs.replace(plain.profiles[0], scheduler_name=name),))
    profiles = tuple(profile for profile in configuration.profiles if profile.scheduler_name == name)
    if not profiles:
        problem = f'the scenario has a scheduler "{name}", and the configuration no profile of that name'
        raise InputError(problem, source=configuration.source)
    return replace(configuration, profiles=profiles)


def _without_extenders(options: RunOptions) -> tuple[Caveat, ...]:
    """What is to be said of a configuration's extenders. Raises InputError where they are not to be ignored."""
    configuration = options.configuration or default_configuration()
    return without_extenders(configuration.extenders, configuration.source, ignore=options.ignore_extenders)


def share_done(simulation: Simulation) -> float:
    """The time that has passed of the run's, or the steps played where it has no end."""
    until_ns = simulation.settings.until_ns
    if until_ns:
        return simulation.elapsed_ns / until_ns
    return simulation.steps_played / len(simulation.scenario.steps) if simulation.scenario.steps else 0.0


def _scheduler(name: str, options: RunOptions) -> Component:
    return scheduler(
        name,
        options.configuration,
        seed=_draw_seed(options),
        feature_gates=options.feature_gates,
        on_attempt=options.on_attempt,
    )


def _draw_seed(options: RunOptions) -> int:
    """By what schedulers draw among equals."""
    return options.seed if options.draw_seed is None else options.draw_seed


def _shown_to(first: OnAttempt, second: OnAttempt | None) -> OnAttempt:
    """Both are shown each pod."""
    if second is None:
        return first

    def shown(queued: QueuedPod, runner: Runner) -> None:
        first(queued, runner)
        second(queued, runner)

    return shown


def _input(objects: Sequence[Document] | Sequence[dict[str, Any]]) -> Input:
    plain = [item for item in objects if not isinstance(item, Document)]
    with Reader() as reader:
        for document in objects:
            if isinstance(document, Document):
                reader.add(document)
        if plain:
            # Read as a file would be, so that the same mistakes are found.
            text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": plain})
            reader.read_text(text, "objects")
        return reader.input()


def _start(start: str) -> int:
    try:
        return parse_time(start)
    except ValueError as error:
        raise InputError(f"start: {error}") from None


def _duration(name: str, duration: Duration) -> int:
    try:
        duration_ns = parse_duration(duration)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if duration_ns < 0:
        raise InputError(f"{name}: is negative; write 0s or more")
    return duration_ns
