"""The nodes to which the members of a gang may go together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.decide.preempting.gang.gang import Gang


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """``allowed`` is ``[rows]``: all of them, or those of one ``domain``."""

    allowed: Bools
    domain: str = ""


def worlds_of(cluster: Cluster, gang: Gang) -> list[World]:
    """The domains in which members may be, by name; the whole cluster where they may be anywhere."""
    worlds = []
    for name, rows in sorted(gang.domains, key=lambda domain: domain[0]):
        allowed = np.full(cluster.nodes.count, rows is None)
        if rows is not None:
            allowed[rows] = True
        worlds.append(World(allowed, name))
    return worlds
