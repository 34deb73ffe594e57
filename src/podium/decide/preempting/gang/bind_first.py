"""Members that are bound before their victims are gone: their kubelets hold them until these are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.play import Play
from podium.framework.cycle_state import CycleState
from podium.framework.group_plugin import GroupHandle


class Bound(NamedTuple):
    """A member, the node that it is bound to, and what plugins have prepared for that."""

    member: PodRecord
    node_name: str
    state: CycleState


def bound_first(handle: GroupHandle, gang: Gang) -> tuple[Bound, ...]:
    """The members that are nominated, where nothing but pods that terminate keeps them off their nodes; () otherwise.

    A kubelet waits for pods on its own node alone, so those on others count as there. At least as many as are needed
    have to be nominated.
    """
    row_of = handle.cluster.nodes.row_of
    rows = {
        member.uid: row_of[member.nominated_node_name]
        for member in gang.members
        if member.nominated_node_name in row_of
    }
    if len(rows) < gang.needed or not _is_one_domain(gang, set(rows.values())):
        return ()
    found: list[Bound] = []
    with Play(handle, gang) as play:
        for member in gang.members:
            row = rows.get(member.uid)
            if row is None:
                continue
            mark = play.mark()
            play.take([other for other in play.cluster.pods_on(row) if other.terminating])
            state, fitting = play.fitting(member, np.array([row], dtype=np.int64))
            play.roll_back(mark)
            if not len(fitting) or not play.put_asked(state, member, row):
                return ()
            found.append(Bound(member, play.cluster.nodes.name(row), state))
    return tuple(found)


def _is_one_domain(gang: Gang, rows: set[int]) -> bool:
    return any(domain is None or rows <= set(domain.tolist()) for _, domain in gang.domains)
