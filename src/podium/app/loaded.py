"""A cluster that was read once, of which any number of questions are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from podium.api.basis import Caveat, basis_of
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, refuse_empty_pods
from podium.api.warnings import InputWarning
from podium.app.budget_statuses import with_budget_statuses
from podium.app.explaining.asking import ask
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.workload import WorkloadExplanation
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.departures import departures
from podium.framework.settings.extenders import without_extenders
from podium.framework.settings.feature_gates import FeatureGates

if TYPE_CHECKING:
    from podium.sim.limits import Limits
    from podium.sim.results.result import Result
    from podium.sim.run import Duration, Progress

_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class LoadedCluster:
    """The objects of an input, and how schedulers are configured that decide among them.

    The columns that decisions are made on come with the first explanation and are kept; so each further one takes
    milliseconds. No question changes the cluster. `configuration` None is that of a default kube-scheduler.
    """

    read: Input
    configuration: Configuration | None = None
    feature_gates: FeatureGates = FeatureGates()  # noqa: RUF009 - an immutable value
    ignore_extenders: bool = False

    def __post_init__(self) -> None:
        """Raises InputError for a configuration with extenders that are not to be ignored."""
        self._without_extenders()

    @property
    def warnings(self) -> list[InputWarning]:
        """What there is to say about the objects, and about files that were left out."""
        return self.read.warnings

    @property
    def pending(self) -> list[str]:
        """The pods that can be explained, each as `namespace/name`. Raises as `explain` does."""
        return self._explainer.pending

    def explain(self, pod: str, scheduler: str = "") -> Explanation:
        """Say what would happen to the pod `namespace/name` (or `name`, in `default`), and why.

        Of a pod that has a node: why it is there, and what would become of it if it were evicted. `scheduler` names the
        profile that decides, "" for the one that the pod asks for. Raises PodiumError for a pod that is not there, and
        for any of the input that no API server would have taken.
        """
        wanted = pod if "/" in pod else f"{_DEFAULT_NAMESPACE}/{pod}"
        explainer = self._explainer
        return replace(explainer.explain(wanted, scheduler), rests_on=self._caveats)

    def ask(
        self, target: str, namespace: str = _DEFAULT_NAMESPACE, scheduler: str = ""
    ) -> Explanation | WorkloadExplanation:
        """Explain a pod, or a workload such as `deploy/web`: the first of its pods that is pending, or one more.

        `namespace` is that of a target without one. Raises PodiumError as `explain` does.
        """
        return ask(self.read.documents, self._explainer, self._caveats, target, namespace, scheduler)

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
    ) -> Result:
        """Play what happens to the objects in virtual time, from where they are. See `podium.sim.run.simulate`."""
        from podium.sim.run import simulate

        return simulate(
            self.read,
            until=until,
            seed=seed,
            start=start,
            start_delay=start_delay,
            bind_delay=bind_delay,
            termination=termination,
            configuration=self.configuration,
            feature_gates=self.feature_gates,
            ignore_extenders=self.ignore_extenders,
            limits=limits,
            priority_cutoff=priority_cutoff,
            progress=progress,
        )

    @property
    def explainer(self) -> Explainer:
        """Who answers, with the columns that decisions are made on. Raises as `explain` does."""
        return self._explainer

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What every decision rests on that is made on the objects as they are."""
        return self._caveats

    @cached_property
    def _explainer(self) -> Explainer:
        refuse_empty_pods(self.read.documents)
        try:
            return Explainer(with_budget_statuses(self.read.documents), self.configuration, self.feature_gates)
        except InputError as error:
            raise _located(error, self.read.documents) from None

    @cached_property
    def _caveats(self) -> tuple[Caveat, ...]:
        """What every explanation rests on."""
        settings = self.configuration or default_configuration()
        further = (*self._without_extenders(), *departures(settings))
        return basis_of(self.read, self._explainer.schedulers, simulates=False, further=further).caveats()

    def _without_extenders(self) -> tuple[Caveat, ...]:
        settings = self.configuration or default_configuration()
        return without_extenders(settings.extenders, settings.source, ignore=self.ignore_extenders)


def _located(error: InputError, documents: Iterable[Document]) -> InputError:
    """The error with the place of the object that it names."""
    for document in documents:
        if document.object is not None and error.object == f"{document.raw.get('kind')} {document.object.key}":
            return error.located(source=document.source, document=document.index)
    return error
