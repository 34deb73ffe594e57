"""`podium plan nodes`: more, fewer or other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.meta import Raw
from podium.api.node import Node
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.answering import answer_of, outcome, pods
from podium.app.planning.bounds import MOST_ADDED
from podium.app.planning.nodes import named
from podium.app.planning.question import Played, Question, applied, objects_of
from podium.app.planning.questions.drain import DrainWishes, drain_question, drain_sections, stuck

_HOSTNAME = "kubernetes.io/hostname"
_OF_THE_MACHINE = ("podCIDR", "podCIDRs", "providerID", "unschedulable", "externalID", "configSource")
_BY_THE_CLUSTER = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
_READY = [{"type": "Ready", "status": "True"}]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The nodes to add, as they are created, and the names of those to remove."""

    added: tuple[Raw, ...] = ()
    removed: tuple[str, ...] = ()


def nodes_like(read: Input, like: str, number: int) -> list[Raw]:
    """So many nodes that are as one of the cluster was when it was new. Raises InputError where it is not there."""
    known = objects_of(read, "Node")
    _bounded(number)
    return _copies(known[like].raw, number, known, "plan-node")


def nodes_from(read: Input, documents: Sequence[Document], number: int) -> list[Raw]:
    """The nodes of files, each so many times. Raises InputError for what is no node, and for names that are taken."""
    known = objects_of(read, "Node")
    _bounded(number * len(documents))
    found: list[Raw] = []
    for document in documents:
        if not isinstance(document.object, Node):
            kind = document.raw.get("kind")
            raise InputError(f"is a {kind}, and no Node", source=document.source, document=document.index)
        name = document.object.metadata.name
        if number > 1 or name in known:
            found += _copies(document.raw, number, known, name)
        else:
            found.append(document.raw)
    return found


def nodes_question(change: NodeChange) -> Question:
    """The question what happens when nodes come, and others are drained and deleted, one after another."""
    if not change.added and not change.removed:
        raise InputError("no node comes or goes; say --add with --like or -f, or --remove")
    _bounded(len(change.added))
    steps = [applied(change.added)] if change.added else []
    if change.removed:
        wishes = DrainWishes(force=True, delete_empty_dir_data=True)
        steps += drain_question(change.removed, wishes, removes=True).steps
    return Question("nodes", tuple(steps))


def nodes_answer(played: Played, change: NodeChange) -> PlanAnswer:
    """The answer."""
    parts = []
    if change.added:
        parts.append(f"adding {named([node['metadata']['name'] for node in change.added])}")
    if change.removed:
        parts.append(f"removing {named(change.removed)}")
    waiting = [sum(pod["state"] == "pending" for pod in run.pods) for run in (played.baseline, played.result)]
    helped = ""
    if waiting[0] or waiting[1]:
        helped = f"{pods(waiting[1])} wait for a node at the end, {waiting[0]:,} without it; "
    found = stuck(played) or outcome(played.impact)
    sections = drain_sections(played) if change.removed else []
    return answer_of(played, f"{' and '.join(parts)}: {helped}{found}", sections=sections)


def _bounded(number: int) -> None:
    if number > MOST_ADDED:
        raise InputError(f"{number:,} nodes are added; a plan adds {MOST_ADDED:,} at most")


def _copies(raw: Raw, number: int, known: dict[str, Document], stem: str) -> list[Raw]:
    found: list[Raw] = []
    count = 0
    while len(found) < number:
        count += 1
        name = f"{stem}-{count}"
        if name not in known:
            found.append(_new(raw, name))
    return found


def _new(raw: Raw, name: str) -> Raw:
    """The node as it would be under another name before anything has happened to it."""
    labels = {**raw["metadata"].get("labels", {}), _HOSTNAME: name}
    spec = {key: value for key, value in raw.get("spec", {}).items() if key not in _OF_THE_MACHINE}
    taints = [taint for taint in spec.pop("taints", ()) if not str(taint.get("key", "")).startswith(_BY_THE_CLUSTER)]
    if taints:
        spec["taints"] = taints
    status = raw.get("status", {})
    kept = {key: status[key] for key in ("allocatable", "capacity", "nodeInfo") if key in status}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {**kept, "conditions": _READY},
    }
