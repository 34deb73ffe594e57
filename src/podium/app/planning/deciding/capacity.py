"""The shapes of nodes, and how many pods of a kind each node takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import replace

from podium.api.devices import ResourceSlice
from podium.api.meta import ObjectMeta
from podium.api.node import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, READY, Node
from podium.api.pod import PodCondition
from podium.api.quantity import format_quantity
from podium.api.resource_requests import node_allocatable
from podium.api.selectors import NodeSelector, compile_node_selector
from podium.app.console.cells import by_key, counted
from podium.app.explaining.gang import decide_gang
from podium.app.explaining.obstacles import joined, obstacles_of
from podium.app.planning.constants import CLUSTER_TAINTS, MAX_PLACED_PODS
from podium.app.planning.deciding.attempts import preemption_of
from podium.app.planning.deciding.causes import blocked_on, blocked_pods
from podium.app.planning.deciding.decisions import Decisions, PlacedPod
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.autoscaling import add_daemons
from podium.decide.node_reports import NodeReport, reporter, reports_like
from podium.framework.handle import CycleState
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.node_filters import required_nodes

MAX_PER_NODE = 2_000
"""The maximum number of pods to try on a node."""

_SHOWN = ("cpu", "memory")
_FEW = 8


class NodeShape(Struct, frozen=True):
    """Nodes of equal size, taints, labels and numbers of devices, in order of names.

    ``model`` is the first of them, as if new, ``reports`` are its CSINode and ResourceSlices.
    """

    model: Node
    reports: Sequence[NodeReport]
    names: tuple[str, ...]
    rows: tuple[int, ...]
    text: str

    @property
    def representative(self) -> str:
        """The name of the first node."""
        return self.names[0]


def shapes_of(cluster: Cluster, pods: Iterable[PodRecord]) -> list[NodeShape]:
    """Return the shapes of all nodes, those of the most nodes first, then by the first name.

    Only labels that the pods refer to, and the instance type, distinguish shapes.
    """
    every = map(cluster.nodes.node, cluster.nodes.row_of.values())
    values = by_key(label for node in every for label in node.metadata.labels.items())
    # Without the labels that have another value on each of many nodes.
    identifying = {key for key, some in values.items() if len(some) > _FEW and len(set(some)) == len(some)}
    keys = _label_keys(cluster, pods) - identifying - {HOSTNAME_LABEL}
    found: dict[bytes, list[tuple[str, int]]] = {}
    models: dict[bytes, Node] = {}
    reports = reports_by_node([*cluster.storage.csi_nodes.values(), *cluster.devices.written.values()])
    encoder = msgpack.Encoder(order="deterministic")
    for name, row in sorted(cluster.nodes.row_of.items()):
        model = as_new(cluster.nodes.node(row))
        labels = {key: value for key, value in model.metadata.labels.items() if key in keys}
        key = encoder.encode((node_allocatable(model.status), labels, model.spec, _devices(reports.get(name, ()))))
        found.setdefault(key, []).append((name, row))
        models.setdefault(key, model)
    differing = [
        key
        for key in sorted(keys, key=lambda key: (key != INSTANCE_TYPE_LABEL, key))
        if len({model.metadata.labels.get(key) for model in models.values()}) > 1
    ][:3]
    shapes = []
    for key, nodes in found.items():
        names, rows = zip(*nodes, strict=True)
        own = reports.get(names[0], ())
        shapes.append(NodeShape(models[key], own, names, rows, _text(models[key], own, differing)))
    return sorted(shapes, key=lambda shape: (-len(shape.names), shape.representative))


def add_nodes(decisions: Decisions, shape: NodeShape, number: int) -> list[int]:
    """Add nodes of a shape, each with a pod of every DaemonSet that it takes, and return their rows."""
    nodes = decisions.cluster.nodes
    free = (name for place in count(len(nodes)) if (name := f"plan-node-{place}") not in nodes.row_of)
    rows = []
    for name in islice(free, number):
        for item in copies_of(shape.model, shape.reports, name):
            decisions.put(item)
        rows.append(nodes.row_of[name])
        add_daemons(decisions.scratch, rows[-1], decisions.workloads.daemons)
    return rows


def as_new(node: Node) -> Node:
    """Return the node as if new: ready, without images, and without what controllers and operators set."""
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(CLUSTER_TAINTS))
    ready = (PodCondition(type=READY, status="True"),)
    return replace(
        node,
        metadata=ObjectMeta(name=node.metadata.name, labels=node.metadata.labels),
        spec=replace(node.spec, unschedulable=False, taints=taints),
        status=replace(node.status, conditions=ready, images=()),
    )


def reports_by_node(items: Iterable[object]) -> dict[str, list[NodeReport]]:
    """Return the CSINode and the slices of its own devices for each node."""
    found = (item for item in items if isinstance(item, NodeReport))
    return by_key((reporter(item), item) for item in found)


def copies_of(model: Node, reports: Iterable[NodeReport], name: str) -> Iterator[Node | NodeReport]:
    """Yield a node of that name like a ``model``, which is as if new, and what it would report."""
    yield replace(model, metadata=ObjectMeta(name=name, labels={**model.metadata.labels, HOSTNAME_LABEL: name}))
    yield from reports_like(reports, name)


def _devices(reports: Iterable[NodeReport]) -> Counter[str]:
    """Return the number of a node's devices by driver."""
    return Counter(item.spec.driver for item in reports if isinstance(item, ResourceSlice) for _ in item.spec.devices)


def _label_keys(cluster: Cluster, pods: Iterable[PodRecord]) -> set[str]:
    """Return the instance type and the node labels that the pods and their volumes refer to."""
    keys, storage = {INSTANCE_TYPE_LABEL}, cluster.storage
    for pod_class in {pod.pod_class: None for pod in pods}:
        claims = (storage.claims.get(f"{pod_class.namespace}/{name}") for name in pod_class.claims)
        for volume in (storage.volumes.get(claim.spec.volume_name) for claim in claims if claim is not None):
            affinity = None if volume is None else volume.spec.node_affinity
            terms = compile_node_selector((affinity and affinity.required) or NodeSelector())
            keys |= {requirement.key for term in terms for requirement in term.labels}
        required = required_nodes(pod_class)
        keys |= {requirement.key for requirement in required.selector.requirements}
        keys |= {requirement.key for term in required.terms or () for requirement in term.labels}
        keys |= {term.topology_key for term in (*pod_class.required_affinity, *pod_class.required_anti_affinity)}
        keys |= {constraint.topology_key for constraint in pod_class.spec.topology_spread_constraints}
    return keys


def _text(node: Node, reports: Iterable[NodeReport], differing: Iterable[str]) -> str:
    """Describe a shape by its size, devices, taints and those labels in which shapes differ."""
    amounts = node_allocatable(node.status)
    shown = [name for name in amounts if name in _SHOWN or "/" in name]
    parts = [f"{name} {format_quantity(amounts[name], name)}" for name in shown]
    parts += [f"{counted(number, 'device')} of {driver}" for driver, number in sorted(_devices(reports).items())]
    labels = node.metadata.labels
    parts += [f"{key.rpartition('/')[2]}={labels[key]}" for key in differing if key in labels]
    parts += [f"taint {taint.key}{f'={taint.value}' if taint.value else ''}" for taint in node.spec.taints]
    return ", ".join(parts)


class Capacity(Struct, frozen=True):
    """The number of further pods of a kind that fit, by row, and a description of the limiting resource.

    ``before`` is the obstacle on every node, "" for none; ``nearest`` those on the nodes that come closest, if none
    takes a pod. With ``is_cut`` more may fit than were tried.
    """

    counts: Mapping[int, int] = {}
    limits: Mapping[int, str] = {}
    before: str = ""
    nearest: str = ""
    is_cut: bool = False

    @property
    def total(self) -> int:
        """The number of pods that fit in all."""
        return sum(self.counts.values())


def capacity_of(
    decisions: Decisions, pod: PodRecord, *, preempts: bool = False, comes_in_order: bool = True
) -> Capacity:
    """Return how many pods like this one fit; with ``preempts``, if every pod that it may preempt left.

    If all filters look at one node alone, all nodes are filled at once. Otherwise pods are placed one after another as
    the scheduler would: with spreading, affinity to pods, volumes and devices, and where possible victims depend on
    earlier ones (required budgets, caps on disruptions, fairness between equals, victims on other nodes). Pods of a
    gang are placed together. Unless the pod ``comes_in_order``, those after one that does not fit may fit.
    """
    if decisions.is_of_gang(pod):
        group = decisions.cluster.pod_groups.of(pod)
        number = min(max(group.min_count if group else 0, 1), MAX_PLACED_PODS)
        found = _gang_of(decisions, pod, number, preempts=preempts)
        # Further pods of a complete gang go wherever they fit.
        is_free = found.is_cut and not preempts and not (group and group.topology_key)
        by_row = capacity_by_node(decisions, pod) if is_free else None
        if by_row is not None:
            return by_row
        while found.is_cut and number < MAX_PLACED_PODS:
            number = min(number * 2, MAX_PLACED_PODS)
            found = _gang_of(decisions, pod, number, preempts=preempts)
        return found
    blocked = blocked_on(decisions, (pod,))
    if blocked.before is not None:
        return Capacity(before=blocked.before.text)
    by_row = capacity_by_node(decisions, pod, preempts=preempts)
    found = by_row or _one_by_one(decisions, pod, preempts=preempts, comes_in_order=comes_in_order)
    if found.total:
        return found
    groups = (f"on {counted(len(each.rows), 'node')}: {joined(each.obstacles)}" for each in blocked.nearest)
    return replace(found, nearest="; ".join(groups))


def capacity_by_node(
    decisions: Decisions,
    pod: PodRecord,
    *,
    preempts: bool = False,
    per_node: int = MAX_PER_NODE,
    enough: int | None = None,
) -> Capacity | None:
    """Return the capacity if all filters look at one node alone; otherwise None.

    At most ``per_node`` pods are tried on a node, and no more once ``enough`` fit in all.
    """
    cluster, runner, state = decisions.cluster, decisions.runners[pod.scheduler_name], CycleState()
    pre_filter = runner.pre_filter(state, pod)
    rows = cluster.nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
    rows = rows[cluster.nodes.present[rows]]
    plugin = preemption_of(runner)
    is_wide = preempts and plugin is not None and (plugin.looks_beyond_nodes or cluster.caps.limits)
    if not runner.is_row_local(state) or not len(rows) or is_wide:
        return None
    worlds = WhatIfView(cluster, rows)
    if preempts and plugin is not None:
        _remove_preemptible(decisions, plugin, pod, worlds)
    counts = dict.fromkeys(rows.tolist(), 0)
    limits: dict[int, str] = {}
    for _ in range(per_node):
        if not len(worlds) or (enough is not None and sum(counts.values()) >= enough):
            break
        outcome = runner.filter_what_if(state, pod, worlds, pod.uid)
        fits: Bools = outcome.refused == 0
        for position in np.flatnonzero(~fits).tolist():
            row = int(worlds.rows[position])
            limits[row] = joined(obstacles_of(cluster, pod, row, outcome.status(position)))
        worlds = worlds.at(np.flatnonzero(fits))
        for row in worlds.rows.tolist():
            counts[row] += 1
        worlds.join(np.arange(len(worlds)), [pod] * len(worlds))
    if not preempts and enough is None and 0 in counts.values():
        limits |= {row: text for row, text in _limits(decisions, pod).items() if not counts.get(row)}
    return Capacity(counts, limits, is_cut=len(worlds) > 0)


def _remove_preemptible(decisions: Decisions, plugin: DefaultPreemption, pod: PodRecord, worlds: WhatIfView) -> None:
    """Remove all pods that the pod may preempt, except mirror pods, which free nothing."""
    pods = decisions.cluster.pods
    slots = plugin.may_take(pod, decisions.cluster)
    slots = slots[np.array([not pods.record(slot).is_mirror for slot in slots.tolist()], dtype=np.bool_)]
    positions = np.searchsorted(worlds.rows, pods.row[slots])
    among = worlds.rows[np.minimum(positions, len(worlds) - 1)] == pods.row[slots]
    order: Int64s = np.argsort(positions[among], kind="stable")
    worlds.remove(positions[among][order].astype(np.int64), slots[among][order])


def _one_by_one(decisions: Decisions, pod: PodRecord, *, preempts: bool, comes_in_order: bool) -> Capacity:
    placed: list[PlacedPod] = []
    known = decisions.cluster.storage.claims
    with decisions.what_if():
        for each in decisions.copies(pod, MAX_PLACED_PODS):
            result = decisions.schedule([each], preempts=preempts)
            placed += result.placed
            claims = (known.get(f"{each.namespace}/{name}") for name in each.pod_class.claims)
            # The volumes of other pods may be elsewhere.
            may_fit_later = not comes_in_order and any(claim and claim.spec.volume_name for claim in claims)
            if not result.placed and not may_fit_later:
                break
        limits = _limits(decisions, each)
    return Capacity(_counts(decisions, placed), limits, is_cut=len(placed) == MAX_PLACED_PODS)


def _gang_of(decisions: Decisions, pod: PodRecord, number: int, *, preempts: bool) -> Capacity:
    with decisions.what_if():
        result = decisions.schedule(decisions.copies(pod, number), preempts=preempts)
        if not result.placed:
            waiting = result.waiting[0]
            runner = decisions.runners[waiting.scheduler_name]
            gang = decide_gang(runner, waiting, preempts=False) if runner.pre_enqueue(waiting).is_success else None
            lacks = f"its gang {gang.headline}; " if gang is not None and not gang.placement.problem else ""
            return Capacity(before=f"{lacks}{blocked_pods(decisions, result)[0].text}")
        limits = _limits(decisions, result.waiting[0] if result.waiting else pod)
    return Capacity(_counts(decisions, result.placed), limits, is_cut=not result.waiting)


def _counts(decisions: Decisions, placed: Iterable[PlacedPod]) -> dict[int, int]:
    row_of = decisions.cluster.nodes.row_of
    counts = Counter(row_of[each.node] for each in placed)
    return {row: counts[row] for row in sorted(row_of.values())}


def _limits(decisions: Decisions, pod: PodRecord) -> dict[int, str]:
    """Return the obstacles to one more pod, by row."""
    found = blocked_on(decisions, (pod,))
    if found.before is not None:
        return dict.fromkeys(decisions.cluster.nodes.row_of.values(), found.before.text)
    return {int(row): joined(group.obstacles) for group in found.nodes for row in group.rows if group.obstacles}
