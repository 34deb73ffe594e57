"""A cluster that is read once, for any number of questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from podium.api import basis, meta, node
from podium.api.errors import InputWarning, PodiumError, likely, shown
from podium.api.input.codec import Document, Input, load_text
from podium.api.input.documents import in_place_of, place_of, snapshots_of
from podium.api.pod import Pod
from podium.api.versions.release import Release
from podium.api.workloads import pods_wanted
from podium.app.cluster_session import ClusterSession, ClusterVersion
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.workload import (
    KIND_OF_WORD,
    POD,
    WorkloadExplanation,
    find_workload,
    maker_of,
    next_pods,
    pods_of,
    read_target,
)
from podium.app.inputs import ConfigurationGiven, DecisionSettings, Given, assignments_of, read_objects, several
from podium.framework.settings.configuration import default_configuration

if TYPE_CHECKING:
    from podium.app.planning.answer import PlanProgress
    from podium.app.planning.plans import Plans
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.app.sweeping.sweep_result import SweepResult
    from podium.sim.run import Progress
    from podium.sim.run_options import RunArguments, RunOptions, SeededRunArguments

_DEFAULT_NAMESPACE = "default"


class Cluster:
    """The objects of an input, and the settings of the schedulers that decide among them.

    `podium.load` reads it once; queries do not change it. The first explanation builds the columns for decisions.
    Further explanations take milliseconds, also those about changed copies (`with_`), which share the columns. A
    cluster and its copies are not thread-safe.
    """

    def __init__(
        self,
        read: Input,
        settings: DecisionSettings = DecisionSettings(),  # noqa: B008 - immutable
        *,
        like: Cluster | None = None,
    ) -> None:
        """Create a cluster of the objects; its version is that of ``like``, if given.

        Raises InputError for feature gates that the version refuses.
        """
        self.read = read
        """The parsed objects."""
        self.settings = settings
        """The settings of the schedulers."""
        # A copy with another node keeps the version of the scheduler.
        self._decided: tuple[Release, tuple[basis.Caveat, ...]] = (
            settings.release.for_documents(read.documents) if like is None else like._decided
        )
        self._session = self._new_session()

    def __repr__(self) -> str:
        from podium.app.console.page import counted

        kinds = [type(document.object) for document in self.read.documents if document.object is not None]
        counts = {"node": kinds.count(node.Node), "pod": kinds.count(Pod), "object": len(kinds)}
        return f"<Cluster: {', '.join(counted(number, noun) for noun, number in counts.items())}>"

    @property
    def release(self) -> Release:
        """The Kubernetes version whose kube-scheduler decides."""
        return self._decided[0]

    @property
    def warnings(self) -> list[InputWarning]:
        """The warnings about the objects, and about files that were left out."""
        return self.read.warnings

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in order."""
        return sorted(self._keys_of(node.Node))

    @property
    def pods(self) -> list[str]:
        """The pods, each as `namespace/name`, in order, including those that have ended."""
        return sorted(self._keys_of(Pod))

    @property
    def pending(self) -> list[str]:
        """The pods that wait for a node, each as `namespace/name`, in order. Raises as `explain` does."""
        return self.explainer.pending

    def get(self, name: str) -> dict[str, Any]:
        """Return a copy of an object as it is written: `kind/name` or `kind/namespace/name`.

        `with_` takes a changed one. Raises PodiumError for an unknown object.
        """
        return deepcopy(self._objects.find(name).raw)

    def explain(self, pod: str, scheduler: str = "") -> Explanation:
        """Explain what would happen to the pod `namespace/name` (or `name`, in `default`), and why.

        For a pod that has a node: why it is there, and what would happen if it were evicted. `scheduler` names the
        profile that decides; the default is the pod's own. Raises PodiumError for an unknown pod, and for objects that
        no API server would have accepted.
        """
        wanted = pod if "/" in pod else f"{_DEFAULT_NAMESPACE}/{pod}"
        return self._bound_here(self.explainer.explain(wanted, scheduler))

    def ask(
        self, target: str, namespace: str = _DEFAULT_NAMESPACE, scheduler: str = ""
    ) -> Explanation | WorkloadExplanation:
        """Explain a pod, or a workload such as `deploy/web`: the first of its pods that is pending, or one more.

        `namespace` is that of a target without one. Raises PodiumError as `explain` does.
        """
        documents, explainer = self.read.documents, self.explainer
        kind, key = read_target(target, namespace, explainer.is_pod)
        first, slash, name = target.partition("/")
        if kind == POD and slash and not explainer.is_pod(key):
            # A kind may be misspelled, such as `dploy/web`, which is no pod of a namespace `dploy`.
            namespaces = {found.object.metadata.namespace for found in documents if found.object is not None}
            near = [] if first in namespaces else likely(first.lower(), KIND_OF_WORD)
            if near:
                raise PodiumError(f"{shown(target)} is not a pod of the input; did you mean {near[0]}/{name}?")
        if kind == POD:
            return self._bound_here(explainer.explain(key, scheduler))
        document, workload = find_workload(self.read, kind, key)
        pods = pods_of([found.object for found in documents if found.object is not None], workload)
        pending = next((pod.key for pod in pods if not pod.spec.node_name), None)
        if pending is not None:
            explanation = explainer.explain(pending, scheduler)
        else:
            made = next_pods(maker_of(documents, document), [pod.metadata.name for pod in pods])
            explanation = explainer.explain_made(*next(made), scheduler)
        explanation = self._bound_here(explanation)
        return WorkloadExplanation(kind, key, pods_wanted(workload), pods, explanation, pending is None)

    def simulate(
        self, *, progress: Progress | None = None, **arguments: Unpack[SeededRunArguments]
    ) -> SimulationResult:
        """Play what happens to the objects in virtual time.

        The `arguments` are those of `podium.simulate`. Raises PodiumError for wrong objects, and for a run beyond its
        `limits`.
        """
        from podium.app.simulating.simulation_result import play_shown
        from podium.sim.latencies import USUAL_LATENCY_NS
        from podium.sim.run_options import run_options

        options = replace(run_options(**arguments), usual_latency_ns=USUAL_LATENCY_NS)
        return play_shown(self.read, self._deciding_by(options), progress)

    def plan(
        self, *, samples: int = 0, progress: PlanProgress | None = None, **arguments: Unpack[SeededRunArguments]
    ) -> Plans:
        """Return the questions about changes, outages and drains: `cluster.plan().drain("node-3")`. See `Plans`.

        The `arguments` are those of `podium.simulate`; without `start_delay` pods run as soon as they are bound, which
        hides gaps. Requests take no time unless `latency` or a Scenario says so. With `samples` a plan is run so often,
        with different tie-breaks, to find its possible outcomes.
        """
        from podium.app.planning.plans import Plans
        from podium.sim.run_options import run_options

        return Plans(self, self._deciding_by(run_options(**arguments)), progress, samples=samples)

    def sweep(
        self,
        vary: Mapping[str, Sequence[Any]],
        *,
        seeds: int = 1,
        first_seed: int = 0,
        jobs: int = 1,
        folder: str | None = None,
        progress: Callable[[float], None] | None = None,
        **arguments: Unpack[RunArguments],
    ) -> SweepResult:
        """Play a simulation with every combination of settings and so many seeds.

        `vary`, `jobs` and `folder` are those of `podium.sweep`, the further `arguments` those of `podium.simulate`.
        Raises PodiumError for settings with which no run can begin; an error of one run is its outcome.
        """
        from podium.app.sweeping.run_folder import RunFolder
        from podium.app.sweeping.sweep import local_engine, make_sweep, play_all, variations_given
        from podium.app.sweeping.sweep_result import SweepResult
        from podium.sim.run_options import run_options

        if "seed" in arguments:
            raise TypeError("a sweep has many seeds: give `seeds` and `first_seed`")
        settings = self.settings
        options = replace(
            run_options(**arguments), release=settings.release, ignore_extenders=settings.ignore_extenders
        )

        def read(file: str) -> Input:
            return self._objects.with_documents(read_objects(file).documents).input if file else self.read

        if seeds < 1:
            raise PodiumError(f"seeds: {seeds} is not 1 or more")
        sweep = make_sweep(variations_given(vary), read, settings, options, range(first_seed, first_seed + seeds))
        kept = None if folder is None else RunFolder(folder)
        return SweepResult(play_all(sweep, local_engine(jobs), progress, kept), sweep)

    def with_(
        self,
        *objects: Given,
        without: str | Iterable[str] = (),
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        configuration: ConfigurationGiven | None = None,
        feature_gates: str | None = None,
        kubernetes_version: str | None = None,
        plugins: Iterable[type[Any]] | None = None,
        ignore_extenders: bool | None = None,
    ) -> Cluster:
        """Return a changed copy, which shares everything that does not change.

        `objects` are added, or replace those of their kind and name, whose uid, creation time and, if they state none,
        status they keep. `without` names objects that are left out (`node/n1`, `pod/shop/web-1`). `fields` sets fields
        as `podium plan change` does: `{"deployment/web": {"replicas": 5, "requests.cpu": "2"}}`; None removes one.
        Dependents of an object do not change with it, such as a Deployment's pods: `simulate` and `plan` play that. The
        other arguments are those of `podium.load`; None keeps a setting. Raises PodiumError for wrong and unknown
        objects.
        """
        changed = replace(self._objects, gone=(), come=()).without(several(without))
        if objects:
            changed = changed.with_documents(read_objects(objects).documents)
        if fields:
            changed = changed.with_fields(fields)
        settings = self.settings.changed(
            *(configuration, feature_gates, plugins),
            kubernetes_version=kubernetes_version,
            ignore_extenders=ignore_extenders,
        )
        copy = Cluster(changed.input, settings, like=self if settings.release == self.settings.release else None)
        copy._objects = changed
        if "_version" in self.__dict__:
            copy._version = self._version.changed(copy.read.documents, changed.gone, changed.come)
        if settings == self.settings:
            copy._session = self._session
        return copy

    def _new_session(self) -> ClusterSession:
        settings, release = self.settings, self.release
        return ClusterSession(lambda objects, now_ns: Explainer(objects, settings.deciding(), release, now_ns=now_ns))

    @cached_property
    def _objects(self) -> KeyedObjects:
        return KeyedObjects.of(self.read)

    @cached_property
    def _version(self) -> ClusterVersion:
        # Raise now for a snapshot of an unknown form, which would be misread.
        for _ in snapshots_of(self.read.documents):
            pass
        return ClusterVersion.of(self.read.documents)

    @property
    def explainer(self) -> Explainer:
        """The explainer with the columns of this cluster, valid until a copy is asked. Raises as `explain` does."""
        found = self._session.show(self._version)
        if found is None:
            # The copy differs too much from its original.
            self._session = self._new_session()
            found = self._session.show(self._version)
        if found is None:
            raise AssertionError("a session does not show the version that it is made for")
        return found

    @cached_property
    def caveats(self) -> tuple[basis.Caveat, ...]:
        """The caveats of every decision about the objects."""
        configuration = self.settings.deciding() or default_configuration()
        schedulers = sorted(profile.scheduler_name for profile in configuration.profiles)
        dropped = self.settings.release.dropped(self.read.documents, self.release)
        further = (*self.settings.caveats(), *self._decided[1], *dropped)
        return basis.Basis(self.read, schedulers, simulates=False, further=further).caveats()

    def _bound_here(self, explanation: Explanation) -> Explanation:
        """Return the explanation bound to this cluster, so that facts computed later are those of this copy."""
        session, version, decided = self._session, self._version, explanation.as_decided

        @contextmanager
        def as_decided() -> Iterator[None]:
            """Restore the copy of the question inside the context, and the cluster as the decision found it."""
            session.show_again(version)
            with decided():
                yield

        return replace(explanation, as_decided=as_decided, caveats_found=lambda: self.caveats)

    def _deciding_by(self, options: RunOptions) -> RunOptions:
        """Return the options of a run with this cluster's scheduler settings."""
        from podium.sim.scenario.scenario import split_documents

        settings = self.settings
        named = split_documents(self.read.documents)[1].schedulers if settings.plugins else ()
        return replace(
            options,
            configuration=settings.deciding([scheduler.name for scheduler in named]),
            release=settings.release,
            ignore_extenders=settings.ignore_extenders,
        )

    def _keys_of(self, type_: type[meta.Kubernetes]) -> Iterator[str]:
        return (document.object.key for document in self.read.documents if isinstance(document.object, type_))


Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class KeyedObjects:
    """The documents of an input in their order, by group, kind, namespace and name. Copies share them.

    In a copy, `gone` are the documents of the original that were removed or replaced, `come` the new ones.
    """

    documents: dict[Place, Document]
    left_out: tuple[InputWarning, ...]
    gone: tuple[Document, ...] = ()
    come: tuple[Document, ...] = ()

    @classmethod
    def of(cls, read: Input) -> KeyedObjects:
        """Return the documents of an input. A number distinguishes those of unknown kinds that share a name."""
        documents: dict[Place, Document] = {}
        for number, document in enumerate(read.documents):
            place: Place = place_of(document)
            documents[(*place, number) if place in documents else place] = document
        return cls(documents, read.left_out)

    @property
    def input(self) -> Input:
        """The documents as an input."""
        return Input(list(self.documents.values()), self.left_out)

    def find(self, text: str) -> Document:
        """Return the document of the object that `kind/name` or `kind/namespace/name` means. Raises InputError."""
        from podium.app.planning.questions.change import object_named

        return object_named(self.input, text)

    def without(self, names: Iterable[str]) -> KeyedObjects:
        """Return a copy without some objects. Raises InputError for an unknown object."""
        documents, gone = self.documents.copy(), list(self.gone)
        gone += [documents.pop(place) for place in dict.fromkeys(place_of(self.find(name)) for name in names)]
        return replace(self, documents=documents, gone=tuple(gone))

    def with_documents(self, later: Iterable[Document]) -> KeyedObjects:
        """Return a copy in which the documents replace those of their kind and name, or follow at the end."""
        documents, gone, come = self.documents.copy(), list(self.gone), list(self.come)
        for document in later:
            place = place_of(document)
            earlier = documents.get(place)
            documents[place] = document if earlier is None else in_place_of(earlier, document)
            come.append(documents[place])
            if earlier is not None:
                gone.append(earlier)
        return replace(self, documents=documents, gone=tuple(gone), come=tuple(come))

    def with_fields(self, fields: Mapping[str, Mapping[str, Any]]) -> KeyedObjects:
        """Return a copy with fields set as `podium plan change` does; None removes one. Raises InputError."""
        from podium.app.planning.questions.change import ChangedObject, with_fields

        found = self
        for target, values in fields.items():
            document = found.find(target)
            changed = ChangedObject.of(document, with_fields(document, assignments_of(values)))
            found = found.with_documents(load_text(msgspec.json.encode(changed.after.raw), document.source))
        return found
