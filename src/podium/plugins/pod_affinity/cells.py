"""Inter-pod affinity asked about one node of each domain, or of each number of pods where domains are single nodes.

The rules are those of `podium.plugins.pod_affinity.inter_pod_affinity`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import CarriesAntiAffinity, Predicate, Selected
from podium.cluster.pod_class import PodClass, WeightedTerm
from podium.cluster.pods import PodRecord
from podium.framework.plugin import MAX_NODE_SCORE
from podium.plugins.domain_counts import DomainCount, DomainCounts


class AffinityFilterCells(DomainCounts):
    """The required terms of a class, and those of other pods that select it."""

    def __init__(self, cluster: Cluster, pod_class: PodClass) -> None:
        self._cluster = cluster
        self._opposing = tuple(cluster.carried.anti_affinity(pod_class))
        near, apart = pod_class.required_affinity, pod_class.required_anti_affinity
        self._selected = Selected(near)
        self._refusing = tuple(
            DomainCount(cluster, predicate, term.topology_key)
            for terms, predicates in ((self._opposing, _carriers(self._opposing)), (apart, _selected(apart)))
            for term, predicate in zip(terms, predicates, strict=True)
        )
        self._near = tuple(DomainCount(cluster, self._selected, term.topology_key) for term in near)
        super().__init__((*self._refusing, *self._near))

    def is_current(self, pod: PodRecord) -> bool:
        """Whether the same terms select the class."""
        return tuple(self._cluster.carried.anti_affinity(pod.pod_class)) == self._opposing and self.are_current

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> list[bool]:
        """Whether the pod fits, for some rows."""
        found = [not any(count.around(row) for count in self._refusing) for row in rows]
        if not self._near:
            return found
        is_first: bool | None = None
        for number, row in enumerate(rows):
            if found[number] and not all(count.around(row) for count in self._near):
                if is_first is None:
                    is_first = self._is_first(pod.pod_class)
                found[number] = is_first and all(count.code(row) for count in self._near)
        return found

    def _is_first(self, pod_class: PodClass) -> bool:
        """Whether the class selects itself, and there is nobody whom all terms select."""
        return self._selected.matches(pod_class, self._cluster.namespaces) and not any(
            count.labelled() for count in self._near
        )


class AffinityScoreCells(DomainCounts):
    """The preferences of a class, and those of other pods that select it."""

    def __init__(
        self, cluster: Cluster, pod_class: PodClass, preferences: Sequence[tuple[int, Predicate, str]]
    ) -> None:
        self._cluster = cluster
        self._terms = _terms(cluster, pod_class)
        self._weights = [weight for weight, _, _ in preferences]
        super().__init__(tuple(DomainCount(cluster, predicate, key) for _, predicate, key in preferences))

    def is_current(self, pod: PodRecord) -> bool:
        """Whether the same terms select the class."""
        carried, (affinity, preferences) = self._cluster.carried, self._terms
        return (
            tuple(carried.affinity(pod.pod_class)) == affinity
            and tuple(carried.preferences(pod.pod_class)) == preferences
            and self.are_current
        )

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """The sums of weights around some rows, spread from 0 to 100."""
        if not self._weights:
            return [0] * len(rows)
        weighted = list(zip(self._weights, self._counts, strict=True))
        raw = [sum([weight * count.around(row) for weight, count in weighted]) for row in rows]
        lowest, highest = min(raw), max(raw)
        if lowest == highest:
            return [0] * len(raw)
        return [int(MAX_NODE_SCORE * ((score - lowest) / (highest - lowest))) for score in raw]


def _terms(cluster: Cluster, pod_class: PodClass) -> tuple[tuple[AffinityTerm, ...], tuple[WeightedTerm, ...]]:
    """The terms of others by which the nodes are rated for a class."""
    return tuple(cluster.carried.affinity(pod_class)), tuple(cluster.carried.preferences(pod_class))


def _carriers(terms: Collection[AffinityTerm]) -> list[Predicate]:
    return [CarriesAntiAffinity(term) for term in terms]


def _selected(terms: Collection[AffinityTerm]) -> list[Predicate]:
    return [Selected((term,)) for term in terms]
