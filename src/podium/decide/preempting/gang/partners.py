"""Whom members require to be near, and who of them is left where a member comes."""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster.arrays import Int32s, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.play import Play
from podium.framework.reach import Reach


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """Pods that members require to be near: how many there were in each domain (``codes`` are the rows')."""

    reach: Reach
    codes: Int32s | Int64s
    before: Int64s


class Partners:
    """The pods that members require to be near, as things were before anybody came or went.

    A member is alone where none of these is left around it, and no other member has come there in their place. Filters
    let it in where its own terms select it, as the first of its group; where others were there before, victims saw to
    that.
    """

    def __init__(self, play: Play, gang: Gang, *, are_kept: bool) -> None:
        """Unless they ``are_kept`` none counts."""
        self._play = play
        self._near: dict[int, tuple[_Near, ...]] = {}
        for member in gang.members if are_kept else ():
            if member.pod_class.id not in self._near:
                self._near[member.pod_class.id] = self._found(member)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self._near.values())

    def leave_alone(self, member: PodRecord, row: int) -> bool:
        """Whether a member is alone on a row as things are."""
        count = self._play.cluster.domain_counts
        return any(
            not count(near.reach.predicate, near.reach.key)[near.codes[row]]
            for near in self._near.get(member.pod_class.id, ())
        )

    def are(self, pod: PodRecord) -> bool:
        """Whether some member requires to be near pods like this one, where it is."""
        matcher = self._play.cluster.matcher
        return any(
            near.before[near.codes[pod.row]] > 0 and pod.pod_class.id in matcher(near.reach.predicate).classes
            for found in self._near.values()
            for near in found
        )

    def _found(self, member: PodRecord) -> tuple[_Near, ...]:
        cluster = self._play.cluster
        state, _ = self._play.asked(member)
        found = []
        for reach in self._play.handle.reaches(state, member).found:
            if reach.effect == "Stay":
                before = cluster.domain_counts(reach.predicate, reach.key).copy()
                if before[1:].any():
                    found.append(_Near(reach, cluster.nodes.labels(reach.key).codes, before))
        return tuple(found)
