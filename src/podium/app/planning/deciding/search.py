"""Which one change lets most of the pods in that wait, found by trying."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from podium.app.planning.deciding.causes import FAILED, Blocked
from podium.app.planning.deciding.change import Change, Verified, verify
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Kind, kind_of
from podium.app.planning.deciding.node_changes import NODE, labelled, one_more, uncordoned, without_taints
from podium.app.planning.deciding.other_changes import bound_claims, more_important, uncapped
from podium.app.planning.deciding.pod_changes import rescheduled, rewritten, tolerating, ungated
from podium.app.planning.deciding.shapes import Shape, add_like, add_several
from podium.cluster.pods import PodRecord
from podium.decide.scratch import Scratch

MOST_TRIED = 120
"""So many changes are tried at most, those first that concern the most pods."""

MOST_NODES = 1_000
"""So many further nodes are tried at most."""

_MOST_SHAPES_FOR_GANGS = 4
_MOST_PODS_WITH_GANGS = 400
"""It is decided about all of them again and again: of more it is not found out how many nodes they lack."""


def helping(
    decisions: Decisions,
    waiting: Sequence[Blocked],
    shapes: Sequence[Shape],
    progress: Callable[[float], None] | None = None,
) -> tuple[list[Verified], int]:
    """The changes that let pods in, the best first; and how many further ones were not tried.

    Changes that concern no more pods than others come behind them, so that those left out concern the fewest.
    """
    pods = [
        pod for blocked in waiting if blocked.before is None or blocked.before.sort != FAILED for pod in blocked.pods
    ]
    counts = {kind_of(blocked.pods[0]): len(blocked.pods) for blocked in waiting}
    found = sorted(
        ((_most(change, counts), change) for change in _candidates(decisions, waiting, shapes)),
        key=lambda item: (-item[0], item[1].objects, item[1].text),
    )
    tried = [change for _, change in found[:MOST_TRIED]]
    verified = []
    for place, change in enumerate(tried):
        if progress is not None:
            progress(place / len(tried))
        verified.append(verify(decisions, change, [pod for pod in pods if change.helps(pod)]))
    for change in _for_gangs(decisions, waiting, shapes, verified):
        verified.append(verify(decisions, change, pods))
    helpful = [each for each in verified if each.freed]
    return sorted(helpful, key=lambda each: each.order), len(found) - len(tried)


def nodes_needed(decisions: Decisions, waiting: Sequence[Blocked], shape: Shape) -> tuple[int, int]:
    """How many more nodes of a shape let in all pods that such nodes can, `MOST_NODES` at most; and how many these are.

    The pods come in the order of the queue, each to the first of these nodes that takes it, or to one more. Where there
    are gangs among them, it is decided about all of them with so many nodes; where they are too many for that, both
    are 0.
    """
    pods = decisions.in_order(pod for blocked in waiting for pod in blocked.pods)
    if any(map(decisions.is_of_gang, pods)):
        return _nodes_for_gangs(decisions, pods, shape) if len(pods) <= _MOST_PODS_WITH_GANGS else (0, 0)
    rows: list[int] = []
    # By kind, how many of the nodes are known to take no more of it; none does once a further one would not.
    full: dict[Kind, int] = {}
    hopeless: set[Kind] = set()
    freed = 0
    with decisions.supposing() as scratch:
        for pod in pods:
            kind = kind_of(pod)
            if kind in hopeless or not _is_tried(decisions, pod):
                continue
            row = _first_row(scratch, pod, rows, full)
            if row is None and len(rows) < MOST_NODES:
                mark = scratch.mark()
                rows.append(add_like(decisions, shape))
                row = _first_row(scratch, pod, rows, full)
                if row is None:
                    scratch.roll_back(mark)
                    rows.pop()
                    full.pop(kind)
            if row is None:
                hopeless.add(kind)
            else:
                scratch.place(pod, row)
                freed += 1
    return len(rows), freed


def _nodes_for_gangs(decisions: Decisions, pods: Sequence[PodRecord], shape: Shape) -> tuple[int, int]:
    """The smallest number of nodes of a shape that lets in as many pods as a node for each of them does."""

    def freed(number: int) -> int:
        with decisions.supposing():
            add_several(decisions, shape, number)
            return len(decisions.settle(pods).fates)

    least, enough = 0, min(len(pods), MOST_NODES)
    most = freed(enough)
    while least < enough:
        middle = (least + enough) // 2
        least, enough = (least, middle) if freed(middle) >= most else (middle + 1, enough)
    return enough, most


def _for_gangs(
    decisions: Decisions, waiting: Sequence[Blocked], shapes: Sequence[Shape], known: Sequence[Verified]
) -> Iterator[Change]:
    """Several nodes of a shape, where gangs wait that none of the changes that are known lets in."""
    gangs = _first(blocked for blocked in waiting if decisions.is_of_gang(blocked.pods[0]))
    if not gangs or any(each.freed and each.change.sort == NODE for each in known):
        return
    for shape in shapes[:_MOST_SHAPES_FOR_GANGS]:
        number, freed = nodes_needed(decisions, gangs, shape)
        if freed and number > 1:
            adding = partial(add_several, shape=shape, number=number)
            yield Change(NODE, f"{number:,} more nodes like {shape.like}", adding, objects=number)


def _first(gangs: Iterable[Blocked]) -> list[Blocked]:
    """As many of them as have not too many pods together."""
    found: list[Blocked] = []
    left = _MOST_PODS_WITH_GANGS
    for blocked in gangs:
        if len(blocked.pods) <= left:
            found.append(blocked)
            left -= len(blocked.pods)
    return found


def _first_row(scratch: Scratch, pod: PodRecord, rows: Sequence[int], full: dict[Kind, int]) -> int | None:
    """The first of the rows that takes the pod; those before it are full for its kind."""
    kind = kind_of(pod)
    for place in range(full.get(kind, 0), len(rows)):
        if len(scratch.fitting(pod, np.array([rows[place]], dtype=np.int64))):
            full[kind] = place
            return rows[place]
    full[kind] = len(rows)
    return None


def _is_tried(decisions: Decisions, pod: PodRecord) -> bool:
    """Whether a scheduler would try the pod at all."""
    runner = decisions.runners.get(pod.scheduler_name)
    return runner is not None and not pod.terminating and runner.pre_enqueue(pod).is_success


def _candidates(decisions: Decisions, waiting: Sequence[Blocked], shapes: Sequence[Shape]) -> Iterator[Change]:
    yield from one_more(shapes)
    yield from without_taints(decisions, waiting)
    yield from tolerating(waiting)
    yield from uncordoned(decisions, waiting)
    yield from labelled(decisions, waiting)
    yield from bound_claims(decisions, waiting)
    yield from ungated(waiting)
    yield from rescheduled(decisions, waiting)
    yield from uncapped(decisions, waiting)
    yield from rewritten(decisions, waiting)
    yield from more_important(decisions, waiting)


def _most(change: Change, counts: Mapping[Kind, int]) -> int:
    """How many pods the change concerns, of those that there are by kind."""
    if change.kinds is None:
        return sum(counts.values())
    return sum(counts.get(kind, 0) for kind in change.kinds)
