"""Obstacles in words: what a filter has against a node, with names and amounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from podium.api.node import Node
from podium.api.quantity import format_quantity
from podium.api.selectors import NodeTerm, Requirement
from podium.app.console.page import counted, listed
from podium.app.explaining.obstacles import RESOURCES, NodeObstacles, Shortage
from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import CarriesAntiAffinity, Predicate, Selected
from podium.cluster.pods import PodRecord
from podium.cluster.taints import KEEPS_OFF, tolerated
from podium.framework.status import Status
from podium.plugins.node_affinity import required_nodes
from podium.plugins.spreading.constraints import Constraint, matching_in_domains, own_constraints

_HOSTNAME = "kubernetes.io/hostname"
_MOST_PODS = 2


def facts(cluster: Cluster, pod: PodRecord, obstacles: NodeObstacles) -> list[str]:
    """A phrase for each obstacle on a node; a filter's own reasons where nothing better is known."""
    found: list[str] = []
    for status in obstacles.refusals:
        if status.plugin == RESOURCES:
            found += _resources(cluster, obstacles, status)
            continue
        describe = _DESCRIBED.get(status.plugin)
        phrases = list(describe(cluster, pod, cluster.nodes.row_of[obstacles.node])) if describe else []
        found += phrases or [status.message]
    if obstacles.nominated:
        kept = listed(
            [f"{nominated.key} (priority {nominated.priority})" for nominated in obstacles.nominated], _MOST_PODS
        )
        found.append(f"room kept for {kept}, nominated there")
    return found


def _resources(cluster: Cluster, obstacles: NodeObstacles, status: Status) -> Iterator[str]:
    for shortage in obstacles.shortages:
        yield _shortage(shortage)
    if "Too many pods" in status.reasons:
        row = cluster.nodes.row_of[obstacles.node]
        yield f"full: {cluster.nodes.pod_count[row]} pods, and {cluster.nodes.allowed_pods[row]} allowed"


def _shortage(short: Shortage) -> str:
    def amount(number: int) -> str:
        return format_quantity(number, short.resource)

    if short.wanted > short.allocatable:
        return f"{short.resource}: {amount(short.wanted)} asked, {amount(short.allocatable)} in all"
    room = f"{amount(max(short.left, 0))} of {amount(short.allocatable)} free"
    return f"{short.resource} short by {amount(short.lacking)} ({amount(short.wanted)} asked, {room})"


def _taints(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    for taint in cluster.nodes.node(row).spec.taints:
        if taint.effect in KEEPS_OFF and not tolerated(pod.spec.tolerations, taint):
            value = f"={taint.value}" if taint.value else ""
            yield f"taint {taint.key}{value}:{taint.effect} not tolerated"


def _cordoned(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    yield "cordoned (spec.unschedulable)"


def _selection(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """What the pod's node selector, and the term that is nearest to matching, miss; nothing where they match."""
    required, node = required_nodes(pod.pod_class), cluster.nodes.node(row)
    labels = node.metadata.labels
    for requirement in required.selector.requirements:
        if not requirement.matches(labels.get(requirement.key)):
            yield _mismatch(requirement, labels.get(requirement.key))
    if required.terms is not None and not any(term.matches(labels, node.metadata.name) for term in required.terms):
        unmet = min((list(_unmet(term, node)) for term in required.terms), key=len, default=[])
        more = f" (the nearest of {len(required.terms)} terms)" if len(required.terms) > 1 else ""
        yield (" and ".join(unmet) or "no term of the pod's node affinity can match") + more


def _unmet(term: NodeTerm, node: Node) -> Iterator[str]:
    labels = node.metadata.labels
    for label in term.labels:
        if not label.matches(labels.get(label.key)):
            yield _mismatch(label, labels.get(label.key))
    for field in term.fields:
        if not field.matches(node.metadata.name):
            yield f"not {field}"


def _mismatch(requirement: Requirement, value: str | None) -> str:
    found = f"no label {requirement.key}" if value is None else f"label {requirement.key}={value}"
    return found if requirement.operator == "Exists" else f"{found} (wanted: {requirement})"


def _ports(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    for wanted in pod.pod_class.host_ports:
        holders = sorted(
            on_node.key
            for on_node in cluster.pods_on(row)
            if any(held.conflicts(wanted) for held in on_node.pod_class.host_ports)
        )
        if holders:
            yield f"port {wanted.port}/{wanted.protocol} held by {listed(holders, _MOST_PODS)}"


def _affinity(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """As InterPodAffinity decides: the pod's affinity first, then both sorts of anti-affinity."""
    pod_class, labels = pod.pod_class, cluster.nodes.node(row).metadata.labels
    everyone = Selected(pod_class.required_affinity)
    for term in pod_class.required_affinity:
        if term.topology_key not in labels:
            yield f"no label {term.topology_key}, which the pod's affinity needs"
        elif not _in_domain(cluster, everyone, term.topology_key, row):
            alone = len(pod_class.required_affinity) == 1
            wanted = f"of {term.selector}" if alone else "that all the pod's affinity terms select"
            yield f"no pod {wanted} {_where(cluster, term, row)}"
    for term in pod_class.required_anti_affinity:
        others = _in_domain(cluster, Selected((term,)), term.topology_key, row)
        if others:
            yield f"{listed(others, _MOST_PODS)} {_where(cluster, term, row)}, avoided by the pod's anti-affinity"
    yield from sorted(_avoiding(cluster, pod, row))


def _avoiding(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """Those whose anti-affinity avoids the pod, in the order in which their terms have become known."""
    for term in cluster.carried.anti_affinity(pod.pod_class):
        others = _in_domain(cluster, CarriesAntiAffinity(term), term.topology_key, row)
        if others:
            yield f"{listed(others, _MOST_PODS)} {_where(cluster, term, row)}, whose anti-affinity avoids the pod"


def _where(cluster: Cluster, term: AffinityTerm, row: int) -> str:
    key = term.topology_key
    return "there" if key == _HOSTNAME else f"in {key}={cluster.nodes.node(row).metadata.labels[key]}"


def _in_domain(cluster: Cluster, predicate: Predicate, key: str, row: int) -> list[str]:
    """The pods that match in the row's domain of a topology key, by name."""
    codes = cluster.nodes.labels(key).codes
    if not codes[row]:
        return []
    holding = np.flatnonzero((codes == codes[row]) & (cluster.matcher(predicate).count > 0))
    return sorted(
        pod.key
        for other in holding.tolist()
        for pod in cluster.pods_on(other)
        if predicate.matches(pod.pod_class, cluster.namespaces)
    )


def _spread(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """The constraints of the pod that the node breaks; not those that a configuration gives to all pods."""
    hard = own_constraints(pod.pod_class, "DoNotSchedule")
    for constraint, domains in zip(hard.constraints, hard.domains(cluster, pod.pod_class), strict=True):
        code = int(cluster.nodes.labels(constraint.key).codes[row])
        if not code:
            yield f"no label {constraint.key}, which the pod must spread over"
            continue
        matching = matching_in_domains(cluster, constraint, domains)
        yield from _skew(cluster, constraint, int(matching[code]), matching[domains.exists].tolist(), row)


def _skew(
    cluster: Cluster, constraint: Constraint, own_domain_count: int, domains: list[int], row: int
) -> Iterator[str]:
    lowest = 0 if len(domains) < constraint.min_domains else min(domains, default=0)
    if own_domain_count + int(constraint.matches_self) - lowest > constraint.max_skew:
        value = cluster.nodes.node(row).metadata.labels[constraint.key]
        counts = f"has {counted(own_domain_count, 'matching pod')} and the emptiest domain {lowest}"
        yield f"{constraint.key}={value} {counts}; maxSkew is {constraint.max_skew}"


_Describe = Callable[[Cluster, PodRecord, int], Iterable[str]]
_DESCRIBED: dict[str, _Describe] = {
    "NodeUnschedulable": _cordoned,
    "TaintToleration": _taints,
    "NodeAffinity": _selection,
    "NodePorts": _ports,
    "InterPodAffinity": _affinity,
    "PodTopologySpread": _spread,
}
