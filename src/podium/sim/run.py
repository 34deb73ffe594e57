"""From objects to a result: one simulation from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec

from podium.api.basis import Caveat, basis_of
from podium.api.collector import collector_paused
from podium.api.input.codec import Document, Input, Reader
from podium.api.present import present_time
from podium.api.times import MAX_TIME_NS
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.departures import departures
from podium.framework.settings.extenders import without_extenders
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.scheduling.attempts import OnAttempt
from podium.machines.scheduling.queue.queued_pod import QueuedPod
from podium.sim.limits import Limits
from podium.sim.placement_log import PlacementLog
from podium.sim.recording.comparison import Comparison, compare
from podium.sim.recording.tape import recordings_of, termination_of
from podium.sim.results.result import Result, result_of
from podium.sim.results.unbound_claims import unbound_claims
from podium.sim.run_options import Duration, RunOptions, run_options
from podium.sim.scenario.changes import Apply
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.scenario_components import components_of
from podium.sim.simulation import Settings, Simulation

Progress = Callable[[float, int], None]
"""Is told the share of the run that is done, from 0 to 1, and the virtual time since the start in nanoseconds."""


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
    log = PlacementLog(options.scheduler_seed) if options.tells_placements else None
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
