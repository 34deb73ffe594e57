"""Counters of matching pods: for each distinct question about pods, how many pods of each row answer yes.

Inter-pod affinity, topology spread, host ports and exclusive volumes all ask "how many pods such as X are on this node,
or in its domain?". A `Predicate` is such an X; its `Matcher` keeps the count of each row, and of each domain of the
topology keys asked for, up to date as pods come and go. Predicates are asked about pod classes, once a class, and only
about classes that may match: a predicate can say what it needs (`podium.cluster.marks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from podium.api.selectors import Selector
from podium.cluster.affinity_term import AffinityTerm, NamespaceLabels
from podium.cluster.arrays import Bools, Int32s, Int64s, grown
from podium.cluster.marks import (
    AFFINITY,
    ANTI_AFFINITY,
    CLAIM,
    HOST_PORT,
    NAMESPACE,
    PREFERENCE,
    Needs,
    Questions,
    needs_of,
    selector_needs,
)
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_class import HostPort, PodClass
from podium.cluster.pod_classes import PodClasses


class Predicate(Protocol):
    """A hashable question about pod classes. ``live_only`` leaves terminating pods out of the count.

    One with a property ``needs`` is put only to classes that have the marks (`PodClass.marks`) which it needs.
    """

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

    @property
    def needs(self) -> Needs:
        return [group for term in self.terms for group in term.needs]


@dataclass(frozen=True, slots=True)
class InNamespace:
    """Pods of one namespace that a selector matches, terminating ones left out (topology spread)."""

    namespace: str
    selector: Selector
    live_only: bool = True

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return pod_class.namespace == self.namespace and self.selector.matches(pod_class.labels)

    @property
    def needs(self) -> Needs:
        return [*selector_needs(self.selector), [(NAMESPACE, self.namespace)]]


@dataclass(frozen=True, slots=True)
class CarriesAntiAffinity:
    """Pods that themselves require to be apart from what the term selects."""

    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.term in pod_class.required_anti_affinity

    @property
    def needs(self) -> Needs:
        return [[(ANTI_AFFINITY, self.term)]]


@dataclass(frozen=True, slots=True)
class CarriesAffinity:
    """Pods that themselves require to be near what the term selects."""

    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.term in pod_class.required_affinity

    @property
    def needs(self) -> Needs:
        return [[(AFFINITY, self.term)]]


@dataclass(frozen=True, slots=True)
class CarriesPreference:
    """Pods that themselves prefer, by a weight, to be near (or apart from) what the term selects."""

    weight: int
    term: AffinityTerm
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return any(own.weight == self.weight and own.term == self.term for own in pod_class.preferred)

    @property
    def needs(self) -> Needs:
        return [[(PREFERENCE, self.weight, self.term)]]


@dataclass(frozen=True, slots=True)
class HoldsHostPort:
    """Pods that hold a host port."""

    port: HostPort
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return self.port in pod_class.host_ports

    @property
    def needs(self) -> Needs:
        return [[(HOST_PORT, self.port)]]


@dataclass(frozen=True, slots=True)
class UsesClaim:
    """Pods that mount a claim."""

    namespace: str
    name: str
    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return pod_class.namespace == self.namespace and self.name in pod_class.claims

    @property
    def needs(self) -> Needs:
        return [[(CLAIM, self.name)], [(NAMESPACE, self.namespace)]]


# How many matchers may come before those are dropped that nobody has asked for meanwhile.
AT_LEAST = 64


@dataclass(slots=True, eq=False)
class Matcher:
    """The counts of one predicate.

    ``count[row]`` pods match on a row; ``domains[key][code]`` of them in a domain (code 0: nodes without the label).
    ``classes`` are the ids of the classes that match. ``asked``: somebody has asked for it lately. ``is_live``: it is
    kept up to date; one that was dropped is not.
    """

    predicate: Predicate
    count: Int64s
    classes: dict[int, None] = field(default_factory=dict)
    domains: dict[str, Int64s] = field(default_factory=dict)
    asked: bool = True
    is_live: bool = True
    table: Bools | None = None

    def add(self, row: int, number: int, columns: NodeColumns) -> None:
        """Count ``number`` more (or fewer) matching pods on ``row``."""
        self.count[row] += number
        for key, domain in self.domains.items():
            code = columns.labels(key).codes[row]
            if code >= len(domain):
                domain = self.domains[key] = grown(domain, 2 * int(code))  # noqa: PLW2901 - the same, with more room
            domain[code] += number

    def matching(self, classes: Int32s) -> Bools:
        """``[n]``: which of some classes, given by their ids, match."""
        if self.table is None:
            # The last place stands for all higher ids.
            self.table = np.zeros(max(self.classes, default=-1) + 2, dtype=np.bool_)
            self.table[list(self.classes)] = True
        found: Bools = self.table[np.minimum(classes, len(self.table) - 1)]
        return found

    def put(self, class_id: int) -> None:
        """A class matches."""
        self.classes[class_id] = None
        self.table = None

    def remove(self, class_id: int) -> None:
        """A class that matched is no more."""
        del self.classes[class_id]
        self.table = None


class Matchers:
    """The matchers that are asked for, and which of them count a class.

    One that nobody asked for is dropped: when its last class ends, or else when half as many others have come as there
    were matchers. It comes back, freshly counted, with the next question.
    """

    def __init__(self, columns: NodeColumns, namespaces: NamespaceLabels) -> None:
        self._columns = columns
        self._namespaces = namespaces
        self._by_predicate: dict[Predicate, Matcher] = {}
        self._questions: Questions[Predicate] = Questions()
        # By class id.
        self._of_class: dict[int, list[Matcher]] = {}
        self._until_sweep = AT_LEAST

    def __iter__(self) -> Iterator[Matcher]:
        return iter(self._by_predicate.values())

    def __len__(self) -> int:
        return len(self._by_predicate)

    def find(self, predicate: Predicate) -> Matcher | None:
        """The matcher of ``predicate``; None where it is not counted yet."""
        matcher = self._by_predicate.get(predicate)
        if matcher is not None:
            matcher.asked = True
        return matcher

    def counting(self, pod_class: PodClass) -> list[Matcher]:
        """The matchers that count pods of the class."""
        return self._of_class[pod_class.id]

    def register(self, predicate: Predicate, classes: PodClasses) -> Matcher:
        """Start a matcher with all counts at zero; the caller counts the pods that are there."""
        if not self._until_sweep:
            self._sweep()
        self._until_sweep -= 1
        matcher = Matcher(predicate, np.zeros(self._columns.capacity, dtype=np.int64))
        needs = needs_of(predicate)
        self._by_predicate[predicate] = matcher
        self._questions.put(predicate, needs)
        for pod_class in classes.candidates(needs):
            if predicate.matches(pod_class, self._namespaces):
                matcher.put(pod_class.id)
                self._of_class[pod_class.id].append(matcher)
        return matcher

    def admit(self, pod_class: PodClass) -> None:
        """Ask the predicates that may match it about a new class."""
        found = self._of_class[pod_class.id] = self._matching(pod_class)
        for matcher in found:
            matcher.put(pod_class.id)

    def end(self, class_id: int) -> None:
        """Forget a class that no pod has any more."""
        for matcher in self._of_class.pop(class_id):
            matcher.remove(class_id)
            if not matcher.classes:
                self._drop(matcher)

    def ask_again(self, pod_class: PodClass) -> None:
        """The labels of the class's namespace have changed: matchers of another opinion about it are dropped."""
        before = {matcher.predicate: matcher for matcher in self._of_class[pod_class.id]}
        after = {matcher.predicate: matcher for matcher in self._matching(pod_class)}
        for predicate in before.keys() ^ after.keys():
            self._drop(before.get(predicate) or after[predicate])

    def domain(self, matcher: Matcher, key: str) -> Int64s:
        """``[codes]`` matching pods in each domain of a topology key, made on first use."""
        counts, column, used = matcher.domains.get(key), self._columns.labels(key), self._columns.count
        if counts is None:
            counts = np.zeros(len(column.values), dtype=np.int64)
            np.add.at(counts, column.codes[:used], matcher.count[:used])
            matcher.domains[key] = counts
            self._columns.pin(key, 1)
        elif len(counts) < len(column.values):
            counts = matcher.domains[key] = grown(counts, 2 * len(column.values))
        return counts[: len(column.values)]

    def grow(self) -> None:
        """Follow the node columns to their new capacity."""
        for matcher in self._by_predicate.values():
            matcher.count = grown(matcher.count, self._columns.capacity)

    def _matching(self, pod_class: PodClass) -> list[Matcher]:
        candidates = self._questions.candidates(pod_class.marks)
        return [
            self._by_predicate[candidate] for candidate in candidates if candidate.matches(pod_class, self._namespaces)
        ]

    def _sweep(self) -> None:
        for matcher in [matcher for matcher in self if not matcher.asked]:
            self._drop(matcher)
        for matcher in self:
            matcher.asked = False
        self._until_sweep = max(AT_LEAST, len(self) // 2)

    def _drop(self, matcher: Matcher) -> None:
        if self._by_predicate.pop(matcher.predicate, None) is None:
            return
        matcher.is_live = False
        self._questions.remove(matcher.predicate)
        for class_id in matcher.classes:
            counting = self._of_class.get(class_id)
            if counting is not None:
                counting.remove(matcher)
        for key in matcher.domains:
            self._columns.pin(key, -1)
