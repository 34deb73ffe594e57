"""A cluster of plain objects for the reference implementations: no arrays and no caches.

The twins share with Podium what reads single objects (selectors, quantities, requests); all that counts, compares or
adds up over nodes and pods is written again, from upstream's rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node, Taint
from podium.api.pod import Pod, PodAffinityTerm, Toleration
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.selectors import compile_label_selector
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release

SUCCESS, UNSCHEDULABLE, UNRESOLVABLE = "Success", "Unschedulable", "UnschedulableAndUnresolvable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A filter's answer for one node."""

    status: str = SUCCESS
    reasons: tuple[str, ...] = ()


FITS = Verdict()


@dataclass(slots=True)
class PlainCluster:
    """Nodes by name, the pods on each, and the Kubernetes version that decides."""

    nodes: dict[str, Node]
    pods_on: dict[str, list[Pod]]
    namespace_labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    release: Release = DEFAULT_RELEASE

    @classmethod
    def of(cls, objects: Iterable[Kubernetes], release: Release = DEFAULT_RELEASE) -> PlainCluster:
        """Return the nodes, the pods on them, and the namespaces among some objects."""
        items = list(objects)
        nodes = {item.metadata.name: item for item in items if isinstance(item, Node)}
        pods_on: dict[str, list[Pod]] = {name: [] for name in nodes}
        for item in items:
            if isinstance(item, Pod) and item.spec.node_name in pods_on:
                pods_on[item.spec.node_name].append(item)
        labels: dict[str, Mapping[str, str]] = {
            item.metadata.name: item.metadata.labels for item in items if isinstance(item, Namespace)
        }
        return cls(nodes, pods_on, labels, release)

    def selects(self, term: PodAffinityTerm, owner: Pod, other: Pod, *, is_scheduled: bool = False) -> bool:
        """Return whether a term of ``owner`` means ``other``; ``is_scheduled``: the owner is the pod to be scheduled.

        Its namespace selectors are also matched against no labels at all.
        """
        namespace = other.metadata.namespace
        if not term.namespaces and term.namespace_selector is None:
            meant = namespace == owner.metadata.namespace
        else:
            default = {"kubernetes.io/metadata.name": namespace}
            labels = self.namespace_labels.get(namespace, default)
            in_namespaces = compile_label_selector(term.namespace_selector)
            meant = namespace in term.namespaces or in_namespaces.matches(labels)
            matches_all = is_scheduled and self.release.has(Behavior.NEGATIVE_NAMESPACES_MATCH_ALL)
            meant |= matches_all and in_namespaces.matches({})
        return meant and compile_label_selector(term.label_selector).matches(other.metadata.labels)

    def domain(self, name: str, key: str) -> list[str] | None:
        """Return the nodes that share a node's value of a topology key; None where the node lacks it."""
        value = self.nodes[name].metadata.labels.get(key)
        if value is None:
            return None
        return [other for other, node in self.nodes.items() if node.metadata.labels.get(key) == value]

    def pods_in_domain(self, name: str, key: str) -> list[Pod]:
        """Return the pods on the nodes of a domain; none where the node lacks the key."""
        return [pod for other in self.domain(name, key) or () for pod in self.pods_on[other]]

    def requested(self, name: str) -> dict[str, int]:
        """Return what the pods on a node request in sum."""
        total: dict[str, int] = {}
        for pod in self.pods_on[name]:
            for resource, amount in pod_requests(pod.spec).items():
                total[resource] = total.get(resource, 0) + amount
        return total

    def allocatable(self, name: str) -> dict[str, int]:
        """Return what a node has, the number of pods included."""
        return node_allocatable(self.nodes[name].status)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether one of the tolerations accepts the taint."""
    for one in tolerations:
        same_key = not one.key or one.key == taint.key
        same_effect = not one.effect or one.effect == taint.effect
        if same_key and same_effect and (one.operator == "Exists" or one.value == taint.value):
            return True
    return False
