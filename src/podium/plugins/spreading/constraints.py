"""Topology spread constraints of a pod class, compiled, and the nodes that each of them counts.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from podium.api.pod import TopologySpreadConstraint
from podium.api.selectors import NOTHING, Requirement, Selector, compile_label_selector
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.codes import LabelColumn
from podium.cluster.matchers import InNamespace
from podium.cluster.pod_class import PodClass
from podium.cluster.taints import kept_off
from podium.cluster.view import View
from podium.plugins.node_affinity import required_nodes

HOSTNAME = "kubernetes.io/hostname"
NO_DOMAIN = 2**31 - 1
"""More than there are pods: what the emptiest domain holds where there is none."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint. ``min_domains`` 1 where none is given; ``matches_self``: the pod itself counts."""

    max_skew: int
    key: str
    predicate: InNamespace
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    matches_self: bool


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of one constraint's key, as its column has them.

    ``counted`` is ``[rows]``: nodes whose pods count. ``all_labelled``: those are all the nodes with the label.
    ``exists`` is ``[codes]``: domains with at least one such node; ``codes`` are theirs.
    """

    column: LabelColumn
    counted: Bools
    all_labelled: bool
    exists: Bools
    codes: Int64s


def compile_constraint(constraint: TopologySpreadConstraint, pod_class: PodClass, selector: Selector) -> Constraint:
    """Compile a constraint for a class; ``selector`` is what it selects, before matchLabelKeys."""
    if constraint.match_label_keys and selector != NOTHING:
        own = pod_class.labels
        added = (Requirement(key, "In", (own[key],)) for key in constraint.match_label_keys if key in own)
        selector = Selector((*selector.requirements, *added))
    return Constraint(
        max_skew=constraint.max_skew,
        key=constraint.topology_key,
        predicate=InNamespace(pod_class.namespace, selector),
        min_domains=constraint.min_domains or 1,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
        matches_self=selector.matches(pod_class.labels),
    )


class ConstraintSet:
    """The constraints of a pod class that take effect together. An empty set is false.

    A node counts for a constraint when it has the keys of all of them (``need_all_keys``; otherwise of that one only)
    and passes the constraint's inclusion policies.
    """

    def __init__(self, constraints: Iterable[Constraint], *, need_all_keys: bool) -> None:
        self.constraints = tuple(constraints)
        self.need_all_keys = need_all_keys
        self._position = -1
        self._domains: tuple[Domains, ...] = ()

    def __len__(self) -> int:
        return len(self.constraints)

    def domains(self, cluster: Cluster, pod_class: PodClass) -> tuple[Domains, ...]:
        """The domains of each constraint; kept until a node object changes, and while codes mean the same."""
        nodes, position = cluster.nodes, cluster.nodes.node_changes.position
        columns = [nodes.labels(constraint.key) for constraint in self.constraints]
        if self._position != position or [domain.column for domain in self._domains] != columns:
            view = View(cluster)
            usable = view.take(cluster.nodes.present).copy()
            if self.need_all_keys:
                for constraint in self.constraints:
                    usable &= view.codes(constraint.key) != 0
            self._domains = tuple(_domains(view, pod_class, constraint, usable) for constraint in self.constraints)
            self._position = position
        return self._domains


def own_constraints(pod_class: PodClass, when_unsatisfiable: str) -> ConstraintSet:
    """The constraints that the pods of a class carry themselves, compiled once."""
    key = ("spread", when_unsatisfiable)
    known: ConstraintSet | None = pod_class.memo.get(key)
    if known is None:
        compiled = (
            compile_constraint(constraint, pod_class, compile_label_selector(constraint.label_selector))
            for constraint in pod_class.spec.topology_spread_constraints
            if constraint.when_unsatisfiable == when_unsatisfiable
        )
        known = pod_class.memo[key] = ConstraintSet(compiled, need_all_keys=True)
    return known


def _domains(view: View, pod_class: PodClass, constraint: Constraint, usable: Bools) -> Domains:
    column = view.cluster.nodes.labels(constraint.key)
    codes = view.codes(constraint.key)
    counted = usable.copy()
    if constraint.honors_affinity:
        counted &= required_nodes(pod_class).rows(view)
    if constraint.honors_taints:
        counted &= ~kept_off(pod_class.spec.tolerations, view)
    exists = np.zeros(len(column.values), dtype=np.bool_)
    exists[codes[counted]] = True
    all_labelled = bool((counted | (codes == 0) | ~view.take(view.cluster.nodes.present)).all())
    return Domains(column, counted, all_labelled, exists, np.flatnonzero(exists))


def matching_in_domains(cluster: Cluster, constraint: Constraint, domains: Domains) -> Int64s:
    """``[codes]``: the pods of each domain that the constraint counts."""
    if not constraint.predicate.selector.requirements:
        return np.zeros(len(domains.exists), dtype=np.int64)
    if domains.all_labelled:
        counts = cluster.domain_counts(constraint.predicate, constraint.key).copy()
        counts[0] = 0
        return counts
    view = View(cluster)
    counted, codes = domains.counted, view.codes(constraint.key)
    result = np.zeros(len(domains.exists), dtype=np.int64)
    np.add.at(result, codes[counted], view.count(constraint.predicate)[counted])
    return result
