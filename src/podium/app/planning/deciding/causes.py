"""Why pods wait: what stands in the way on each node, and the same causes told once however many pods have them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Ending, Kind, Settled, kind_of
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.taints import KEEPS_OFF, tolerated
from podium.cluster.view import View
from podium.decide.cap import PutOff
from podium.decide.placement import left_out
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.runner import Runner
from podium.framework.status import Status
from podium.framework.verdicts import Verdicts
from podium.plugins.node_affinity import RequiredNodes, required_nodes

RESOURCE, TOO_LARGE, FULL, TAINT, CORDONED, SELECTION, OTHER = (
    "resource",
    "too-large",
    "full",
    "taint",
    "cordoned",
    "selection",
    "filter",
)
"""What obstacles on a node are: too little left, less in all than is asked for, no place for a further pod, ..."""

GATED, TURNED_DOWN, SCHEDULER, ENDING, CAPPED, VICTIMS, FAILED = (
    "gated",
    "turned-down",
    "scheduler",
    "ending",
    "capped",
    "victims",
    "failed",
)
"""What keeps a pod off every node: a gate, a PreFilter, a scheduler that is not there, its own end, a cap that its
preemption waits for, victims that have yet to end, a plugin's fault."""

_FIT, _TAINTS, _CORDON, _AFFINITY = "NodeResourcesFit", "TaintToleration", "NodeUnschedulable", "NodeAffinity"
_INSUFFICIENT = "Insufficient "
_LONGEST = 120


@dataclass(frozen=True, slots=True, order=True)
class Obstacle:
    """Something that keeps a pod off a node, or off all: of what sort it is, and in words.

    `plugin` is who says so, and `subject` what it is about: a resource's name, a Taint.
    """

    sort: str
    text: str
    plugin: str = ""
    subject: Hashable = None


@dataclass(frozen=True, slots=True)
class NodesAlike:
    """The rows of nodes on which the same obstacles stand."""

    obstacles: frozenset[Obstacle]
    rows: Int64s


@dataclass(frozen=True, slots=True)
class Blocked:
    """Pods of a kind that wait, in the order of the queue, and why: `before` any node, or on which `nodes`.

    A node with all the obstacles of another, and more, does not count for the cause.
    """

    pods: tuple[PodRecord, ...]
    before: Obstacle | None
    nodes: tuple[NodesAlike, ...] = ()

    @property
    def nearest(self) -> tuple[NodesAlike, ...]:
        """The nodes with no obstacle that others do without, those of the most nodes first."""
        kept = [alike for alike in self.nodes if not any(other.obstacles < alike.obstacles for other in self.nodes)]
        return tuple(sorted(kept, key=lambda alike: (-len(alike.rows), sorted(alike.obstacles, key=_order))))

    @property
    def obstacles(self) -> frozenset[Obstacle]:
        """All obstacles on the nearest nodes, or the one before any."""
        if self.before is not None:
            return frozenset((self.before,))
        return frozenset(obstacle for alike in self.nearest for obstacle in alike.obstacles)

    @property
    def cause(self) -> frozenset[frozenset[Obstacle]]:
        """What pods have in common that wait for the same reason."""
        if self.before is not None:
            return frozenset((frozenset((self.before,)),))
        return frozenset(alike.obstacles for alike in self.nearest)

    @property
    def text(self) -> str:
        """The cause in words, with the number of nodes."""
        if self.before is not None:
            return self.before.text
        return "; ".join(f"{_nodes(len(alike.rows))}: {worded(alike.obstacles)}" for alike in self.nearest)


def worded(obstacles: Iterable[Obstacle]) -> str:
    """Obstacles in a line."""
    return " and ".join(obstacle.text for obstacle in sorted(obstacles, key=_order))


def blocked(decisions: Decisions, settled: Settled) -> list[Blocked]:
    """Why the pods wait that do, by kind, in the order in which their first ones come."""
    kinds: dict[Kind, list[PodRecord]] = {}
    for pod in settled.waiting:
        kinds.setdefault(kind_of(pod), []).append(pod)
    found = []
    for kind, pods in kinds.items():
        put_off = settled.put_off.get(kind)
        held = None if put_off is None else _held(put_off)
        found.append(_blocked(decisions, tuple(pods)) if held is None else Blocked(tuple(pods), held))
    return found


def _held(put_off: PutOff | Ending) -> Obstacle:
    if isinstance(put_off, Ending):
        return Obstacle(VICTIMS, f"the pods that it preempted on {put_off.node} have yet to end")
    return Obstacle(CAPPED, f"preemption is put off: {put_off.cap}")


def _blocked(decisions: Decisions, pods: tuple[PodRecord, ...]) -> Blocked:
    pod = pods[0]
    runner = decisions.runners.get(pod.scheduler_name)
    if runner is None:
        return Blocked(pods, Obstacle(SCHEDULER, f"for scheduler {pod.scheduler_name}, which is not configured"))
    if pod.terminating:
        return Blocked(pods, Obstacle(ENDING, "deleted, and about to end"))
    gate = runner.pre_enqueue(pod)
    if not gate.is_success:
        return Blocked(pods, Obstacle(GATED, _cut(gate.message), gate.plugin))
    state = CycleState()
    try:
        pre_filter = runner.pre_filter(state, pod)
        if not pre_filter.status.is_success:
            return Blocked(pods, _of_pod(pre_filter.status))
        rows = decisions.cluster.nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
        if not len(decisions.cluster.nodes):
            return Blocked(pods, Obstacle(TURNED_DOWN, "there are no nodes"))
        if not len(rows):
            return Blocked(pods, _of_pod(left_out(pre_filter)))
        return Blocked(pods, None, tuple(_on_nodes(runner, state, pod, rows)))
    except PluginError as error:
        return Blocked(pods, Obstacle(FAILED, _cut(str(error))))


def _on_nodes(runner: Runner, state: CycleState, pod: PodRecord, rows: Int64s) -> Iterator[NodesAlike]:
    """The nodes among some rows by the obstacles on them; those that could take the pod have none."""
    cluster = runner.cluster
    rows = rows[cluster.nodes.present[rows]]
    view = View(cluster, rows)
    asked: list[tuple[str, Verdicts]] = [
        (placed.plugin.name, placed.array.filter_rows(state, pod, view)) for placed in runner.filters_of(state)
    ]
    kept = _kept_for_others(cluster, pod, rows)
    columns = [verdicts.codes for _, verdicts in asked] + [kept]
    # Nodes with the same taints are kept apart from others, since their taints are named.
    if any(name == _TAINTS and verdicts.codes.any() for name, verdicts in asked):
        columns.append(cluster.nodes.taint_group[rows].astype(np.int64))
    for positions in _alike(columns, len(rows)):
        position = int(positions[0])
        found = [
            obstacle
            for name, verdicts in asked
            if verdicts.codes[position]
            for obstacle in obstacles_of(
                cluster, pod, int(rows[position]), verdicts.status(int(verdicts.codes[position])).by(name)
            )
        ]
        if kept[position]:
            found.append(Obstacle(OTHER, "room kept for pods nominated there"))
        yield NodesAlike(frozenset(found), rows[positions])


def _alike(columns: Sequence[Int64s], size: int) -> Iterator[Int64s]:
    """The positions that have the same in all columns, by their first one."""
    number: Int64s = np.zeros(size, dtype=np.int64)
    for column in columns:
        if column.any():
            _, of_column = np.unique(column, return_inverse=True)
            _, number = np.unique(number * (int(of_column.max()) + 1) + of_column, return_inverse=True)
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    for positions in sorted(np.split(order, starts[1:]), key=lambda found: int(found[0]) if len(found) else -1):
        if len(positions):
            yield positions


def _kept_for_others(cluster: Cluster, pod: PodRecord, rows: Int64s) -> Int64s:
    """``[rows]``: 1 where other pods are nominated beside which the pod has to fit."""
    nominations = cluster.nominations
    if not nominations:
        return np.zeros(len(rows), dtype=np.int64)
    kept = {
        row
        for row in nominations.rows()
        if any(
            other.uid != pod.uid and nominations.priority(other) >= pod.priority for other in nominations.on_row(row)
        )
    }
    return np.isin(rows, sorted(kept)).astype(np.int64)


def obstacles_of(cluster: Cluster, pod: PodRecord, row: int, status: Status) -> Iterator[Obstacle]:
    """What a filter that refuses has against a node."""
    if status.plugin == _FIT:
        for reason in status.reasons:
            yield _of_resource(cluster, pod, row, reason)
    elif status.plugin == _TAINTS:
        for taint in cluster.nodes.node(row).spec.taints:
            if taint.effect in KEEPS_OFF and not tolerated(pod.spec.tolerations, taint):
                value = f"={taint.value}" if taint.value else ""
                yield Obstacle(TAINT, f"taint {taint.key}{value}:{taint.effect}", status.plugin, taint)
    elif status.plugin == _CORDON:
        yield Obstacle(CORDONED, "cordoned", status.plugin)
    elif status.plugin == _AFFINITY and required_text(pod):
        yield Obstacle(SELECTION, f"does not match {required_text(pod)}", status.plugin)
    else:
        yield Obstacle(OTHER, _cut(status.message), status.plugin)


def _of_resource(cluster: Cluster, pod: PodRecord, row: int, reason: str) -> Obstacle:
    nodes = cluster.nodes
    name = reason.removeprefix(_INSUFFICIENT)
    if name == reason:
        return Obstacle(FULL, reason, _FIT)
    index = nodes.resource_index.get(name)
    if index is not None and pod.pod_class.requests.get(index, 0) > int(nodes.allocatable[index, row]):
        text = f"asks for more {name} than the node has" if int(nodes.allocatable[index, row]) else f"no {name}"
        return Obstacle(TOO_LARGE, text, _FIT, name)
    return Obstacle(RESOURCE, reason, _FIT, name)


def required_text(pod: PodRecord) -> str:
    """What a pod requires of nodes, in a line; "" where it takes any."""
    required: RequiredNodes = required_nodes(pod.pod_class)
    parts = [str(requirement) for requirement in required.selector.requirements]
    if required.terms is not None:
        terms = [
            " and ".join(str(requirement) for requirement in (*term.labels, *term.fields)) for term in required.terms
        ]
        parts.append(" or ".join(sorted(filter(None, terms))) or "of any term")
    return _cut(" and ".join(parts))


def _of_pod(status: Status) -> Obstacle:
    return Obstacle(TURNED_DOWN, _cut(status.message), status.plugin)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _nodes(number: int) -> str:
    return f"{number:,} node{'' if number == 1 else 's'}"


def _order(obstacle: Obstacle) -> tuple[str, str]:
    return obstacle.sort, obstacle.text
