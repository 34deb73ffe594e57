"""The contract of a rescheduling policy (picture, signals, proposals) and the registry of policies.

A policy of your own is a class with these members, named in the configuration like a plugin (`package.module:Class`).

Source: controlled-rescheduling.md, Rescheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from podium.api.errors import InputError, PodiumError, shown
from podium.api.pod import PodSpec
from podium.api.use import PodHealth
from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.settings import PolicySettings
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile, Registry, maker_of, methods_of, require_name, takes_part
from podium.framework.verdicts import PluginError


@dataclass(frozen=True, slots=True)
class PodSignals(PodHealth):
    """The state of a running pod by its status and its metrics.

    ``cpu_used_milli`` and ``memory_used_bytes`` are what it uses, None if that is not measured. ``cpu_pressure`` is the
    share of time in which it was runnable without getting a cpu (pressure stall information), None if it is not
    reported.
    """

    cpu_used_milli: int | None = None
    memory_used_bytes: int | None = None
    cpu_pressure: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSignals:
    """The signals of a node.

    ``maintenance_ns`` is when it is announced to go down or to be retired; None if nothing is announced.
    ``cpu_used_milli`` and ``memory_used_bytes`` are what everything on it uses, None if that is not measured.
    """

    maintenance_ns: int | None = None
    cpu_used_milli: int | None = None
    memory_used_bytes: int | None = None


_REPLACEMENT = "/replacement"


def replacement(uid: str) -> str:
    """Return the provisional uid of the replacement of a pod.

    Signals of the pod apply to the replacement only if callers look them up by its `predecessor`.
    """
    return f"{uid}{_REPLACEMENT}"


def predecessor(uid: str) -> str:
    """Return the uid of the pod that a provisional uid replaces; any other uid unchanged."""
    return uid.removesuffix(_REPLACEMENT)


NO_POD_SIGNALS = PodSignals()
NO_NODE_SIGNALS = NodeSignals()


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of pods and nodes; those without any are in none of the mappings.

    ``pods`` are by uid, ``nodes`` by name. ``turned_away`` are, by a controller's uid and a node's name, the pods by
    uid that the node's kubelet rejected (OutOfcpu, NodeAffinity and the like); they run nowhere.
    """

    pods: Mapping[str, PodSignals] = field(default_factory=dict)
    nodes: Mapping[str, NodeSignals] = field(default_factory=dict)
    turned_away: Mapping[tuple[str, str], Mapping[str, PodRecord]] = field(default_factory=dict)

    def of_pod(self, uid: str) -> PodSignals:
        return self.pods.get(uid, NO_POD_SIGNALS)

    def of_node(self, name: str) -> NodeSignals:
        return self.nodes.get(name, NO_NODE_SIGNALS)


Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Relocation:
    """A pod that would be better placed elsewhere.

    ``targets`` says for each row whether the pod may go there; None allows every row but its own. ``preferred`` rates
    the rows, the highest is best. It counts if the rescheduler directs replacements; None leaves the choice to the
    scores of their scheduler.
    """

    pod: PodRecord
    targets: Bools | None = None
    preferred: Float64s | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Moves that make sense together, all or none, in the order in which the pods find their places.

    All pods leave before the first one is placed, so that pod A may take the capacity that pod B frees. ``reason`` is a
    text for users: what is wrong with the present placement. ``avoid_for_ns`` is how long the controllers avoid the
    nodes that the pods leave; None is the DisruptionPolicy's default. With ``in_parts`` the pods of one node may leave
    one after another if limits or budgets do not let them leave at once; only the last one then brings the gain.
    Proposals of owners with recent moves wait until all others were tried (`Picture.waits`). ``anew`` then returns what
    to propose instead in the state of then, None for nothing. If that has an ``anew``, too, it is asked after the
    attempt.
    """

    relocations: tuple[Relocation, ...]
    reason: str
    avoid_for_ns: int | None = None
    in_parts: bool = False
    anew: Callable[[], Proposal | None] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Avoidance:
    """A controller whose pods should avoid a node, though no movable pod of it runs there.

    ``pod`` is one of its pods that ended on that node (`Signals.turned_away`). Its eviction disrupts nothing and adds
    the controller to the node's avoid list, for ``avoid_for_ns`` as in a `Proposal`.
    """

    pod: PodRecord
    reason: str
    avoid_for_ns: int | None = None


@runtime_checkable
class Policy(Protocol):
    """One idea of a good placement.

    A proposal becomes a plan if each pod may be moved and has a place to go, and if the weighted sum of all policies'
    objectives falls by at least the threshold for each moved pod. Policies therefore need not know one another, nor
    check whether a pod fits: they name the badly placed pods, the worst first. A policy that reads the use of pods and
    nodes has an attribute ``needs_use`` that is true; use is not measured on a cluster without need.
    """

    @property
    def name(self) -> str:
        """The name of the policy in the configuration."""

    def objective(self, picture: Picture) -> float:
        """Return how bad the placement is: 0 is optimal, and 1 is the cost of one badly placed pod.

        The result depends on the picture alone. It is computed after each move that is tried, and should cost about as
        much as a few array operations over all rows.
        """

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        """Yield proposals that would improve the placement, the worst case first; of equals, in the order of a key.

        Moves are made while the proposals are consumed: a generator sees the cluster as it is by then. A pod is moved
        at most once in a plan.
        """


@runtime_checkable
class AvoidingPolicy(Policy, Protocol):
    """A policy that also proposes which controllers should avoid which nodes."""

    def avoidances(self, picture: Picture) -> Iterable[Avoidance]:
        """Yield the avoidances, the worst case first; of equals, in the order of a key.

        An avoidance may be proposed as long as it holds: controllers that are listed already are skipped.
        """


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """The monthly cost of nodes in use, in the currency of their prices; ``unpriced`` ones add nothing."""

    amount: float
    unpriced: int = 0


@runtime_checkable
class PricedPolicy(Policy, Protocol):
    """A policy that knows the prices of nodes."""

    def monthly_cost(self, picture: Picture) -> MonthlyCost | None:
        """Return what the nodes in use cost; None if no price is known."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster with the moves planned so far, and the signals of its pods and nodes.

    ``cluster`` is read-only for policies. It changes between calls, as moves are tried; a policy that caches values by
    row updates them from `cluster.nodes.changes`. ``runners`` are the profiles of known schedulers, by name.
    ``kubelet`` holds what every kubelet enforces and judges the pods of all other schedulers. ``now`` is in
    nanoseconds.

    ``targets`` says for each row whether its node accepts moved pods: it is ready, schedulable, and not being drained
    or emptied. ``waiting`` are the unschedulable pods, by priority, then key. ``is_movable`` returns whether a pod may
    be moved; policies need not propose any other. ``waits`` returns whether a proposal to move the pod would wait,
    because its owner has no budget and was moved recently. ``may_leave`` returns whether budgets allow the move of a
    pod beside those planned. ``leavers`` returns the pods (uids) that are best moved as far as budgets and capacity are
    concerned; none if limits on moves matter more.
    """

    cluster: Cluster
    runners: Mapping[str, Runner]
    kubelet: Runner
    now: int
    signals: Signals
    targets: Bools
    waiting: Sequence[PodRecord]
    is_movable: Callable[[PodRecord], bool]
    waits: Callable[[PodRecord], bool] = lambda _: False
    may_leave: Callable[[PodRecord], bool] = lambda _: True
    leavers: Callable[[], Collection[str]] = frozenset

    def runner_of(self, pod: PodRecord | PodSpec) -> Runner:
        """Return the profile that decides for a pod's scheduler; the kubelet's checks if that scheduler is unknown."""
        return self.runners.get(pod.scheduler_name, self.kubelet)

    def movable_pods(self) -> Iterator[PodRecord]:
        """Yield the pods that may be moved, by key, then uid."""
        placed = self.cluster.placed.values()
        movable = (pod for pod in placed if pod.row != NO_ROW and self.is_movable(pod))
        yield from sorted(movable, key=lambda pod: (pod.key, pod.uid))

    def node_name(self, row: int) -> str:
        return self.cluster.nodes.name(row)


PolicyFactory = Callable[[PluginContext], Policy]


class PolicyRegistry(Registry):
    """Finds the factory of a policy by its name in the configuration."""

    noun = "policy"
    group = "podium.policies"

    def require_whole(self, made: Any) -> None:
        """Raise PluginError for a policy without a proper name."""
        require_name(made)

    def _factory(self, made: type[Any]) -> PolicyFactory:
        """Return a function that makes an instance of a policy class."""
        lacks = [method for method in methods_of(Policy) if not callable(getattr(made, method, None))]
        if lacks:
            raise PluginError(f"class {made.__name__} is not a policy: it lacks {' and '.join(lacks)}")
        return maker_of(made, Policy)


def make_policies(
    settings: Sequence[PolicySettings], registry: PolicyRegistry, cluster: Cluster, seed: int = 0
) -> tuple[tuple[Policy, float], ...]:
    """Return the policies of a configuration, in its order, each with its weight.

    Raises InputError with the policy and its field if the policy is not found, fails to construct, refuses its
    arguments, lacks a member of the contract, or has the name of another one.
    """
    made: dict[str, tuple[Policy, float]] = {}
    for written in settings:
        label = f"policy {written.name}"
        try:
            policy: Policy = registry.make(written.name, PluginContext(written.args, cluster, seed=seed))
        except InputError as error:
            raise InputError(error.problem, object=label, path=f".args{error.path}") from error
        except PodiumError as error:
            raise InputError(str(error), object=label, path=".name") from error.__cause__ or error
        if policy.name in made:
            problem = f"two policies are called {shown(policy.name)}; leave one out"
            raise InputError(problem, object=label, path=".name")
        made[policy.name] = policy, written.weight
    return tuple(made.values())


KUBELET_FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "VolumeBinding",
    "VolumeZone",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
"""The filter plugins of the profile; it has no score plugins."""


def kubelet_runner(cluster: Cluster, registry: Registry) -> Runner:
    """Return a runner of that profile on a cluster. ``registry`` holds Podium's own plugins."""
    plugins = [registry.resolve(name)(PluginContext({}, cluster)) for name in KUBELET_FILTERS]
    profile = Profile(
        scheduler_name="",
        pre_filter=[plugin for plugin in plugins if takes_part(plugin, "preFilter")],
        filter=[plugin for plugin in plugins if takes_part(plugin, "filter")],
    )
    return Runner(profile, cluster)
