"""All moves of a plan played at once, as they will be made: nobody waits for anybody.

Proposals are tried one after another, each as if those before it were over. In truth all pods are asked to end at the
same time; the replacements come before they are gone, and are placed in the order of the scheduler's queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podium.cluster.pods import NO_ROW
from podium.decide.rescheduling.landing import Landing, Landings
from podium.decide.rescheduling.moments import Arrival, Leaver
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.picture import Picture


class RehearsalError(Exception):
    """A replacement would go where it should not, or nowhere: whose, and why."""

    def __init__(self, leaver: Leaver, why: str) -> None:
        super().__init__(why)
        self.leaver = leaver
        self.why = why


class Rehearsal:
    """Plays the moves of ``arrivals``, which ``scratch`` shows as they were planned, and leaves what comes of them.

    Pods that were evicted before, ``going``, are still there as well.

    Where a scheduler may choose among several rows, and the one that was thought of is one of them, that is taken. What
    fits nowhere at first waits until all who leave are gone, as do replacements that are made no sooner.
    """

    def __init__(
        self,
        scratch: Scratch,
        picture: Picture,
        landings: Landings,
        arrivals: Sequence[Arrival],
        going: Sequence[Leaver],
    ) -> None:
        self._scratch = scratch
        self._picture = picture
        self._landings = landings
        self._queue = sorted(arrivals, key=lambda arrival: -arrival.pod.priority)
        self._leaving = [arrival.leaver for arrival in arrivals]
        self._there = [*going, *self._leaving]

    def play(self) -> None:
        """Play them. Raises RehearsalError."""
        scratch = self._scratch
        for arrival in self._queue:
            scratch.take_off(arrival.pod.uid)
        for leaver in self._there:
            scratch.place(replace(leaver.pod, terminating=True, row=NO_ROW, slot=-1), leaver.row)
        late = [arrival for arrival in self._queue if arrival.leaver.ends_first]
        late += self._place(arrival for arrival in self._queue if not arrival.leaver.ends_first)
        for leaver in self._there:
            scratch.take_off(leaver.pod.uid)
        for arrival in self._place(late):
            raise RehearsalError(arrival.leaver, "no other node takes it once all who are to move are on their way")

    def _place(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Let some come, one after another; those that fit nowhere."""
        waiting = []
        for arrival in arrivals:
            landing = self._landings.find(arrival.pod, arrival.leaver, self._leaving, arrival.row)
            if not landing.fits:
                waiting.append(arrival)
            elif landing.why:
                raise RehearsalError(arrival.leaver, f"{landing.why}, once all who are to move are on their way")
            else:
                self._scratch.place(arrival.pod, self._row(arrival, landing))
        return waiting

    def _row(self, arrival: Arrival, landing: Landing) -> int:
        if arrival.row in landing.rows:
            return arrival.row
        hashes = self._picture.cluster.nodes.name_hash[landing.rows]
        return int(landing.rows[hashes.argmin()])
