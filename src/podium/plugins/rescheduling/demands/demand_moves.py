"""Moves by which less is missed of what pods ask of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.demands.pairs import Pairs
from podium.plugins.rescheduling.parts.rough_fit import rough_choice, rough_fit

# For so many pods a proposal is made in which another makes room.
_MOST_SEEKERS = 32

Reason = Callable[[Picture, PodRecord, Sequence[str]], str]
"""Why a pod should go, by what is missed where it is; "" if it should not."""


class Places(Protocol):
    """`[rows]`: the nodes that may take a pod, or with ``is_new`` another one of its class."""

    def __call__(self, picture: Picture, pod: PodRecord, *, is_new: bool = False) -> Bools: ...


class DemandMoves:
    """Proposes pods that miss less elsewhere, or make others miss less; ``reason`` has the last word on each.

    After those that find room by themselves come those for which another pod would have to make room.
    """

    def __init__(self, demands: Demands, reason: Reason) -> None:
        self._demands = demands
        self._reason = reason

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods by what there is to be gained, the most first, of equals the least important, then by key."""
        yield from self._single(picture)
        yield from self._paired(picture)

    def _single(self, picture: Picture) -> Iterator[Proposal]:
        self._demands.follow(picture)
        refused: set[tuple[int, int]] = set()
        for pod in self._candidates(picture, rough_fit):
            self._demands.follow(picture)
            place = (pod.pod_class.id, pod.row)
            if place in refused:
                continue
            found = self._proposal(picture, pod)
            if found is None:
                refused.add(place)
                continue
            yield found
            if picture.cluster.placed.get(pod.uid, pod).row == place[1]:
                # Its like would fare no better while nothing else moves.
                refused.add(place)
            else:
                refused.clear()

    def _paired(self, picture: Picture) -> Iterator[Proposal]:
        """Each of the pods, of those alike one, with whoever may make room for it."""
        self._demands.follow(picture)
        asked: set[tuple[int, int]] = set()
        pairs = Pairs(self._demands, picture)
        for pod in self._candidates(picture, rough_choice):
            place = (pod.pod_class.id, pod.row)
            if place in asked:
                continue
            if len(asked) == _MOST_SEEKERS:
                return
            asked.add(place)
            yield from self._pairs_of(picture, pairs, pod)

    def _pairs_of(self, picture: Picture, pairs: Pairs, pod: PodRecord) -> Iterator[Proposal]:
        row = pod.row
        for pair in pairs.of(pod):
            if not (pairs.may_move(pod) and pairs.may_move(pair.giving)):
                continue
            self._demands.follow(picture)
            reason = self._reason(picture, pod, self._demands.complaints(pod.pod_class.id, row))
            if not reason:
                return
            giving = f"{pair.giving.key} makes room for it on {picture.node_name(pair.giving.row)}"
            yield Proposal(pair.relocations, f"{reason}, and {giving}")

    def _candidates(self, picture: Picture, places: Places) -> list[PodRecord]:
        """The pods that would gain somewhere, of the ``places`` of their like."""
        found: list[tuple[int, PodRecord]] = []
        for class_id in self._demands.missed_classes():
            arriving, leaving = self._demands.arriving(class_id), self._demands.leaving(class_id)
            # Nobody gains anywhere, wherever there may be room: so it is with most.
            pods = self._pods_of(picture, class_id, leaving, int(np.min(arriving)))
            arriving = arriving[places(picture, pods[0], is_new=True)] if pods else arriving[:0]
            if not len(arriving):
                continue
            # Where a domain lacks pods it is who comes there that repairs something, from wherever nobody is missed.
            lowest = int(np.min(arriving))
            found += [
                (lowest - gained, pod)
                for pod in pods
                if (gained := leaving.item(pod.row)) > lowest and picture.is_movable(pod)
            ]
        found.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in found]

    def _pods_of(self, picture: Picture, class_id: int, leaving: Int64s, least: int) -> list[PodRecord]:
        """The pods of a class for whose leaving more than so much less would be missed."""
        pods = picture.cluster.pods
        slots = np.fromiter(pods.of_class.get(class_id, ()), dtype=np.int64)
        rows = pods.row[slots]
        chosen = slots[(rows >= 0) & ~pods.terminating[slots] & (leaving[rows] > least)]
        return [pods.record(slot) for slot in chosen.tolist()]

    def _proposal(self, picture: Picture, pod: PodRecord) -> Proposal | None:
        """The pod's move to where it gains, as things are by now; None where it would gain nowhere."""
        demands, class_id, row = self._demands, pod.pod_class.id, pod.row
        leaving = int(demands.leaving(class_id)[row])
        complaints = demands.complaints(class_id, row)
        demands.count(class_id, row, -1)
        arriving = demands.arriving(class_id)
        demands.count(class_id, row, 1)
        targets = rough_fit(picture, pod) & (arriving < leaving)
        reason = self._reason(picture, pod, complaints) if targets.any() else ""
        if not reason:
            return None
        return Proposal((Relocation(pod, targets, np.asarray(-arriving, dtype=np.float64)),), reason)
