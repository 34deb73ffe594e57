"""A cluster that was read once, of which any number of questions are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat, basis_of
from podium.api.errors import PodiumError
from podium.api.input.codec import Input
from podium.api.input.documents import snapshots_of
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.warnings import InputWarning
from podium.app.changed_objects import KeyedObjects
from podium.app.decision_settings import ConfigurationGiven, DecisionSettings
from podium.app.explaining.asking import ask
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.given import Given, read_objects, several
from podium.app.stage import Stage, Version
from podium.framework.settings.configuration import default_configuration
from podium.framework.settings.feature_gates import FeatureGates

if TYPE_CHECKING:
    from podium.app.planning.plans import Plans
    from podium.app.planning.question import PlanProgress
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.app.sweeping.sweep_result import SweepResult
    from podium.sim.limits import Limits
    from podium.sim.run import Progress
    from podium.sim.run_options import Duration, RunOptions

_DEFAULT_NAMESPACE = "default"


class Cluster:
    """The objects of an input, and how schedulers are configured that decide among them.

    It is loaded once (`podium.load`) and asked often; no question changes it. The columns that decisions are made on
    come with the first explanation and are kept: each further one takes milliseconds, and so does one about a changed
    copy (`with_`), which shares them. A cluster and its copies are for one thread at a time.
    """

    def __init__(self, read: Input, settings: DecisionSettings = DecisionSettings()) -> None:  # noqa: B008 - immutable
        self.read = read
        """The objects, as they were read."""
        self.settings = settings
        """How schedulers decide."""
        self._stage = Stage(partial(_explainer_of, settings))

    def __repr__(self) -> str:
        from podium.app.console.page import counted

        kinds = [type(document.object) for document in self.read.documents]
        counts = {"node": kinds.count(Node), "pod": kinds.count(Pod), "object": len(kinds)}
        return f"<Cluster: {', '.join(counted(number, noun) for noun, number in counts.items())}>"

    @property
    def warnings(self) -> list[InputWarning]:
        """What there is to say about the objects, and about files that were left out."""
        return self.read.warnings

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in order."""
        return sorted(self._keys_of(Node))

    @property
    def pods(self) -> list[str]:
        """The pods, each as `namespace/name`, in order; those that have ended included."""
        return sorted(self._keys_of(Pod))

    @property
    def pending(self) -> list[str]:
        """The pods that wait for a node, each as `namespace/name`, in order. Raises as `explain` does."""
        return self._explainer.pending

    def get(self, name: str) -> dict[str, Any]:
        """An object as it is written, by `kind/name` or `kind/namespace/name`, as in `deploy/web` or `node/n1`.

        It is a copy, to be changed and given to `with_`. Raises PodiumError where there is none.
        """
        return deepcopy(self._objects.find(name).raw)

    def explain(self, pod: str, scheduler: str = "") -> Explanation:
        """Say what would happen to the pod `namespace/name` (or `name`, in `default`), and why.

        Of a pod that has a node: why it is there, and what would become of it if it were evicted. `scheduler` names the
        profile that decides, "" for the one that the pod asks for. Raises PodiumError for a pod that is not there, and
        for any of the input that no API server would have taken.
        """
        wanted = pod if "/" in pod else f"{_DEFAULT_NAMESPACE}/{pod}"
        return self._kept(self._explainer.explain(wanted, scheduler))

    def ask(
        self, target: str, namespace: str = _DEFAULT_NAMESPACE, scheduler: str = ""
    ) -> Explanation | WorkloadExplanation:
        """Explain a pod, or a workload such as `deploy/web`: the first of its pods that is pending, or one more.

        `namespace` is that of a target without one. Raises PodiumError as `explain` does.
        """
        answer = ask(self.read.documents, self._explainer, target, namespace, scheduler)
        if isinstance(answer, Explanation):
            return self._kept(answer)
        return replace(answer, explanation=self._kept(answer.explanation))

    def simulate(
        self,
        *,
        until: Duration | None = None,
        seed: int = 0,
        start: str | None = None,
        start_delay: Duration = 0,
        bind_delay: Duration = 0,
        termination: Duration | None = None,
        limits: Limits | None = None,
        priority_cutoff: int | None = None,
        progress: Progress | None = None,
    ) -> SimulationResult:
        """Play what happens to the objects in virtual time, from where they are. The arguments are `podium.simulate`'s.

        Raises PodiumError for what is wrong with the objects, and for a run that takes more than `limits` allow.
        """
        from podium.app.simulating.simulation_result import play_shown
        from podium.sim.run_options import run_options

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
        return play_shown(self.read, self._deciding_by(options), progress)

    def plan(
        self,
        *,
        until: Duration | None = None,
        seed: int = 0,
        start: str | None = None,
        start_delay: Duration = 0,
        bind_delay: Duration = 0,
        termination: Duration | None = None,
        limits: Limits | None = None,
        stories: int = 0,
        progress: PlanProgress | None = None,
    ) -> Plans:
        """Ask what a change, an outage or a drain would do: `cluster.plan().drain("node-3")`. See `Plans`.

        The arguments are those of `podium.simulate`; without `start_delay` pods run as soon as they are bound, which
        hides gaps. With `stories` a plan is told so often, with other draws, to say how chance may have it come out.
        """
        from podium.app.planning.plans import Plans
        from podium.sim.run_options import run_options

        options = run_options(
            until=until,
            seed=seed,
            start=start,
            start_delay=start_delay,
            bind_delay=bind_delay,
            termination=termination,
            limits=limits,
        )
        return Plans(self, self._deciding_by(options), progress, stories=stories)

    def sweep(
        self,
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
        limits: Limits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> SweepResult:
        """Play a simulation with every combination of settings and so many seeds. The arguments are `podium.sweep`'s.

        Raises PodiumError for what no run can begin with; what is wrong with one run is its outcome.
        """
        from podium.app.sweeping.making import make_sweep
        from podium.app.sweeping.sweeping import played, read_variations
        from podium.sim.run_options import run_options

        options = run_options(
            until=until,
            start=start,
            start_delay=start_delay,
            bind_delay=bind_delay,
            termination=termination,
            limits=limits,
        )
        settings = self.settings
        options = replace(options, feature_gates=settings.feature_gates, ignore_extenders=settings.ignore_extenders)

        def read(file: str) -> Input:
            return self._objects.with_documents(read_objects(file).documents).input if file else self.read

        if seeds < 1:
            raise PodiumError(f"seeds: {seeds} are no runs; 1 or more are needed")
        sweep = make_sweep(read_variations(vary), read, settings, options, range(first_seed, first_seed + seeds))
        return played(sweep, jobs, progress)

    def with_(
        self,
        *objects: Given,
        without: str | Iterable[str] = (),
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        configuration: ConfigurationGiven | None = None,
        feature_gates: FeatureGates | str | None = None,
        plugins: Iterable[type[Any]] | None = None,
        ignore_extenders: bool | None = None,
    ) -> Cluster:
        """A changed copy, which shares what does not change; this cluster stays as it is.

        `objects` are added, or take the place of those of their kind and name, whose uid, time of creation and, where
        they say none, status they keep. Those named in `without` (`node/n1`, `pod/shop/web-1`) are left out. `fields`
        sets fields as `podium plan set` does: `{"deployment/web": {"replicas": 5, "requests.cpu": "2"}}`; None takes
        one away. What depends on an object is not changed with it, such as a Deployment's ReplicaSets and pods: that is
        what `simulate` and `plan` play. The other arguments are those of `podium.load`; what is None stays as it is.

        Raises PodiumError for what is wrong with an object, and for one that is not there.
        """
        changed = self._objects.copy()
        if without:
            changed = changed.without(several(without))
        if objects:
            changed = changed.with_documents(read_objects(objects).documents)
        if fields:
            changed = changed.with_fields(fields)
        settings = self.settings.changed(configuration, feature_gates, plugins, ignore_extenders=ignore_extenders)
        copy = Cluster(changed.input, settings)
        copy._objects = changed
        if "_version" in self.__dict__:
            copy._version = self._version.changed(copy.read.documents, changed.gone, changed.come)
        if settings == self.settings:
            copy._stage = self._stage
        return copy

    @property
    def explainer(self) -> Explainer:
        """Who answers, with the columns that decisions are made on, until a copy is asked. Raises as `explain` does."""
        return self._explainer

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What every decision rests on that is made on the objects as they are."""
        return self._caveats

    @cached_property
    def _objects(self) -> KeyedObjects:
        return KeyedObjects.of(self.read)

    @cached_property
    def _version(self) -> Version:
        # A snapshot of a form that is not known would be misunderstood; that it says so must not wait for the caveats.
        for _ in snapshots_of(self.read.documents):
            pass
        return Version.of(self.read.documents)

    @property
    def _explainer(self) -> Explainer:
        found = self._stage.show(self._version)
        if found is None:
            # Too different from what it was copied from.
            self._stage = Stage(partial(_explainer_of, self.settings))
            found = self._stage.show(self._version)
        if found is None:
            raise AssertionError("a stage does not show the version that it is made for")
        return found

    @cached_property
    def _caveats(self) -> tuple[Caveat, ...]:
        """What every explanation rests on."""
        configuration = self.settings.deciding() or default_configuration()
        schedulers = sorted(profile.scheduler_name for profile in configuration.profiles)
        return basis_of(self.read, schedulers, simulates=False, further=self.settings.caveats()).caveats()

    def _kept(self, explanation: Explanation) -> Explanation:
        """The explanation, whose further facts are found in this cluster, whichever copy was asked about since."""
        stand = partial(self._stage.show_again, self._version)
        as_decided = partial(_as_decided, stand, explanation.as_decided)
        return replace(explanation, as_decided=as_decided, caveats_found=lambda: self._caveats)

    def _deciding_by(self, options: RunOptions) -> RunOptions:
        """The options of a run in which schedulers decide by this cluster's settings."""
        from podium.sim.scenario.scenario import split_documents

        settings = self.settings
        named = split_documents(self.read.documents)[1].schedulers if settings.plugins else ()
        return replace(
            options,
            configuration=settings.deciding([scheduler.name for scheduler in named]),
            feature_gates=settings.feature_gates,
            ignore_extenders=settings.ignore_extenders,
        )

    def _keys_of(self, type_: type[Kubernetes]) -> Iterator[str]:
        return (document.object.key for document in self.read.documents if isinstance(document.object, type_))


def _explainer_of(settings: DecisionSettings, objects: Iterable[Kubernetes], now_ns: int) -> Explainer:
    return Explainer(objects, settings.deciding(), settings.feature_gates, now_ns=now_ns)


@contextmanager
def _as_decided(stand: Callable[[], object], decided: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """The cluster as it was decided on, of the copy that was asked about."""
    stand()
    with decided():
        yield
