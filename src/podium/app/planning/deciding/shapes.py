"""Nodes that are alike: the same size, taints, and labels but for those that only one node has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from podium.api.node import Node
from podium.api.quantity import format_quantity
from podium.api.resource_requests import node_allocatable
from podium.app.planning.deciding.decisions import Decisions
from podium.cluster.cluster import Cluster
from podium.decide.scaling.scale_up import add_daemons

_HOSTNAME = "kubernetes.io/hostname"
_BY_THE_CLUSTER = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
_SHOWN = ("cpu", "memory")
_MOST_LABELS = 3
_FEW = 8
_TELLING = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes that are alike, by their rows in order of names; `model` is the first, as it would be when new."""

    model: Node
    names: tuple[str, ...]
    rows: tuple[int, ...]
    text: str

    @property
    def like(self) -> str:
        """The node that stands for them."""
        return self.names[0]


def shapes_of(cluster: Cluster) -> list[Shape]:
    """The nodes by shape: those of the most nodes first, then by the first name."""
    telling = _telling_labels(cluster)
    found: dict[bytes, list[tuple[str, int]]] = {}
    models: dict[bytes, Node] = {}
    encoder = msgspec.msgpack.Encoder(order="deterministic")
    for name, row in sorted(cluster.nodes.row_of.items()):
        node = cluster.nodes.node(row)
        model = as_new(node)
        labels = {key: value for key, value in model.metadata.labels.items() if key in telling}
        key = encoder.encode((node_allocatable(node.status), labels, model.spec))
        found.setdefault(key, []).append((name, row))
        models.setdefault(key, model)
    texts = _texts([models[key] for key in found], telling)
    shapes = [
        Shape(models[key], tuple(name for name, _ in nodes), tuple(row for _, row in nodes), text)
        for (key, nodes), text in zip(found.items(), texts, strict=True)
    ]
    return sorted(shapes, key=lambda shape: (-len(shape.names), shape.like))


def as_new(node: Node) -> Node:
    """The node as it was before anything happened to it: not cordoned, without the taints that a cluster sets."""
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(_BY_THE_CLUSTER))
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False, taints=taints))


def add_like(decisions: Decisions, shape: Shape, number: int = 1) -> None:
    """Suppose so many more nodes of a shape, each with a pod of every DaemonSet that it takes."""
    for _ in range(number):
        name = _free_name(decisions.cluster)
        meta = shape.model.metadata
        labels = {**meta.labels, _HOSTNAME: name} if _HOSTNAME in meta.labels else meta.labels
        metadata = msgspec.structs.replace(meta, name=name, uid="", labels=labels)
        row = decisions.scratch.add_node(msgspec.structs.replace(shape.model, metadata=metadata))
        add_daemons(decisions.scratch, row, decisions.daemons)


def _free_name(cluster: Cluster) -> str:
    number = 1
    while f"plan-node-{number}" in cluster.nodes.row_of:
        number += 1
    return f"plan-node-{number}"


def _telling_labels(cluster: Cluster) -> set[str]:
    """The labels that tell more about a node than which it is: not its name, and not another value on each of many."""
    values: dict[str, list[str]] = {}
    names: set[str] = set()
    for row in cluster.nodes.row_of.values():
        node = cluster.nodes.node(row)
        for key, value in node.metadata.labels.items():
            values.setdefault(key, []).append(value)
            if value == node.metadata.name:
                names.add(key)
    own = {key for key, found in values.items() if len(found) > _FEW and len(set(found)) == len(found)}
    return values.keys() - own - names - {_HOSTNAME}


def _texts(models: Iterable[Node], telling: set[str]) -> list[str]:
    """Each shape in a few words: its size, its taints, and those labels in which shapes differ."""
    nodes = list(models)
    differing = [
        key
        for key in sorted(telling, key=lambda key: (key not in _TELLING, key))
        if len({node.metadata.labels.get(key) for node in nodes}) > 1
    ][:_MOST_LABELS]
    return [_text(node, differing) for node in nodes]


def _text(node: Node, differing: Iterable[str]) -> str:
    amounts = node_allocatable(node.status)
    shown = [name for name in amounts if name in _SHOWN or "/" in name]
    parts = [f"{name} {format_quantity(amounts[name], name)}" for name in shown]
    labels = node.metadata.labels
    parts += [f"{key.rpartition('/')[2]}={labels[key]}" for key in differing if key in labels]
    parts += [f"taint {taint.key}{f'={taint.value}' if taint.value else ''}" for taint in node.spec.taints]
    return ", ".join(parts)
