"""Reference implementations of the Filter plugins, for one pod and one node. Sources: as the plugins name them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import product

from podium.api.node import Node, Taint
from podium.api.pod import ContainerPort, NodeAffinity, Pod, PodAffinityTerm, TopologySpreadConstraint
from podium.api.resource_requests import pod_requests
from podium.api.selectors import NodeSelectorTerm, compile_label_selector, compile_node_term
from podium.api.versions.release import Behavior
from tests.twins.plain import FITS, UNRESOLVABLE, UNSCHEDULABLE, PlainCluster, Verdict, tolerates

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
ADDED = "node(s) didn't match scheduler-enforced node affinity"


def node_unschedulable(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Reject pods that do not tolerate a cordoned node."""
    if not cluster.nodes[name].spec.unschedulable or tolerates(pod.spec.tolerations, CORDON):
        return FITS
    return Verdict(UNRESOLVABLE, ("node(s) were unschedulable",))


def node_name(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Return a pod that names a node fits no other."""
    if pod.spec.node_name in ("", name):
        return FITS
    return Verdict(UNRESOLVABLE, ("node(s) didn't match the requested node name",))


def taint_toleration(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Every NoSchedule and NoExecute taint must be tolerated."""
    taint = next(_repelling(pod, cluster.nodes[name]), None)
    if taint is None:
        return FITS
    named = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    is_unnamed = cluster.release.has(Behavior.TAINT_UNNAMED)
    return Verdict(UNRESOLVABLE, ("node(s) had untolerated taint(s)" if is_unnamed else named,))


def repels(pod: Pod, node: Node) -> bool:
    """Return whether a node has a taint that keeps the pod off."""
    return any(_repelling(pod, node))


def _repelling(pod: Pod, node: Node) -> Iterator[Taint]:
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod.spec.tolerations, taint):
            yield taint


def node_affinity(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Return the node selector and one of the required terms must match."""
    if selects_node(pod, cluster.nodes[name]):
        return FITS
    return Verdict(UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))


def selects_node(pod: Pod, node: Node) -> bool:
    """Return whether the pod's own node selector and node affinity accept a node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = (pod.spec.affinity and pod.spec.affinity.node_affinity) or NodeAffinity()
    if affinity.required is None:
        return True
    return any(term_matches(term, node) for term in affinity.required.node_selector_terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether a node selector term matches a node."""
    return compile_node_term(term).matches(node.metadata.labels, node.metadata.name)


def node_ports(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """No pod on the node may hold a host port that the pod wants."""
    wanted = _host_ports(pod)
    held = [port for other in cluster.pods_on[name] for port in _host_ports(other)]
    if not any(_conflict(one, other) for one, other in product(wanted, held)):
        return FITS
    return Verdict(UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))


def _host_ports(pod: Pod) -> list[ContainerPort]:
    return [port for container in pod.spec.containers for port in container.ports if port.host_port]


def _conflict(one: ContainerPort, other: ContainerPort) -> bool:
    if (one.host_port, one.protocol) != (other.host_port, other.protocol):
        return False
    addresses = {port.host_ip or "0.0.0.0" for port in (one, other)}
    return len(addresses) == 1 or "0.0.0.0" in addresses


def node_resources_fit(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Return what is left must be enough for everything that the pod requests."""
    has, taken = cluster.allocatable(name), cluster.requested(name)
    reasons, hopeless = [], False
    if len(cluster.pods_on[name]) + 1 > has.get("pods", 0):
        reasons.append("Too many pods")
    first = ("cpu", "memory", "ephemeral-storage")
    wanted = {resource: amount for resource, amount in pod_requests(pod.spec).items() if amount}
    for resource in sorted(wanted, key=lambda one: (first.index(one) if one in first else 3, one)):
        if wanted[resource] > has.get(resource, 0) - taken.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            hopeless |= wanted[resource] > has.get(resource, 0)
    if not reasons:
        return FITS
    hopeless &= cluster.release.has(Behavior.TOO_SMALL_IS_UNRESOLVABLE)
    return Verdict(UNRESOLVABLE if hopeless else UNSCHEDULABLE, tuple(reasons))


def inter_pod_affinity(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """Return the pod's affinity, its anti-affinity, and the anti-affinity of the pods already there."""
    if not _near_enough(cluster, pod, name):
        return Verdict(UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
    for term in required_terms(pod, near=False):
        if any(
            cluster.selects(term, pod, other, is_scheduled=True)
            for other in cluster.pods_in_domain(name, term.topology_key)
        ):
            return Verdict(UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
    for others in cluster.pods_on.values():
        if any(keeps_off(cluster, other, pod, name) for other in others):
            return Verdict(UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",))
    return FITS


def is_affinity_skipped(cluster: PlainCluster, pod: Pod) -> bool:
    """Return whether InterPodAffinity is not asked about a pod: it has no terms, and no pod on a node keeps it off.

    Then the anti-affinity of nominated pods counts for nothing.
    """
    if required_terms(pod, near=True) or required_terms(pod, near=False):
        return False
    return not any(keeps_off(cluster, other, pod, name) for name, others in cluster.pods_on.items() for other in others)


def required_terms(pod: Pod, *, near: bool) -> tuple[PodAffinityTerm, ...]:
    """Return the terms that a pod requires, of its affinity or its anti-affinity."""
    affinity = pod.spec.affinity
    terms = affinity and (affinity.pod_affinity if near else affinity.pod_anti_affinity)
    return terms.required if terms else ()


def partners(cluster: PlainCluster, pod: Pod, key: str, name: str, gone: Collection[str] = ()) -> list[Pod]:
    """Return the pods in a node's domain that all required affinity terms of a pod select, without those ``gone``."""
    terms = required_terms(pod, near=True)
    return [
        other
        for other in cluster.pods_in_domain(name, key)
        if other.metadata.uid not in gone
        and all(cluster.selects(term, pod, other, is_scheduled=True) for term in terms)
    ]


def _near_enough(cluster: PlainCluster, pod: Pod, name: str) -> bool:
    """Return whether, for each required term, a pod that all the terms select is in the node's domain.

    Where no such pod is anywhere, a pod that selects itself is the first of its group, and needs the labels alone.
    """
    terms = required_terms(pod, near=True)
    labels = cluster.nodes[name].metadata.labels

    def wanted(other: Pod) -> bool:
        return all(cluster.selects(term, pod, other, is_scheduled=True) for term in terms)

    if any(term.topology_key not in labels for term in terms):
        return False
    if all(any(map(wanted, cluster.pods_in_domain(name, term.topology_key))) for term in terms):
        return True
    anywhere = any(
        wanted(other)
        for term in terms
        for where, node in cluster.nodes.items()
        if term.topology_key in node.metadata.labels
        for other in cluster.pods_on[where]
    )
    return not anywhere and wanted(pod)


def keeps_off(cluster: PlainCluster, other: Pod, pod: Pod, name: str) -> bool:
    """Return whether the anti-affinity of a pod already there means ``pod``, and reaches the node."""
    return any(
        cluster.selects(term, other, pod)
        and any(one is other for one in cluster.pods_in_domain(name, term.topology_key))
        for term in required_terms(other, near=False)
    )


def pod_topology_spread(cluster: PlainCluster, pod: Pod, name: str) -> Verdict:
    """With the pod, the node's domain may lead the emptiest domain by at most maxSkew."""
    hard = [one for one in pod.spec.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"]
    keys = {one.topology_key for one in hard}
    for constraint in hard:
        value = cluster.nodes[name].metadata.labels.get(constraint.topology_key)
        if value is None:
            reason = "node(s) didn't match pod topology spread constraints (missing required label)"
            return Verdict(UNRESOLVABLE, (reason,))
        matching: dict[str, int] = {}
        for other, node in cluster.nodes.items():
            if keys <= node.metadata.labels.keys() and counts(constraint, pod, node):
                domain = node.metadata.labels[constraint.topology_key]
                matching[domain] = matching.get(domain, 0) + count_matching(cluster, constraint, pod, other)
        lowest = min(matching.values()) if len(matching) >= max(1, constraint.min_domains or 1) else 0
        itself = spread_selector(constraint, pod)(pod)
        if matching.get(value, 0) + itself - lowest > constraint.max_skew:
            return Verdict(UNSCHEDULABLE, ("node(s) didn't match pod topology spread constraints",))
    return FITS


def counts(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Return whether the pods of a node count, by the constraint's inclusion policies."""
    if constraint.node_affinity_policy == "Honor" and not selects_node(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not repels(pod, node)


def count_matching(cluster: PlainCluster, constraint: TopologySpreadConstraint, pod: Pod, name: str) -> int:
    """Return the living pods of the pod's namespace on a node that the constraint selects; an empty selector counts
    none.
    """
    empty = constraint.label_selector is not None and not compile_label_selector(constraint.label_selector).requirements
    if empty and not any(key in pod.metadata.labels for key in constraint.match_label_keys):
        return 0
    matches = spread_selector(constraint, pod)
    return sum(
        matches(other)
        for other in cluster.pods_on[name]
        if other.metadata.namespace == pod.metadata.namespace and not other.is_terminating
    )


def spread_selector(constraint: TopologySpreadConstraint, pod: Pod) -> Callable[[Pod], bool]:
    """Return the selector of a constraint of ``pod``: its own, and the pod's values of the matchLabelKeys."""
    own = {key: pod.metadata.labels[key] for key in constraint.match_label_keys if key in pod.metadata.labels}
    selector = compile_label_selector(constraint.label_selector)

    def matches(other: Pod) -> bool:
        labels = other.metadata.labels
        return selector.matches(labels) and all(labels.get(key) == value for key, value in own.items())

    return matches


FILTERS: dict[str, Callable[[PlainCluster, Pod, str], Verdict]] = {
    "NodeUnschedulable": node_unschedulable,
    "NodeName": node_name,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": node_resources_fit,
    "PodTopologySpread": pod_topology_spread,
    "InterPodAffinity": inter_pod_affinity,
}
