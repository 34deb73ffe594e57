"""PodTopologySpread: matching pods must, or should, lie evenly over the domains of a topology key.

Source: pkg/scheduler/framework/plugins/podtopologyspread (filtering.go, scoring.go).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from podium.api.node import Node
from podium.api.pod import TopologySpreadConstraint
from podium.api.selectors import EVERYTHING, Selector
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.reach import Reach
from podium.framework.settings.arguments import read_arguments
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from podium.framework.verdicts import Verdicts
from podium.plugins.spreading.cells import SpreadFilterCells, SpreadScoreCells
from podium.plugins.spreading.constraints import (
    HOSTNAME,
    NO_DOMAIN,
    Constraint,
    ConstraintSet,
    Domains,
    compile_constraint,
    matching_in_domains,
    own_constraints,
)

ZONE = "topology.kubernetes.io/zone"
_STATUSES = (
    SUCCESS,
    unschedulable("node(s) didn't match pod topology spread constraints"),
    unresolvable("node(s) didn't match pod topology spread constraints (missing required label)"),
)
_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments: the constraints of pods that carry none: a list, or those of the system."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


@dataclass(frozen=True, slots=True)
class _Spread:
    """One hard constraint now: matching pods by domain (``[codes]``), and the two emptiest domains."""

    constraint: Constraint
    domains: Domains
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
        # Tells this plugin's default constraints from those of another profile's in a class's memo.
        self._defaults_key = object()

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without hard constraints."""
        return SUCCESS if self._hard(pod.pod_class) else SKIP

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those without hard constraints of their own, where there are no such default ones."""
        if pod_class.spec.topology_spread_constraints:
            return not own_constraints(pod_class, "DoNotSchedule")
        return not any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in self._defaults)

    def filter_cells(self, pod: PodRecord) -> SpreadFilterCells | None:
        """By the domains of the hard constraints."""
        cells = SpreadFilterCells(self._cluster, pod.pod_class, self._hard)
        return cells if cells.tell_apart else None

    def score_cells(self, pod: PodRecord) -> SpreadScoreCells | None:
        """By the domains of the soft constraints."""
        cells = SpreadScoreCells(self._cluster, pod.pod_class, self._soft)
        return cells if cells.tell_apart else None

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes without the label, and nodes whose domain would lead the emptiest one by more than maxSkew."""
        codes = np.zeros(len(view), dtype=np.int64)
        for spread in self._spreads(state, pod):
            constraint = spread.constraint
            domain = view.codes(constraint.key)
            matching, lowest = _in_worlds(spread, view, domain)
            skewed = matching + int(constraint.matches_self) - lowest > constraint.max_skew
            np.copyto(codes, np.where(domain == 0, 2, skewed), where=codes == 0)
        return Verdicts.choose(codes, _STATUSES)

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Pods that a hard constraint counts: some of those in a node's domain may be too many."""
        return [
            Reach(constraint.predicate, constraint.key, "SomeGone", f"topology spread over {constraint.key}")
            for constraint in self._hard(pod.pod_class).constraints
            if constraint.predicate.selector.requirements
        ]

    def _spreads(self, state: CycleState, pod: PodRecord) -> list[_Spread]:
        """The pods of each domain, counted when they are first asked for in an attempt."""
        known: list[_Spread] | None = state.get(self.name)
        if known is None:
            constraints = self._hard(pod.pod_class)
            domains = constraints.domains(self._cluster, pod.pod_class)
            counted = zip(constraints.constraints, domains, strict=True)
            known = state[self.name] = [_spread(self._cluster, constraint, where) for constraint, where in counted]
        return known

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods without soft constraints."""
        return SUCCESS if self.constraints(pod.pod_class, "ScheduleAnyway") else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Matching pods around each node, the fewer the better; domains of finer keys weigh more."""
        constraints = self.constraints(pod.pod_class, "ScheduleAnyway")
        ignored = self._ignored(pod, view)
        domains = constraints.domains(self._cluster, pod.pod_class)
        scores = np.zeros(len(view), dtype=np.float64)
        for constraint, where in zip(constraints.constraints, domains, strict=True):
            codes = view.codes(constraint.key)
            if constraint.key == HOSTNAME:
                size = len(view) - int(ignored.sum())
                matching = _on_nodes(constraint, view)
            else:
                size = len(np.unique(codes[~ignored]))
                matching = matching_in_domains(self._cluster, constraint, where)[codes]
            score = matching * math.log(size + 2) + (constraint.max_skew - 1)
            scores += np.where(codes != 0, score, 0.0)
        return np.where(ignored, 0, np.floor(scores + 0.5)).astype(np.int64)

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """Turn round: the emptiest domain gets the most. Nodes without the labels get 0."""
        ignored = self._ignored(pod, feasible)
        counted = scores[~ignored]
        if not len(counted):
            return np.zeros(len(scores), dtype=np.int64)
        lowest, highest = int(counted.min()), int(counted.max())
        if highest == 0:
            return np.where(ignored, 0, MAX_NODE_SCORE)
        return np.where(ignored, 0, MAX_NODE_SCORE * (highest + lowest - scores) // highest)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Matching pods may come, go or be relabelled; nodes may come, go, or change labels or taints.

        The pod itself may be relabelled, or learn to tolerate: with ``nodeTaintsPolicy: Honor`` other nodes count then.
        """
        return (
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                self._counts_pod,
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION),
            EventToRegister(
                EventResource.NODE,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
                self._has_keys,
            ),
        )

    def _hard(self, pod_class: PodClass) -> ConstraintSet:
        return self.constraints(pod_class, "DoNotSchedule")

    def _soft(self, pod_class: PodClass) -> ConstraintSet:
        return self.constraints(pod_class, "ScheduleAnyway")

    def constraints(self, pod_class: PodClass, when_unsatisfiable: str) -> ConstraintSet:
        """The pod's own constraints of that sort, or the default ones where it carries none at all."""
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
                constraints = self._default_constraints(pod_class, selector, when_unsatisfiable)
            known = pod_class.memo[key] = generation, selector, constraints
        return known[2]

    def _default_constraints(self, pod_class: PodClass, selector: Selector, when_unsatisfiable: str) -> ConstraintSet:
        defaults = [] if selector == EVERYTHING else self._defaults
        made = [
            compile_constraint(c, pod_class, selector) for c in defaults if c.when_unsatisfiable == when_unsatisfiable
        ]
        # The system's default constraints make do with nodes that have only some of the labels.
        return ConstraintSet(made, need_all_keys=not self._system_defaulted)

    def _ignored(self, pod: PodRecord, view: View) -> Bools:
        ignored = np.zeros(len(view), dtype=np.bool_)
        constraints = self.constraints(pod.pod_class, "ScheduleAnyway")
        if constraints.need_all_keys:
            for constraint in constraints.constraints:
                ignored |= view.codes(constraint.key) == 0
        return ignored

    def _counts_pod(self, pod: PodRecord, event: ClusterEvent) -> bool:
        seen = [record.pod_class for record in (event.old, event.new) if record is not None]
        return any(
            constraint.predicate.matches(pod_class, self._cluster.namespaces)
            for constraint in self.constraints(pod.pod_class, "DoNotSchedule").constraints
            for pod_class in seen
        )

    def _has_keys(self, pod: PodRecord, event: ClusterEvent) -> bool:
        keys = [constraint.key for constraint in self.constraints(pod.pod_class, "DoNotSchedule").constraints]

        def domains(node: Node | None) -> list[str] | None:
            labels = {} if node is None else node.metadata.labels
            return [labels[key] for key in keys] if all(key in labels for key in keys) else None

        before, after = domains(event.old), domains(event.new)
        if before is None or after is None or event.old is None or event.new is None:
            return before is not None or after is not None
        return before != after or event.old.spec.taints != event.new.spec.taints


def _spread(cluster: Cluster, constraint: Constraint, domains: Domains) -> _Spread:
    return _spread_of(constraint, domains, matching_in_domains(cluster, constraint, domains))


def _spread_of(constraint: Constraint, domains: Domains, matching: Int64s) -> _Spread:
    codes = np.flatnonzero(domains.exists)
    if not len(codes):
        return _Spread(constraint, domains, matching, NO_DOMAIN, 0, NO_DOMAIN)
    at = int(np.argmin(matching[codes]))
    rest = np.delete(matching[codes], at)
    second = int(rest.min()) if len(rest) else NO_DOMAIN
    return _Spread(constraint, domains, matching, int(matching[codes[at]]), int(codes[at]), second)


def _in_worlds(spread: _Spread, view: View, domain: Int32s) -> tuple[Int64s, Int64s | int]:
    """Matching pods in each row's domain, and in the emptiest domain, as each row's world has it.

    Where a world changes only its own row, so only that row's domain, the emptiest of the others is the lowest, or the
    second lowest where the row's domain is the lowest itself. Those that lose pods elsewhere may be emptier.
    """
    spread, joined = _with_everywhere(spread, view)
    few = len(np.flatnonzero(spread.domains.exists)) < spread.constraint.min_domains
    matching = spread.matching[domain] - joined
    # An empty selector counts no pod of the cluster, and every pod that joins or leaves (filtering.go, updateWithPod).
    change = view.change(spread.constraint.predicate)
    if change is None:
        return matching, 0 if few else spread.lowest
    matching = matching + np.where(view.take(spread.domains.counted), change, 0)
    others = np.where(domain == spread.lowest_code, spread.second, spread.lowest)
    matching, others = _with_elsewhere(spread, view, domain, matching, others)
    own = np.where(spread.domains.exists[domain], matching, NO_DOMAIN)
    return matching, 0 if few else np.minimum(others, own)


def _with_everywhere(spread: _Spread, view: View) -> tuple[_Spread, Int64s | int]:
    """The spread with the pods that have joined all positions; and those on each position's row, counted with it."""
    if not spread.constraint.predicate.selector.requirements:
        return spread, 0
    matching, on_row, counted = spread.matching, 0, spread.domains.counted
    for rows in view.everywhere(spread.constraint.predicate):
        joined = rows[counted[rows]]
        matching = matching + np.bincount(spread.domains.column.codes[joined], minlength=len(matching))
        on_row = on_row + (joined[:, None] == view.rows).sum(axis=0)
    if matching is spread.matching:
        return spread, 0
    return _spread_of(spread.constraint, spread.domains, matching), on_row


def _with_elsewhere(
    spread: _Spread, view: View, domain: Int32s, matching: Int64s, others: Int64s
) -> tuple[Int64s, Int64s]:
    """The same two, where pods have also left and joined rows that are not the worlds' own."""
    if not spread.constraint.predicate.selector.requirements:
        return matching, others
    size, column = len(spread.matching), spread.domains.column
    places: list[Int64s] = []
    signs: list[Int64s] = []
    for positions, rows, sign in view.elsewhere(spread.constraint.predicate):
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


def _on_nodes(constraint: Constraint, view: View) -> Int64s:
    if not constraint.predicate.selector.requirements:
        return np.zeros(len(view), dtype=np.int64)
    return view.count(constraint.predicate)
