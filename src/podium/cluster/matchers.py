"""Counters of matching pods: for each predicate, the number of matching pods by row and topology domain.

Inter-pod affinity, topology spread, host ports and exclusive volumes all count pods on a node or in its domain. A
`Matcher` keeps the counts of one `Predicate` up to date as pods come and go. A predicate is evaluated once for each pod
class that has its required keys (`podium.cluster.selector_index`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from podium.api.selectors import Selector
from podium.cluster import pod_classes, selector_index
from podium.cluster.arrays import Bools, Int32s, Int64s, grown, take_out
from podium.cluster.nodes import NodeColumns


class Predicate(Protocol):
    """A hashable predicate on pod classes. ``live_only`` excludes terminating pods from its counts.

    If it has a property ``required_keys``, it is evaluated only for classes with these index keys.
    """

    @property
    def live_only(self) -> bool: ...

    def matches(self, pod_class: pod_classes.PodClass, namespaces: pod_classes.NamespaceLabels) -> bool: ...


class SelectedByTerms(Struct, frozen=True):
    """Pods that all of the terms of a pod to be scheduled select."""

    terms: tuple[pod_classes.AffinityTerm, ...]
    live_only: bool = False

    def matches(self, pod_class: pod_classes.PodClass, namespaces: pod_classes.NamespaceLabels) -> bool:
        return all(term.selects_for_owner(pod_class.namespace, pod_class.labels, namespaces) for term in self.terms)

    @property
    def required_keys(self) -> selector_index.RequiredKeys:
        return [group for term in self.terms for group in term.required_keys]


class InNamespace(Struct, frozen=True):
    """Pods of one namespace that a selector matches, without terminating ones (topology spread)."""

    namespace: str
    selector: Selector
    live_only: bool = True

    def matches(self, pod_class: pod_classes.PodClass, namespaces: pod_classes.NamespaceLabels) -> bool:
        return pod_class.namespace == self.namespace and self.selector.matches(pod_class.labels)

    @property
    def required_keys(self) -> selector_index.RequiredKeys:
        return [*selector_index.selector_keys(self.selector), [(selector_index.NAMESPACE, self.namespace)]]


class HasKeys(Struct, frozen=True):
    """Pods whose classes have all of these index keys."""

    keys: tuple[selector_index.IndexKey, ...]
    live_only: bool = False

    def matches(self, pod_class: pod_classes.PodClass, namespaces: pod_classes.NamespaceLabels) -> bool:
        return all(key in pod_class.index_keys for key in self.keys)

    @property
    def required_keys(self) -> selector_index.RequiredKeys:
        return [[key] for key in self.keys]


def carries_anti_affinity(term: pod_classes.AffinityTerm) -> HasKeys:
    """Return the predicate of pods that require to be apart from the pods that the term selects."""
    return HasKeys(((selector_index.ANTI_AFFINITY, term),))


def carries_affinity(term: pod_classes.AffinityTerm) -> HasKeys:
    """Return the predicate of pods that require to be near the pods that the term selects."""
    return HasKeys(((selector_index.AFFINITY, term),))


def carries_preference(weighted: pod_classes.WeightedTerm) -> HasKeys:
    """Return the predicate of pods that have this preferred term with this weight."""
    return HasKeys(((selector_index.PREFERENCE, weighted.weight, weighted.term),))


def holds_host_port(port: pod_classes.HostPort) -> HasKeys:
    """Return the predicate of pods that hold a host port."""
    return HasKeys(((selector_index.HOST_PORT, port),))


def uses_claim(namespace: str, name: str) -> HasKeys:
    """Return the predicate of pods that mount a claim."""
    return HasKeys(((selector_index.CLAIM, name), (selector_index.NAMESPACE, namespace)))


# At least so many matchers are added between two sweeps, which drop those not used since the sweep before.
AT_LEAST = 64


class Matcher(Struct, eq=False):
    """The counts of one predicate.

    ``count[row]`` pods match on a row, and ``domains[key][code]`` in a topology domain (code 0: nodes without the
    label). ``classes`` are the ids of the matching classes. ``is_used``: used since the last sweep. ``is_live``: still
    updated.
    """

    predicate: Predicate
    count: Int64s
    classes: dict[int, None] = {}
    domains: dict[str, Int64s] = {}
    is_used: bool = True
    is_live: bool = True
    table: Bools | None = None

    def add(self, row: int, number: int, columns: NodeColumns) -> None:
        """Add ``number`` matching pods on ``row``."""
        self.count[row] += number
        for key, domain in self.domains.items():
            code = columns.labels(key).codes[row]
            if code >= len(domain):
                domain = self.domains[key] = grown(domain, 2 * int(code))  # noqa: PLW2901 - the same, with more room
            domain[code] += number

    def matching(self, classes: Int32s) -> Bools:
        """Return ``[n]`` which of some classes (ids) match."""
        if self.table is None:
            # The last entry represents all higher ids.
            self.table = np.zeros(max(self.classes, default=-1) + 2, dtype=np.bool_)
            self.table[list(self.classes)] = True
        found: Bools = self.table[np.minimum(classes, len(self.table) - 1)]
        return found

    def put(self, class_id: int) -> None:
        """Record that a class matches."""
        self.classes[class_id] = None
        self.table = None

    def remove(self, class_id: int) -> None:
        del self.classes[class_id]
        self.table = None


class Matchers:
    """The matchers in use, and which of them count each class.

    A matcher is dropped when its last class ends, or by a sweep if it was not used since the one before. It is created
    again, with fresh counts, when it is next needed.
    """

    def __init__(self, columns: NodeColumns, namespaces: pod_classes.NamespaceLabels) -> None:
        self._columns = columns
        self._namespaces = namespaces
        self._by_predicate: dict[Predicate, Matcher] = {}
        self._queries: selector_index.QueryIndex[Predicate] = selector_index.QueryIndex()
        # By class id.
        self._of_class: dict[int, list[Matcher]] = {}
        self._until_sweep = AT_LEAST

    def __iter__(self) -> Iterator[Matcher]:
        return iter(self._by_predicate.values())

    def __len__(self) -> int:
        return len(self._by_predicate)

    def find(self, predicate: Predicate) -> Matcher | None:
        matcher = self._by_predicate.get(predicate)
        if matcher is not None:
            matcher.is_used = True
        return matcher

    def counting(self, pod_class: pod_classes.PodClass) -> list[Matcher]:
        """Return the matchers that count pods of the class."""
        return self._of_class[pod_class.id]

    def register(self, predicate: Predicate, classes: pod_classes.PodClasses) -> Matcher:
        """Create a matcher with all counts at zero; the caller counts the existing pods."""
        if not self._until_sweep:
            self._sweep()
        self._until_sweep -= 1
        matcher = Matcher(predicate, np.zeros(self._columns.capacity, dtype=np.int64))
        required_keys = selector_index.required_keys_of(predicate)
        self._by_predicate[predicate] = matcher
        self._queries.put(predicate, required_keys)
        for pod_class in classes.candidates(required_keys):
            if predicate.matches(pod_class, self._namespaces):
                matcher.put(pod_class.id)
                self._of_class[pod_class.id].append(matcher)
        return matcher

    def admit(self, pod_class: pod_classes.PodClass) -> None:
        found = self._of_class[pod_class.id] = self._matching(pod_class)
        for matcher in found:
            matcher.put(pod_class.id)

    def end(self, class_id: int) -> None:
        """Remove a class without pods."""
        for matcher in self._of_class.pop(class_id):
            matcher.remove(class_id)
            if not matcher.classes:
                self._drop(matcher)

    def rematch(self, pod_class: pod_classes.PodClass) -> None:
        """Drop the matchers whose result for a class changed with the labels of its namespace."""
        before = {matcher.predicate: matcher for matcher in self._of_class[pod_class.id]}
        after = {matcher.predicate: matcher for matcher in self._matching(pod_class)}
        for predicate in before.keys() ^ after.keys():
            self._drop(before.get(predicate) or after[predicate])

    def domain(self, matcher: Matcher, key: str) -> Int64s:
        """Return ``[codes]`` the matching pods in each domain of a topology key."""
        counts, column, used = matcher.domains.get(key), self._columns.labels(key), self._columns.count
        if counts is None:
            counts = np.zeros(len(column.values), dtype=np.int64)
            np.add.at(counts, column.codes[:used], matcher.count[:used])
            matcher.domains[key] = counts
            column.pins += 1
        elif len(counts) < len(column.values):
            counts = matcher.domains[key] = grown(counts, 2 * len(column.values))
        return counts[: len(column.values)]

    def grow(self) -> None:
        """Extend the counts to the capacity of the node columns."""
        for matcher in self._by_predicate.values():
            matcher.count = grown(matcher.count, self._columns.capacity)

    def _matching(self, pod_class: pod_classes.PodClass) -> list[Matcher]:
        candidates = self._queries.candidates(pod_class.index_keys)
        return [
            self._by_predicate[candidate] for candidate in candidates if candidate.matches(pod_class, self._namespaces)
        ]

    def _sweep(self) -> None:
        for matcher in [matcher for matcher in self if not matcher.is_used]:
            self._drop(matcher)
        for matcher in self:
            matcher.is_used = False
        self._until_sweep = max(AT_LEAST, len(self) // 2)

    def _drop(self, matcher: Matcher) -> None:
        if self._by_predicate.pop(matcher.predicate, None) is None:
            return
        matcher.is_live = False
        self._queries.remove(matcher.predicate)
        for class_id in matcher.classes:
            if (counting := self._of_class.get(class_id)) is not None:
                counting.remove(matcher)
        for key in matcher.domains:
            self._columns.labels(key).pins -= 1


Term = TypeVar("Term", pod_classes.AffinityTerm, pod_classes.WeightedTerm)


class _Carriers(Struct):
    """The number of classes that carry a term, and the ids of the classes that it selects."""

    number: int = 0
    selected: dict[int, None] = {}


class TermsOfKind(Generic[Term]):
    """The terms of one kind, and the classes that each selects."""

    def __init__(self, namespaces: pod_classes.NamespaceLabels, classes: pod_classes.PodClasses) -> None:
        self._namespaces = namespaces
        self._classes = classes
        self._carriers: dict[Term, _Carriers] = {}
        self._queries: selector_index.QueryIndex[Term] = selector_index.QueryIndex()
        # By class id, the terms that select the class; classes that none selects are absent.
        self._selecting: dict[int, dict[Term, None]] = {}

    def selecting(self, pod_class: pod_classes.PodClass) -> Collection[Term]:
        found = self._selecting.get(pod_class.id)
        return () if found is None else found.keys()

    def all(self) -> list[Term]:
        return list(self._carriers)

    def carry(self, terms: tuple[Term, ...]) -> None:
        """Record that one more class carries the terms."""
        for term in terms:
            carriers = self._carriers.get(term)
            if carriers is None:
                carriers = self._carriers[term] = _Carriers()
                required_keys = unweighted(term).required_keys
                self._queries.put(term, required_keys)
                for pod_class in self._classes.candidates(required_keys):
                    self._ask(term, pod_class)
            carriers.number += 1

    def drop(self, terms: tuple[Term, ...]) -> None:
        """Record that one class fewer carries the terms."""
        for term in terms:
            carriers = self._carriers[term]
            carriers.number -= 1
            if not carriers.number:
                del self._carriers[term]
                self._queries.remove(term)
                for class_id in carriers.selected:
                    take_out(self._selecting, class_id, term)

    def select(self, pod_class: pod_classes.PodClass) -> None:
        """Match a class against all terms."""
        if not self._carriers:
            return
        for term in self._queries.candidates(pod_class.index_keys):
            self._ask(term, pod_class)

    def deselect(self, class_id: int) -> None:
        for term in self._selecting.pop(class_id, ()):
            del self._carriers[term].selected[class_id]

    def _ask(self, term: Term, pod_class: pod_classes.PodClass) -> None:
        if unweighted(term).selects(pod_class.namespace, pod_class.labels, self._namespaces):
            self._carriers[term].selected[pod_class.id] = None
            self._selecting.setdefault(pod_class.id, {})[term] = None


class CarriedTerms:
    """The terms that pod classes carry: required anti-affinity, required affinity, and preferences.

    The weights of preferred anti-affinity are negative.
    """

    def __init__(self, namespaces: pod_classes.NamespaceLabels, classes: pod_classes.PodClasses) -> None:
        self.anti_affinity: TermsOfKind[pod_classes.AffinityTerm] = TermsOfKind(namespaces, classes)
        self.affinity: TermsOfKind[pod_classes.AffinityTerm] = TermsOfKind(namespaces, classes)
        self.preferences: TermsOfKind[pod_classes.WeightedTerm] = TermsOfKind(namespaces, classes)
        self._kinds: tuple[TermsOfKind[Any], ...] = (self.anti_affinity, self.affinity, self.preferences)

    def admit(self, pod_class: pod_classes.PodClass) -> None:
        """Add the terms of a new class, and find the terms that select it."""
        for kind, terms in zip(self._kinds, pod_classes.terms_of(pod_class), strict=True):
            kind.carry(terms)
            kind.select(pod_class)

    def end(self, class_id: int, carried: pod_classes.TermsOfClass) -> None:
        """Remove a class without pods, with the terms that only it carried."""
        for kind, terms in zip(self._kinds, carried, strict=True):
            kind.deselect(class_id)
            kind.drop(terms)

    def rematch(self, pod_class: pod_classes.PodClass) -> None:
        """Match the class again after the labels of its namespace changed."""
        for kind in self._kinds:
            kind.deselect(pod_class.id)
            kind.select(pod_class)


def unweighted(term: pod_classes.AffinityTerm | pod_classes.WeightedTerm) -> pod_classes.AffinityTerm:
    """Return the term without its weight."""
    return term.term if isinstance(term, pod_classes.WeightedTerm) else term
