"""Lower bounds on objectives of policies, node by node, for certificates of plans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Float64s, Picture

# The most entries, unless one stack for each row has more.
_MOST_ENTRIES = 400_000


class Departures:
    """Which movable pods leave each node: an entry for each row and each choice of a number of pods of each stack.

    ``pods`` are the movable pods by row, then key and uid; ``pod_rows`` is their rows. Pods of a row with the same
    label form a stack. ``rows`` and ``numbers``, of all stacks, are `[entries]`, ordered by row. By the first entry of
    row r, ``starts[r]`` (`[rows + 1]`), no pod leaves, by the last one all do. ``fewer`` are pairs of an entry and one
    by which one pod less of a stack leaves.
    """

    within_settings = False
    """Whether bounds may hold only for plans that respect the settings of policies, instead of for all placements."""

    def __init__(self, picture: Picture, pods: Sequence[PodRecord] | None = None, labels: Int64s | None = None) -> None:
        """Read some movable pods, by row, or all. All pods of a row form one stack without ``labels``.

        Labels are `[pods]`, 0 or more. Neighbours are merged in the rows with the most entries if there are too many.
        """
        count = picture.cluster.nodes.count
        self.picture = picture
        self.pods = sorted(picture.movable_pods(), key=lambda pod: pod.row) if pods is None else pods
        self.pod_rows: Int64s = np.array([pod.row for pod in self.pods], dtype=np.int64)
        self._classes = np.array([pod.pod_class.id for pod in self.pods], dtype=np.int64)
        self.is_labelled = labels is not None
        labels = np.zeros(len(self.pods), dtype=np.int64) if labels is None else labels
        while True:
            pairs = np.array([self.pod_rows, labels])
            keys, self.stacks, self._sizes = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
            logs = np.bincount(keys[0], np.log(self._sizes + 1), count)
            several = np.bincount(keys[0], keys[1], count) > 0
            if np.exp(np.minimum(logs, 50)).sum() <= _MOST_ENTRIES or not several.any():
                break
            crowded = several & (logs >= logs[several].max() - 1)
            labels = np.where(crowded[self.pod_rows], labels // 2, labels)
        self.stacks = self.stacks.reshape(-1)
        # The entries of a row are its stacks' numbers of leaving pods, as the digits of a number.
        choices = np.ones(count, dtype=np.int64)
        self._strides = np.ones(len(self._sizes), dtype=np.int64)
        for stack, row in reversed(list(enumerate(keys[0].tolist()))):
            self._strides[stack] = choices[row]
            choices[row] *= self._sizes[stack] + 1
        self.starts: Int64s = np.concatenate([[0], choices.cumsum()])
        self.rows: Int64s = np.repeat(np.arange(count, dtype=np.int64), choices)
        first = np.searchsorted(keys[0], np.arange(count + 1))
        each = np.diff(first)[self.rows]
        entries = np.repeat(np.arange(len(self.rows), dtype=np.int64), each)
        stacks = np.arange(len(entries)) - np.repeat(each.cumsum() - each - first[self.rows], each)
        numbers = (entries - self.starts[self.rows[entries]]) // self._strides[stacks] % (self._sizes[stacks] + 1)
        leaving = numbers > 0
        # An item for each entry and stack of which pods leave: the entry, and the place of their sum in a table of the
        # sums of the first pods of each stack, from none to all.
        self._entries, stacks, numbers = entries[leaving], stacks[leaving], numbers[leaving]
        self._first: Int64s = np.concatenate([[0], self._sizes.cumsum()])
        self._items = self._first[stacks] + stacks + numbers
        tabled = np.repeat(np.arange(len(self._sizes)), self._sizes + 1)
        self._from, self._upto = self._first[tabled], np.arange(len(tabled)) - tabled
        self.numbers: Int64s = np.bincount(self._entries, numbers, len(self.rows)).astype(np.int64)
        self.fewer: tuple[Int64s, Int64s] = (self._entries, self._entries - self._strides[stacks])

    def pods_of(self, classes: Collection[int]) -> Int64s:
        """Return the indices of the pods of some classes (ids), ascending."""
        return np.flatnonzero(np.isin(self._classes, [*classes]))

    def keep(self, entries: Int64s) -> None:
        """Forget all other entries: their sums become 0."""
        is_kept = np.zeros(len(self.rows), dtype=np.bool_)
        is_kept[entries] = True
        kept = is_kept[self._entries]
        self._entries, self._items = self._entries[kept], self._items[kept]

    def most(self, amounts: Float64s) -> Float64s:
        """Return `[entries]` the largest sum of the amounts (`[pods]`) of pods that leave."""
        if not len(self._entries):
            return np.zeros(len(self.rows))
        sums = np.concatenate([[0.0], amounts[np.lexsort((-amounts, self.stacks))].cumsum()])
        each = (sums[self._upto] - sums[self._from])[self._items]
        return np.bincount(self._entries, each, len(self.rows)).astype(np.float64, copy=False)

    def leaving(self, entries: Int64s, amounts: Float64s) -> Bools:
        """Return `[pods]` which pods leave by an entry of each row (`[rows]`), the least amounts of a stack first."""
        order = np.lexsort((amounts, self.stacks))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - self._first[self.stacks[order]]
        chosen = (entries - self.starts[:-1])[self.pod_rows] // self._strides[self.stacks]
        return np.asarray(rank < chosen % (self._sizes[self.stacks] + 1))


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
class Reliefs:
    """By how much an objective falls at most as pods leave their nodes, `[pods]` each.

    ``own`` is what each pod adds to that. Of the pods of a ``group``, which are on one node, each of the first ``most``
    that leave adds 1, whichever they are.
    """

    own: Float64s
    group: Int64s
    most: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveBound:
    """A lower bound on an objective: ``base``, plus for each node the cost of its state, less the ``reliefs``.

    Each node ends in one of the ``states``, whatever pods arrive. ``relaxed`` names the parts of the objective that the
    bound counts as less than they are, and the plans for which it does not hold. With ``labels``, which suffice at
    first, it is asked for again with them.
    """

    states: Sequence[NodeState] = ()
    base: float = 0.0
    relaxed: tuple[str, ...] = ()
    labels: Int64s | None = None
    reliefs: Reliefs | None = None


@runtime_checkable
class BoundedObjective(Protocol):
    """A policy that states a lower bound on its objective.

    It is separate from `Policy`: certificates name policies without a bound and leave them out.
    """

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return a bound that holds for every placement that moves of the movable pods can reach.

        ``price`` is that of a move in units of the objective. The bound holds whatever it is, but can be tighter.
        """
