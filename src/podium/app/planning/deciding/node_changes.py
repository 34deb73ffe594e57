"""Changes of nodes that may let pods in that wait: more of them, without a taint, with a label, uncordoned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from podium.api.node import Node, Taint
from podium.api.selectors import Requirement
from podium.app.planning.deciding.causes import CORDONED, SELECTION, TAINT, Blocked
from podium.app.planning.deciding.change import Change
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import kind_of
from podium.app.planning.deciding.shapes import Shape, add_like
from podium.app.planning.nodes import named
from podium.cluster.nodes import CPU
from podium.plugins.node_affinity import required_nodes

NODE = "node"
_MOST_SHAPES = 20
_MOST_CORDONED = 8


def one_more(shapes: Sequence[Shape]) -> Iterator[Change]:
    """One more node, like each of those that there are."""
    for shape in shapes[:_MOST_SHAPES]:
        yield Change(NODE, f"one more node like {shape.like}", partial(add_like, shape=shape))


def without_taints(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """Each taint that keeps pods off, taken off all nodes that have it."""
    taints: dict[Taint, list[Blocked]] = {}
    for blocked in waiting:
        for obstacle in blocked.obstacles:
            if obstacle.sort == TAINT and isinstance(obstacle.subject, Taint):
                taints.setdefault(obstacle.subject, []).append(blocked)
    for taint, held in sorted(taints.items(), key=lambda item: _written(item[0])):
        nodes = [node for node in _nodes(decisions) if taint in node.spec.taints]
        changed = [_without(node, taint) for node in nodes]
        yield Change(
            "taint",
            f"taint {_written(taint)} taken off {_these(nodes)}",
            partial(_change_nodes, nodes=changed),
            kinds=frozenset(kind_of(blocked.pods[0]) for blocked in held),
            objects=len(nodes),
        )


def uncordoned(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """The cordoned nodes let pods in again: each, and all of them."""
    held = [blocked for blocked in waiting if any(obstacle.sort == CORDONED for obstacle in blocked.obstacles)]
    if not held:
        return
    kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
    nodes = [node for node in _nodes(decisions) if node.spec.unschedulable]
    for some in [nodes, *([node] for node in nodes[:_MOST_CORDONED] if len(nodes) > 1)]:
        changed = [
            msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False)) for node in some
        ]
        yield Change(
            "cordon", f"uncordon {_these(some)}", partial(_change_nodes, nodes=changed), kinds=kinds, objects=len(some)
        )


def labelled(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """The labels that pods select nodes by, put on the nodes that lack nothing else: on the emptiest, and on all."""
    found: dict[tuple[tuple[str, str], ...], list[Blocked]] = {}
    for blocked in waiting:
        labels = _wanted(blocked)
        if labels:
            found.setdefault(labels, []).append(blocked)
    for labels, held in sorted(found.items()):
        nodes = [node for node in _selectable(decisions, held) if _may_have(node, labels)]
        text = ",".join(f"{key}={value}" if value else key for key, value in labels)
        for some in ([_emptiest(decisions, nodes)], nodes) if len(nodes) > 1 else ([nodes] if nodes else []):
            yield Change(
                "label",
                f"label {text} on {_these(some)}",
                partial(_change_nodes, nodes=[_with_labels(node, dict(labels)) for node in some]),
                kinds=frozenset(kind_of(blocked.pods[0]) for blocked in held),
                objects=len(some),
            )


def _emptiest(decisions: Decisions, nodes: Sequence[Node]) -> Node:
    """The node with the most cpu left, of several the first by name."""
    columns = decisions.cluster.nodes

    def left(node: Node) -> int:
        row = columns.row_of[node.metadata.name]
        return int(columns.allocatable[CPU, row] - columns.requested[CPU, row])

    return max(nodes, key=left)


def _wanted(blocked: Blocked) -> tuple[tuple[str, str], ...]:
    """Labels with which a node would be one that the pods select: the first value of each condition."""
    if not any(obstacle.sort == SELECTION for obstacle in blocked.obstacles):
        return ()
    required = required_nodes(blocked.pods[0].pod_class)
    conditions = list(required.selector.requirements)
    if required.terms:
        conditions += required.terms[0].labels
    return tuple(sorted(filter(None, map(_label, conditions))))


def _label(condition: Requirement) -> tuple[str, str] | None:
    if condition.operator == "In":
        return condition.key, condition.values[0]
    return (condition.key, "") if condition.operator == "Exists" else None


def _selectable(decisions: Decisions, held: Sequence[Blocked]) -> list[Node]:
    """The nodes on which nothing but the pods' selection stands, for some of them."""
    rows = {
        int(row)
        for blocked in held
        for alike in blocked.nodes
        if all(obstacle.sort == SELECTION for obstacle in alike.obstacles)
        for row in alike.rows
    }
    nodes = (decisions.cluster.nodes.node(row) for row in rows)
    return sorted(nodes, key=lambda node: node.metadata.name)


def _may_have(node: Node, labels: Sequence[tuple[str, str]]) -> bool:
    """Whether no label would have to change that says where or what the node is."""
    known = node.metadata.labels
    return all(key not in known or known[key] == value for key, value in labels)


def _with_labels(node: Node, labels: dict[str, str]) -> Node:
    metadata = msgspec.structs.replace(node.metadata, labels={**node.metadata.labels, **labels})
    return msgspec.structs.replace(node, metadata=metadata)


def _without(node: Node, taint: Taint) -> Node:
    taints = tuple(other for other in node.spec.taints if other != taint)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))


def _change_nodes(decisions: Decisions, nodes: Sequence[Node]) -> None:
    for node in nodes:
        decisions.scratch.change_node(node)


def _nodes(decisions: Decisions) -> list[Node]:
    columns = decisions.cluster.nodes
    return [columns.node(row) for _, row in sorted(columns.row_of.items())]


def _these(nodes: Sequence[Node]) -> str:
    return named([node.metadata.name for node in nodes])


def _written(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
