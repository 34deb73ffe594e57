"""A change as the objects in which it would be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, Raw, plain
from podium.api.node import Node
from podium.app.planning.answer import Remedy
from podium.app.planning.deciding.change import Change
from podium.app.planning.deciding.decisions import Decisions
from podium.cluster.pods import PodRecord

_NAMELESS: Raw = {}


def remedy_of(decisions: Decisions, change: Change, waiting: Sequence[PodRecord]) -> Remedy | None:
    """The change with its objects, those of the pods that wait included; None where it cannot be written."""
    found = list(_objects(decisions, change))
    if change.to_pod is not None:
        pods = [decisions.pods[pod.key] for pod in waiting if pod.key in decisions.pods and change.helps(pod)]
        found += [after for pod in pods if (after := change.to_pod(pod)) is not pod]
    if not found:
        return None
    before = _read(decisions, {_place(item) for item in found})
    return Remedy(change.text, tuple(_written(item, *before.get(_place(item), (None, _NAMELESS))) for item in found))


def _objects(decisions: Decisions, change: Change) -> Iterator[Kubernetes]:
    """The objects that the change is about, but for pods that wait."""
    if change.written is not None:
        yield from change.written(decisions)
    elif change.to_cluster is not None:
        with decisions.supposing():
            before, known = _nodes(decisions), len(decisions.supposed)
            change.to_cluster(decisions)
            yield from [node for name, node in _nodes(decisions).items() if before.get(name) is not node]
            yield from decisions.supposed[known:]


def _nodes(decisions: Decisions) -> dict[str, Node]:
    columns = decisions.cluster.nodes
    return {name: columns.node(row) for name, row in sorted(columns.row_of.items())}


def _place(item: Kubernetes) -> tuple[str, str]:
    return type(item).__name__, item.key


def _read(decisions: Decisions, places: set[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Kubernetes, Raw]]:
    """The objects of these places as they were read, and as they are written."""
    return {
        _place(document.object): (document.object, document.raw)
        for document in decisions.loaded.read.documents
        if document.object is not None and _place(document.object) in places
    }


def _written(item: Kubernetes, before: Kubernetes | None, raw: Raw) -> Raw:
    """The object in its wire form: what was written of it, with what is otherwise."""
    if before is not None:
        found: Raw = _overlaid(raw, plain(before), plain(item))
        return found
    kind = KIND_OF[type(item)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **plain(item)}


def _overlaid(raw: Any, before: Any, after: Any) -> Any:
    """What was written, with the fields in which the readings differ."""
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(raw, dict):
        found = {key: value for key, value in raw.items() if key not in before or key in after}
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        return found | {key: _overlaid(raw.get(key), before.get(key), value) for key, value in changed.items()}
    lists = (raw, before, after)
    if all(isinstance(some, list) for some in lists) and len({len(some) for some in lists}) == 1:
        return [_overlaid(*parts) for parts in zip(*lists, strict=True)]
    return raw if before == after else after
