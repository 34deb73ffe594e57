"""Podium's functions for programs, which take objects in whatever form they are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.api.warnings import Validation
from podium.app.cluster import Cluster
from podium.app.decision_settings import ConfigurationGiven, read_settings
from podium.app.explaining.explanation import Explanation
from podium.app.given import Objects, read_objects
from podium.framework.settings.feature_gates import FeatureGates

if TYPE_CHECKING:
    from podium.app.planning.plans import Plans
    from podium.app.planning.question import PlanProgress
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.app.sweeping.sweep_result import SweepResult
    from podium.sim.limits import Limits
    from podium.sim.run import Progress
    from podium.sim.run_options import Duration

__all__ = ["explain", "load", "plan", "read_objects", "simulate", "sweep"]


def load(
    objects: Objects,
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    *,
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    validation: Validation | None = None,
    progress: Callable[[float], None] | None = None,
) -> Cluster:
    """Read the objects once, for any number of questions.

    `objects` are the name of a file or directory, or any of: such names, dictionaries (a List too), typed objects of
    `podium.api`, documents. A Scenario may be among them.

    `configuration` is a KubeSchedulerConfiguration: a dictionary, its file, or a `Configuration` that was read; one
    with extenders is refused unless they are to be ignored. `plugins` are classes that decide as well
    (`podium.plugin`): the configuration knows them by their names, and those that it does not mention are enabled in
    all profiles. `feature_gates` are such as "NonPreemptingPriority=false". `validation` says what is an error, and
    what a warning (`podium.api.objects.read_object`). `progress` is told the share of the files that has been read.
    Raises PodiumError for what is wrong with any of them.
    """
    settings = read_settings(configuration, feature_gates, plugins, ignore_extenders=ignore_extenders)
    return Cluster(read_objects(objects, validation, progress), settings)


def explain(
    objects: Objects,
    pod: str,
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    *,
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    validation: Validation | None = None,
) -> Explanation:
    """Say what would happen to the pending pod `namespace/name` (or `name`, in `default`) among the objects, and why.

    For more than one question `load` them once. The arguments are those of `load`, and so is what it raises.
    """
    cluster = load(
        objects, configuration, feature_gates, plugins=plugins, ignore_extenders=ignore_extenders, validation=validation
    )
    return cluster.explain(pod)


def simulate(
    objects: Objects,
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    limits: Limits | None = None,
    priority_cutoff: int | None = None,
    progress: Progress | None = None,
    validation: Validation | None = None,
) -> SimulationResult:
    """Play what happens to the objects in virtual time; a Scenario may be among them. See `podium.sim.run.simulate`."""
    cluster = load(
        objects, configuration, feature_gates, plugins=plugins, ignore_extenders=ignore_extenders, validation=validation
    )
    return cluster.simulate(
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        termination=termination,
        limits=limits,
        priority_cutoff=priority_cutoff,
        progress=progress,
    )


def plan(
    objects: Objects,
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    limits: Limits | None = None,
    stories: int = 0,
    progress: PlanProgress | None = None,
    validation: Validation | None = None,
) -> Plans:
    """Ask what a change, an outage or a drain would do to the objects: `podium.plan("cluster.json").drain("node-3")`.

    There is a method for each question, such as `deploy`, `drain`, `fail`, `pending` or `fit`: see `Plans`. The
    arguments are those of `load` and `simulate`; without `start_delay` pods run as soon as they are bound, which hides
    gaps. With `stories` a plan is told so often, with other draws among equals, to say how chance may have it come out.
    `progress` is told the share of the work that is done, and of what.
    """
    cluster = load(
        objects, configuration, feature_gates, plugins=plugins, ignore_extenders=ignore_extenders, validation=validation
    )
    return cluster.plan(
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        termination=termination,
        limits=limits,
        stories=stories,
        progress=progress,
    )


def sweep(
    objects: Objects,
    vary: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    first_seed: int = 0,
    jobs: int = 1,
    until: Duration | None = None,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    limits: Limits | None = None,
    progress: Callable[[float], None] | None = None,
    validation: Validation | None = None,
) -> SweepResult:
    """Play a simulation with every combination of settings and so many seeds, and compare what comes of it.

    `vary` has the values of what the runs differ in: an option of a run (`until`, `start-delay`, `bind-delay`,
    `termination`, `expendable-pods-priority-cutoff`, `feature-gates`), `filename` (a further file of objects), `config`
    (a configuration's file), a field of the configuration (`percentageOfNodesToScore`, `maxFutilePreemptions`,
    `nominationClearing`), or an argument of a plugin, such as `DefaultPreemption.spareMirrorPods`. With `jobs` above 1
    runs are played side by side in processes, which import the main module again: a script then keeps its work behind
    `if __name__ == "__main__"`. The other arguments are those of `load` and `simulate`.
    """
    cluster = load(
        objects, configuration, feature_gates, plugins=plugins, ignore_extenders=ignore_extenders, validation=validation
    )
    return cluster.sweep(
        vary,
        seeds=seeds,
        first_seed=first_seed,
        jobs=jobs,
        until=until,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        termination=termination,
        limits=limits,
        progress=progress,
    )
