"""What becomes of the pods of a gang: enough of them get nodes together, or none does."""

from __future__ import annotations

from podium.app.explaining.gang import GangDecision
from podium.app.planning.deciding.fates import Fate
from podium.cluster.pods import PodRecord


def fates_of(decision: GangDecision) -> tuple[Fate, ...]:
    """The pods that get a node now, or once those are gone whom one plan for all of them takes; none where they wait.

    Victims on other nodes than the members' are told with the first member.
    """
    if decision.is_enough:
        return tuple(Fate(member.pod, member.node_name) for member in decision.placement.members if member.fits)
    if decision.way_out is None or not decision.way_out.placements:
        return ()
    victims: dict[str, list[PodRecord]] = {}
    chosen = {node_name for _, node_name in decision.way_out.placements}
    first = decision.way_out.placements[0][1]
    for victim in decision.way_out.victims:
        victims.setdefault(victim.node_name if victim.node_name in chosen else first, []).append(victim)
    # Of several members on one node the first is the one for whom they go.
    return tuple(
        Fate(pod, node_name, tuple(victims.pop(node_name, ()))) for pod, node_name in decision.way_out.placements
    )
