"""Lower bounds on objectives of policies, node by node, for certificates of plans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Float64s, Picture


class Departures:
    """How many movable pods leave each node: an entry for each row and each number from 0 to all of them.

    ``pods`` are the movable pods by row, then key and uid; ``pod_rows`` is their rows. ``rows`` and ``numbers`` are
    `[entries]`, ordered by row, then number. ``starts`` is `[rows + 1]`: the entries of row r begin at ``starts[r]``.
    """

    def __init__(self, picture: Picture, held: Collection[str] = ()) -> None:
        """Read the movable pods, without the ``held`` ones (uids)."""
        count = picture.cluster.nodes.count
        self.picture = picture
        movable = (pod for pod in picture.movable_pods() if pod.uid not in held)
        self.pods: Sequence[PodRecord] = sorted(movable, key=lambda pod: pod.row)
        self.pod_rows: Int64s = np.array([pod.row for pod in self.pods], dtype=np.int64)
        held = np.bincount(self.pod_rows, minlength=count)
        self.starts: Int64s = np.concatenate([[0], (held + 1).cumsum()])
        self.rows: Int64s = np.repeat(np.arange(count, dtype=np.int64), held + 1)
        self.numbers: Int64s = np.arange(len(self.rows), dtype=np.int64) - self.starts[self.rows]

    def most(self, amounts: Float64s) -> Float64s:
        """Return `[entries]` the largest sum of the amounts (`[pods]`) of that many pods of the row."""
        ordered = amounts[np.lexsort((-amounts, self.pod_rows))]
        sums = np.concatenate([[0.0], ordered.cumsum()])
        # Before a row's pods are as many entries as pods and rows.
        first = self.starts[:-1] - np.arange(len(self.starts) - 1)
        return np.asarray(sums[first[self.rows] + self.numbers] - sums[first[self.rows]])

    def least(self, amounts: Float64s) -> Float64s:
        """Return `[entries]` the smallest sum of the amounts (`[pods]`) of that many pods of the row."""
        return -self.most(-amounts)


@dataclass(frozen=True, slots=True, eq=False)
class NodeState:
    """A possible final state of nodes: what it costs at least (`[entries]`; infinite: impossible).

    ``loads`` are the largest loads of nodes in this state by resource index (`[entries]` each); resources that are
    missing are not limited by it. The index ``PODS`` stands for the number of pods.
    """

    costs: Float64s
    loads: tuple[tuple[int, Float64s], ...] = ()


PODS = -1


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveBound:
    """A lower bound on an objective: ``base``, plus for each node the cost of its state.

    Each node ends in one of the ``states``, whatever pods arrive. ``relaxed`` names the parts of the objective that the
    bound counts as less than they are.
    """

    states: Sequence[NodeState] = ()
    base: float = 0.0
    relaxed: tuple[str, ...] = ()


@runtime_checkable
class BoundedObjective(Protocol):
    """A policy that states a lower bound on its objective.

    It is separate from `Policy`: certificates name policies without a bound and leave them out.
    """

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return a bound that holds for every placement that moves of the movable pods can reach.

        ``price`` is that of a move in units of the objective. The bound holds whatever it is, but can be tighter.
        """
