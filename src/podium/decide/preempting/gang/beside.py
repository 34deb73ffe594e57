"""The places of further members, who are not needed, beside those of a way out."""

from __future__ import annotations

from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.reprieve import stands
from podium.decide.preempting.gang.ways import Found


def beside(play: Play, gang: Gang, found: Found) -> list[Step]:
    """The members' rows, and those of further members that fit beside them as things are then."""
    gone = [tuple(found.victims)]
    placed = {member.uid for member, _ in found.steps}
    rest = [member for member in gang.members if member.uid not in placed]
    if not rest or not stands(play, gone, found.steps):
        play.roll_back(play.base)
        return found.steps
    further = []
    for member in rest:
        _, rows = play.fitting(member)
        rows = rows[found.world.allowed[rows]]
        hashes = play.cluster.nodes.name_hash[rows]
        if len(rows) and play.put(member, row := int(rows[hashes.argmin()])):
            further.append((member, row))
    place = {member.uid: number for number, member in enumerate(gang.members)}
    both = sorted([*found.steps, *further], key=lambda step: place[step[0].uid])
    # Who is tried in between must not keep those off who are needed.
    steps = both if stands(play, gone, both) else found.steps
    play.roll_back(play.base)
    return steps
