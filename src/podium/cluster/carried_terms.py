"""The affinity terms that pods carry, so that an incoming pod can ask which of them mean it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from podium.cluster.affinity_term import AffinityTerm, NamespaceLabels
from podium.cluster.marks import Questions
from podium.cluster.pod_class import PodClass, WeightedTerm
from podium.cluster.pod_classes import Carried, PodClasses

Term = TypeVar("Term", AffinityTerm, WeightedTerm)


@dataclass(slots=True)
class _Carriers:
    """How many classes carry a term, and the ids of those that it selects."""

    number: int = 0
    selected: dict[int, None] = field(default_factory=dict)


class _TermsOfKind(Generic[Term]):
    """The terms of one kind, and which classes each of them selects."""

    def __init__(self, namespaces: NamespaceLabels, classes: PodClasses) -> None:
        self._namespaces = namespaces
        self._classes = classes
        self._carriers: dict[Term, _Carriers] = {}
        self._questions: Questions[Term] = Questions()
        # The terms that select a class, by the class's id; classes that none selects are absent.
        self._selecting: dict[int, dict[Term, None]] = {}

    def selecting(self, pod_class: PodClass) -> Collection[Term]:
        found = self._selecting.get(pod_class.id)
        return () if found is None else found.keys()

    def all(self) -> list[Term]:
        return list(self._carriers)

    def carry(self, terms: tuple[Term, ...]) -> None:
        """One more class carries the terms."""
        for term in terms:
            carriers = self._carriers.get(term)
            if carriers is None:
                carriers = self._carriers[term] = _Carriers()
                needs = affinity_term(term).needs
                self._questions.put(term, needs)
                for pod_class in self._classes.candidates(needs):
                    self._ask(term, pod_class)
            carriers.number += 1

    def drop(self, terms: tuple[Term, ...]) -> None:
        """One class fewer carries the terms."""
        for term in terms:
            carriers = self._carriers[term]
            carriers.number -= 1
            if not carriers.number:
                del self._carriers[term]
                self._questions.remove(term)
                for class_id in carriers.selected:
                    self._deselect(term, class_id)

    def select(self, pod_class: PodClass) -> None:
        """Ask the terms that may select it about a class."""
        for term in self._questions.candidates(pod_class.marks):
            self._ask(term, pod_class)

    def deselect(self, class_id: int) -> None:
        """Nothing selects the class any more."""
        for term in self._selecting.pop(class_id, ()):
            del self._carriers[term].selected[class_id]

    def _ask(self, term: Term, pod_class: PodClass) -> None:
        if affinity_term(term).selects(pod_class.namespace, pod_class.labels, self._namespaces):
            self._carriers[term].selected[pod_class.id] = None
            self._selecting.setdefault(pod_class.id, {})[term] = None

    def _deselect(self, term: Term, class_id: int) -> None:
        terms = self._selecting[class_id]
        del terms[term]
        if not terms:
            del self._selecting[class_id]


class CarriedTerms:
    """The terms that the pod classes carry: required anti-affinity, required affinity, and preferences."""

    def __init__(self, namespaces: NamespaceLabels, classes: PodClasses) -> None:
        self._anti_affinity: _TermsOfKind[AffinityTerm] = _TermsOfKind(namespaces, classes)
        self._affinity: _TermsOfKind[AffinityTerm] = _TermsOfKind(namespaces, classes)
        self._preferences: _TermsOfKind[WeightedTerm] = _TermsOfKind(namespaces, classes)

    def admit(self, pod_class: PodClass) -> None:
        """Note the terms of a new class, and those that select it."""
        self._anti_affinity.carry(pod_class.required_anti_affinity)
        self._affinity.carry(pod_class.required_affinity)
        self._preferences.carry(pod_class.preferred)
        self.ask_again(pod_class)

    def end(self, class_id: int, carried: Carried) -> None:
        """Forget a class that no pod has any more, with the terms that only it carried."""
        self._anti_affinity.deselect(class_id)
        self._affinity.deselect(class_id)
        self._preferences.deselect(class_id)
        self._anti_affinity.drop(carried.anti_affinity)
        self._affinity.drop(carried.affinity)
        self._preferences.drop(carried.preferences)

    def ask_again(self, pod_class: PodClass) -> None:
        """Ask anew which terms select the class, because the labels of its namespace changed."""
        for kind in (self._anti_affinity, self._affinity):
            kind.deselect(pod_class.id)
            kind.select(pod_class)
        self._preferences.deselect(pod_class.id)
        self._preferences.select(pod_class)

    def anti_affinity(self, pod_class: PodClass) -> Collection[AffinityTerm]:
        """The required anti-affinity terms of any pod that select the class."""
        return self._anti_affinity.selecting(pod_class)

    def affinity(self, pod_class: PodClass) -> Collection[AffinityTerm]:
        """The required affinity terms of any pod that select the class."""
        return self._affinity.selecting(pod_class)

    def all_affinity(self) -> list[AffinityTerm]:
        """The required affinity terms of any pod."""
        return self._affinity.all()

    def preferences(self, pod_class: PodClass) -> Collection[WeightedTerm]:
        """The preferred terms of any pod that select the class, anti-affinity with a negative weight."""
        return self._preferences.selecting(pod_class)


def affinity_term(term: AffinityTerm | WeightedTerm) -> AffinityTerm:
    """The term itself, without its weight."""
    return term.term if isinstance(term, WeightedTerm) else term
