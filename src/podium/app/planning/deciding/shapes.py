"""Nodes that are alike: of the same size, with the same taints, and the same labels that pods are placed by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from podium.api.node import Node
from podium.api.quantity import format_quantity
from podium.api.resource_requests import node_allocatable
from podium.app.planning.deciding.decisions import Decisions
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.scaling.scale_up import add_daemons
from podium.plugins.node_affinity import required_nodes

_HOSTNAME = "kubernetes.io/hostname"
_BY_THE_CLUSTER = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
_SHOWN = ("cpu", "memory")
_MOST_LABELS = 3
_FEW = 8
_TYPE = "node.kubernetes.io/instance-type"


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


def shapes_of(cluster: Cluster, pods: Iterable[PodRecord]) -> list[Shape]:
    """The nodes by shape: those of the most nodes first, then by the first name.

    Of their labels those count that some of the pods look at, and the type of machine.
    """
    keys = _looked_at(pods) - _names_alone(cluster)
    found: dict[bytes, list[tuple[str, int]]] = {}
    models: dict[bytes, Node] = {}
    encoder = msgspec.msgpack.Encoder(order="deterministic")
    for name, row in sorted(cluster.nodes.row_of.items()):
        node = cluster.nodes.node(row)
        model = as_new(node)
        labels = {key: value for key, value in model.metadata.labels.items() if key in keys}
        key = encoder.encode((node_allocatable(node.status), labels, model.spec))
        found.setdefault(key, []).append((name, row))
        models.setdefault(key, model)
    texts = _texts([models[key] for key in found], keys)
    shapes = [
        Shape(models[key], tuple(name for name, _ in nodes), tuple(row for _, row in nodes), text)
        for (key, nodes), text in zip(found.items(), texts, strict=True)
    ]
    return sorted(shapes, key=lambda shape: (-len(shape.names), shape.like))


def as_new(node: Node) -> Node:
    """The node as it was before anything happened to it: not cordoned, without the taints that a cluster sets."""
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith(_BY_THE_CLUSTER))
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False, taints=taints))


def add_like(decisions: Decisions, shape: Shape) -> int:
    """Suppose one more node of a shape, with a pod of every DaemonSet that it takes; returns its row."""
    name = _free_name(decisions.cluster)
    meta = shape.model.metadata
    labels = {**meta.labels, _HOSTNAME: name} if _HOSTNAME in meta.labels else meta.labels
    metadata = msgspec.structs.replace(meta, name=name, uid="", labels=labels)
    row = decisions.scratch.add_node(msgspec.structs.replace(shape.model, metadata=metadata))
    add_daemons(decisions.scratch, row, decisions.workloads.daemons)
    return row


def add_several(decisions: Decisions, shape: Shape, number: int) -> None:
    """Suppose so many more."""
    for _ in range(number):
        add_like(decisions, shape)


def _free_name(cluster: Cluster) -> str:
    number = len(cluster.nodes)
    while f"plan-node-{number}" in cluster.nodes.row_of:
        number += 1
    return f"plan-node-{number}"


def _looked_at(pods: Iterable[PodRecord]) -> set[str]:
    """The labels of nodes that pods are placed by, and the type of machine."""
    keys = {_TYPE}
    for pod_class in {pod.pod_class: None for pod in pods}:
        required = required_nodes(pod_class)
        keys |= {requirement.key for requirement in required.selector.requirements}
        keys |= {requirement.key for term in required.terms or () for requirement in term.labels}
        keys |= {term.topology_key for term in (*pod_class.required_affinity, *pod_class.required_anti_affinity)}
        keys |= {constraint.topology_key for constraint in pod_class.spec.topology_spread_constraints}
    return keys


def _names_alone(cluster: Cluster) -> set[str]:
    """The labels that only say which node it is: another value on each of many."""
    values: dict[str, list[str]] = {}
    for row in cluster.nodes.row_of.values():
        for key, value in cluster.nodes.node(row).metadata.labels.items():
            values.setdefault(key, []).append(value)
    return {_HOSTNAME, *(key for key, found in values.items() if len(found) > _FEW and len(set(found)) == len(found))}


def _texts(models: Iterable[Node], keys: set[str]) -> list[str]:
    """Each shape in a few words: its size, its taints, and those labels in which shapes differ."""
    nodes = list(models)
    differing = [
        key
        for key in sorted(keys, key=lambda key: (key != _TYPE, key))
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
