"""Topology spread asked about one node of each domain, or of each number of pods where domains are single nodes.

The rules are those of `podium.plugins.spreading.pod_topology_spread`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import MAX_NODE_SCORE
from podium.plugins.domain_counts import DomainCount, DomainCounts
from podium.plugins.spreading.constraints import HOSTNAME, NO_DOMAIN, Constraint, ConstraintSet, Domains

ConstraintsOf = Callable[[PodClass], ConstraintSet]


class SpreadCells(DomainCounts):
    """The constraints of a class. ``constraints_of`` says which ones it has now.

    Constraints can be kept count of where the pods of all nodes with the label count, or none.
    """

    def __init__(self, cluster: Cluster, pod_class: PodClass, constraints_of: ConstraintsOf) -> None:
        self._constraints_of = constraints_of
        self._set = constraints_of(pod_class)
        self._domains = self._set.domains(cluster, pod_class)
        super().__init__(
            tuple(DomainCount(cluster, constraint.predicate, constraint.key) for constraint in self._set.constraints)
        )
        self._each = list(zip(self._set.constraints, self._domains, self._counts, strict=True))

    @property
    def tell_apart(self) -> bool:
        counted = all(
            domains.all_labelled or not constraint.predicate.selector.requirements
            for constraint, domains in zip(self._set.constraints, self._domains, strict=True)
        )
        return counted and super().tell_apart

    def is_current(self, pod: PodRecord) -> bool:
        """Whether the class has the same constraints."""
        return self._constraints_of(pod.pod_class) is self._set and self.are_current


class SpreadFilterCells(SpreadCells):
    """The hard constraints."""

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> list[bool]:
        """Whether the pod fits, for some rows."""
        found = [True] * len(rows)
        for constraint, domains, count in self._each:
            is_counted = bool(constraint.predicate.selector.requirements)
            most = constraint.max_skew + _lowest(constraint, domains, count) - int(constraint.matches_self)
            for number, row in enumerate(rows):
                code = count.code(row)
                if not code or (count.of(code) if is_counted else 0) > most:
                    found[number] = False
        return found


class SpreadScoreCells(SpreadCells):
    """The soft constraints."""

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """The fewer matching pods around a row the better; rows without the labels get 0."""
        if not self._set:
            return [0] * len(rows)
        each = self._each
        counted = [
            number
            for number, row in enumerate(rows)
            if not self._set.need_all_keys or all(count.code(row) for _, _, count in each)
        ]
        raw = dict.fromkeys(counted, 0.0)
        for constraint, _, count in each:
            weight = math.log(_size(count, [(rows[number], sizes[number]) for number in counted]) + 2)
            is_counted = bool(constraint.predicate.selector.requirements)
            for number in counted:
                code = count.code(rows[number])
                if code:
                    matching = count.on(rows[number]) if constraint.key == HOSTNAME else count.of(code)
                    raw[number] += (matching if is_counted else 0) * weight + (constraint.max_skew - 1)
        scores = {number: math.floor(score + 0.5) for number, score in raw.items()}
        lowest, highest = min(scores.values(), default=0), max(scores.values(), default=0)
        return [
            (MAX_NODE_SCORE * (highest + lowest - scores[number]) // highest if highest else MAX_NODE_SCORE)
            if number in scores
            else 0
            for number in range(len(rows))
        ]


def _lowest(constraint: Constraint, domains: Domains, count: DomainCount) -> int:
    """How many pods match in the emptiest domain."""
    if len(domains.codes) < constraint.min_domains:
        return 0
    if not len(domains.codes):
        return NO_DOMAIN
    return count.lowest(domains.codes) if constraint.predicate.selector.requirements else 0


def _size(count: DomainCount, cells: Sequence[tuple[int, int]]) -> int:
    """How many nodes there are in some cells, each given by a row and its size, or how many domains of other keys."""
    if count.key == HOSTNAME:
        return sum(size for _, size in cells)
    if not count.is_single:
        return len({count.code(row) for row, _ in cells})
    return sum(size for row, size in cells if count.code(row)) + any(not count.code(row) for row, _ in cells)
