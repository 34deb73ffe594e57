"""Replacements that came back to the node that their predecessors were evicted from.

That their scheduler prefers the node is then beyond doubt. So the owner's pods there are left alone for a while, and
each time for twice as long. Where nobody asks where replacements go, they may go round and round: then wherever one
comes to, it has come back, and the owner is left alone for the longer each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.framework.rescheduling.settings import Judgement, ReschedulerSettings
from podium.machines.parts.deadlines import earliest
from podium.machines.rescheduling.moves import Move, Moves
from podium.machines.rescheduling.picture.cluster_picture import ClusterPicture

# Longer than a replacement takes to come back again.
_REMEMBERED_NS = 7_200 * 10**9
_LONGEST_COOL_DOWN_NS = 7 * 24 * 3_600 * 10**9


@dataclass(slots=True)
class _Return:
    """The pods that came back and are still there, on which nodes, how long these are left alone, and until when."""

    pod_uids: frozenset[str]
    nodes: frozenset[str]
    length_ns: int
    until_ns: int


class Returns:
    """By owner and node ("" for any), who came back."""

    def __init__(self, picture: ClusterPicture) -> None:
        self._picture = picture
        self._returns: dict[tuple[str, str], _Return] = {}

    def look(self, moves: Moves, now: int, settings: ReschedulerSettings) -> None:
        """Find those who came back since the moves began."""
        by_owner: dict[str, list[Move]] = {}
        for move in moves:
            by_owner.setdefault(move.owner_uid, []).append(move)
        for owner, of_owner in by_owner.items():
            self._look_at_owner(owner, of_owner, now, settings)
        for place, found in list(self._returns.items()):
            if now >= found.until_ns + max(found.length_ns, _REMEMBERED_NS):
                del self._returns[place]

    def cooling(self, now: int) -> frozenset[tuple[str, str]]:
        """The owners whose pods on a node are left alone."""
        still = ((owner, found) for (owner, _), found in self._returns.items() if now < found.until_ns)
        return frozenset((owner, node) for owner, found in still for node in found.nodes)

    def next_time(self, now: int) -> int | None:
        """When some are left alone no longer, None for never."""
        return earliest(found.until_ns for found in self._returns.values() if found.until_ns > now)

    def _look_at_owner(self, owner: str, moves: Sequence[Move], now: int, settings: ReschedulerSettings) -> None:
        """Find those of an owner who came to a node after a pod was evicted from it; or to any, if nobody asks."""
        placed = [pod for pod in self._picture.pods_of(owner) if pod.node_name]
        if settings.judgement is Judgement.BLIND:
            made = [pod for pod in placed if any(move.may_have_made(pod) for move in moves)]
            self._look_at((owner, ""), made, placed, now, settings.cool_down_ns)
            return
        for move in moves:
            there = [pod for pod in placed if pod.node_name == move.source]
            made = [pod for pod in there if move.may_have_made(pod)]
            self._look_at((owner, move.source), made, there, now, settings.cool_down_ns)

    def _look_at(
        self,
        place: tuple[str, str],
        made: Sequence[PodRecord],
        there: Sequence[PodRecord],
        now: int,
        cool_down_ns: int,
    ) -> None:
        """Take in the pods that came to a place after a move, among those that are there."""
        before = self._returns.get(place)
        known = frozenset[str]() if before is None else before.pod_uids
        anew = [pod for pod in made if pod.uid not in known]
        if not anew:
            return
        length_ns = cool_down_ns if before is None else min(2 * before.length_ns, _LONGEST_COOL_DOWN_NS)
        until_ns = max(_came_ns(pod, now) for pod in anew) + length_ns
        if before is not None:
            until_ns = max(until_ns, before.until_ns)
        uids = known.union(pod.uid for pod in anew)
        back = [pod for pod in there if pod.uid in uids]
        nodes = frozenset(pod.node_name for pod in back)
        self._returns[place] = _Return(frozenset(pod.uid for pod in back), nodes, length_ns, until_ns)


def _came_ns(pod: PodRecord, now: int) -> int:
    """When a pod came to its node, as far as is known: whoever begins anew finds what came long ago."""
    return now if pod.start_ns == NOT_STARTED_NS else min(pod.start_ns, now)
