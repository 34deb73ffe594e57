"""Counters of matching pods: for each distinct question about pods, how many pods of each row answer yes.

Inter-pod affinity, topology spread, host ports and exclusive volumes all ask "how many pods such as X are on this node,
or in its domain?". A `Predicate` is such an X; its `Matcher` keeps the count of each row, and of each domain of the
topology keys asked for, up to date as pods come and go. Predicates are asked about pod classes, once a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from podium.api.selectors import Selector
from podium.cluster.affinity_term import AffinityTerm, NamespaceLabels
from podium.cluster.arrays import Bools, Int64s, grown
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_class import HostPort, PodClass


class Predicate(Protocol):
    """A hashable question about pod classes. ``live_only`` leaves terminating pods out of the count."""

    @property
    def live_only(self) -> bool: ...

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        """Whether pods of the class count."""
        ...


@dataclass(frozen=True, slots=True)
class Selected:
    """Pods that every one of the terms, those of a pod to be scheduled, selects."""

    terms: tuple[AffinityTerm, ...]
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return all(term.selects_for_owner(pod_class.namespace, pod_class.labels, namespaces) for term in self.terms)


@dataclass(frozen=True, slots=True)
class InNamespace:
    """Pods of one namespace that a selector matches, terminating ones left out (topology spread)."""

    namespace: str
    selector: Selector
    live_only: bool = True

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return pod_class.namespace == self.namespace and self.selector.matches(pod_class.labels)


@dataclass(frozen=True, slots=True)
class CarriesAntiAffinity:
    """Pods that themselves require to be apart from what the term selects."""

    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.term in pod_class.required_anti_affinity


@dataclass(frozen=True, slots=True)
class CarriesAffinity:
    """Pods that themselves require to be near what the term selects."""

    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.term in pod_class.required_affinity


@dataclass(frozen=True, slots=True)
class CarriesPreference:
    """Pods that themselves prefer, by a weight, to be near (or apart from) what the term selects."""

    weight: int
    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return any(own.weight == self.weight and own.term == self.term for own in pod_class.preferred)


@dataclass(frozen=True, slots=True)
class HoldsHostPort:
    """Pods that hold a host port."""

    port: HostPort
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.port in pod_class.host_ports


@dataclass(frozen=True, slots=True)
class UsesClaim:
    """Pods that mount a claim."""

    namespace: str
    name: str
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return pod_class.namespace == self.namespace and self.name in pod_class.claims


@dataclass(slots=True, eq=False)
class Matcher:
    """The counts of one predicate.

    ``count[row]`` pods match on a row; ``domains[key][code]`` of them in a domain (code 0: nodes without the label);
    ``classes[id]`` says which classes match.
    """

    predicate: Predicate
    count: Int64s
    classes: Bools
    domains: dict[str, Int64s] = field(default_factory=dict)

    def add(self, row: int, number: int, columns: NodeColumns) -> None:
        """Count ``number`` more (or fewer) matching pods on ``row``."""
        self.count[row] += number
        for key, domain in self.domains.items():
            domain[columns.labels(key).codes[row]] += number


class Matchers:
    """All matchers in use, and which of them count a class."""

    def __init__(self, columns: NodeColumns, namespaces: NamespaceLabels) -> None:
        self._columns = columns
        self._namespaces = namespaces
        self._by_predicate: dict[Predicate, Matcher] = {}
        self._of_class: list[list[Matcher]] = []

    def __iter__(self) -> Iterator[Matcher]:
        return iter(self._by_predicate.values())

    def find(self, predicate: Predicate) -> Matcher | None:
        """The matcher of ``predicate`` if it is counted already."""
        return self._by_predicate.get(predicate)

    def counting(self, pod_class: PodClass) -> list[Matcher]:
        """The matchers that count pods of the class."""
        return self._of_class[pod_class.id]

    def register(self, predicate: Predicate, classes: list[PodClass]) -> Matcher:
        """Start a matcher with all counts at zero; the caller counts the pods that are there."""
        matches = np.zeros(max(64, 2 * len(classes)), dtype=np.bool_)
        matcher = Matcher(predicate, np.zeros(self._columns.capacity, dtype=np.int64), matches)
        self._by_predicate[predicate] = matcher
        for pod_class in classes:
            if predicate.matches(pod_class, self._namespaces):
                matches[pod_class.id] = True
                self._of_class[pod_class.id].append(matcher)
        return matcher

    def admit(self, pod_class: PodClass) -> None:
        """Ask every predicate about a new class."""
        found = []
        for matcher in self._by_predicate.values():
            if pod_class.id >= len(matcher.classes):
                matcher.classes = grown(matcher.classes, 2 * len(matcher.classes))
            if matcher.predicate.matches(pod_class, self._namespaces):
                matcher.classes[pod_class.id] = True
                found.append(matcher)
        self._of_class.append(found)

    def domain(self, matcher: Matcher, key: str) -> Int64s:
        """``[codes]`` matching pods in each domain of a topology key, made on first use."""
        counts = matcher.domains.get(key)
        if counts is None:
            column, used = self._columns.labels(key), self._columns.count
            counts = np.zeros(len(column.values), dtype=np.int64)
            np.add.at(counts, column.codes[:used], matcher.count[:used])
            matcher.domains[key] = counts
        return counts

    def forget_domains(self) -> None:
        """Drop the domain counts, because a node came or its labels changed; they are made anew when asked for."""
        for matcher in self._by_predicate.values():
            matcher.domains.clear()

    def clear(self) -> None:
        """Drop all matchers; they come back, freshly counted, when next asked for."""
        self._by_predicate.clear()
        for found in self._of_class:
            found.clear()

    def grow(self) -> None:
        """Follow the node columns to their new capacity."""
        for matcher in self._by_predicate.values():
            matcher.count = grown(matcher.count, self._columns.capacity)
