"""What a rescheduling policy is: who would be better elsewhere, and how bad things are, as a number.

A policy of one's own is a class with these members, named in the configuration as plugins are (`package.module:Class`).

Source: controlled-rescheduling.md, Rescheduler.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Bools
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture

Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Relocation:
    """A pod that would be better elsewhere.

    ``targets`` says for each row whether the pod may go there, None anywhere but where it is. ``preferred`` rates the
    rows, the highest is best; it counts where replacements are sent to a place of ours, None leaves that to their
    scheduler's scores.
    """

    pod: PodRecord
    targets: Bools | None = None
    preferred: Float64s | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Moves that make sense together, all of them or none, in the order in which the pods find their places.

    All of them leave before the first is placed, so that A may go into the room that B leaves. ``reason`` is for
    people: what is wrong with where they are. ``avoid_for_ns`` is how long the nodes that they leave are avoided by
    their controllers, None as long as the DisruptionPolicy says. With ``in_parts`` pods of one node may leave one after
    another, where limits or budgets do not let them go at once; then only the last of them brings the gain.
    """

    relocations: tuple[Relocation, ...]
    reason: str
    avoid_for_ns: int | None = None
    in_parts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Avoidance:
    """A controller whose pods had better keep off a node, though none of them runs there that could be moved.

    ``pod`` is one of its pods that ended on that node (`Signals.turned_away`). It is evicted, which disrupts nobody,
    and with that the controller comes on the node's avoid list, for ``avoid_for_ns`` as with a `Proposal`.
    """

    pod: PodRecord
    reason: str
    avoid_for_ns: int | None = None


@runtime_checkable
class Policy(Protocol):
    """One idea of what a good placement is.

    A proposal becomes a plan where each pod may be moved, has somewhere to go, and the sum of all policies' objectives,
    by their weights, falls by at least the threshold for each pod that is moved. So policies need not know one another,
    nor ask whether a pod fits: they say who is placed badly, the worst first. One that looks at what pods and nodes use
    has an attribute ``needs_use`` that is true: at a cluster nobody measures without need.
    """

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    def objective(self, picture: Picture) -> float:
        """How bad the placement is: 0 is as good as can be, and 1 as bad as one pod in quite the wrong place.

        It depends on the picture alone. It is asked after each move that is tried, and should cost about as much as a
        few operations on arrays of all rows.
        """
        ...

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        """What would make it better, the worst first; of equals, in the order of a key.

        While the proposals are gone through, moves are made: a generator sees the cluster as it is by then. What it
        proposed is its pods' last word for this time: nobody is moved twice.
        """
        ...


@runtime_checkable
class AvoidingPolicy(Policy, Protocol):
    """A policy that also says who had better keep off which node."""

    def avoidances(self, picture: Picture) -> Iterable[Avoidance]:
        """What is to be avoided, the worst first; of equals, in the order of a key.

        It may be proposed as long as it holds: nothing is done about controllers that are on the list already.
        """
        ...
