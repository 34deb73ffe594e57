"""Runs of simulations, from objects to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from msgspec.structs import replace as changed

from podium.api.basis import Basis, Caveat, caveat_of
from podium.api.clock_inference import current_time
from podium.api.collector import collector_paused
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.api.times import MAX_TIME_NS
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.cluster.pod_classes import claim_names
from podium.controllers.autoscaling.autoscaler import Autoscaler
from podium.controlplane.component_names import AUTOSCALER, RESCHEDULER, SCHEDULER
from podium.controlplane.components import rescheduler, scheduler
from podium.decide.placement import nodes_to_find
from podium.framework.extenders import without_extenders
from podium.framework.settings.configuration import (
    Configuration,
    default_configuration,
    sampling_as_upstream,
    upstream_departures,
)
from podium.runtime.runtime import Component
from podium.sim.placement_log import PlacementLog
from podium.sim.recording.comparison import compare
from podium.sim.recording.replay import Replay
from podium.sim.recording.tape import recordings_of
from podium.sim.results.result import Result, result_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.scenario.steps import Apply
from podium.sim.simulation import Simulation, SimulationSettings
from podium.store.store import Store

Progress = Callable[[float, int], None]
"""Receives the share of the run that is done (0 to 1), and the virtual time since the start in nanoseconds."""


def play(found: Input, options: RunOptions, progress: Progress | None = None) -> Result:
    """Return the result of a run; equal arguments give equal results. Raises InputError, and LimitError."""
    with collector_paused():
        return result_of_run(found, play_to_end(found, options, progress), options)


def play_to_end(found: Input, options: RunOptions, progress: Progress | None = None) -> Simulation:
    """Return the finished simulation of an input. Raises as `play` does."""
    simulation = simulation_of(found.documents, options)
    play_on(simulation, progress)
    return simulation


def play_on(simulation: Simulation, progress: Progress | None = None) -> None:
    """Play a simulation to its end."""
    while simulation.step():
        if progress is not None:
            progress(share_done(simulation), simulation.elapsed_ns)


def result_of_run(found: Input, simulation: Simulation, options: RunOptions, *, is_brief: bool = False) -> Result:
    """Return the result of a simulation so far."""
    basis = (*caveats_of(found, simulation, options), *unbound_claims(simulation.store))
    recorded = None
    if simulation.settings.replay is not None:
        objects = [document.object for document in found.documents if document.object is not None]
        recorded = compare(simulation.settings.replay.recording, objects, simulation)
    return result_of(simulation, basis, recorded, is_brief=is_brief)


def simulation_of(documents: Sequence[Document], options: RunOptions, *, holds_steps: bool = False) -> Simulation:
    """Return a simulation of documents at its beginning. Raises InputError if they are invalid.

    With ``holds_steps`` the scenario's steps and the components of the options start with `Simulation.add_steps`.
    """
    without_extenders(options.configuration, ignore=options.ignore_extenders)
    release, _ = options.release.for_documents(documents)
    objects, scenario = split_documents(documents)
    start_ns = current_time(documents, objects) if options.start_ns is None else options.start_ns
    given_ns = scenario.latency_ns if options.latency_ns is None else options.latency_ns
    latency_ns = options.usual_latency_ns if given_ns is None else given_ns
    until_ns = scenario.until_ns if options.until_ns is None else options.until_ns
    log = PlacementLog(options.scheduler_seed, options.on_attempt) if options.records_placements else None
    if log is not None:
        options = replace(options, on_attempt=log.on_attempt)
    recordings = recordings_of(documents)
    replay = next((Replay(recording, start_ns, options.on_attempt) for recording, _ in recordings), None)
    if replay is not None:
        options = replace(options, on_attempt=replay.on_attempt)
    recorded_ns = None if replay is None else replay.recording.termination_ns
    settings = SimulationSettings(
        seed=options.seed,
        start_ns=start_ns,
        # Bounded by the last valid time.
        until_ns=None if until_ns is None else min(until_ns, MAX_TIME_NS - start_ns),
        start_delay_ns=options.start_delay_ns,
        bind_delay_ns=options.bind_delay_ns,
        latency_ns=latency_ns,
        latency_seed=options.draw_seed,
        termination_ns=recorded_ns if options.termination_ns is None else options.termination_ns,
        limits=options.limits,
        holds_steps=holds_steps,
        release=release,
        replay=replay,
        assumed_age_ns=options.assumed_age_ns,
    )
    components = [*components_of(scenario, options, release), *(() if holds_steps else options.components)]
    return Simulation(objects, scenario, settings=settings, components=components, placements=log)


def caveats_of(found: Input, simulation: Simulation, options: RunOptions) -> tuple[Caveat, ...]:
    """Return the caveats of a run."""
    changes = (step.change for step in simulation.scenario.steps)
    applied = [warning for change in changes if isinstance(change, Apply) for warning in change.warnings]
    return (simulation.basis or basis_of(found, simulation.scenario, options)).caveats(applied)


def basis_of(found: Input, scenario: Scenario, options: RunOptions) -> Basis:
    """Return the basis of runs, whatever the steps of the scenario are."""
    configuration = options.configuration or default_configuration()
    profiles = configuration.profiles
    names = [scheduler.name for scheduler in scenario.schedulers] or [profile.scheduler_name for profile in profiles]
    release, of_release = options.release.for_documents(found.documents)
    of_release += tuple(options.release.dropped(found.documents, release))
    ignored = without_extenders(configuration, ignore=options.ignore_extenders)
    further = (*ignored, *upstream_departures(configuration), *of_release)
    number = sum(isinstance(document.object, Node) for document in found.documents)
    wanted = min(nodes_to_find(profile.percentage_of_nodes_to_score or 0, number) for profile in profiles)
    if wanted < number:
        message = (
            f"as kube-scheduler does, schedulers examine the {number:,} nodes until {wanted:,} fit; the seed decides "
            "where they begin. percentageOfNodesToScore: 100 examines all"
        )
        further = (*further, Caveat("nodes-examined", message, number - wanted))
    return Basis(found, names, simulates=True, further=further)


def share_done(simulation: Simulation) -> float:
    """Return the share of the time that has passed, or of the steps if the run has no end."""
    until_ns = simulation.settings.until_ns
    if until_ns:
        return simulation.elapsed_ns / until_ns
    return simulation.steps_played / len(simulation.scenario.steps) if simulation.scenario.steps else 0.0


def unbound_claims(store: Store) -> Iterator[Caveat]:
    """Yield a caveat if pods wait for claims that only the persistent volume controller binds."""
    unbound = {claim.key: claim for claim in store.typed(PersistentVolumeClaim) if claim.status.phase != "Bound"}
    waiting = [pod for pod in (store.typed(Pod) if unbound else ()) if pod.waits_for_node]
    mounted = {f"{pod.metadata.namespace}/{name}" for pod in waiting for name in claim_names(pod.metadata, pod.spec)}
    keys = []
    for key in sorted(mounted & unbound.keys()):
        claim = unbound[key]
        class_ = store.reading("StorageClass", claim.class_name)
        binds_late = isinstance(class_, StorageClass) and class_.volume_binding_mode != "Immediate"
        if not binds_late or claim.spec.volume_name:
            keys.append(key)
    if keys:
        count = f"{len(keys):,} claim{'' if len(keys) == 1 else 's'}"
        why = "their class binds immediately or does not exist, which Podium does not simulate"
        yield caveat_of("claims-unbound", f"{count} stay unbound: {why}", keys)


def components_of(
    scenario: Scenario,
    options: RunOptions,
    release: Release = DEFAULT_RELEASE,
    schedulers: Sequence[Component] | None = None,
) -> list[Component]:
    """Return all components of a scenario: schedulers, autoscaler and rescheduler.

    By default the schedulers are its own, each with the profile of its name, or the single one of the configuration.
    The rescheduler has the profiles of all schedulers. Raises InputError if the components are invalid, and for a
    cut-off without an autoscaler.
    """
    given, seed, wanted = options.configuration, options.seed, scenario.autoscaling
    if schedulers is None:
        own = {each.name: configuration_of(each.name, given) for each in scenario.schedulers}
        make_one = partial(scheduler, seed=options.scheduler_seed, release=release, on_attempt=options.on_attempt)
        found = (own or {SCHEDULER: given or default_configuration()}).items()
        schedulers = [make_one(name, sampling_as_upstream(configuration)) for name, configuration in found]
    made = list(schedulers)
    if wanted is not None:
        groups, settings = wanted
        if options.priority_cutoff is not None:
            settings = changed(settings, priority_cutoff=options.priority_cutoff)
        autoscaler = partial(Autoscaler, groups, settings, given, seed=seed, release=release)
        made.append(Component(AUTOSCALER, autoscaler))
    elif options.priority_cutoff is not None:
        raise InputError("a priority cut-off is given, and the scenario has no autoscaler")
    if scenario.rescheduling is not None and RESCHEDULER not in {component.name for component in options.components}:
        configuration = given or default_configuration()
        if scenario.schedulers:
            named = [configuration_of(found.name, given) for found in scenario.schedulers]
            configuration = changed(configuration, profiles=tuple(chain.from_iterable(one.profiles for one in named)))
        made.append(rescheduler(scenario.rescheduling, configuration, seed=seed, release=release))
    return made


def configuration_of(name: str, configuration: Configuration | None) -> Configuration:
    """Return the configuration of one scheduler: the profile of that name, or the default one under it."""
    if configuration is None:
        plain = default_configuration()
        return changed(plain, profiles=(changed(plain.profiles[0], scheduler_name=name),))
    profiles = tuple(profile for profile in configuration.profiles if profile.scheduler_name == name)
    if not profiles:
        problem = f'the scenario has a scheduler "{name}", and the configuration no profile of that name'
        raise InputError(problem, source=configuration.source)
    return changed(configuration, profiles=profiles)
