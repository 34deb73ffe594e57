"""Moves by which less is missed of what pods ask of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.parts.rough_fit import rough_fit

Reason = Callable[[Picture, PodRecord, Sequence[str]], str]
"""Why a pod should go, by what is missed where it is; "" if it should not."""


class DemandMoves:
    """Proposes pods that miss less elsewhere, or make others miss less; ``reason`` has the last word on each."""

    def __init__(self, demands: Demands, reason: Reason) -> None:
        self._demands = demands
        self._reason = reason

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods by what there is to be gained, the most first, of equals the least important, then by key."""
        self._demands.follow(picture)
        refused: set[tuple[int, int]] = set()
        for pod in self._candidates(picture):
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

    def _candidates(self, picture: Picture) -> list[PodRecord]:
        """The pods that would gain somewhere that may take them."""
        found: list[tuple[int, PodRecord]] = []
        for class_id in self._demands.missed_classes():
            pods = self._pods_of(picture, class_id)
            arriving = self._demands.arriving(class_id)[rough_fit(picture, pods[0], is_new=True)] if pods else ()
            if not len(arriving):
                continue
            # Where a domain lacks pods it is who comes there that repairs something, from wherever nobody is missed.
            leaving, lowest = self._demands.leaving(class_id), int(np.min(arriving))
            found += [
                (lowest - int(leaving[pod.row]), pod)
                for pod in pods
                if leaving[pod.row] > lowest and picture.is_movable(pod)
            ]
        found.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in found]

    def _pods_of(self, picture: Picture, class_id: int) -> list[PodRecord]:
        pods = picture.cluster.pods
        records = [pods.record(slot) for slot in pods.of_class.get(class_id, ())]
        return [record for record in records if record.row >= 0 and not record.terminating]

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
