"""The obstacles between a pod and each node: the verdict of every filter, not only of the first that rejects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from podium.api.node import HOSTNAME_LABEL, Taint
from podium.api.quantity import format_quantity
from podium.api.selectors import Requirement
from podium.app.console.cells import counted, listed
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate, SelectedByTerms, carries_anti_affinity
from podium.cluster.pod_classes import AffinityTerm
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, repelling_taints
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.verdicts import Calling, Status, Verdicts
from podium.plugins.dynamic_resources.plugin import device_shortages
from podium.plugins.node_filters import required_nodes
from podium.plugins.pod_topology_spread import matching_in_domains, own_constraints

RESOURCES = "NodeResourcesFit"
_TAINTS, _CORDON, _AFFINITY = "TaintToleration", "NodeUnschedulable", "NodeAffinity"
_INSUFFICIENT = "Insufficient "
_MAX_PODS = 2
_MAX_LENGTH = 120


def filter_verdicts(runner: Runner, state: CycleState, pod: PodRecord, view: View) -> list[tuple[str, Verdicts]]:
    """Return the verdicts of all filters that apply to the pod on all nodes. Raises PluginError if one fails."""
    found = []
    for placed in runner.filters_of(state):
        with Calling(placed.plugin.name, "Filter", pod):
            found.append((placed.plugin.name, placed.array.filter_rows(state, pod, view)))
    return found


class Shortage(Struct, frozen=True):
    """A resource that a node is short of: cpu in milli, others in units."""

    resource: str
    wanted: int
    left: int
    allocatable: int

    @property
    def lacking(self) -> int:
        """The amount that would have to be freed."""
        return self.wanted - self.left

    def __str__(self) -> str:
        wanted, allocatable, left, lacking = (
            format_quantity(amount, self.resource)
            for amount in (self.wanted, self.allocatable, max(self.left, 0), self.lacking)
        )
        if self.wanted > self.allocatable:
            return f"{self.resource}: {wanted} asked, {allocatable} in all"
        return f"{self.resource} short by {lacking} ({wanted} asked, {left} of {allocatable} free)"


class NodeObstacles(Struct, frozen=True):
    """The filters that reject one node, and the nominated pods whose requests count there."""

    node: str
    refusals: tuple[Status, ...]
    shortages: tuple[Shortage, ...]
    nominated: tuple[PodRecord, ...]

    @property
    def order(self) -> tuple[int, float, str]:
        """A sort key: fewer obstacles first, then the smaller share of a missing resource."""
        share = max((shortage.lacking / shortage.wanted for shortage in self.shortages), default=1.0)
        return sum(len(refusal.reasons) for refusal in self.refusals) + len(self.nominated), share, self.node


def find_obstacles(runner: Runner, pod: PodRecord) -> list[NodeObstacles]:
    """Return the obstacles of every node that has any, the nearest node first; [] if a PreFilter rejects the pod."""
    state, cluster = CycleState(), runner.cluster
    if not runner.pre_filter(state, pod).status.is_success:
        return []
    view = View(cluster)
    present = view.take(cluster.nodes.present)
    refusals: dict[int, list[Status]] = {}
    for name, verdicts in filter_verdicts(runner, state, pod, view):
        statuses: dict[int, Status] = {}
        for row in np.flatnonzero(present & (verdicts.codes != 0)).tolist():
            code = int(verdicts.codes[row])
            if code not in statuses:
                statuses[code] = verdicts.status(code).by(name)
            refusals.setdefault(row, []).append(statuses[code])
    found = []
    for node, row in cluster.nodes.row_of.items():
        nominated = tuple(
            other
            for other in cluster.nominations.on(node)
            if other.uid != pod.uid and cluster.nominations.counts_for(other, pod)
        )
        refused = tuple(refusals.get(row, ()))
        if refused or nominated:
            found.append(NodeObstacles(node, refused, _shortages(cluster, pod, row, refused), nominated))
    return sorted(found, key=lambda obstacles: obstacles.order)


def _shortages(cluster: Cluster, pod: PodRecord, row: int, refusals: Sequence[Status]) -> tuple[Shortage, ...]:
    reasons = next((status.reasons for status in refusals if status.plugin == RESOURCES), ())
    nodes, found = cluster.nodes, []
    for index, wanted in sorted(pod.pod_class.requests.items()):
        name, allocatable = nodes.resources[index], int(nodes.allocatable[index, row])
        if f"{_INSUFFICIENT}{name}" in reasons:
            found.append(Shortage(name, wanted, allocatable - int(nodes.requested[index, row]), allocatable))
    return tuple(found)


def obstacle_texts(cluster: Cluster, pod: PodRecord, obstacles: NodeObstacles) -> list[str]:
    """Return a phrase with names and amounts for each obstacle of a node; the filter's reasons if none is known."""
    found: list[str] = []
    row = cluster.nodes.row_of[obstacles.node]
    for status in obstacles.refusals:
        if status.plugin == RESOURCES:
            found += map(str, obstacles.shortages)
            if "Too many pods" in status.reasons:
                pods, allowed = cluster.nodes.pod_count[row], cluster.nodes.allowed_pods[row]
                found.append(f"full: {pods} pods, and {allowed} allowed")
        else:
            describe = _DESCRIBED.get(status.plugin)
            found += list(describe(cluster, pod, row) if describe else ()) or [status.message]
    if obstacles.nominated:
        kept = listed([f"{other.key} (priority {other.priority})" for other in obstacles.nominated], _MAX_PODS)
        found.append(f"room kept for {kept}, nominated there")
    return found


def _untolerated(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[tuple[Taint, str]]:
    for taint in repelling_taints(pod.spec.tolerations, cluster.nodes.node(row).spec.taints):
        yield taint, f"taint {taint_text(taint)}"


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it: key=value:effect."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _selection(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """Yield the unmet conditions of the node selector, and of the nearest term of the node affinity."""
    required, node = required_nodes(pod.pod_class), cluster.nodes.node(row).metadata
    yield from _unmet(required.selector.requirements, node.labels)
    if required.terms is not None and not any(term.matches(node.labels, node.name) for term in required.terms):
        of_terms = [
            [*_unmet(term.labels, node.labels), *(f"not {each}" for each in term.fields if not each.matches(node.name))]
            for term in required.terms
        ]
        more = f" (the nearest of {len(required.terms)} terms)" if len(required.terms) > 1 else ""
        nearest = min(of_terms, key=len, default=[])
        yield (" and ".join(nearest) or "no term of the pod's node affinity can match") + more


def _unmet(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> Iterator[str]:
    for requirement in requirements:
        key, value = requirement.key, labels.get(requirement.key)
        if not requirement.matches(value):
            found = f"no label {key}" if value is None else f"label {key}={value}"
            yield found if requirement.operator == "Exists" else f"{found} (wanted: {requirement})"


def _ports(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    for wanted in pod.pod_class.host_ports:
        holders = sorted(
            on_node.key
            for on_node in cluster.pods_on(row)
            if any(held.conflicts(wanted) for held in on_node.pod_class.host_ports)
        )
        if holders:
            yield f"port {wanted.port}/{wanted.protocol} held by {listed(holders, _MAX_PODS)}"


def _affinity(cluster: Cluster, pod: PodRecord, row: int) -> Iterator[str]:
    """Yield in InterPodAffinity's order: the pod's affinity, then its anti-affinity and that of other pods."""
    pod_class, labels = pod.pod_class, cluster.nodes.node(row).metadata.labels
    everyone = SelectedByTerms(pod_class.required_affinity)
    for term in pod_class.required_affinity:
        if term.topology_key not in labels:
            yield f"no label {term.topology_key}, which the pod's affinity needs"
        elif not _in_domain(cluster, everyone, term.topology_key, row):
            alone = len(pod_class.required_affinity) == 1
            wanted = f"of {term.selector}" if alone else "that all the pod's affinity terms select"
            yield f"no pod {wanted} {_domain(cluster, term, row)}"
    for term in pod_class.required_anti_affinity:
        others = _in_domain(cluster, SelectedByTerms((term,)), term.topology_key, row)
        if others:
            yield f"{listed(others, _MAX_PODS)} {_domain(cluster, term, row)}, avoided by the pod's anti-affinity"
    avoiding = []
    for term in cluster.carried.anti_affinity.selecting(pod_class):
        others = _in_domain(cluster, carries_anti_affinity(term), term.topology_key, row)
        if others:
            where = _domain(cluster, term, row)
            avoiding.append(f"{listed(others, _MAX_PODS)} {where}, whose anti-affinity avoids the pod")
    yield from sorted(avoiding)


def _domain(cluster: Cluster, term: AffinityTerm, row: int) -> str:
    key = term.topology_key
    return "there" if key == HOSTNAME_LABEL else f"in {key}={cluster.nodes.node(row).metadata.labels[key]}"


def _in_domain(cluster: Cluster, predicate: Predicate, key: str, row: int) -> list[str]:
    """Return the matching pods in the row's domain of a topology key, by name."""
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
    """Yield the pod's own constraints that the node breaks, without a configuration's defaults."""
    for domains in own_constraints(pod.pod_class, "DoNotSchedule").domains(cluster, pod.pod_class):
        constraint = domains.constraint
        code = int(cluster.nodes.labels(constraint.key).codes[row])
        if not code:
            yield f"no label {constraint.key}, which the pod must spread over"
            continue
        matching = matching_in_domains(cluster, domains)
        own_count, others = int(matching[code]), matching[domains.exists].tolist()
        lowest = 0 if len(others) < constraint.min_domains else min(others, default=0)
        if own_count + int(constraint.matches_self) - lowest > constraint.max_skew:
            value = cluster.nodes.node(row).metadata.labels[constraint.key]
            counts = f"has {counted(own_count, 'matching pod')} and the emptiest domain {lowest}"
            yield f"{constraint.key}={value} {counts}; maxSkew is {constraint.max_skew}"


_DESCRIBED: dict[str, Callable[[Cluster, PodRecord, int], Iterable[str]]] = {
    _CORDON: lambda *_: ["cordoned (spec.unschedulable)"],
    _TAINTS: lambda *of: [f"{text} not tolerated" for _, text in _untolerated(*of)],
    _AFFINITY: _selection,
    "NodePorts": _ports,
    "InterPodAffinity": _affinity,
    "PodTopologySpread": _spread,
    "DynamicResources": device_shortages,
}


RESOURCE, TOO_LARGE, FULL = "resource", "too-large", "full"
TAINT, CORDONED, SELECTION, OTHER = "taint", "cordoned", "selection", "filter"
"""The types of obstacles on a node: too little left, a request above allocatable, too many pods, ..."""


class Obstacle(Struct, frozen=True, order=True):
    """An obstacle to a pod on a node, or on all nodes, in words that are equal for many nodes.

    ``plugin`` reports it; ``subject`` is a resource's name or a Taint.
    """

    type: str
    text: str
    plugin: str = ""
    subject: Hashable = None

    @property
    def order(self) -> tuple[str, str]:
        """A sort key."""
        return self.type, self.text


class ObstacleGroup(Struct, frozen=True):
    """The rows of nodes with the same obstacles."""

    obstacles: frozenset[Obstacle]
    rows: Int64s

    @property
    def lasts(self) -> bool:
        """Whether the pod would not fit there even if all other pods ended."""
        return any(each.type in (TOO_LARGE, TAINT, SELECTION, CORDONED) for each in self.obstacles)


def joined(obstacles: Iterable[Obstacle]) -> str:
    """Return the obstacles in one line."""
    return " and ".join(obstacle.text for obstacle in sorted(obstacles, key=lambda each: each.order))


def cut(text: str) -> str:
    """Return the text, shortened if it is long."""
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def node_groups(runner: Runner, state: CycleState, pod: PodRecord, rows: Int64s) -> Iterator[ObstacleGroup]:
    """Yield the nodes of some rows grouped by obstacles; nodes that could take the pod have none."""
    cluster, nominations = runner.cluster, runner.cluster.nominations
    rows = rows[cluster.nodes.present[rows]]
    if not len(rows):
        return
    verdicts = filter_verdicts(runner, state, pod, View(cluster, rows))
    kept = [
        row
        for row in (nominations.rows() if nominations else ())
        if any(other.uid != pod.uid and nominations.counts_for(other, pod) for other in nominations.on_row(row))
    ]
    nominated = np.isin(rows, sorted(kept)).astype(np.int64)
    columns = [each.codes for _, each in verdicts] + [nominated]
    # Taints are named, so that nodes with different taints are kept apart.
    if any(name == _TAINTS and each.codes.any() for name, each in verdicts):
        columns.append(cluster.nodes.taint_group[rows].astype(np.int64))
    table = np.stack([column for column in columns if column.any()] or [nominated])
    order = np.lexsort(table)
    groups = np.split(order, np.flatnonzero(np.diff(table[:, order]).any(axis=0)) + 1)
    by_obstacles: dict[frozenset[Obstacle], list[Int64s]] = {}
    for positions in sorted(groups, key=lambda found: int(found[0])):
        position = int(positions[0])
        row, found = int(rows[position]), list[Obstacle]()
        for name, each in verdicts:
            code = int(each.codes[position])
            found += obstacles_of(cluster, pod, row, each.status(code).by(name)) if code else ()
        if nominated[position]:
            found.append(Obstacle(OTHER, "room kept for pods nominated there"))
        by_obstacles.setdefault(frozenset(found), []).append(rows[positions])
    yield from (ObstacleGroup(found, np.concatenate(parts)) for found, parts in by_obstacles.items())


def obstacles_of(cluster: Cluster, pod: PodRecord, row: int, status: Status) -> Iterator[Obstacle]:
    """Yield the obstacles behind a filter's rejection of a node."""
    nodes, requests = cluster.nodes, pod.pod_class.requests
    if status.plugin == RESOURCES:
        for reason in status.reasons:
            name = reason.removeprefix(_INSUFFICIENT)
            index = nodes.resource_index.get(name)
            allocatable = 0 if index is None else int(nodes.allocatable[index, row])
            if name == reason:
                yield Obstacle(FULL, reason, RESOURCES)
            elif index is not None and requests.get(index, 0) > allocatable:
                text = f"asks for more {name} than the node has" if allocatable else f"no {name}"
                yield Obstacle(TOO_LARGE, text, RESOURCES, name)
            else:
                yield Obstacle(RESOURCE, reason, RESOURCES, name)
    elif status.plugin == _TAINTS:
        for taint, text in _untolerated(cluster, pod, row):
            yield Obstacle(TAINT, text, status.plugin, taint)
    elif status.plugin == _CORDON:
        yield Obstacle(CORDONED, "cordoned", status.plugin)
    elif status.plugin == _AFFINITY and required_text(pod):
        yield Obstacle(SELECTION, f"does not match {required_text(pod)}", status.plugin)
    else:
        yield Obstacle(OTHER, cut(status.message), status.plugin)


def required_text(pod: PodRecord) -> str:
    """Return the pod's node selector and affinity in one line; "" for none."""
    required = required_nodes(pod.pod_class)
    parts = [str(requirement) for requirement in required.selector.requirements]
    if required.terms is not None:
        terms = [" and ".join(map(str, (*term.labels, *term.fields))) for term in required.terms]
        parts.append(" or ".join(sorted(filter(None, terms))) or "of any term")
    return cut(" and ".join(parts))
