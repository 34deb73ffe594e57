"""An inter-pod affinity term in a form that can be compared, hashed and matched.

Source: core/v1 PodAffinityTerm; pkg/scheduler/framework/types.go (AffinityTerm).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from podium.api.pod import PodAffinityTerm
from podium.api.selectors import NOTHING, Selector, compile_label_selector
from podium.cluster.marks import NAMESPACE, Mark, selector_needs

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceLabels:
    """The labels of each namespace.

    A namespace that nobody described has only the label that the API server gives to all: its own name. (Upstream
    lists Namespace objects and would not see it; a dump without them should still answer.)
    """

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def __getitem__(self, name: str) -> Mapping[str, str]:
        labels = self._labels.get(name)
        return {NAMESPACE_NAME_LABEL: name} if labels is None else labels

    def put(self, name: str, labels: Mapping[str, str]) -> bool:
        """Set a namespace's labels; returns whether they changed."""
        changed = self[name] != labels
        self._labels[name] = labels
        return changed

    def remove(self, name: str) -> bool:
        """Forget a namespace; returns whether its labels changed by that."""
        labels = self._labels.pop(name, None)
        return labels is not None and labels != self[name]


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Which pods a term selects, and over which topology key it holds.

    ``namespaces`` and ``namespace_selector`` add up; without both, the owner's own namespace is meant. ``repetition``
    tells terms apart that a pod requires more than once: each counts when others are rated.
    """

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    repetition: int = 0

    def selects(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """Whether a pod of ``namespace`` with ``labels`` is meant by this term of a pod that has its node."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespaces[namespace])
        ) and self.selector.matches(labels)

    def selects_for_owner(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """Whether a pod is meant by this term, where the term's owner is the pod to be scheduled.

        A namespace selector that asks for nothing to be there (NotIn, DoesNotExist) then means every namespace.
        kube-scheduler adds the namespaces that it matches to the others, means to drop it, but drops it from a copy,
        and goes on to match it against no labels (interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty).
        """
        means_all = self.namespace_selector.matches({})
        return self.selector.matches(labels) if means_all else self.selects(namespace, labels, namespaces)

    @property
    def needs(self) -> list[list[Mark]]:
        """The marks without which no pod class is meant."""
        groups = selector_needs(self.selector)
        if self.namespace_selector == NOTHING:
            groups.append([(NAMESPACE, name) for name in sorted(self.namespaces)])
        return groups


def compile_terms(terms: Iterable[PodAffinityTerm], namespace: str) -> tuple[AffinityTerm, ...]:
    """Compile the terms that a pod in ``namespace`` requires; one that is written several times stays several."""
    seen = Counter[AffinityTerm]()
    found = []
    for term in terms:
        compiled = compile_term(term, namespace)
        found.append(replace(compiled, repetition=seen[compiled]))
        seen[compiled] += 1
    return tuple(found)


def compile_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Compile a term of a pod in ``namespace``.

    matchLabelKeys are not read here: the API server merges them into the selector when the pod is created
    (pkg/registry/core/pod/strategy.go), and kube-scheduler does not look at them either.
    """
    own = (namespace,) if not term.namespaces and term.namespace_selector is None else term.namespaces
    wider = NOTHING if term.namespace_selector is None else compile_label_selector(term.namespace_selector)
    return AffinityTerm(term.topology_key, compile_label_selector(term.label_selector), frozenset(own), wider)
