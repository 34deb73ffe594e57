"""Node groups, the new nodes that would let pending pods run, and the nodes that are not needed.

Source: autoscaler cluster-autoscaler (core/scaleup, estimator/binpacking_estimator.go, expander/waste,
core/scaledown/eligibility, simulator/drainability, simulator/utilization, cloudprovider.NodeGroup, utils/taints).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from podium.api.meta import Raw
from podium.api.node import HOSTNAME_LABEL, NOT_READY, Node, Taint
from podium.api.reading import Duration, read
from podium.api.resource_requests import node_allocatable
from podium.api.times import SECOND
from podium.cluster.arrays import Bools
from podium.cluster.budgets import Budgets
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.decide.evictions import DAEMON_SET, Allowance
from podium.decide.node_reports import NodeReport, reports_like
from podium.decide.transaction import ClusterTransaction
from podium.framework.settings.arguments import Strict

GROUP_LABEL = "podium.dev/node-group"
"""Label of a node: its group."""

STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/starting"
"""Taint of a node that is starting."""

REMOVAL_TAINT = "ToBeDeletedByClusterAutoscaler"
"""Taint of a node that is being removed; the value is when that began, in seconds since 1970."""

STARTING = "NodeStarting"
"""The reason of Ready=False on a node that is starting."""

_OF_ONE = frozenset(("creationTimestamp", "managedFields", "resourceVersion", "uid"))
# Taints that are removed once a starting node is ready.
_OF_A_START = frozenset((STARTUP_TAINT, NOT_READY))


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one kind: from ``minimum`` to ``maximum``, including those that are starting.

    A node can run pods ``start_up_ns`` after the decision. ``template`` is a Node without a name, ``reports`` are what
    some node of the group reports.
    """

    name: str
    minimum: int
    maximum: int
    start_up_ns: int
    template: Raw
    reports: Sequence[NodeReport] = ()

    def __post_init__(self) -> None:
        """Check the group. Raises ValueError, and InputError for a template that is no Node."""
        if not 0 <= self.minimum <= self.maximum:
            found = f"{self.minimum} to {self.maximum}"
            raise ValueError(f"node group {self.name}: {found} nodes is not a range; 0 <= minimum <= maximum is needed")
        if self.start_up_ns < 0:
            raise ValueError(f"node group {self.name}: the start-up time is negative")
        read(self.template, Node)

    def node(self, name: str) -> Raw:
        """Return a new node of the group: not ready, with the startup taint, without the template's identity."""
        metadata = {name: value for name, value in self.template.get("metadata", {}).items() if name not in _OF_ONE}
        labels = {**metadata.get("labels", {}), GROUP_LABEL: self.name, HOSTNAME_LABEL: name}
        spec: Raw = self.template.get("spec", {})
        taints = [*spec.get("taints", []), {"key": STARTUP_TAINT, "effect": "NoSchedule"}]
        ready = {"type": "Ready", "status": "False", "reason": STARTING, "message": "the node is starting"}
        return {
            **self.template,
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {**metadata, "name": name, "labels": labels},
            "spec": {**spec, "taints": taints},
            "status": {**self.template.get("status", {}), "conditions": [ready]},
        }

    def free_names(self, count: int, taken: Container[str]) -> list[str]:
        """Return ``count`` unused node names, the smallest numbers first."""
        names = (f"{self.name}-{number}" for number in itertools.count())
        return list(itertools.islice((name for name in names if name not in taken), count))


def is_starting(node: Node) -> bool:
    """Return whether the node has not started yet."""
    return any(taint.key == STARTUP_TAINT for taint in node.spec.taints)


def started(node: Node) -> Node:
    """Return a starting node as it will be when it is ready; any other node unchanged."""
    if not is_starting(node):
        return node
    taints = tuple(taint for taint in node.spec.taints if taint.key not in _OF_A_START)
    return replace(node, spec=replace(node.spec, taints=taints))


def removal_taint(node: Node) -> Taint | None:
    """Return the taint of a node that is being removed; None for any other."""
    return next((taint for taint in node.spec.taints if taint.key == REMOVAL_TAINT), None)


class Expandable(Struct, frozen=True):
    """A group, and names for more nodes of it; ``closed`` says why no more nodes than these can be added."""

    group: NodeGroup
    names: Sequence[str]
    closed: str


class Option(Struct, frozen=True):
    """New nodes of one group, and the pods that fit on them.

    ``waste`` is the mean unused share of their CPU and memory.
    """

    group: NodeGroup
    names: tuple[str, ...]
    pods: tuple[PodRecord, ...]
    waste: Fraction


class ScaleUpPlan(Struct, frozen=True):
    """The result of a scale-up.

    ``chosen`` is None if no group helps. ``fitting`` are pods that need no new node, ``unhelped`` those that no group
    helps. ``refusals`` say why a group does not help a pod, by the pod's uid and the group's name.
    """

    chosen: Option | None
    options: tuple[Option, ...]
    fitting: tuple[PodRecord, ...]
    unhelped: tuple[PodRecord, ...]
    refusals: Mapping[str, Mapping[str, str]]


def plan_scale_up(
    transaction: ClusterTransaction,
    groups: Iterable[Expandable],
    pending: Iterable[PodRecord],
    daemons: Sequence[PodRecord],
) -> ScaleUpPlan:
    """Choose the group whose new nodes waste least; of equals, the first by name.

    ``transaction`` keeps the pods that fit on present or starting nodes where they fit. ``daemons`` are pods, one of
    each DaemonSet, that a new node gets if its filters accept them.
    """
    fitting, unplaced = settle_pending(transaction, pending)
    refusals: dict[str, dict[str, str]] = {pod.uid: {} for pod in unplaced}
    options = []
    for expandable in sorted(groups, key=lambda expandable: expandable.group.name) if unplaced else ():
        option = _option(transaction, expandable, unplaced, daemons, refusals)
        if option is not None:
            options.append(option)
    chosen = min(options, key=lambda option: (option.waste, option.group.name), default=None)
    helped = {pod.uid for option in options for pod in option.pods}
    unhelped = tuple(pod for pod in unplaced if pod.uid not in helped)
    return ScaleUpPlan(chosen, tuple(options), tuple(fitting), unhelped, refusals)


def _importance(pod: PodRecord) -> tuple[int, str]:
    return -pod.priority, pod.key


def _alike(pod: PodRecord) -> tuple[str, int, int]:
    """Return a value that is equal for pods that fit on the same nodes."""
    return pod.scheduler_name, pod.pod_class.id, pod.priority


def settle_pending(
    transaction: ClusterTransaction, pods: Iterable[PodRecord]
) -> tuple[list[PodRecord], list[PodRecord]]:
    """Place pods where they fit, the most important first; return those that fit, and those that fit nowhere."""
    fitting, unplaced = [], []
    rejected: set[tuple[str, int, int]] = set()
    for pod in sorted(pods, key=_importance):
        if _alike(pod) not in rejected and transaction.settle(pod) is not None:
            fitting.append(pod)
        else:
            rejected.add(_alike(pod))
            unplaced.append(pod)
    return fitting, unplaced


def _option(
    transaction: ClusterTransaction,
    expandable: Expandable,
    pods: Sequence[PodRecord],
    daemons: Sequence[PodRecord],
    refusals: Mapping[str, dict[str, str]],
) -> Option | None:
    """Return how the group can help the pods, None if it cannot; record reasons in ``refusals``."""
    name = expandable.group.name
    if not expandable.names:
        for pod in pods:
            refusals[pod.uid][name] = expandable.closed
        return None
    savepoint = transaction.savepoint()
    packing = _Packing(transaction, expandable, daemons)
    packed = []
    for pod in sorted(pods, key=packing.largest_first):
        if refusal := packing.add(pod):
            refusals[pod.uid][name] = refusal
        else:
            packed.append(pod)
    transaction.roll_back(savepoint)
    if not packed:
        return None
    return Option(expandable.group, tuple(packing.names), tuple(packed), packing.waste(packed))


class _Packing:
    """New nodes of one group, filled with the largest pods first, each on the first node that accepts it."""

    def __init__(self, transaction: ClusterTransaction, expandable: Expandable, daemons: Sequence[PodRecord]) -> None:
        self.names: list[str] = []
        self._transaction = transaction
        self._one = expandable
        self._daemons = daemons
        # By row, the index of the new node.
        self._order: dict[int, int] = {}
        self._rejected: dict[tuple[str, int, int], str] = {}
        amounts = node_allocatable(read(expandable.group.template, Node).status)
        self._cpu, self._memory = amounts.get("cpu", 0), amounts.get("memory", 0)

    def largest_first(self, pod: PodRecord) -> tuple[int, int, str]:
        """Return the sort key of a pod: its shares of a node's CPU and memory added up; equals by importance."""
        cpu, memory = _amounts(pod)
        return -(cpu * self._memory + memory * self._cpu), *_importance(pod)

    def add(self, pod: PodRecord) -> str:
        """Place the pod on a new node, and add one if needed; return why it fits on none, or ""."""
        kind = _alike(pod)
        if kind in self._rejected:
            return self._rejected[kind]
        if self._order:
            rows = self._transaction.fitting(pod, np.array(sorted(self._order), dtype=np.int64)).tolist()
            if rows:
                self._transaction.place(pod, min(rows, key=self._order.__getitem__))
                return ""
        if len(self.names) == len(self._one.names):
            self._rejected[kind] = self._one.closed
            return self._one.closed
        name, savepoint = self._one.names[len(self.names)], self._transaction.savepoint()
        row = self._transaction.add_node(started(read(self._one.group.node(name), Node)))
        for report in reports_like(self._one.group.reports, name):
            self._transaction.put(report)
        add_daemons(self._transaction, row, self._daemons)
        if refusal := self._transaction.refusal(pod, row):
            self._transaction.roll_back(savepoint)
            self._rejected[kind] = refusal
            return refusal
        self._order[row] = len(self.names)
        self.names.append(name)
        self._transaction.place(pod, row)
        return ""

    def waste(self, pods: Iterable[PodRecord]) -> Fraction:
        """Return the unused share of the new nodes' CPU and memory, without resources that they lack."""
        used = (sum(amounts) for amounts in zip(*(_amounts(pod) for pod in pods), strict=True))
        offered = (self._cpu * len(self.names), self._memory * len(self.names))
        shares = (Fraction(whole - taken, whole) for taken, whole in zip(used, offered, strict=True) if whole)
        return sum(shares, start=Fraction(0)) / 2


def add_daemons(transaction: ClusterTransaction, row: int, daemons: Iterable[PodRecord]) -> None:
    """Place the pods of DaemonSets that a node's filters accept on it."""
    name = transaction.cluster.nodes.name(row)
    for daemon in daemons:
        pod = replace(daemon, name=f"{daemon.name}-{name}", uid=f"{daemon.uid}/{name}")
        if not transaction.refusal(pod, row):
            transaction.place(pod, row)


def _amounts(pod: PodRecord) -> tuple[int, int]:
    """Return the pod's requests of CPU (milli) and memory (bytes)."""
    requests = pod.pod_class.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod: "true" always allows its eviction, "false" never does."""

DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
"""Annotation of a pod: "true" treats it like a DaemonSet's."""

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""Annotation of a node: "true" prevents its removal."""

# The kinds of controllers that certainly make a pod again.
_REPLACING = frozenset(("Job", "ReplicaSet", "ReplicationController", "StatefulSet"))


class Residents(Struct, frozen=True):
    """The pods of a node by the effect of its removal.

    ``moving`` have to fit elsewhere, ``expendable`` are evicted anyway, ``terminating`` are leaving; pods that belong
    to the node (DaemonSets', mirror pods) are left out. ``obstacle`` says why some pod cannot be moved, or is "".
    """

    moving: tuple[PodRecord, ...]
    expendable: tuple[PodRecord, ...]
    terminating: tuple[PodRecord, ...]
    obstacle: str

    @property
    def to_evict(self) -> tuple[PodRecord, ...]:
        """The pods that must be evicted before the node is removed."""
        return (*self.moving, *self.expendable)

    @property
    def is_empty(self) -> bool:
        """Return whether the node can be deleted."""
        return not (self.moving or self.expendable or self.terminating)


class ScaleDownPlan(Struct, frozen=True):
    """The nodes that can be removed together, empty ones first; and why others are ``kept``."""

    unneeded: tuple[str, ...]
    kept: Mapping[str, str]


class ScaleDownSettings(Strict, frozen=True, kw_only=True):
    """Settings of the removal of nodes.

    A node is removed that was unneeded for ``unneeded_time_ns``: requested below ``utilization_threshold``, and its
    pods fitted elsewhere; but not within ``delay_after_add_ns`` of the last new node. ``max_removals`` nodes are
    removed at a time, and ``max_drains`` of them may have pods. Refused evictions are retried for
    ``max_eviction_time_ns``. Grace periods are limited to ``max_graceful_termination_ns``. The last two fields keep
    nodes with pods in kube-system without a budget, and with pods of controllers that are not Kubernetes' own.
    """

    utilization_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    unneeded_time_ns: Duration = 600 * SECOND
    delay_after_add_ns: Duration = 600 * SECOND
    max_removals: Annotated[int, Meta(ge=1)] = 10
    max_drains: Annotated[int, Meta(ge=1)] = 1
    max_eviction_time_ns: Duration = 120 * SECOND
    max_graceful_termination_ns: Duration = 600 * SECOND
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_custom_controller_pods: bool = True


@dataclass(frozen=True, slots=True)
class RemovalTerms:
    """The inputs of a removal besides the cluster.

    ``keeps_data`` are the pods (uids) that would lose data, ``closed`` the nodes that accept no pods: those being
    removed and those that are starting. Pods below ``priority_cutoff`` do not count and are not moved. At most
    ``max_candidates`` nodes with pods to move are tried at a time, the least used ones.
    """

    budgets: Budgets
    keeps_data: Collection[str]
    closed: Collection[str]
    settings: ScaleDownSettings
    priority_cutoff: int = -10
    max_candidates: int = 30


class Shrinkable(Struct, frozen=True):
    """The nodes of a group that may be removed, and how many of them its minimum allows."""

    names: tuple[str, ...]
    spare: int


def residents(pods: Iterable[PodRecord], terms: RemovalTerms) -> Residents:
    """Return the effect of a node's removal on its pods, in the order of their keys."""
    here = [pod for pod in sorted(pods, key=lambda pod: pod.key) if not belongs_to_node(pod)]
    staying = [pod for pod in here if not pod.terminating]
    moving = tuple(pod for pod in staying if pod.priority >= terms.priority_cutoff)
    expendable = tuple(pod for pod in staying if pod.priority < terms.priority_cutoff)
    obstacles = (f"{pod.key} {found}" for pod in moving if (found := _obstacle(pod, terms)))
    return Residents(moving, expendable, tuple(pod for pod in here if pod.terminating), next(obstacles, ""))


def belongs_to_node(pod: PodRecord) -> bool:
    """Return whether the pod comes and goes with its node."""
    is_daemon = pod.controller is not None and pod.controller.kind == DAEMON_SET
    return pod.is_mirror or is_daemon or pod.annotations.get(DAEMON_SET_POD) == "true"


def _obstacle(pod: PodRecord, terms: RemovalTerms) -> str:
    value = pod.annotations.get(SAFE_TO_EVICT)
    if value == "true":
        return ""
    if value == "false":
        return f"is annotated {SAFE_TO_EVICT}: false"
    if pod.controller is None:
        return "has no controller that replaces it"
    if terms.settings.skip_nodes_with_custom_controller_pods and pod.controller.kind not in _REPLACING:
        return f"belongs to a {pod.controller.kind}, which may not replace it"
    is_system = pod.namespace == "kube-system" and terms.settings.skip_nodes_with_system_pods
    if is_system and not any(terms.budgets.over(pod.pod_class)):
        return "is a system pod without a disruption budget"
    return "keeps data on the node" if pod.uid in terms.keeps_data else ""


def utilization(transaction: ClusterTransaction, row: int, terms: RemovalTerms) -> Fraction:
    """Return the larger of the requested shares of a node's CPU and memory; expendable pods do not count."""
    cluster = transaction.cluster
    counting = [_amounts(pod) for pod in cluster.pods_on(row) if pod.priority >= terms.priority_cutoff]
    shares = [Fraction(0)]
    for index, resource in enumerate((CPU, MEMORY)):
        used, room = sum(amounts[index] for amounts in counting), int(cluster.nodes.allocatable[resource, row])
        if used:
            shares.append(Fraction(used, room) if room else Fraction(1))
    return max(shares)


def why_kept(transaction: ClusterTransaction, name: str, terms: RemovalTerms) -> str:
    """Return why a node cannot be removed; "" if it can, and ``transaction`` then contains its removal."""
    return _Removals(transaction, terms).remove(name)


def plan_scale_down(
    transaction: ClusterTransaction, groups: Iterable[Shrinkable], terms: RemovalTerms
) -> ScaleDownPlan:
    """Return the nodes that can be removed together: empty ones, then the least used; of equals, the first by name.

    ``transaction`` then contains their removal. A node that receives the pods of another one stays.
    """
    removals, unneeded, kept = _Removals(transaction, terms), list[str](), dict[str, str]()
    spare, candidates = list[int](), list[tuple[bool, Fraction, str, int]]()
    for index, group in enumerate(groups):
        spare.append(group.spare)
        for name in group.names:
            reason, has_pods, used = _removal_facts(transaction, name, terms)
            if reason:
                kept[name] = reason
            else:
                candidates.append((has_pods, used, name, index))
    tried = 0
    for has_pods, _, name, index in sorted(candidates):
        if spare[index] <= 0:
            kept[name] = "its group has no more nodes than its minimum"
        elif has_pods and tried >= terms.max_candidates:
            kept[name] = "other nodes are checked first"
        else:
            tried += has_pods
            if reason := removals.remove(name):
                kept[name] = reason
            else:
                unneeded.append(name)
                spare[index] -= 1
    return ScaleDownPlan(tuple(unneeded), kept)


def _removal_facts(transaction: ClusterTransaction, name: str, terms: RemovalTerms) -> tuple[str, bool, Fraction]:
    """Return why a node stays, judged alone, or ""; whether it has pods to move; and its utilization."""
    nodes = transaction.cluster.nodes
    row = nodes.row_of[name]
    node = nodes.node(row)
    has_pods = bool(residents(transaction.cluster.pods_on(row), terms).moving)
    used = utilization(transaction, row, terms)
    reason = ""
    if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
        reason = f"it is annotated {SCALE_DOWN_DISABLED}: true"
    elif any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        reason = "it is not ready"
    elif used >= terms.settings.utilization_threshold:
        reason = f"{float(used):.0%} of it is requested"
    return reason, has_pods, used


class _Removals:
    """Removals of nodes one after another, each on top of those before it."""

    def __init__(self, transaction: ClusterTransaction, terms: RemovalTerms) -> None:
        self._transaction = transaction
        self._terms = terms
        self._allowance = Allowance(terms.budgets)
        self._receivers: set[str] = set()
        nodes = transaction.cluster.nodes
        self._open: Bools = np.ones(nodes.count, dtype=np.bool_)
        self._open[[nodes.row_of[name] for name in sorted(terms.closed) if name in nodes.row_of]] = False

    def remove(self, name: str) -> str:
        """Remove a node and place its pods elsewhere.

        Return "", or why that is impossible, and then nothing has changed.
        """
        cluster, savepoint = self._transaction.cluster, self._transaction.savepoint()
        here = residents(cluster.pods_on(cluster.nodes.row_of[name]), self._terms)
        if here.obstacle:
            return here.obstacle
        if name in self._receivers:
            return "pods of another node would move to it"
        if cluster.nominations.on(name):
            return f"{cluster.nominations.on(name)[0].key} waits for room on it"
        taken_off = {pod.uid: self._transaction.take_off(pod.uid) for pod in here.to_evict}
        self._transaction.drop_node(name)
        receivers, reason = set[str](), ""
        moving = (taken_off[pod.uid] for pod in here.moving)
        for pod in sorted(moving, key=lambda pod: (*(-amount for amount in _amounts(pod)), pod.key)):
            row = self._transaction.settle(pod, self._open)
            if row is None:
                reason = f"{pod.key} fits on no other node"
                break
            receivers.add(cluster.nodes.name(row))
        reason = reason or self._allowance.why(here.to_evict)
        if reason:
            self._transaction.roll_back(savepoint)
        else:
            self._allowance.take(here.to_evict)
            self._receivers |= receivers
        return reason
