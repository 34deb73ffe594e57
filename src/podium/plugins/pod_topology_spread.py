"""PodTopologySpread: matching pods must, or should, lie evenly over the domains of a topology key.

Source: pkg/scheduler/framework/plugins/podtopologyspread (filtering.go, scoring.go).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np

from podium.api.node import HOSTNAME_LABEL, ZONE_LABEL, Node
from podium.api.pod import TopologySpreadConstraint
from podium.api.selectors import EVERYTHING, NOTHING, Requirement, Selector, compile_label_selector
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import InNamespace, Predicate
from podium.cluster.nodes import LabelColumn
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, kept_off
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState, Reach
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, PluginError, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.domain_counts import FEW_DOMAINS, DomainCount, DomainCounts
from podium.plugins.node_filters import required_nodes

NO_DOMAIN = 2**31 - 1
"""The count of the emptiest domain if there is no domain; larger than any number of pods."""


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One constraint. ``min_domains`` is 1 if not set; ``matches_self``: the pod itself counts."""

    max_skew: int
    key: str
    predicate: InNamespace
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    matches_self: bool

    @property
    def counts_placed(self) -> bool:
        """Return whether it counts any pods of the cluster; with an empty selector it counts none."""
        return bool(self.predicate.selector.requirements)


class SpreadDomains(msgspec.Struct, frozen=True):
    """The domains of a constraint's key.

    ``column`` had the domains of nodes, as of its ``version``. ``counted`` is ``[rows]`` the nodes whose pods count;
    ``all_labelled``: these are all nodes with the label. If not, ``rows`` are these nodes, and ``row_codes`` their
    domains. ``exists`` is ``[codes]`` the domains with such a node, and ``codes`` are their codes.
    """

    constraint: SpreadConstraint
    column: LabelColumn
    version: int
    counted: Bools
    rows: Int64s
    row_codes: Int32s
    all_labelled: bool
    exists: Bools
    codes: Int64s


def compile_constraint(
    constraint: TopologySpreadConstraint, pod_class: PodClass, selector: Selector
) -> SpreadConstraint:
    """Compile a constraint for a class; ``selector`` excludes matchLabelKeys."""
    if constraint.match_label_keys and selector != NOTHING:
        own = pod_class.labels
        added = (Requirement(key, "In", (own[key],)) for key in constraint.match_label_keys if key in own)
        selector = Selector((*selector.requirements, *added))
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        key=constraint.topology_key,
        predicate=InNamespace(pod_class.namespace, selector),
        min_domains=constraint.min_domains or 1,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
        matches_self=selector.matches(pod_class.labels),
    )


class ConstraintSet:
    """The constraints of a pod class that apply together. An empty set is false.

    A node counts for a constraint if it has the keys of all of them (``need_all_keys``; otherwise of this one) and
    passes the constraint's inclusion policies.
    """

    def __init__(self, constraints: Iterable[SpreadConstraint], *, need_all_keys: bool) -> None:
        self.constraints = tuple(constraints)
        self.need_all_keys = need_all_keys
        self._honors_taints = any(constraint.honors_taints for constraint in self.constraints)
        self._honors_affinity = any(constraint.honors_affinity for constraint in self.constraints)
        self._basis: object = None
        self._domains: tuple[SpreadDomains, ...] = ()

    def __len__(self) -> int:
        return len(self.constraints)

    def domains(self, cluster: Cluster, pod_class: PodClass) -> tuple[SpreadDomains, ...]:
        """Return the domains of each constraint, cached until nodes may count that did not, or codes change."""
        nodes = cluster.nodes
        keys = required_nodes(pod_class).label_keys if self._honors_affinity else ()
        # Unless a policy reads taints or names, only labels tell nodes apart.
        position = nodes.node_changes.position if self._honors_taints or keys is None else -1
        columns = [nodes.labels(key) for key in (*[each.key for each in self.constraints], *(keys or ()))]
        basis = position, nodes.count, [(column, column.version) for column in columns]
        if basis != self._basis:
            view = View(cluster)
            usable = view.take(nodes.present).copy()
            if self.need_all_keys:
                for constraint in self.constraints:
                    usable &= view.codes(constraint.key) != 0
            self._domains = tuple(_domains(view, pod_class, constraint, usable) for constraint in self.constraints)
            self._basis = basis
        return self._domains


def own_constraints(pod_class: PodClass, when_unsatisfiable: str) -> ConstraintSet:
    """Return the constraints that a pod class has itself, compiled once."""
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


def _domains(view: View, pod_class: PodClass, constraint: SpreadConstraint, usable: Bools) -> SpreadDomains:
    column = view.cluster.nodes.labels(constraint.key)
    codes = view.codes(constraint.key)
    counted = usable.copy()
    if constraint.honors_affinity:
        counted &= required_nodes(pod_class).rows(view)
    if constraint.honors_taints:
        counted &= ~kept_off(pod_class.spec.tolerations, view)
    exists = np.zeros(len(column.values), dtype=np.bool_)
    rows = np.flatnonzero(counted)
    row_codes = codes[rows]
    exists[row_codes] = True
    all_labelled = bool((counted | (codes == 0) | ~view.take(view.cluster.nodes.present)).all())
    if all_labelled:
        # The counts of whole domains are kept elsewhere; rows of each class would take much memory.
        rows, row_codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return SpreadDomains(
        constraint, column, column.version, counted, rows, row_codes, all_labelled, exists, np.flatnonzero(exists)
    )


def matching_in_domains(cluster: Cluster, domains: SpreadDomains) -> Int64s:
    """Return ``[codes]`` the pods of each domain that the constraint counts."""
    constraint = domains.constraint
    if not constraint.counts_placed:
        return np.zeros(len(domains.exists), dtype=np.int64)
    if domains.all_labelled:
        counts = cluster.domain_counts(constraint.predicate, constraint.key).copy()
        counts[0] = 0
        return counts
    result = np.zeros(len(domains.exists), dtype=np.int64)
    np.add.at(result, domains.row_codes, View(cluster).count(constraint.predicate)[domains.rows])
    return result


_STATUSES = (
    SUCCESS,
    unschedulable("node(s) didn't match pod topology spread constraints"),
    unresolvable("node(s) didn't match pod topology spread constraints (missing required label)"),
)
_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME_LABEL, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable="ScheduleAnyway"),
)


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments: the constraints of pods without any: a list, or the system's."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class _Spread(msgspec.Struct, frozen=True):
    """One hard constraint: matching pods by domain (``[codes]``), and the two emptiest domains."""

    domains: SpreadDomains
    matching: Int64s
    lowest: int
    lowest_code: int
    second: int


class PodTopologySpread:
    """Filters by DoNotSchedule constraints, scores by ScheduleAnyway ones."""

    name = "PodTopologySpread"
    scope = Scope.CLUSTER
    needs_pre_score = True

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, PodTopologySpreadArgs, self.name)
        if args.defaulting_type == "System" and args.default_constraints:
            raise PluginError(f"{self.name}: defaultConstraints need defaultingType List")
        if any(constraint.label_selector is not None for constraint in args.default_constraints):
            raise PluginError(f"{self.name}: defaultConstraints must not have a labelSelector")
        self._system_defaulted = args.defaulting_type == "System"
        self._defaults = _SYSTEM_DEFAULTS if self._system_defaulted else args.default_constraints
        self._cluster = context.cluster
        # Distinguishes the cached default constraints of different profiles.
        self._defaults_key = object()

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SUCCESS if self._hard(pod.pod_class) else SKIP

    def never_filters(self, pod_class: PodClass) -> bool:
        if pod_class.spec.topology_spread_constraints:
            return not own_constraints(pod_class, "DoNotSchedule")
        return not any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in self._defaults)

    def filter_cells(self, pod: PodRecord) -> SpreadFilterCells | None:
        """Return cells by the domains of hard constraints."""
        cells = SpreadFilterCells(self._cluster, pod.pod_class, self._hard)
        return cells if cells.has_cells else None

    def score_cells(self, pod: PodRecord) -> SpreadScoreCells | None:
        """Return cells by the domains of soft constraints."""
        cells = SpreadScoreCells(self._cluster, pod.pod_class, lambda each: self.constraints(each, "ScheduleAnyway"))
        return cells if cells.has_cells else None

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Reject nodes without the label, and nodes whose domain would exceed the emptiest one by more than maxSkew."""
        codes = np.zeros(len(view), dtype=np.int64)
        # The counts of all hard constraints, cached for an attempt.
        spreads: list[_Spread] | None = state.get(self.name)
        if spreads is None:
            spreads = state[self.name] = [
                _spread(domains, matching_in_domains(self._cluster, domains))
                for domains in self._hard(pod.pod_class).domains(self._cluster, pod.pod_class)
            ]
        for spread in spreads:
            constraint = spread.domains.constraint
            domain = view.codes(constraint.key)
            matching, lowest = _counts_in_view(spread, view, domain)
            skewed = matching + int(constraint.matches_self) - lowest > constraint.max_skew
            np.copyto(codes, np.where(domain == 0, 2, skewed), where=codes == 0)
        return Verdicts.choose(codes, _STATUSES)

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Return the pods that hard constraints count: a node's domain may have too many of them."""
        return [
            Reach(constraint.predicate, constraint.key, "SomeGone", f"topology spread over {constraint.key}")
            for constraint in self._hard(pod.pod_class).constraints
            if constraint.counts_placed
        ]

    def counted(self, state: CycleState, pod: PodRecord) -> list[Predicate]:
        """Return the predicates of all hard constraints."""
        return [constraint.predicate for constraint in self._hard(pod.pod_class).constraints]

    def inputs(self, state: CycleState, pod: PodRecord) -> list[object]:
        """Return the domains of each hard constraint, and their counts."""
        found: list[object] = []
        for domains in self._hard(pod.pod_class).domains(self._cluster, pod.pod_class):
            counts = matching_in_domains(self._cluster, domains)
            found += (domains.constraint, domains.column, domains.version, domains.codes.tobytes(), counts.tobytes())
        return found

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        return SUCCESS if self.constraints(pod.pod_class, "ScheduleAnyway") else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Return the weighted number of matching pods around each node; keys with more domains weigh more."""
        constraints = self.constraints(pod.pod_class, "ScheduleAnyway")
        ignored = self._ignored(pod, view)
        scores = np.zeros(len(view), dtype=np.float64)
        for domains in constraints.domains(self._cluster, pod.pod_class):
            constraint = domains.constraint
            codes = view.codes(constraint.key)
            if constraint.key == HOSTNAME_LABEL:
                size = len(view) - int(ignored.sum())
                has_matching = constraint.counts_placed
                matching = view.count(constraint.predicate) if has_matching else np.zeros(len(view), dtype=np.int64)
            else:
                size = int(np.count_nonzero(np.bincount(codes[~ignored])))
                matching = matching_in_domains(self._cluster, domains)[codes]
            score = matching * math.log(size + 2) + (constraint.max_skew - 1)
            scores += np.where(codes != 0, score, 0.0)
        return np.where(ignored, 0, np.floor(scores + 0.5)).astype(np.int64)

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """Invert the scores: the emptiest domain gets 100, nodes without the labels 0."""
        ignored = self._ignored(pod, feasible)
        counted = scores[~ignored]
        if not len(counted):
            return np.zeros(len(scores), dtype=np.int64)
        lowest, highest = int(counted.min()), int(counted.max())
        if highest == 0:
            return np.where(ignored, 0, MAX_NODE_SCORE)
        return np.where(ignored, 0, MAX_NODE_SCORE * (highest + lowest - scores) // highest)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                self._counts_otherwise,
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL, self._counts_otherwise),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION, self._honors_taints),
            EventToRegister(
                EventResource.NODE,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
                self._has_keys,
            ),
        )

    def _hard(self, pod_class: PodClass) -> ConstraintSet:
        return self.constraints(pod_class, "DoNotSchedule")

    def constraints(self, pod_class: PodClass, when_unsatisfiable: str) -> ConstraintSet:
        """Return the pod's own constraints of that kind, or the default ones if it has none at all."""
        if pod_class.spec.topology_spread_constraints:
            return own_constraints(pod_class, when_unsatisfiable)
        generation = self._cluster.groups.generation
        key = (self._defaults_key, when_unsatisfiable)
        known: tuple[int, Selector, ConstraintSet] | None = pod_class.memo.get(key)
        if known is None or known[0] != generation:
            selector = self._cluster.groups.selector(pod_class)
            if known is not None and known[1] == selector:
                constraints = known[2]
            else:
                defaults = () if selector == EVERYTHING else self._defaults
                wanted = (default for default in defaults if default.when_unsatisfiable == when_unsatisfiable)
                made = [compile_constraint(default, pod_class, selector) for default in wanted]
                # The system's defaults also count nodes that have only some of the labels.
                constraints = ConstraintSet(made, need_all_keys=not self._system_defaulted)
            known = pod_class.memo[key] = generation, selector, constraints
        return known[2]

    def _ignored(self, pod: PodRecord, view: View) -> Bools:
        ignored = np.zeros(len(view), dtype=np.bool_)
        constraints = self.constraints(pod.pod_class, "ScheduleAnyway")
        if constraints.need_all_keys:
            for constraint in constraints.constraints:
                ignored |= view.codes(constraint.key) == 0
        return ignored

    def _counts_otherwise(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether a pod comes, goes or changes between the pods that a constraint counts and others."""
        predicates = [constraint.predicate for constraint in self._hard(pod.pod_class).constraints]
        before, after = (
            [
                record is not None and predicate.matches(record.pod_class, self._cluster.namespaces)
                for predicate in predicates
            ]
            for record in (event.old, event.new)
        )
        return before != after

    def _honors_taints(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether the pod's tolerations affect which nodes count."""
        return any(constraint.honors_taints for constraint in self._hard(pod.pod_class).constraints)

    def _has_keys(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether a node comes to, leaves or changes domains of the pod's constraints, or its taints in them."""
        keys = [constraint.key for constraint in self._hard(pod.pod_class).constraints]

        def domains(node: Node | None) -> list[str | None] | None:
            found = None if node is None else [node.metadata.labels.get(key) for key in keys]
            return None if found is None or None in found else found

        before, after = domains(event.old), domains(event.new)
        return before != after or (after is not None and event.old.spec.taints != event.new.spec.taints)


def _spread(domains: SpreadDomains, matching: Int64s) -> _Spread:
    codes = domains.codes
    if not len(codes):
        return _Spread(domains, matching, NO_DOMAIN, 0, NO_DOMAIN)
    at = int(np.argmin(matching[codes]))
    rest = np.delete(matching[codes], at)
    second = int(rest.min()) if len(rest) else NO_DOMAIN
    return _Spread(domains, matching, int(matching[codes[at]]), int(codes[at]), second)


def _counts_in_view(spread: _Spread, view: View, domain: Int32s) -> tuple[Int64s, Int64s | int]:
    """Return the matching pods in each row's domain, and in the emptiest domain, as each position of the view has them.

    If only a position's own row changes, the minimum of the other domains is the lowest or second lowest count. Pods
    that leave other rows may lower it further.
    """
    spread, joined = _with_everywhere(spread, view)
    constraint = spread.domains.constraint
    few = len(spread.domains.codes) < constraint.min_domains
    matching = spread.matching[domain] - joined
    # An empty selector counts none of the cluster's pods but all that join or leave (filtering.go, updateWithPod).
    change = view.change(constraint.predicate)
    if change is None:
        return matching, 0 if few else spread.lowest
    matching = matching + np.where(view.take(spread.domains.counted), change, 0)
    others = np.where(domain == spread.lowest_code, spread.second, spread.lowest)
    matching, others = _with_elsewhere(spread, view, domain, matching, others)
    own = np.where(spread.domains.exists[domain], matching, NO_DOMAIN)
    return matching, 0 if few else np.minimum(others, own)


def _with_everywhere(spread: _Spread, view: View) -> tuple[_Spread, Int64s | int]:
    """Return the spread with the pods that joined all positions, and the joined pods on each position's own row."""
    constraint = spread.domains.constraint
    if not constraint.counts_placed:
        return spread, 0
    matching, on_row, counted = spread.matching, 0, spread.domains.counted
    for rows in view.everywhere(constraint.predicate):
        joined = rows[counted[rows]]
        matching = matching + np.bincount(spread.domains.column.codes[joined], minlength=len(matching))
        on_row = on_row + (joined[:, None] == view.rows).sum(axis=0)
    if matching is spread.matching:
        return spread, 0
    return _spread(spread.domains, matching), on_row


def _with_elsewhere(
    spread: _Spread, view: View, domain: Int32s, matching: Int64s, others: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the same two numbers with the pods that left or joined other rows."""
    constraint = spread.domains.constraint
    if not constraint.counts_placed:
        return matching, others
    size, column = len(spread.matching), spread.domains.column
    places: list[Int64s] = []
    signs: list[Int64s] = []
    for positions, rows, sign in view.elsewhere(constraint.predicate):
        counted = spread.domains.counted[rows]
        at, codes = positions[counted], column.codes[rows[counted]]
        own = codes == domain[at]
        matching = matching + sign * np.bincount(at[own], minlength=len(view))
        if not own.all():
            places.append(at[~own] * size + codes[~own])
            signs.append(np.full(len(places[-1]), sign, dtype=np.int64))
    if places:
        changed, of = np.unique(np.concatenate(places), return_inverse=True)
        numbers = spread.matching[changed % size]
        np.add.at(numbers, of, np.concatenate(signs))
        others = others.copy()
        np.minimum.at(others, changed // size, numbers)
    return matching, others


class SpreadCells(DomainCounts):
    """Cells by the domains of a class's constraints.

    If each node is a domain, rows with equally many pods share a cell; so the pods of all labelled nodes must count.
    """

    def __init__(
        self, cluster: Cluster, pod_class: PodClass, constraints_of: Callable[[PodClass], ConstraintSet]
    ) -> None:
        self._cluster = cluster
        self._constraints_of = constraints_of
        self._set = constraints_of(pod_class)
        super().__init__(
            tuple(DomainCount(cluster, constraint.predicate, constraint.key) for constraint in self._set.constraints)
        )
        self._each = list(zip(self._set.domains(cluster, pod_class), self._counts, strict=True))

    @property
    def has_cells(self) -> bool:
        return super().has_cells and all(self._are_alike(domains, count) for domains, count in self._each)

    def is_current(self, pod: PodRecord) -> bool:
        """Return whether the class still has the same constraints."""
        return self._constraints_of(pod.pod_class) is self._set and self.are_current

    def _are_alike(self, domains: SpreadDomains, count: DomainCount) -> bool:
        """Return whether a constraint counts equally many pods for all rows of a cell."""
        return domains.all_labelled or not domains.constraint.counts_placed or not count.is_single

    def _matching(self, domains: SpreadDomains, count: DomainCount) -> Int64s:
        """Return the pods of each domain, by its code, that the constraint counts; not to be changed."""
        is_whole = domains.all_labelled and domains.constraint.counts_placed
        return count.by_code if is_whole else matching_in_domains(self._cluster, domains)


class SpreadFilterCells(SpreadCells):
    """Cells for hard constraints."""

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> list[bool]:
        found = [True] * len(rows)
        for domains, count in self._each:
            constraint, matching, lowest = domains.constraint, self._matching(domains, count), 0
            if len(domains.codes) >= constraint.min_domains:
                lowest = _lowest(matching, domains.codes)
            most = constraint.max_skew + lowest - int(constraint.matches_self)
            for number, row in enumerate(rows):
                code = count.code(row)
                if not code or matching.item(code) > most:
                    found[number] = False
        return found


def _lowest(matching: Int64s, codes: Int64s) -> int:
    """Return the number of pods in the emptiest of some domains."""
    if len(codes) > FEW_DOMAINS:
        return int(matching[codes].min())
    return min(map(matching.item, codes.tolist()), default=NO_DOMAIN)


class SpreadScoreCells(SpreadCells):
    """Cells for soft constraints."""

    def _are_alike(self, domains: SpreadDomains, count: DomainCount) -> bool:
        # The pods of every node count there.
        return count.key == HOSTNAME_LABEL or super()._are_alike(domains, count)

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Return the normalized scores of some rows; 0 for rows without the labels."""
        if not self._set:
            return [0] * len(rows)
        each = self._each
        counted = [
            number
            for number, row in enumerate(rows)
            if not self._set.need_all_keys or all(count.code(row) for _, count in each)
        ]
        raw = dict.fromkeys(counted, 0.0)
        for domains, count in each:
            constraint = domains.constraint
            weight = math.log(_size(count, [(rows[number], sizes[number]) for number in counted]) + 2)
            in_domain = None if constraint.key == HOSTNAME_LABEL else self._matching(domains, count)
            is_counted = constraint.counts_placed
            for number in counted:
                code = count.code(rows[number])
                if code:
                    matching = count.on(rows[number]) if in_domain is None else in_domain.item(code)
                    raw[number] += (matching if is_counted else 0) * weight + (constraint.max_skew - 1)
        scores = {number: math.floor(score + 0.5) for number, score in raw.items()}
        lowest, highest = min(scores.values(), default=0), max(scores.values(), default=0)
        return [
            (MAX_NODE_SCORE * (highest + lowest - scores[number]) // highest if highest else MAX_NODE_SCORE)
            if number in scores
            else 0
            for number in range(len(rows))
        ]


def _size(count: DomainCount, cells: Sequence[tuple[int, int]]) -> int:
    """Return the number of nodes, or of domains of other keys, in some cells (row and size)."""
    if count.key == HOSTNAME_LABEL:
        return sum(size for _, size in cells)
    if not count.is_single:
        return len({count.code(row) for row, _ in cells})
    return sum(size for row, size in cells if count.code(row)) + any(not count.code(row) for row, _ in cells)
