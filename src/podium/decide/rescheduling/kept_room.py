"""Whose the room is that moved pods leave: pods that wait for room may be there before any replacement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.landing import as_replacement
from podium.decide.rescheduling.moments import Leaver
from podium.decide.rescheduling.standing import PastMove
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Relocation

MOST_WAITING = 16
"""At so many waiting pods is looked, the most important ones."""

Seats = tuple[tuple[PodRecord, int], ...]
"""Waiting pods, and the rows where there is room for them."""


def let_go(scratch: Scratch, under_way: Iterable[PastMove]) -> list[Leaver]:
    """Let the pods be gone that were evicted and take their time to end, so that nobody is moved for what they hold.

    They are told by their owners and nodes.
    """
    cluster = scratch.cluster
    gone = list[Leaver]()
    for (owner_uid, source), number in sorted(Counter((move.owner_uid, move.source) for move in under_way).items()):
        row = cluster.nodes.row_of.get(source)
        pods = [] if row is None else cluster.pods_on(row)
        going = [pod for pod in pods if pod.terminating and pod.owner_uid == owner_uid]
        for pod in sorted(going, key=lambda pod: (pod.key, pod.uid))[:number]:
            gone.append(Leaver(Relocation(pod), pod.row))
            scratch.take_off(pod.uid)
    return gone


def keep_expected(scratch: Scratch, under_way: Iterable[PastMove], now: int) -> None:
    """Let the replacements that are on their way be where they are expected, so that nobody else gets that room.

    For one that nobody has seen yet stands the pod that was evicted, which may still be there. Those that are nominated
    keep their room by that.
    """
    cluster = scratch.cluster
    for move in under_way:
        pod, row = move.waiting, cluster.nodes.row_of.get(move.target)
        if pod is None or row is None or pod.uid in cluster.nominations:
            continue
        placed = cluster.placed.get(pod.uid)
        if placed is not None and placed.node_name != move.source:
            continue
        expected = pod if placed is None else as_replacement(pod, now)
        if expected.uid not in cluster.placed:
            scratch.place(expected, row)


class WaitingPods:
    """The pods that wait for room, and where those of them sit that got some by moves."""

    def __init__(self, scratch: Scratch, picture: Picture) -> None:
        self._scratch = scratch
        cluster = picture.cluster
        self._pods = [
            pod
            for pod in picture.waiting
            if not pod.gates and pod.uid not in cluster.placed and pod.uid not in cluster.nominations
        ][:MOST_WAITING]
        self._seats: dict[str, int] = {}

    def seats(self, left: Collection[int], priority: int) -> Seats:
        """Who of at least a priority takes the room that was left in some rows, beside those who have some already."""
        rows = np.array(sorted(left), dtype=np.int64)
        seats: list[tuple[PodRecord, int]] = []
        mark = self._scratch.mark()
        for pod in self._pods:
            if pod.uid in self._scratch.cluster.placed:
                # A replacement that is expected somewhere else (`keep_expected`).
                continue
            row = self._seats.get(pod.uid)
            if row is None and pod.priority >= priority:
                fitting = self._scratch.fitting(pod, rows)
                row = int(fitting[0]) if len(fitting) else None
            if row is not None:
                self._scratch.place(pod, row)
                seats.append((pod, row))
        self._scratch.roll_back(mark)
        return tuple(seats)

    @contextmanager
    def seated(self, seats: Seats) -> Iterator[None]:
        """The cluster with pods on their seats, for a while: nobody is to take their coming for the merit of a move."""
        mark = self._scratch.mark()
        for pod, row in seats:
            self._scratch.place(pod, row)
        try:
            yield
        finally:
            self._scratch.roll_back(mark)

    def keep(self, seats: Seats) -> None:
        """What they sit on is theirs from now on."""
        self._seats = {pod.uid: row for pod, row in seats}
