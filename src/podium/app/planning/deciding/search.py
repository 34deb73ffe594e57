"""Which one change lets most of the pods in that wait, found by trying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from podium.app.planning.deciding.causes import FAILED, Blocked
from podium.app.planning.deciding.change import Change, Verified, verify
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.node_changes import labelled, one_more, uncordoned, without_taints
from podium.app.planning.deciding.other_changes import bound_claims, more_important, uncapped
from podium.app.planning.deciding.pod_changes import rescheduled, rewritten, tolerating, ungated
from podium.app.planning.deciding.shapes import Shape, add_like

MOST_TRIED = 120
"""So many changes are tried at most, those first that concern the most pods."""

MOST_NODES = 100
"""So many further nodes are tried at most."""


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
    found = sorted(
        ((_most(change, waiting), change) for change in _candidates(decisions, waiting, shapes)),
        key=lambda item: (-item[0], item[1].objects, item[1].text),
    )
    tried = [change for _, change in found[:MOST_TRIED]]
    verified = []
    for place, change in enumerate(tried):
        if progress is not None:
            progress(place / len(tried))
        verified.append(verify(decisions, change, [pod for pod in pods if change.helps(pod)]))
    helpful = [each for each in verified if each.freed]
    return sorted(helpful, key=lambda each: each.order), len(found) - len(tried)


def nodes_needed(decisions: Decisions, waiting: Sequence[Blocked], shape: Shape) -> tuple[int, int]:
    """How many more nodes of a shape let in all pods that such nodes can, `MOST_NODES` at most; and how many these are.

    No node is added that lets nobody in.
    """
    left = tuple(pod for blocked in waiting for pod in blocked.pods)
    number, freed = 0, 0
    with decisions.supposing():
        while left and number < MOST_NODES:
            add_like(decisions, shape)
            settled = decisions.settle(left)
            if not settled.fates:
                break
            number, freed, left = number + 1, freed + len(settled.fates), settled.waiting
    return number, freed


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


def _is_failed(blocked: Blocked) -> bool:
    return blocked.before is not None and blocked.before.sort == FAILED


def _most(change: Change, waiting: Sequence[Blocked]) -> int:
    """How many pods the change concerns."""
    return sum(len(blocked.pods) for blocked in waiting if change.helps(blocked.pods[0]))
