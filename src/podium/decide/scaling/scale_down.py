"""Which nodes are not needed: their pods would all fit elsewhere, and may be moved.

Source: autoscaler cluster-autoscaler (core/scaledown/eligibility, simulator/drainability, simulator/utilization).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.decide.drain import DAEMON_SET
from podium.decide.eviction_budgets import Allowance, EvictionBudgets
from podium.decide.scratch import Scratch

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod: "true" lets it be moved whatever else speaks against it, "false" never."""

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""Annotation of a node: "true" keeps it."""


@dataclass(frozen=True, slots=True)
class ScaleDownOptions:
    """What makes a node unneeded.

    Its pods request less than ``utilisation_threshold`` of its cpu and of its memory. Pods of a priority below
    ``priority_cutoff`` neither count nor need a place elsewhere. At most ``max_candidates`` nodes with pods to move are
    looked into at a time, the least used ones.
    """

    utilisation_threshold: float = 0.5
    priority_cutoff: int = 0
    max_candidates: int = 30


@dataclass(frozen=True, slots=True)
class Residents:
    """The pods of a node, by what a removal of the node means to them.

    ``moving`` have to fit elsewhere, ``expendable`` ones go without, ``terminating`` ones are going; those that belong
    to the node (DaemonSets', mirror pods) are in none. ``obstacle`` says why some pod may not be moved, or is "".
    """

    moving: tuple[PodRecord, ...]
    expendable: tuple[PodRecord, ...]
    terminating: tuple[PodRecord, ...]
    obstacle: str

    @property
    def to_evict(self) -> tuple[PodRecord, ...]:
        """The pods that have to go before the node can."""
        return (*self.moving, *self.expendable)

    @property
    def is_empty(self) -> bool:
        """Whether the node can be deleted."""
        return not (self.moving or self.expendable or self.terminating)


@dataclass(frozen=True, slots=True)
class ScaleDownPlan:
    """``unneeded`` are the nodes that can be removed, all of them together, empty ones first; ``kept`` says why not."""

    unneeded: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemovalTerms:
    """What a removal depends on besides the cluster itself.

    ``keeps_data`` are the pods (uids) that would lose data by a move, ``closed`` the nodes that take no pods: those
    that are being removed, and those that have not started.
    """

    budgets: EvictionBudgets
    keeps_data: Collection[str]
    closed: Collection[str]
    options: ScaleDownOptions


@dataclass(frozen=True, slots=True)
class Shrinkable:
    """The nodes of a group that might go, and how many of them its minimum spares."""

    names: tuple[str, ...]
    spare: int


def residents(pods: Iterable[PodRecord], terms: RemovalTerms) -> Residents:
    """What the removal of their node means to some pods, in the order of their keys."""
    here = [pod for pod in sorted(pods, key=lambda pod: pod.key) if not belongs_to_node(pod)]
    staying = [pod for pod in here if not pod.terminating]
    moving = tuple(pod for pod in staying if pod.priority >= terms.options.priority_cutoff)
    expendable = tuple(pod for pod in staying if pod.priority < terms.options.priority_cutoff)
    obstacles = (f"{pod.key} {found}" for pod in moving if (found := _obstacle(pod, terms)))
    return Residents(moving, expendable, tuple(pod for pod in here if pod.terminating), next(obstacles, ""))


def belongs_to_node(pod: PodRecord) -> bool:
    """Whether the pod comes and goes with its node."""
    return pod.is_mirror or (pod.controller is not None and pod.controller.kind == DAEMON_SET)


def _obstacle(pod: PodRecord, terms: RemovalTerms) -> str:
    says = pod.annotations.get(SAFE_TO_EVICT)
    if says == "true":
        return ""
    if says == "false":
        return f"is annotated {SAFE_TO_EVICT}: false"
    if pod.controller is None:
        return "has no controller to make it again"
    return "keeps data on the node" if pod.uid in terms.keeps_data else ""


def utilisation(scratch: Scratch, row: int, terms: RemovalTerms) -> Fraction:
    """The larger of the shares that pods request of a node's cpu and memory.

    Pods that come with the node count neither as used nor as room; expendable ones do not count.
    """
    cluster = scratch.cluster
    own, used = {CPU: 0, MEMORY: 0}, {CPU: 0, MEMORY: 0}
    for pod in cluster.pods_on(row):
        if belongs_to_node(pod):
            count = own
        elif pod.priority >= terms.options.priority_cutoff:
            count = used
        else:
            continue
        for resource in count:
            count[resource] += pod.pod_class.requests.get(resource, 0)
    shares = [Fraction(0)]
    for resource, amount in used.items():
        room = int(cluster.nodes.allocatable[resource, row]) - own[resource]
        if amount:
            shares.append(Fraction(amount, room) if room > 0 else Fraction(1))
    return max(shares)


def why_kept(scratch: Scratch, name: str, terms: RemovalTerms) -> str:
    """Why the pods of a node cannot all be moved; "" if they can, and then they are in ``scratch``, and it is gone."""
    return _Removals(scratch, terms).remove(name)


def plan_scale_down(scratch: Scratch, groups: Iterable[Shrinkable], terms: RemovalTerms) -> ScaleDownPlan:
    """The nodes that can be removed together: empty ones, then the least used; of equal ones, the first by name.

    In ``scratch`` they are gone then. A node that takes in the pods of another one stays.
    """
    removals, unneeded, kept = _Removals(scratch, terms), list[str](), dict[str, str]()
    spare, candidates = list[int](), list[tuple[bool, Fraction, str, int]]()
    for index, group in enumerate(groups):
        spare.append(group.spare)
        for name in group.names:
            reason, has_pods, used = _standing(scratch, name, terms)
            if reason:
                kept[name] = reason
            else:
                candidates.append((has_pods, used, name, index))
    looked_into = 0
    for has_pods, _, name, index in sorted(candidates):
        if spare[index] <= 0:
            kept[name] = "its group has no more nodes than its minimum"
        elif has_pods and looked_into >= terms.options.max_candidates:
            kept[name] = "others are looked into first"
        else:
            looked_into += has_pods
            reason = removals.remove(name)
            if reason:
                kept[name] = reason
            else:
                unneeded.append(name)
                spare[index] -= 1
    return ScaleDownPlan(tuple(unneeded), kept)


def _standing(scratch: Scratch, name: str, terms: RemovalTerms) -> tuple[str, bool, Fraction]:
    """Why a node stays, seen by itself, or ""; whether it has pods to move; how much of it is used."""
    nodes = scratch.cluster.nodes
    row = nodes.row_of[name]
    node = nodes.node(row)
    has_pods = bool(residents(scratch.cluster.pods_on(row), terms).moving)
    used = utilisation(scratch, row, terms)
    reason = ""
    if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
        reason = f"it is annotated {SCALE_DOWN_DISABLED}: true"
    elif any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        reason = "it is not ready"
    elif used >= terms.options.utilisation_threshold:
        reason = f"{float(used):.0%} of it is requested"
    return reason, has_pods, used


class _Removals:
    """Removals of nodes one after another, each on top of those before it."""

    def __init__(self, scratch: Scratch, terms: RemovalTerms) -> None:
        self._scratch = scratch
        self._terms = terms
        self._allowance = Allowance(terms.budgets)
        self._receivers: set[str] = set()
        nodes = scratch.cluster.nodes
        self._open: Bools = np.ones(nodes.count, dtype=np.bool_)
        self._open[[nodes.row_of[name] for name in sorted(terms.closed) if name in nodes.row_of]] = False

    def remove(self, name: str) -> str:
        """Remove a node and let its pods settle elsewhere; why that cannot be, and nothing has changed then, or ""."""
        cluster, mark = self._scratch.cluster, self._scratch.mark()
        here = residents(cluster.pods_on(cluster.nodes.row_of[name]), self._terms)
        if here.obstacle:
            return here.obstacle
        if name in self._receivers:
            return "the pods of another node would come to it"
        if cluster.nominations.on(name):
            return f"{cluster.nominations.on(name)[0].key} waits for room on it"
        taken_off = {pod.uid: self._scratch.take_off(pod.uid) for pod in here.to_evict}
        self._scratch.drop_node(name)
        receivers, reason = self._settle(taken_off[pod.uid] for pod in here.moving)
        reason = reason or self._allowance.take(here.to_evict)
        if reason:
            self._scratch.roll_back(mark)
        else:
            self._receivers |= receivers
        return reason

    def _settle(self, pods: Iterable[PodRecord]) -> tuple[set[str], str]:
        """Let the pods settle, the largest first; the nodes that have taken one, and which of them fits nowhere."""
        receivers: set[str] = set()
        for pod in sorted(pods, key=_largest_first):
            row = self._scratch.settle(pod, self._open)
            if row is None:
                return receivers, f"{pod.key} fits on no other node"
            receivers.add(self._scratch.cluster.nodes.name(row))
        return receivers, ""


def _largest_first(pod: PodRecord) -> tuple[int, int, str]:
    requests = pod.pod_class.requests
    return -requests.get(CPU, 0), -requests.get(MEMORY, 0), pod.key
