"""Which victims of a way out the members could do without where they are, so that nobody goes without need.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain: reprieveVictim).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.units import Unit, union


def stands(play: Play, units: Sequence[Unit], steps: Sequence[Step]) -> bool:
    """Whether members can go to their rows one after the other without some units; everything else is taken back."""
    play.roll_back(play.base)
    play.take(union(units))
    return all(play.put(member, row) for member, row in steps)


def needed(play: Play, units: Sequence[Unit], steps: Sequence[Step], in_doubt: Collection[int]) -> list[Unit]:
    """Those of the units that cannot be spared, which are tried in their order; everything is taken back.

    Where filters answer for each row alone, victims are needed on rows that are not ``in_doubt``.
    """
    play.roll_back(play.base)
    is_local = all(play.handle.is_row_local(play.asked(member)[0]) for member, _ in steps)
    left = list(units)
    while True:
        before = len(left)
        for unit in list(left):
            rows = {pod.row for pod in unit}
            if is_local and rows.isdisjoint(in_doubt):
                continue
            others = [other for other in left if other is not unit]
            # Elsewhere nothing changes.
            concerned = [step for step in steps if not is_local or step[1] in rows]
            if is_local:
                near = [other for other in others if any(pod.row in rows for pod in other)]
                spared = stands(play, near, concerned)
            else:
                spared = stands(play, others, concerned)
            play.roll_back(play.base)
            if spared:
                left = others
        if is_local or len(left) == before:
            return left
