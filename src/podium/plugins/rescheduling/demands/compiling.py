"""What demands are made of: the domains of topology keys, the classes that terms select, constraints by what counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Int32s
from podium.cluster.pod_class import PodClass
from podium.framework.rescheduling.picture import Picture
from podium.plugins.rescheduling.demands.spread_demand import SpreadDemand
from podium.plugins.spreading.constraints import Constraint, ConstraintSet, Domains


class DomainsOfKeys:
    """The domains of topology keys: a code for each row, and how many have a node that takes in pods."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._known: dict[str, tuple[Int32s, int]] = {}

    def of(self, key: str) -> tuple[Int32s, int]:
        """`[rows]` codes, 0 without the label, and the number of domains to go to."""
        known = self._known.get(key)
        if known is None:
            nodes = self._picture.cluster.nodes
            codes = nodes.labels(key).codes[: nodes.count].copy()
            usable = codes[self._picture.targets[: nodes.count] & (codes != 0)]
            known = self._known[key] = codes, len(set(usable.tolist()))
        return known


def selected_by(terms: Sequence[AffinityTerm], picture: Picture, classes: Mapping[int, PodClass]) -> list[int]:
    """The ids of the classes that all of some terms select."""
    cluster = picture.cluster
    needs = [group for term in terms for group in term.needs]
    return [
        pod_class.id
        for pod_class in cluster.classes.candidates(needs)
        if pod_class.id in classes
        and all(term.selects_for_owner(pod_class.namespace, pod_class.labels, cluster.namespaces) for term in terms)
    ]


def spread_demands(
    picture: Picture, classes: Mapping[int, PodClass], wanted: Iterable[tuple[PodClass, ConstraintSet, int]]
) -> Iterator[SpreadDemand]:
    """A demand for each constraint of classes, with what one pod misses by it, and each set of nodes that it counts.

    Constraints that do not count the pod itself are no concern of ours: by going it would change nothing about them.
    """
    cluster = picture.cluster
    carriers: dict[tuple[Constraint, bytes, int], list[int]] = {}
    counting: dict[tuple[Constraint, bytes, int], Domains] = {}
    for pod_class, constraints, unit in wanted:
        for constraint, domains in zip(constraints.constraints, constraints.domains(cluster, pod_class), strict=True):
            if constraint.matches_self and constraint.predicate.selector.requirements:
                place = (constraint, domains.counted.tobytes(), unit)
                counting.setdefault(place, domains)
                carriers.setdefault(place, []).append(pod_class.id)
    for place, domains in counting.items():
        constraint, _, unit = place
        counted = [
            candidate.id
            for candidate in cluster.classes.candidates(constraint.predicate.needs)
            if candidate.id in classes and constraint.predicate.matches(candidate, cluster.namespaces)
        ]
        yield SpreadDemand(constraint, domains, unit, carriers=carriers[place], counted=counted)
