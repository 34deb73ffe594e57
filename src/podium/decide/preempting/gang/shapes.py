"""What a gang's members have in common, and what their shapes say of how places for them may be looked for."""

from __future__ import annotations

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.play import Play

_MILLIONTHS = 1_000_000

Shape = tuple[int, int]
"""A member's class and priority: filters say the same of all that have the same."""


class Shapes:
    """The shapes of a gang's members, as things were before anybody came or went.

    ``is_apart``: filters answer for each row by that row, nothing but room is reserved, and each nominated pod counts
    for all members or for none, so that it does not matter in which order members come. ``any_place_will_do``: it is
    all the same for the others, too, to which of the nodes that take it each member goes, for members are alike. Then
    as many find a place as ever can.
    """

    def __init__(self, play: Play, gang: Gang) -> None:
        self.gang = gang
        members = {shape_of(member): member for member in reversed(gang.members)}
        is_local = all(play.handle.is_row_local(play.asked(member)[0]) for member in members.values())
        self.is_apart = is_local and not play.reserves(gang.members) and not _is_between(play.cluster, gang)
        self.any_place_will_do = self.is_apart and len(members) == 1
        self.members = members
        """The first member of each shape."""
        size = {shape: _size(play, member) for shape, member in members.items()}
        self.in_order = gang.members
        """The members in the order in which places are looked for: the largest first, where that is free."""
        if self.is_apart:
            self.in_order = tuple(sorted(gang.members, key=lambda member: -size[shape_of(member)]))


def shape_of(member: PodRecord) -> Shape:
    """A member's shape."""
    return member.pod_class.id, member.priority


def _is_between(cluster: Cluster, gang: Gang) -> bool:
    """Whether some nominated pod keeps room from one member that it does not keep from another, by their priorities.

    Then a member for whom it does not count may come last where it could not come first.
    """
    priorities = {member.priority for member in gang.members}
    lowest, highest, of = min(priorities), max(priorities), cluster.nominations.priority
    return lowest < highest and any(lowest <= of(pod) < highest for pod, _ in cluster.nominations.all())


def _size(play: Play, member: PodRecord) -> int:
    """The largest share that a member asks for of what the largest node offers, in millionths."""
    nodes = play.cluster.nodes
    shares = [
        amount * _MILLIONTHS // max(1, int(nodes.allocatable[resource, : nodes.count].max(initial=0)))
        for resource, amount in member.pod_class.requests.items()
    ]
    return max(shares, default=0)
