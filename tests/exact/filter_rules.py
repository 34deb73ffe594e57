"""Filters over several moving pods, as rules of a mixed-integer program.

A filter that depends on one pod and one node is evaluated for each pair. These filters depend on other pods too: if
those may move as well, only a rule over all of them describes the filter's final verdict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from podium.cluster.matchers import Predicate, SelectedByTerms
from podium.cluster.pod_classes import AffinityTerm, HostPort, PodClass
from podium.cluster.pods import PodRecord
from podium.plugins.pod_topology_spread import SpreadDomains, own_constraints
from tests.exact.linear_forms import FilterRule, FilterRules, Movables, Pair

Weights = dict[Pair, float]


def resource_rules(movables: Movables, judged: frozenset[str]) -> Iterator[FilterRule]:
    """NodeResourcesFit: the requests and the number of pods on a node do not exceed its capacity."""
    nodes = movables.picture.cluster.nodes
    pods: defaultdict[int, Weights] = defaultdict(dict)
    asked: defaultdict[tuple[int, int], Weights] = defaultdict(dict)
    leaving: defaultdict[tuple[int, int], int] = defaultdict(int)
    for pod, row in movables.pairs():
        pods[row][pod.uid, row] = 1.0
        for resource, amount in pod.pod_class.requests.items():
            asked[row, resource][pod.uid, row] = float(amount)
            leaving[row, resource] += amount if row == pod.row else 0
    own = Counter(pod.row for pod in movables.pods)
    for row, weights in pods.items():
        yield FilterRule(weights, float(nodes.allowed_pods[row] - nodes.pod_count[row] + own[row]))
    for (row, resource), weights in asked.items():
        held = int(nodes.requested[resource, row]) - leaving[row, resource]
        yield FilterRule(weights, float(int(nodes.allocatable[resource, row]) - held))


def port_rules(movables: Movables, judged: frozenset[str]) -> Iterator[FilterRule]:
    """NodePorts: at most one of the pods that request a host port is on a node."""
    wanting: defaultdict[HostPort, list[PodRecord]] = defaultdict(list)
    held: defaultdict[HostPort, set[int]] = defaultdict(set)
    for pod in movables.pods:
        for port in dict.fromkeys(pod.pod_class.host_ports):
            wanting[port].append(pod)
    for pod in movables.staying() if wanting else ():
        for port in pod.pod_class.host_ports:
            held[port].add(pod.row)
    ports = list(wanting)
    for number, port in enumerate(ports):
        taken = {row for other, rows in held.items() if port.conflicts(other) for row in rows}
        yield from _forbidden(pair for pair in movables.pairs(wanting[port]) if pair[1] in taken)
        for other in ports[number:]:
            if port.conflicts(other):
                yield from _never_together(movables, wanting[port], wanting[other], lambda row: row)


def affinity_rules(movables: Movables, judged: frozenset[str]) -> Iterator[FilterRule]:
    """InterPodAffinity: required anti-affinity of all pods, and required affinity of the moving pods."""
    yield from _apart(movables, judged)
    by_class = _by_class(pod for pod in movables.pods if pod.uid in judged and pod.pod_class.required_affinity)
    for pods in by_class.values():
        yield from _near(movables, pods)


def spread_rules(movables: Movables, judged: frozenset[str]) -> Iterator[FilterRule]:
    """PodTopologySpread: by their own constraints, pods' domains exceed the emptiest one by at most maxSkew."""
    cluster = movables.picture.cluster
    for pods in _by_class(pod for pod in movables.pods if pod.uid in judged).values():
        pod_class = pods[0].pod_class
        for domains in own_constraints(pod_class, "DoNotSchedule").domains(cluster, pod_class):
            codes = domains.column.codes
            yield from _forbidden(pair for pair in movables.pairs(pods) if not codes[pair[1]])
            yield from _skew(movables, pods, domains)


FILTER_RULES: Mapping[str, FilterRules] = {
    "InterPodAffinity": affinity_rules,
    "NodePorts": port_rules,
    "NodeResourcesFit": resource_rules,
    "PodTopologySpread": spread_rules,
}
"""The rules by the name of the plugin that they replace."""


def _by_class(pods: Iterable[PodRecord]) -> dict[int, list[PodRecord]]:
    found: defaultdict[int, list[PodRecord]] = defaultdict(list)
    for pod in pods:
        found[pod.pod_class.id].append(pod)
    return found


def _forbidden(pairs: Iterable[tuple[PodRecord, int]]) -> Iterator[FilterRule]:
    for pod, row in pairs:
        yield FilterRule({(pod.uid, row): 1.0}, 0.0)


def _never_together(
    movables: Movables, some: Sequence[PodRecord], others: Sequence[PodRecord], domain_of: Callable[[int], int]
) -> Iterator[FilterRule]:
    """Keep pods of ``some`` out of domains that hold another pod of ``others``.

    Domain 0 is no domain if rows are labelled.

    If both are the same pods, one rule covers each domain; otherwise there is one for each pod of the smaller side.
    """
    if {pod.uid for pod in some} == {pod.uid for pod in others}:
        for weights in _per_domain(movables, some, domain_of).values():
            yield FilterRule(weights, 1.0)
        return
    for pod, other in product(some, others):
        if pod.uid == other.uid:
            continue
        mine, its = _per_domain(movables, [pod], domain_of), _per_domain(movables, [other], domain_of)
        for code in mine.keys() & its.keys():
            yield FilterRule({**mine[code], **its[code]}, 1.0)


def _per_domain(
    movables: Movables, pods: Iterable[PodRecord], domain_of: Callable[[int], int]
) -> defaultdict[int, Weights]:
    found: defaultdict[int, Weights] = defaultdict(dict)
    for pod, row in movables.pairs(pods):
        found[domain_of(row)][pod.uid, row] = 1.0
    return found


def _labelled(movables: Movables, key: str) -> Callable[[int], int]:
    """Return a function from row to domain; rows without the label are domains of their own, below 0."""
    codes = movables.picture.cluster.nodes.labels(key).codes
    return lambda row: int(codes[row]) or -1 - row


def _apart(movables: Movables, judged: frozenset[str]) -> Iterator[FilterRule]:
    """Yield the rules of all pods' required anti-affinity against the pods that it selects."""
    carrying: defaultdict[AffinityTerm, list[PodRecord]] = defaultdict(list)
    for pod in (*movables.pods, *movables.staying()):
        for term in dict.fromkeys(pod.pod_class.required_anti_affinity):
            carrying[term].append(pod)
    moving, namespaces = movables.rows.keys(), movables.picture.cluster.namespaces
    for term, owners in carrying.items():
        domain_of = _labelled(movables, term.topology_key)
        selected = _selected(movables, lambda known, term=term: term.selects(known.namespace, known.labels, namespaces))  # type: ignore[misc]
        free = ([pod for pod in owners if pod.uid in moving], [pod for pod in selected if pod.uid in moving])
        for pods, others in ((free[0], selected), (free[1], owners)):
            taken = {code for pod in others if pod.uid not in moving and (code := domain_of(pod.row)) >= 0}
            pairs = movables.pairs([pod for pod in pods if pod.uid in judged])
            yield from _forbidden((pod, row) for pod, row in pairs if domain_of(row) in taken)
        if not free[0] or not free[1]:
            continue
        for rule in _never_together(movables, *free, domain_of):
            if all(domain_of(row) >= 0 for _, row in rule.weights):
                yield rule


def _selected(movables: Movables, matches: Callable[[PodClass], bool]) -> list[PodRecord]:
    known: dict[int, bool] = {}
    found = []
    for pod in (*movables.pods, *movables.staying()):
        if pod.pod_class.id not in known:
            known[pod.pod_class.id] = matches(pod.pod_class)
        if known[pod.pod_class.id]:
            found.append(pod)
    return found


def _near(movables: Movables, pods: Sequence[PodRecord]) -> Iterator[FilterRule]:
    """Yield rules: a pod goes only where each of its terms has a pod that all of them select, or stays."""
    pod_class = pods[0].pod_class
    terms = pod_class.required_affinity
    selected = _matching(movables, SelectedByTerms(terms))
    alone = {pod.uid for pod in selected} <= {pods[0].uid} and len(pods) == 1
    for term in terms:
        domain_of = _labelled(movables, term.topology_key)
        fixed = {domain_of(pod.row) for pod in selected if pod.uid not in movables.rows}
        free = _per_domain(movables, [pod for pod in selected if pod.uid in movables.rows], domain_of)
        for pod, row in movables.pairs(pods):
            code = domain_of(row)
            if row == pod.row or (code >= 0 and (code in fixed or (alone and selected))):
                continue
            if code < 0:
                yield FilterRule({(pod.uid, row): 1.0}, 0.0)
                continue
            partners = {pair: -weight for pair, weight in free[code].items() if pair[0] != pod.uid}
            yield FilterRule({**partners, (pod.uid, row): 1.0}, 0.0)


def _matching(movables: Movables, predicate: Predicate) -> list[PodRecord]:
    namespaces = movables.picture.cluster.namespaces
    return _selected(movables, lambda pod_class: predicate.matches(pod_class, namespaces))


def _skew(movables: Movables, pods: Sequence[PodRecord], domains: SpreadDomains) -> Iterator[FilterRule]:
    """Yield rules for each pod of a class and each target domain, which must not exceed others by too much."""
    constraint, codes = domains.constraint, domains.column.codes
    if not constraint.counts_placed:
        return
    fixed, free = _counted(movables, domains)
    existing: list[int] = domains.codes.tolist()
    if len(existing) < constraint.min_domains:
        others: Mapping[int, tuple[Weights, int]] = {0: ({}, 0)}
    else:
        others = {code: (free[code], fixed[code]) for code in existing}
    for pod, row in movables.pairs(pods):
        code = int(codes[row])
        if row == pod.row or not code:
            continue
        for other, (fewer, base) in others.items():
            if other == code:
                continue
            most = float(constraint.max_skew - fixed[code] + base)
            weights = {**free[code], **{pair: -weight for pair, weight in fewer.items()}}
            # How far the rule must be relaxed if the pod does not move there.
            slack = max(0.0, sum(weight for weight in weights.values() if weight > 0) - most)
            weights[pod.uid, row] = weights.get((pod.uid, row), 0.0) + slack
            yield FilterRule(weights, most + slack)


def _counted(movables: Movables, domains: SpreadDomains) -> tuple[Counter[int], dict[int, Weights]]:
    """Return by domain the counted pods that stay, and the pairs of those that may move."""
    codes, counted = domains.column.codes, domains.counted
    fixed: Counter[int] = Counter()
    free: defaultdict[int, Weights] = defaultdict(dict)
    matching = [pod for pod in _matching(movables, domains.constraint.predicate) if not pod.terminating]
    for pod in matching:
        if pod.uid not in movables.rows and counted[pod.row]:
            fixed[int(codes[pod.row])] += 1
    for pod, row in movables.pairs([pod for pod in matching if pod.uid in movables.rows]):
        if counted[row]:
            free[int(codes[row])][pod.uid, row] = 1.0
    return fixed, free
