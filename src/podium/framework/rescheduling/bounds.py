"""Lower bounds on objectives of policies, node by node, for certificates of plans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
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
            span = labels.max(initial=0) + 1
            labelled = self.pod_rows * span + labels
            pairs, self.stacks, self._sizes = np.unique(labelled, return_inverse=True, return_counts=True)
            keys = np.divmod(pairs, span)
            logs = np.bincount(keys[0], np.log(self._sizes + 1), count)
            several = np.bincount(keys[0], keys[1], count) > 0
            if np.exp(np.minimum(logs, 50)).sum() <= _MOST_ENTRIES or not several.any():
                break
            crowded = several & (logs >= logs[several].max() - 1)
            labels = np.where(crowded[self.pod_rows], labels // 2, labels)
        self._rows_of_stacks = keys[0]
        # The entries of a row are its stacks' numbers of leaving pods, as the digits of a number.
        choices = np.ones(count, dtype=np.int64)
        self._strides = np.ones(len(self._sizes), dtype=np.int64)
        for stack, row in reversed(list(enumerate(keys[0].tolist()))):
            self._strides[stack] = choices[row]
            choices[row] *= self._sizes[stack] + 1
        self.starts: Int64s = np.concatenate([[0], choices.cumsum()])
        self.rows: Int64s = np.repeat(np.arange(count, dtype=np.int64), choices)
        self._choices = np.arange(len(self.rows)) - self.starts[self.rows]
        first = np.searchsorted(keys[0], np.arange(count + 1))
        each = np.diff(first)[self.rows]
        entries = np.repeat(np.arange(len(self.rows), dtype=np.int64), each)
        stacks = np.arange(len(entries)) - np.repeat(each.cumsum() - each - first[self.rows], each)
        numbers = self._choices[entries] // self._strides[stacks] % (self._sizes[stacks] + 1)
        leaving = numbers > 0
        entries, stacks, numbers = entries[leaving], stacks[leaving], numbers[leaving]
        self.numbers: Int64s = np.bincount(entries, numbers, len(self.rows)).astype(np.int64)
        self.fewer: tuple[Int64s, Int64s] = (entries, entries - self._strides[stacks])
        self._read(entries, stacks, numbers)

    def _read(self, entries: Int64s, stacks: Int64s, numbers: Int64s) -> None:
        """Read the items: an entry, a stack, and the number of its pods that leave, above 0."""
        self._entries, self._stacks, self._numbers = entries, stacks, numbers
        used = np.bincount(stacks, minlength=len(self._sizes)) > 0
        self._used = np.flatnonzero(used)
        sizes = self._sizes[self._used]
        first = sizes.cumsum() - sizes
        # The pods that leave by an item, in the order by stack of those that may leave.
        self._begins: Int64s = first[used.cumsum()[stacks] - 1]
        self._ends: Int64s = self._begins + numbers
        self._ranks = np.arange(sizes.sum()) - np.repeat(first, sizes)
        stacked = np.flatnonzero(used[self.stacks])
        # The pods that may leave, by stack, and the places of those in stacks of several, which alone have an order.
        self._stacked = stacked[np.argsort(self.stacks[stacked], kind="stable")]
        self._several = np.flatnonzero(self._sizes[self.stacks[self._stacked]] > 1)

    def pods_of(self, classes: Collection[int]) -> Int64s:
        """Return the indices of the pods of some classes (ids), ascending."""
        return np.flatnonzero(np.isin(self._classes, [*classes]))

    def of(self, entries: Int64s) -> Departures:
        """Return a copy with some entries alone, in ascending order, at least one of each row; without ``fewer``."""
        few, place = copy(self), np.full(len(self.rows), -1)
        place[entries] = np.arange(len(entries))
        kept = place[self._entries] >= 0
        few._read(place[self._entries[kept]], self._stacks[kept], self._numbers[kept])
        few.rows, few.numbers, few._choices = self.rows[entries], self.numbers[entries], self._choices[entries]
        few.starts, few.fewer = np.searchsorted(few.rows, np.arange(len(self.starts))), (entries[:0], entries[:0])
        return few

    def order(self, amounts: Float64s) -> Int64s:
        """Return the pods that leave by some entry (indices), by stack, the least amounts (`[pods]`) first."""
        order = self._stacked.copy()
        several = order[self._several]
        order[self._several] = several[np.lexsort((amounts[several], self.stacks[several]))]
        return order

    def most(self, amounts: Float64s, order: Int64s | None = None) -> Float64s:
        """Return `[entries]` the largest sum of the amounts (`[pods]`) of pods that leave, the first by an order."""
        if not len(self._entries):
            return np.zeros(len(self.rows))
        order = self.order(-amounts) if order is None else order
        sums = np.concatenate([[0.0], amounts[order].cumsum()])
        each = sums[self._ends] - sums[self._begins]
        return np.bincount(self._entries, each, len(self.rows)).astype(np.float64, copy=False)

    def leaving(self, entries: Int64s, order: Int64s) -> Bools:
        """Return `[pods]` which pods leave by an entry of each row (`[rows]`), the first of each stack in an order."""
        found, sizes = np.zeros(len(self.pods), dtype=np.bool_), self._sizes[self._used]
        chosen = self._choices[entries[self._rows_of_stacks[self._used]]] // self._strides[self._used] % (sizes + 1)
        found[order] = self._ranks < np.repeat(chosen, sizes)
        return found


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
