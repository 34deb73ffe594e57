"""The evaluation of a cluster: failures, headroom, pending pods, drains and fragmentation at one instant."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.api.errors import InputError
from podium.api.input.codec import refuse_empty_pods
from podium.api.node import ZONE_LABEL
from podium.api.pod import Pod
from podium.app.console.cells import by_key
from podium.app.exporter.failures import FITS, FailureOutcome, FailureScope, FailureTrials
from podium.app.inputs import read_objects
from podium.app.planning.deciding.capacity import capacity_of
from podium.app.planning.deciding.causes import blocked_pods
from podium.app.planning.deciding.decisions import DAEMON_SET, Decisions

MAX_GROUPS = 100
"""The most zones, pools and racks of each kind that are evaluated: those with the most nodes."""

NODE, ZONE, POOL, RACK, PAIR = "node", "zone", "pool", "rack", "pair"
GROUPS = (ZONE, POOL, RACK)

Group = tuple[str, str]
"""The kind and the name of a zone, pool or rack."""


class EvaluationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The node labels of zones, pools and racks, of which a node's first counts, and pods to find headroom for."""

    zone_labels: tuple[str, ...] = (ZONE_LABEL,)
    pool_labels: tuple[str, ...] = (
        "karpenter.sh/nodepool",
        "eks.amazonaws.com/nodegroup",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
    )
    rack_labels: tuple[str, ...] = ("topology.kubernetes.io/rack",)
    shapes: tuple[Pod, ...] = ()


class PoolTolerance(msgspec.Struct, frozen=True):
    """The outcomes if ``one`` node of a pool fails, the ``worst``, or ``two``; without preemption 0 to 2 may fail."""

    pool: str
    tolerated: int
    worst: str
    one: str
    two: str


class Headroom(msgspec.Struct, frozen=True):
    """The number of further pods of a shape that fit, and the share of those fitting in sum that fit on no node."""

    shape: str
    pods: int
    fragmentation: float


class Evaluation(msgspec.Struct, frozen=True):
    """The answers about the cluster as it was at ``at_ns``.

    ``skipped`` counts groups beyond `MAX_GROUPS` by kind, ``pending`` pods by cause. ``blocks`` has nodes by budget,
    ``members`` by pool. ``groups`` has the time (0: not yet) and the number of changes as of which each was
    evaluated.
    """

    failures: tuple[FailureOutcome, ...]
    skipped: dict[str, int]
    pools: tuple[PoolTolerance, ...] = ()
    headroom: tuple[Headroom, ...] = ()
    pending: dict[str, int] = {}
    blocks: dict[str, tuple[str, ...]] = {}
    members: dict[str, tuple[str, ...]] = {}
    groups: dict[Group, tuple[int, int]] = {}
    at_ns: int = 0
    seconds: float = 0

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """The number of failures by kind and outcome."""
        return Counter((each.scope, each.outcome) for each in self.failures)

    @property
    def undrainable(self) -> int:
        """The number of nodes that cannot be drained now."""
        return len(set().union(*self.blocks.values()))

    def of_kind(self, kind: str) -> list[FailureOutcome]:
        """Return the failures of a kind, the worst first."""
        return sorted((each for each in self.failures if each.scope == kind), key=lambda each: each.order)


class Tasks:
    """A list of tasks that several processes do together: each takes the next one when it has done one."""

    def __init__(self) -> None:
        self._next = multiprocessing.Value("q", 0)

    def take(self, number: int) -> Iterator[int]:
        """Yield the indexes of tasks, below ``number``, that no process has taken."""
        while True:
            with self._next.get_lock():
                index = self._next.value
                self._next.value += 1
            if index >= number:
                return
            yield index


def evaluate(decisions: Decisions, settings: EvaluationSettings) -> Evaluation:
    """Return all answers about a cluster."""
    return combined([share_of(decisions, settings, Tasks())])


def share_of(
    decisions: Decisions,
    settings: EvaluationSettings,
    tasks: Tasks,
    wanted: Collection[Group] | None = None,
    *,
    is_first: bool = True,
) -> Evaluation:
    """Do tasks as long as there are some; the first process also answers all else.

    Of groups only the ``wanted`` ones are evaluated, None for all.
    """
    nodes = decisions.cluster.nodes
    labels = {name: nodes.node(nodes.row_of[name]).metadata.labels for name in sorted(nodes.row_of)}
    skipped: dict[str, int] = {}
    groups: list[FailureScope] = []
    for kind, keys in zip(GROUPS, (settings.zone_labels, settings.pool_labels, settings.rack_labels), strict=True):
        values = ((next(filter(None, map(of_node.get, keys)), ""), name) for name, of_node in labels.items())
        by_value = by_key((value, name) for value, name in values if value)
        named = [FailureScope(kind, value, tuple(names)) for value, names in by_value.items()]
        named.sort(key=lambda scope: (-len(scope.nodes), scope.name))
        groups += named[:MAX_GROUPS]
        skipped[kind] = len(named[MAX_GROUPS:])
    pods = Counter(pod.node_name for pod in decisions.cluster.placed.values())
    pools = [scope for scope in groups if scope.kind == POOL]
    fullest = (sorted(pool.nodes, key=lambda name: (-pods[name], name))[:2] for pool in pools)
    pairs = [FailureScope(PAIR, pool.name, tuple(pair)) for pool, pair in zip(pools, fullest, strict=True)]
    evaluated = [scope for scope in groups if wanted is None or (scope.kind, scope.name) in wanted]
    others = Evaluation((), skipped)
    if is_first:
        headroom = tuple(_headroom(decisions, shape) for shape in settings.shapes)
        members = {pool.name: pool.nodes for pool in pools}
        known = {(scope.kind, scope.name): (0, -1) for scope in groups}
        others = Evaluation((), skipped, (), headroom, _pending(decisions), blocked_nodes(decisions), members, known)
    # The tasks that take longest come first, so that the processes end at about the same time.
    scopes = [*evaluated, *pairs, *(FailureScope(NODE, name, (name,)) for name in labels)]
    scopes.sort(key=lambda scope: -len(scope.nodes))
    with decisions.what_if():
        trials = FailureTrials(decisions)
        failures = tuple(trials.outcome(scopes[index]) for index in tasks.take(len(scopes)))
    return replace(others, failures=failures)


def combined(
    shares: Sequence[Evaluation], before: Evaluation | None = None, at_ns: int = 0, changes: int = 0
) -> Evaluation:
    """Return the evaluation of which these are all shares, the first one first, as of a time and a number of changes.

    The answers about groups that were not evaluated are those of the one ``before``.
    """
    by_name = {(each.scope, each.name): each for share in shares for each in share.failures}
    groups = {key: (at_ns, changes) if key in by_name else as_of for key, as_of in shares[0].groups.items()}
    if before is not None:
        kept = {(each.scope, each.name): each for each in before.failures if each.scope in GROUPS}
        for key in groups.keys() & kept.keys() - by_name.keys():
            by_name[key], groups[key] = kept[key], before.groups[key]
    tolerances = []
    for pool, nodes in shares[0].members.items():
        worst = min((by_name[NODE, name] for name in nodes), key=lambda each: each.order)
        one, two = worst.outcome, by_name[PAIR, pool].outcome
        tolerances.append(PoolTolerance(pool, (one == FITS) + (one == two == FITS), worst.name, one, two))
    return replace(shares[0], failures=tuple(by_name.values()), pools=tuple(tolerances), groups=groups, at_ns=at_ns)


def read_shapes(file: str) -> tuple[Pod, ...]:
    """Return the pods in a file. Raises InputError for other objects, and for pods without containers."""
    pods, documents = [], read_objects(file).documents
    refuse_empty_pods(documents)
    for document in documents:
        if not isinstance(document.object, Pod):
            raise document.located(InputError(f"is a {document.raw.get('kind')}; shapes are Pods"))
        pods.append(document.object)
    return tuple(pods)


def _headroom(decisions: Decisions, shape: Pod) -> Headroom:
    """Return the headroom for a pod, and its fragmentation by the free capacity of all nodes."""
    nodes = decisions.cluster.nodes
    with decisions.what_if():
        pod = decisions.create(shape)
        fitting, requests = capacity_of(decisions, pod).total, pod.pod_class.requests
    rows = np.array(sorted(nodes.row_of.values()), dtype=np.int64)
    free = np.maximum(nodes.allocatable[:, rows] - nodes.requested[:, rows], 0).sum(axis=1)
    in_sum = min((int(free[index]) // wanted for index, wanted in requests.items() if wanted), default=0)
    return Headroom(pod.name, fitting, round(max(0, 1 - fitting / in_sum), 4) if in_sum else 0)


def _pending(decisions: Decisions) -> dict[str, int]:
    """Return the number of pending pods by the type of obstacle; `placed` if they fit now.

    That is the obstacle on most of the nodes on which it may end, such as a lack of room; if there are none, of all.
    """
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True)
        found = Counter(placed=len(result.placed))
        for blocked in blocked_pods(decisions, result):
            groups = sorted(blocked.nearest, key=lambda group: group.lasts)
            cause = blocked.before or min(groups[0].obstacles, key=lambda each: each.order)
            found[cause.type] += len(blocked.pods)
    return {cause: number for cause, number in found.most_common() if number}


def blocked_nodes(decisions: Decisions) -> dict[str, tuple[str, ...]]:
    """Return the nodes with ready pods of each budget that allows no disruption now, most nodes first."""
    covered = by_key(
        (budget.key, pod.node_name)
        for pod in decisions.cluster.placed.values()
        if pod.is_healthy and (pod.controller is None or pod.controller.kind not in (DAEMON_SET, "Node"))
        for budget in decisions.cluster.budgets.over(pod.pod_class)
        if budget.disruptions_allowed <= 0
    )
    found = {key: tuple(sorted(set(names))) for key, names in covered.items()}
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))
