"""Counts of matching pods in topology domains, for one node at a time."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.view import View

FEW_DOMAINS = 64
"""The largest number of domains by which cells are formed."""


class DomainCount:
    """The matching pods in the domain of a node.

    Valid while `is_current` and no node changes. ``has_column`` is false if the domains are neither few nor single
    nodes; then there is no column.
    """

    def __init__(self, cluster: Cluster, predicate: Predicate, key: str) -> None:
        self._cluster = cluster
        self._predicate = predicate
        self.key = key
        self.domains()
        self._matcher = cluster.matcher(predicate)
        self._column = cluster.nodes.labels(key)
        self.is_single = self._column.is_single
        self.has_column = self.is_single or self._column.domains <= FEW_DOMAINS

    @property
    def is_current(self) -> bool:
        """Return whether the same counters are still updated."""
        self._matcher.is_used = True
        return self._matcher.is_live

    def domains(self) -> Int64s:
        """Return ``[codes]`` the matching pods by domain; code 0 is for nodes without the label."""
        return self._cluster.domain_counts(self._predicate, self.key)

    def code(self, row: int) -> int:
        """Return the domain of a row, 0 without the label."""
        return self._column.codes.item(row)

    @property
    def by_code(self) -> Int64s:
        """The matching pods by domain, as in `domains`; possibly with further entries."""
        return self._matcher.domains[self.key]

    def around(self, row: int) -> int:
        """Return the number of matching pods in a row's domain; 0 without the label."""
        code = self._column.codes.item(row)
        return self._matcher.domains[self.key].item(code) if code else 0

    def on(self, row: int) -> int:
        """Return the number of matching pods on a row."""
        return self._matcher.count.item(row)

    def labelled(self) -> int:
        """Return the number of matching pods on all nodes with the label."""
        return int(self.domains()[1:].sum())

    def column(self, view: View) -> Int64s:
        """Return what distinguishes rows: the domain, or the count if each node is a domain; -1 without the label."""
        codes = view.codes(self.key)
        shown = view.count(self._predicate) if self.is_single else codes
        return np.where(codes != 0, shown, -1).astype(np.int64)

    def of_row(self, row: int) -> int:
        """Return one row's entry in the column."""
        code = self._column.codes.item(row)
        if not code:
            return -1
        return self._matcher.count.item(row) if self.is_single else code


class DomainCounts:
    """Cells by several counts. Counts by the same few domains share a column."""

    def __init__(self, counts: tuple[DomainCount, ...]) -> None:
        single = [count for count in counts if count.is_single]
        self._counts = counts
        self._distinguishing = [*single, *{count.key: count for count in counts if not count.is_single}.values()]

    @property
    def has_cells(self) -> bool:
        """Return whether rows can be divided into cells."""
        return all(count.has_column for count in self._distinguishing)

    @property
    def are_current(self) -> bool:
        """Return whether the same counters are still updated."""
        for count in self._counts:  # noqa: SIM110 - a loop, since this is asked for every pod
            if not count.is_current:
                return False
        return True

    def columns(self, view: View) -> list[Int64s]:
        """Return what distinguishes the rows of a view."""
        return [count.column(view) for count in self._distinguishing]

    def of_row(self, row: int) -> tuple[int, ...]:
        """Return the entries of one row."""
        return tuple([count.of_row(row) for count in self._distinguishing])
