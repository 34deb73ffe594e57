"""The affinity terms that pods carry, so that an incoming pod can ask which of them mean it."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster.affinity_term import AffinityTerm, NamespaceLabels
from podium.cluster.pod_class import PodClass, WeightedTerm


@dataclass(slots=True)
class _Selecting:
    """The terms that select one class, of the first ``seen`` terms of a kind."""

    terms: list[AffinityTerm] = field(default_factory=list)
    seen: int = 0


class CarriedTerms:
    """All distinct terms that pod classes carry: required anti-affinity, required affinity, and preferences."""

    def __init__(self, namespaces: NamespaceLabels) -> None:
        self._namespaces = namespaces
        self._anti_affinity: dict[AffinityTerm, None] = {}
        self._affinity: dict[AffinityTerm, None] = {}
        self._preferences: dict[WeightedTerm, None] = {}
        self._ordered: dict[str, list[AffinityTerm]] = {"anti": [], "near": [], "preferred": []}
        self._weights: list[WeightedTerm] = []
        self._selecting: dict[tuple[str, int], _Selecting] = {}

    def admit(self, pod_class: PodClass) -> None:
        """Note the terms of a new class."""
        for seen, terms, kind in (
            (self._anti_affinity, pod_class.required_anti_affinity, "anti"),
            (self._affinity, pod_class.required_affinity, "near"),
        ):
            for term in terms:
                if term not in seen:
                    seen[term] = None
                    self._ordered[kind].append(term)
        for weighted in pod_class.preferred:
            if weighted not in self._preferences:
                self._preferences[weighted] = None
                self._ordered["preferred"].append(weighted.term)
                self._weights.append(weighted)

    def anti_affinity(self, pod_class: PodClass) -> list[AffinityTerm]:
        """The required anti-affinity terms of any pod that select the class."""
        return self._of(pod_class, "anti")

    def affinity(self, pod_class: PodClass) -> list[AffinityTerm]:
        """The required affinity terms of any pod that select the class."""
        return self._of(pod_class, "near")

    def preferences(self, pod_class: PodClass) -> list[WeightedTerm]:
        """The preferred terms of any pod that select the class, anti-affinity with a negative weight."""
        selecting = self._of(pod_class, "preferred")
        wanted = set(selecting)
        return [weighted for weighted in self._weights if weighted.term in wanted] if wanted else []

    def forget_selections(self) -> None:
        """Ask again which terms select which class, because a namespace's labels changed."""
        self._selecting.clear()

    def _of(self, pod_class: PodClass, kind: str) -> list[AffinityTerm]:
        selecting = self._selecting.setdefault((kind, pod_class.id), _Selecting())
        ordered = self._ordered[kind]
        for term in ordered[selecting.seen :]:
            if term.selects(pod_class.namespace, pod_class.labels, self._namespaces):
                selecting.terms.append(term)
        selecting.seen = len(ordered)
        return selecting.terms
