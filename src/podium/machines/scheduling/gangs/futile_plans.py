"""Whether a group would have its places but for pods that came there since: what its preemption was for is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.reprieve import stands
from podium.framework.runner import Runner
from podium.machines.scheduling.futile_notes import Round


def would_fit(runner: Runner, gang: Gang, rounds: Mapping[str, Round], gone: Sequence[PodRecord]) -> bool:
    """Whether the members (uids) would fit the nodes of their rounds, one beside the other, without some pods.

    Raises PluginError where a plugin fails over one of them.
    """
    row_of = runner.cluster.nodes.row_of
    nodes = [(member, rounds[member.uid].node_name) for member in gang.members if member.uid in rounds]
    if not all(node_name in row_of for _, node_name in nodes):
        return False
    with Play(runner, gang) as play:
        return stands(play, [tuple(gone)], [(member, row_of[node_name]) for member, node_name in nodes])
