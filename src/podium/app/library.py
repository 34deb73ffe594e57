"""Podium's functions for programs, which accept objects in several forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from podium.api.errors import Validation
from podium.app.cluster import Cluster
from podium.app.explaining.explanation import Explanation
from podium.app.inputs import ConfigurationGiven, Objects, read_objects, read_settings

__all__ = ["explain", "load", "plan", "read_objects", "simulate", "sweep"]


class ExplainArguments(TypedDict, total=False):
    """The arguments of `load` besides the objects and the configuration."""

    kubernetes_version: str
    feature_gates: str
    plugins: Iterable[type[Any]]
    ignore_extenders: bool
    validation: Validation | None


class LoadArguments(ExplainArguments, total=False):
    """The arguments of `load` besides the objects."""

    configuration: ConfigurationGiven | None


if TYPE_CHECKING:
    from podium.app.planning.answer import PlanProgress
    from podium.app.planning.plans import Plans
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.app.sweeping.sweep_result import SweepResult
    from podium.sim.run import Progress
    from podium.sim.run_options import RunArguments, SeededRunArguments

    class SimulateArguments(LoadArguments, SeededRunArguments, total=False):
        """The arguments of `simulate` besides the objects."""

        progress: Progress | None

    class PlanArguments(LoadArguments, SeededRunArguments, total=False):
        """The arguments of `plan` besides the objects."""

        samples: int
        progress: PlanProgress | None

    class SweepArguments(LoadArguments, RunArguments, total=False):
        """The arguments of `sweep` besides the objects and the varied settings."""

        seeds: int
        first_seed: int
        jobs: int
        folder: str | None
        progress: Callable[[float], None] | None


def load(
    objects: Objects,
    configuration: ConfigurationGiven | None = None,
    feature_gates: str = "",
    kubernetes_version: str = "",
    *,
    plugins: Iterable[type[Any]] = (),
    ignore_extenders: bool = False,
    validation: Validation | None = None,
    progress: Callable[[float], None] | None = None,
) -> Cluster:
    """Read the objects once, for any number of questions.

    `objects` are the name of a file or directory, or any of: such names, dictionaries (a List too), typed objects of
    `podium.api`, documents. A Scenario may be among them.

    `configuration` is a KubeSchedulerConfiguration: a dictionary, its file, or a parsed `Configuration`; one with
    extenders is refused unless `ignore_extenders` is set. `plugins` are additional plugin classes (`podium.plugin`),
    which the configuration may name; those that it does not mention are enabled in all profiles. `kubernetes_version`
    is that of the kube-scheduler, such as "1.34"; "" means the cluster's (`podium.api.versions.choice`).
    `feature_gates` has the form "NodeDeclaredFeatures=false". `validation` selects errors and warnings
    (`podium.api.objects.read_object`). `progress` receives the share of the files that has been read. Raises
    PodiumError for invalid arguments or objects.
    """
    settings = read_settings(
        *(configuration, feature_gates, plugins),
        kubernetes_version=kubernetes_version,
        ignore_extenders=ignore_extenders,
    )
    return Cluster(read_objects(objects, validation, progress), settings)


def explain(
    objects: Objects, pod: str, configuration: ConfigurationGiven | None = None, **arguments: Unpack[ExplainArguments]
) -> Explanation:
    """Explain what would happen to the pending pod `namespace/name` (or `name`, in `default`), and why.

    For more than one question `load` them once. The arguments are those of `load`, and so is what it raises.
    """
    return load(objects, configuration, **arguments).explain(pod)


def simulate(objects: Objects, **arguments: Unpack[SimulateArguments]) -> SimulationResult:
    """Play what happens to the objects in virtual time; a Scenario may be among them.

    The arguments are those of `load`, and:

    - `until`: how long after the start the run ends (default: the scenario's end, or when nothing is left to do)
    - `seed`: chooses uids, and between equal nodes
    - `start`: the time of the start, in RFC 3339 (default: the newest time in the objects)
    - `start_delay`, `bind_delay`: how long a bound pod takes to start, and a binding
    - `latency`: how long a scheduler's request takes (default: the scenario's, or 5 ms)
    - `termination`: how long a deleted pod takes to end, at most its grace period (default: that of a recording, or the
      whole period)
    - `limits`: the limits of a run, `podium.sim.run_options.SimulationLimits`
    - `priority_cutoff`: the scenario's autoscaler ignores pods below it
    - `progress`: receives the share that is done, and the virtual time since the start in nanoseconds

    Durations are text such as "90s", or seconds. Equal arguments give equal results. Raises PodiumError for what is
    wrong with the objects or the arguments, and beyond `limits`.
    """
    loading, running = _split(arguments)
    return load(objects, **loading).simulate(**running)


def plan(objects: Objects, **arguments: Unpack[PlanArguments]) -> Plans:
    """Ask what a change, an outage or a drain would do to the objects: `podium.plan("cluster.json").drain("node-3")`.

    There is a method for each question, such as `deploy`, `drain`, `fail`, `pending` or `fit`: see `Plans`. The
    arguments are those of `load` and `simulate`; without `start_delay` pods run as soon as they are bound, which hides
    gaps. Unlike in `simulate`, where requests take 5 ms by default, they take no time here unless `latency` or a
    Scenario says so. With `samples` a plan is run so often, with different tie-breaks, to find its possible outcomes.
    `progress` receives the share of the work that is done, and what is being done.
    """
    loading, running = _split(arguments)
    return load(objects, **loading).plan(**running)


def sweep(objects: Objects, vary: Mapping[str, Sequence[Any]], **arguments: Unpack[SweepArguments]) -> SweepResult:
    """Play a simulation with every combination of settings and that many `seeds`, and compare the results.

    `vary` has the values of what the runs differ in: an option of a run (`until`, `start-delay`, `bind-delay`,
    `termination`, `expendable-pods-priority-cutoff`, `kubernetes-version`, `feature-gates`), `filename` (a further file
    of objects), `config` (a configuration's file), a field of the configuration (`percentageOfNodesToScore`,
    `maxFutilePreemptions`, `nominationClearing`), or an argument of a plugin, such as
    `DefaultPreemption.spareMirrorPods`. The seeds begin with `first_seed`. With `jobs` above 1 runs are played side by
    side in processes, which import the main module again: a script then keeps its work behind `if __name__ ==
    "__main__"`. With a `folder`, a path or an address such as s3://bucket/runs, outcomes are kept there, and only runs
    without one are played. `progress` receives the share that is done. The other arguments are those of `load` and
    `simulate`.
    """
    loading, running = _split(arguments)
    return load(objects, **loading).sweep(vary, **running)


def _split(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `load`, and the others."""
    loading = LoadArguments.__annotations__.keys()
    of_load = {name: value for name, value in arguments.items() if name in loading}
    return of_load, {name: value for name, value in arguments.items() if name not in loading}
