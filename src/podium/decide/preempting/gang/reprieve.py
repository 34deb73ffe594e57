"""Which victims of a way out the members could do without where they are, so that nobody goes without need.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain: reprieveVictim).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.units import Unit, Units, union


def stands(play: Play, units: Sequence[Unit], steps: Sequence[Step]) -> bool:
    """Whether members can go to their rows one after the other without some units; everything else is taken back."""
    play.roll_back(play.base)
    play.take(union(units))
    return all(play.put(member, row) for member, row in steps)


def is_local(play: Play, steps: Sequence[Step]) -> bool:
    """Whether filters answer for each row by that row, whichever member they are asked about."""
    return all(play.handle.is_row_local(play.asked(member)[0]) for member, _ in steps)


def come_alone(play: Play, partners: Partners, victims: Sequence[PodRecord], steps: Sequence[Step]) -> bool:
    """Whether a member finds none of those whom it requires to be near, once victims are gone; all is taken back."""
    play.roll_back(play.base)
    play.take(victims)
    found = False
    for member, row in steps:
        found = partners.leave_alone(member, row)
        if found or not play.put(member, row):
            break
    play.roll_back(play.base)
    return found


def needed(
    play: Play, units: Units, some: Sequence[Unit], steps: Sequence[Step], in_doubt: Collection[int]
) -> list[Unit]:
    """Those of some units that cannot be spared, which are tried in their order; everything is taken back.

    A unit is spared with those who go along with nobody else. Where filters answer for each row alone, and nobody
    depends on others, victims are needed on rows that are not ``in_doubt``.
    """
    play.roll_back(play.base)
    is_row_by_row = not units.has_dependents and is_local(play, steps)
    left = list(some)
    while True:
        before = len(left)
        for unit in list(left):
            rows = {pod.row for pod in unit}
            if is_row_by_row and rows.isdisjoint(in_doubt):
                continue
            others = [other for other in left if other is not unit]
            # Elsewhere nothing changes.
            concerned = [step for step in steps if not is_row_by_row or step[1] in rows]
            if is_row_by_row:
                gone = [other for other in others if any(pod.row in rows for pod in other)]
            else:
                gone = [tuple(units.gone(others))]
            spared = stands(play, gone, concerned)
            play.roll_back(play.base)
            if spared:
                left = others
        if is_row_by_row or len(left) == before:
            return left
