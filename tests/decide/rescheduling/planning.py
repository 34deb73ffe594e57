"""Short constructors for plans: a small cluster, simple policies, and the planner's result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace as changed

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, PodCondition
from podium.api.policy import PodDisruptionBudget
from podium.cluster.arrays import Bools
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import Picture, Policy, Proposal, Relocation, Signals, kubelet_runner
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.registry import Registry
from podium.plugins.registry import IN_TREE
from tests import builders
from tests.builders import DAY_ONE_NS, cluster_of, configuration, runner_on

NOW = DAY_ONE_NS + 86_400 * 10**9
SECOND = 10**9
HOUR = 3_600 * SECOND
ANY = MoveLimitSettings()
SCHEDULER = "default-scheduler"


def free_settings(**fields: Any) -> ReschedulerSettings:
    """Return settings without limits and reserves, except for the given ones."""
    free: dict[str, Any] = {
        "policies": (),
        "in_flight": ANY,
        "hourly": ANY,
        "without_budget": ANY,
        "budget_reserve": 0,
        "budget_reserve_share": 0.0,
        "max_trials": 10_000,
    }
    return ReschedulerSettings(**{**free, **fields})


def web(name: str, on: str, **fields: Any) -> Pod:
    """Return a ready pod of the ReplicaSet web on a node, unless it is said otherwise."""
    return builders.pod(name, on=on, **{"owner": "ReplicaSet/web", "ready": True, "started": 0, "created": 0, **fields})


def with_annotations(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    """Return the pod with annotations."""
    return changed(pod, metadata=changed(pod.metadata, annotations=dict(annotations)))


def unready(node: Node) -> Node:
    """Return a node that says that it is not ready."""
    condition = PodCondition(type="Ready", status="False")
    return changed(node, status=changed(node.status, conditions=(condition,)))


@dataclass
class KeepOff:
    """Pods are in the wrong place on some nodes, each by 1; each is proposed by itself, by key."""

    nodes: tuple[str, ...]
    name: str = "KeepOff"
    cost: float = 1.0

    def objective(self, picture: Picture) -> float:
        return self.cost * sum(pod.node_name in self.nodes for pod in picture.cluster.placed.values())

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        pods = sorted(picture.cluster.placed.values(), key=lambda pod: pod.key)
        for pod in pods:
            if pod.node_name in self.nodes:
                yield Proposal((Relocation(pod),), f"{pod.node_name} is to be left")


@dataclass
class Even:
    """A policy of equal pod counts: half the sum of squares above the mean."""

    name: str = "Even"

    def objective(self, picture: Picture) -> float:
        nodes = picture.cluster.nodes
        counts = nodes.pod_count[: nodes.count][nodes.present[: nodes.count]].astype(np.float64)
        return float(((counts - counts.mean()) ** 2).sum() / 2) if len(counts) else 0.0

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        nodes = picture.cluster.nodes
        pods = sorted(picture.movable_pods(), key=lambda pod: (-int(nodes.pod_count[pod.row]), pod.key))
        for pod in pods:
            yield Proposal((Relocation(pod),), "its node has more pods than others")


@dataclass
class Proposes:
    """A policy with a test's proposals, as groups of pod names, and a test's objective."""

    groups: Sequence[Sequence[str]]
    judge: Callable[[Picture], float]
    name: str = "Proposes"
    targets: Mapping[str, Collection[str]] = field(default_factory=dict)
    preferred: Mapping[str, float] | None = None
    in_parts: bool = False

    def objective(self, picture: Picture) -> float:
        return self.judge(picture)

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        by_name = {pod.name: pod for pod in picture.cluster.placed.values()}
        for group in self.groups:
            relocations = tuple(self._relocation(picture, by_name[name]) for name in group)
            yield Proposal(relocations, "so it is said", in_parts=self.in_parts)

    def _relocation(self, picture: Picture, pod: PodRecord) -> Relocation:
        preferred = None
        if self.preferred is not None:
            preferred = np.array([self.preferred.get(name, 0.0) for name in picture.cluster.nodes.names])
        wanted = self.targets.get(pod.name)
        return Relocation(pod, None if wanted is None else rows_of(picture.cluster, wanted), preferred)


def rows_of(cluster: Cluster, names: Collection[str]) -> Bools:
    """``[rows]``: the nodes of these names."""
    return np.array([name in names for name in cluster.nodes.names], dtype=np.bool_)


def places(cluster: Cluster) -> dict[str, str]:
    """Return the node of each pod that is on one, by the pod's name."""
    return {pod.name: pod.node_name for pod in cluster.placed.values()}


def on(*names: str) -> Callable[[Picture], float]:
    """Return how many pods are not on nodes of these names."""
    return lambda picture: float(sum(pod.node_name not in names for pod in picture.cluster.placed.values()))


@dataclass
class Given:
    """A cluster, and what its rescheduler stands on."""

    cluster: Cluster
    budgets: Budgets
    runners: Mapping[str, Runner]
    kubelet: Runner

    def inputs(self, **fields: Any) -> PlanInputs:
        """Return what is known beside the cluster, but for what is said nothing."""
        return PlanInputs(**{"past": (), "budgets": self.budgets, **fields})


def given(*objects: Kubernetes, profile: Mapping[str, Any] | None = None) -> Given:
    """Return the cluster of some objects, whose scheduler has the default profile but for what is said."""
    cluster = cluster_of(*objects)
    budgets = Budgets()
    for one in objects:
        if isinstance(one, PodDisruptionBudget):
            budgets.put(one)
    runner = runner_on(cluster, configuration(**(profile or {})))
    return Given(cluster, budgets, {SCHEDULER: runner}, kubelet_runner(cluster, Registry(IN_TREE)))


def scratch_on(here: Given) -> ClusterTransaction:
    """Return what the planner changes for a while."""
    return ClusterTransaction(here.cluster, here.runners)


@contextmanager
def planned(
    here: Given,
    *policies: Policy,
    settings: ReschedulerSettings | None = None,
    waiting: Iterable[Pod] = (),
    signals: Signals | None = None,
    now: int = NOW,
    **inputs: Any,
) -> Iterator[tuple[ReschedulingPlan, Picture]]:
    """Provide the plan that some policies come to, and the picture, while its moves are made."""
    planner = Planner([(policy, 1.0) for policy in policies], settings or free_settings())
    stands = here.inputs(**inputs)
    pending = [here.cluster.read(pod) for pod in waiting]
    picture = planner.picture(
        here.cluster, here.runners, here.kubelet, now, inputs=stands, signals=signals, waiting=pending
    )
    with scratch_on(here) as transaction:
        yield planner.plan(transaction, picture, stands), picture


def plan(here: Given, *policies: Policy, **fields: Any) -> ReschedulingPlan:
    """Return the plan alone."""
    with planned(here, *policies, **fields) as (made, _):
        return made


def moves(plan_: ReschedulingPlan) -> dict[str, str | None]:
    """Return where each pod goes that is moved, by the pod's name."""
    return {move.pod.name: move.target for group in plan_.planned for move in group.moves}


def why(plan_: ReschedulingPlan) -> dict[str, str]:
    """Why each proposal came to nothing, by the name of its first pod."""
    return {left.pod.partition("/")[2]: left.why for left in plan_.left_alone}
