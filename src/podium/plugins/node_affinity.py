"""NodeAffinity: the pod's node selector and node affinity, and the profile's added affinity.

Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from podium.api.node import Node
from podium.api.pod import NodeAffinity as NodeAffinityFields
from podium.api.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    PreferredSchedulingTerm,
    Selector,
    compile_node_selector,
    selector_from_labels,
)
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, matching_rows, matching_term
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, PreFilterResult, Scope
from podium.framework.scoring import default_normalize
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable

_REFUSAL = unresolvable("node(s) didn't match Pod's node affinity/selector")
_ADDED_REFUSAL = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments: ``addedAffinity`` applies to every pod of the profile, in addition to its own."""

    added_affinity: NodeAffinityFields | None = None


@dataclass(frozen=True, slots=True)
class RequiredNodes:
    """The nodes that a pod class requires: its node selector and any of its terms; ``terms`` None means no terms."""

    selector: Selector
    terms: tuple[NodeTerm, ...] | None

    @property
    def is_any(self) -> bool:
        return self.terms is None and not self.selector.requirements

    def rows(self, view: View) -> Bools:
        """Return ``[n]`` where both match."""
        matches = matching_term(view, NodeTerm(self.selector.requirements, ())) if self.selector.requirements else None
        if self.terms is None:
            return np.ones(len(view), dtype=np.bool_) if matches is None else matches
        by_terms = matching_rows(view, self.terms)
        return by_terms if matches is None else matches & by_terms

    def node(self, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        return self.selector.matches(labels) and (
            self.terms is None or any(term.matches(labels, name) for term in self.terms)
        )


def required_nodes(pod_class: PodClass) -> RequiredNodes:
    """Return what a pod class requires of nodes, compiled once."""
    known: RequiredNodes | None = pod_class.memo.get("RequiredNodes")
    if known is None:
        spec = pod_class.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        terms = compile_node_selector(affinity.required) if affinity and affinity.required else None
        known = pod_class.memo["RequiredNodes"] = RequiredNodes(selector_from_labels(spec.node_selector), terms)
    return known


def preferred_nodes(pod_class: PodClass) -> tuple[tuple[int, NodeTerm], ...]:
    """Return the preferred terms of a pod class with their weights, compiled once."""
    known: tuple[tuple[int, NodeTerm], ...] | None = pod_class.memo.get("NodeAffinity.preferred")
    if known is None:
        affinity = pod_class.spec.affinity.node_affinity if pod_class.spec.affinity else None
        known = pod_class.memo["NodeAffinity.preferred"] = _compile_preferred(affinity.preferred if affinity else ())
    return known


class NodeAffinity:
    """Filters by required affinity, scores by preferred affinity."""

    name = "NodeAffinity"
    scope = Scope.NODE

    def __init__(self, context: PluginContext) -> None:
        added = read_arguments(context.args, NodeAffinityArgs, self.name).added_affinity or NodeAffinityFields()
        self._added_required = compile_node_selector(added.required) if added.required else None
        self._added_preferred = _compile_preferred(added.preferred)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> PreFilterResult | Status:
        """Skip pods that accept any node; name the nodes if every term selects by name."""
        required = required_nodes(pod.pod_class)
        if self.never_filters(pod.pod_class):
            return SKIP
        if not required.terms:
            return SUCCESS
        names: set[str] = set()
        for term in required.terms:
            named = _named(term)
            if named is None:
                return SUCCESS
            names |= named
        return PreFilterResult(SUCCESS, frozenset(names)) if names else _CONFLICT

    def never_filters(self, pod_class: PodClass) -> bool:
        return required_nodes(pod_class).is_any and self._added_required is None

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        codes = np.where(required_nodes(pod.pod_class).rows(view), 0, 2)
        if self._added_required is not None:
            codes[~matching_rows(view, self._added_required)] = 1
        return Verdicts.choose(codes, (SUCCESS, _ADDED_REFUSAL, _REFUSAL))

    def refused(self, pod_class: PodClass, view: View) -> Bools:
        """Return ``[n]`` the nodes that `filter_rows` rejects."""
        refused = ~required_nodes(pod_class).rows(view)
        return refused if self._added_required is None else refused | ~matching_rows(view, self._added_required)

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        return SKIP if self.never_scores(pod.pod_class) else SUCCESS

    def never_scores(self, pod_class: PodClass) -> bool:
        return not self._preferred(pod_class)

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        scores = np.zeros(len(view), dtype=np.int64)
        for weight, term in self._preferred(pod.pod_class):
            scores += weight * matching_term(view, term)
        return scores

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        return default_normalize(scores, reverse=False)

    def normalize_within(self, raw: int, lowest: int, highest: int) -> int:
        return MAX_NODE_SCORE * raw // highest if highest else raw

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, self._helps),)

    def _helps(self, pod: PodRecord, event: ClusterEvent) -> bool:
        if not self._accepts(pod, event.new):
            return False
        return event.old is None or not self._accepts(pod, event.old)

    def _accepts(self, pod: PodRecord, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        if self._added_required is not None and not any(term.matches(labels, name) for term in self._added_required):
            return False
        return required_nodes(pod.pod_class).node(node)

    def _preferred(self, pod_class: PodClass) -> tuple[tuple[int, NodeTerm], ...]:
        return preferred_nodes(pod_class) + self._added_preferred


def _compile_preferred(terms: tuple[PreferredSchedulingTerm, ...]) -> tuple[tuple[int, NodeTerm], ...]:
    return tuple((term.weight, compile_node_term(term.preference)) for term in terms if term.weight)


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Compile one term of a node selector."""
    return compile_node_selector(NodeSelector(node_selector_terms=(term,)))[0]


def _named(term: NodeTerm) -> set[str] | None:
    """Return the node names that a term's fields select; None if it does not select by name."""
    named = [set(field.values) for field in term.fields if field.key == "metadata.name" and field.operator == "In"]
    return set.intersection(*named) if named else None
