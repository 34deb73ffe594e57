"""Replacements that came back to the node that their predecessors were evicted from.

That their scheduler prefers the node is then beyond doubt. So the owner's pods there are left alone for a while, and
each time for twice as long. Where nobody asks where replacements go, they may go round and round: then wherever one
comes to it is left alone as if it had come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.framework.rescheduling.settings import Judgement, ReschedulerSettings
from podium.machines.parts.deadlines import earliest
from podium.machines.rescheduling.cluster_picture import ClusterPicture
from podium.machines.rescheduling.moves import Moves

# Longer than a replacement takes to come back again.
_REMEMBERED_NS = 3_600 * 10**9
_LONGEST_COOL_DOWN_NS = 7 * 24 * 3_600 * 10**9


@dataclass(slots=True)
class _Return:
    """The pods that came back and are still there, how long they are left alone for that, and until when."""

    pod_uids: frozenset[str]
    length_ns: int
    until_ns: int


class Returns:
    """By owner and node, who came back."""

    def __init__(self, picture: ClusterPicture) -> None:
        self._picture = picture
        self._returns: dict[tuple[str, str], _Return] = {}

    def look(self, moves: Moves, now: int, settings: ReschedulerSettings) -> None:
        """Find those who came back since the moves began."""
        is_blind = settings.judgement is Judgement.BLIND
        for move in moves:
            made = [pod for pod in self._picture.pods_of(move.owner_uid) if pod.node_name and move.may_have_made(pod)]
            for node in sorted({pod.node_name for pod in made if is_blind} | {move.source}):
                there = [pod for pod in made if pod.node_name == node]
                self._look_at((move.owner_uid, node), there, now, settings.cool_down_ns)
        for place, found in list(self._returns.items()):
            if now >= found.until_ns + max(found.length_ns, _REMEMBERED_NS):
                del self._returns[place]

    def cooling(self, now: int) -> frozenset[tuple[str, str]]:
        """The owners whose pods on a node are left alone."""
        return frozenset(place for place, found in self._returns.items() if now < found.until_ns)

    def next_time(self, now: int) -> int | None:
        """When some are left alone no longer, None for never."""
        return earliest(found.until_ns for found in self._returns.values() if found.until_ns > now)

    def _look_at(self, place: tuple[str, str], made: Sequence[PodRecord], now: int, cool_down_ns: int) -> None:
        """Take in the pods that are in a place and came after a move."""
        before = self._returns.get(place)
        known = frozenset[str]() if before is None else before.pod_uids
        anew = [pod for pod in made if pod.uid not in known]
        if not anew:
            return
        length_ns = cool_down_ns if before is None else min(2 * before.length_ns, _LONGEST_COOL_DOWN_NS)
        until_ns = max(_came_ns(pod, now) for pod in anew) + length_ns
        if before is not None:
            until_ns = max(until_ns, before.until_ns)
        there = {pod.uid for pod in self._picture.pods_of(place[0]) if pod.node_name == place[1]}
        uids = (known & there).union(pod.uid for pod in anew)
        self._returns[place] = _Return(uids, length_ns, until_ns)


def _came_ns(pod: PodRecord, now: int) -> int:
    """When a pod came to its node, as far as is known: whoever begins anew finds what came long ago."""
    return now if pod.start_ns == NOT_STARTED_NS else min(pod.start_ns, now)
