"""The search for the changes that let the most waiting pods find nodes; each is verified by deciding again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.api.kinds import manifest_of
from podium.api.meta import Kubernetes, Raw, plain
from podium.app.console.cells import by_key
from podium.app.planning.deciding.attempts import PodKind, kind_of
from podium.app.planning.deciding.candidates import TYPES, ProposedChange, candidates, more_nodes
from podium.app.planning.deciding.capacity import NodeShape, add_nodes
from podium.app.planning.deciding.causes import FAILED, BlockedPods, RefusedPods
from podium.app.planning.deciding.decisions import Decisions, QueueResult
from podium.app.planning.scenarios import Remedy
from podium.cluster.pods import PodRecord
from podium.store.admission.quotas import written_amount

MAX_TRIED = 120
"""The maximum number of changes to try, those for the most pods first."""

MAX_NODES = 1_000
"""The maximum number of nodes to add."""

MAX_CREATED = 2_000
"""The maximum number of refused pods of a workload to create."""

_MAX_SHAPES_FOR_GANGS = 4
# With gangs all pods are decided again for every number of nodes.
_MAX_PODS_WITH_GANGS = 400


@dataclass(frozen=True, slots=True)
class VerifiedChange:
    """A change, and what becomes of the pending pods with it."""

    change: ProposedChange
    result: QueueResult

    @property
    def placed(self) -> int:
        """The number of pods that get a node."""
        return len(self.result.placed)

    @property
    def preempted(self) -> int:
        """The number of pods that are preempted for that."""
        return len(self.result.preemptors)

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        """A sort key: changes that place the most pods and preempt the fewest come first, then the smallest."""
        change = self.change
        return self.preempted - self.placed, self.preempted, change.objects, TYPES.index(change.type), change.text

    def to_dict(self) -> dict[str, Any]:
        change, counts = self.change, {"placed": self.placed, "preempted": self.preempted}
        return {"type": change.type, "change": change.text, **counts, "objects": change.objects}


def verify(
    decisions: Decisions, change: ProposedChange, waiting: Iterable[PodRecord], *, protects: bool = False
) -> VerifiedChange | None:
    """Decide again about waiting pods with a change, and roll it back; None if no API server would accept the change.

    If the change ``protects`` pods, the waiting ones may preempt, and preempted pods are replaced.
    """
    with decisions.what_if():
        pods = change.apply(decisions, waiting)
        if pods is None:
            return None
        return VerifiedChange(change, decisions.schedule(pods, preempts=protects or change.preempts, replaces=protects))


def helpful_changes(
    decisions: Decisions,
    waiting: Sequence[BlockedPods],
    shapes: Sequence[NodeShape],
    progress: Callable[[float, str], None] | None = None,
) -> tuple[list[VerifiedChange], int]:
    """Return the changes that place pods, the best first, and the number of changes that were not tried."""
    tried_pods = [
        pod for blocked in waiting if blocked.before is None or blocked.before.type != FAILED for pod in blocked.pods
    ]
    counts = {kind_of(blocked.pods[0]): len(blocked.pods) for blocked in waiting}

    def concerned(change: ProposedChange) -> int:
        return sum(counts.get(kind, 0) for kind in (counts if change.kinds is None else change.kinds))

    found = sorted(
        candidates(decisions, waiting, shapes), key=lambda change: (-concerned(change), change.objects, change.text)
    )
    helpful: list[VerifiedChange] = []
    for place, change in enumerate(tried := found[:MAX_TRIED]):
        if progress is not None:
            progress(place / len(tried), "trying changes")
        verified = verify(decisions, change, filter(change.helps, tried_pods))
        helpful += [verified] if verified and verified.placed else []
    for change in _nodes_for_blocked_gangs(decisions, waiting, shapes, helpful):
        verified = verify(decisions, change, tried_pods)
        helpful += [verified] if verified and verified.placed else []
    return sorted(helpful, key=lambda each: each.order), len(found) - len(tried)


def nodes_needed(decisions: Decisions, waiting: Sequence[BlockedPods], shape: NodeShape) -> tuple[int, int]:
    """Return how many nodes of a shape, `MAX_NODES` at most, place all pods that such nodes can, and how many pods.

    The pods come in queue order, each to a node that takes it, or to one more. With gangs among them, all are decided
    again for each number of nodes; both results are 0 if they are too many for that.
    """
    pods = decisions.in_order(pod for blocked in waiting for pod in blocked.pods)
    if any(map(decisions.is_of_gang, pods)):
        return _nodes_for_gangs(decisions, pods, shape) if len(pods) <= _MAX_PODS_WITH_GANGS else (0, 0)
    hopeless: set[PodKind] = set()
    nodes = placed = 0
    with decisions.what_if() as scratch:
        for pod in pods:
            kind, mark = kind_of(pod), scratch.savepoint()
            if kind in hopeless:
                continue
            found = decisions.attempt(pod)
            if not found and nodes < MAX_NODES:
                add_nodes(decisions, shape, 1)
                found = decisions.attempt(pod)
                nodes += bool(found)
            placed += len(found)
            if not found:
                scratch.roll_back(mark)
                hopeless.add(kind)
    return nodes, placed


def _nodes_for_gangs(decisions: Decisions, pods: Sequence[PodRecord], shape: NodeShape) -> tuple[int, int]:
    """Return the fewest nodes of a shape that place as many pods as one node per pod does, and that number of pods."""

    def placed(number: int) -> int:
        with decisions.what_if():
            add_nodes(decisions, shape, number)
            return len(decisions.schedule(pods).placed)

    enough = min(len(pods), MAX_NODES)
    most = placed(enough)
    return bisect_left(range(enough), True, key=lambda number: placed(number) >= most), most


def _nodes_for_blocked_gangs(
    decisions: Decisions, waiting: Sequence[BlockedPods], shapes: Sequence[NodeShape], known: Sequence[VerifiedChange]
) -> Iterator[ProposedChange]:
    """Yield several nodes of a shape if gangs wait and no change that adds one node helps."""
    gangs: list[BlockedPods] = []
    left = _MAX_PODS_WITH_GANGS
    for blocked in waiting:
        if decisions.is_of_gang(blocked.pods[0]) and len(blocked.pods) <= left:
            gangs.append(blocked)
            left -= len(blocked.pods)
    if not gangs or any(each.change.type == "node" for each in known):
        return
    for shape in shapes[:_MAX_SHAPES_FOR_GANGS]:
        number, placed = nodes_needed(decisions, gangs, shape)
        if placed and number > 1:
            yield more_nodes(shape, number)


def raised_quotas(decisions: Decisions, refused: Sequence[RefusedPods]) -> Iterator[VerifiedChange]:
    """Yield each quota raised so that it admits all pods, and which of these get a node then."""
    by_quota = by_key((each.quota.key, each) for each in refused if not each.unstated)
    for key, some in sorted(by_quota.items()):
        quota = some[0].quota
        enough = {
            name: written_amount(
                name, some[0].used[name] + sum(each.number * each.requested.get(name, 0) for each in some)
            )
            for name in dict.fromkeys(name for each in some for name in each.names)
        }
        with decisions.what_if():
            pods = [pod for each in some for pod in decisions.copies(each.pod, min(each.number, MAX_CREATED))]
            result = decisions.schedule(pods)
        text = ", ".join(f"{name} {quota.spec.hard[name]} -> {amount}" for name, amount in enough.items())
        raised = (replace(quota, spec=replace(quota.spec, hard={**quota.spec.hard, **enough})),)
        yield VerifiedChange(ProposedChange("quota", f"ResourceQuota {key} {text}", written=raised), result)


def remedy_of(decisions: Decisions, change: ProposedChange, waiting: Sequence[PodRecord]) -> Remedy | None:
    """Return the change as manifests, including those of waiting pods; None if it cannot be written."""
    found = list(_changed_objects(decisions, change))
    if change.to_pod is not None:
        pods = [decisions.pods[pod.key] for pod in waiting if pod.key in decisions.pods and change.helps(pod)]
        found += [after for pod in pods if (after := change.to_pod(pod)) is not pod]
    if not found:
        return None
    wanted = {(type(item), item.key) for item in found}
    before = {
        place: (item, document.raw)
        for document in decisions.loaded.read.documents
        if (item := document.object) is not None and (place := (type(item), item.key)) in wanted
    }
    manifests: list[Raw] = []
    for item in found:
        known = before.get((type(item), item.key))
        # The manifest that was read, with the changed fields.
        changed = None if known is None else _merged(known[1], plain(known[0]), plain(item))
        manifests.append(changed or manifest_of(item))
    return Remedy(change.text, tuple(manifests))


def _changed_objects(decisions: Decisions, change: ProposedChange) -> Iterable[Kubernetes]:
    """Return the objects that the change adds or replaces, except waiting pods."""
    if change.written is not None:
        return change.written(decisions) if callable(change.written) else change.written
    if change.to_cluster is None:
        return ()
    with decisions.what_if():
        known = len(decisions.added)
        change.to_cluster(decisions)
        return decisions.added[known:]


def _merged(raw: Any, before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(raw, dict):
        found = {key: value for key, value in raw.items() if key not in before or key in after}
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        return found | {key: _merged(raw.get(key), before.get(key), value) for key, value in changed.items()}
    lists = (raw, before, after)
    if all(isinstance(some, list) for some in lists) and len({len(some) for some in lists}) == 1:
        return [_merged(*parts) for parts in zip(*lists, strict=True)]
    return raw if before == after else after
