"""NodeAffinity, TaintToleration, NodeName, NodeUnschedulable, NodeDeclaredFeatures, NodePorts: they look at one node.

Source: pkg/scheduler/framework/plugins (nodeaffinity, tainttoleration, nodename, nodeunschedulable,
nodedeclaredfeatures, nodeports); for required features component-helpers/nodedeclaredfeatures/features, of which two
concern the placement of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from podium.api.node import Node, Taint
from podium.api.pod import NodeAffinity as NodeAffinityFields
from podium.api.pod import PodSpec, Toleration
from podium.api.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    PreferredSchedulingTerm,
    Selector,
    compile_node_selector,
    selector_from_labels,
)
from podium.api.versions.release import Behavior
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import holds_host_port
from podium.cluster.nodes import NAME_FIELD
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import (
    UNSCHEDULABLE_TAINT,
    View,
    kept_off,
    matching_rows,
    matching_term,
    repelling_taints,
    tolerated,
)
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, FitsRow, PluginContext, PreFilterResult, Scope, StatelessPlugin
from podium.framework.scoring import default_normalize
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable

_REFUSAL = unresolvable("node(s) didn't match Pod's node affinity/selector")
_ADDED_REFUSAL = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments: ``addedAffinity`` applies to every pod of the profile, in addition to its own."""

    added_affinity: NodeAffinityFields | None = None


class RequiredNodes(msgspec.Struct, frozen=True):
    """The nodes that a pod class requires: its node selector and any of its terms; ``terms`` None means no terms."""

    selector: Selector
    terms: tuple[NodeTerm, ...] | None
    # The keys of the labels that decide; None if names of nodes do, too.
    label_keys: tuple[str, ...] | None

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
        terms = compile_node_selector(needed) if (needed := spec.node_affinity.required) else None
        selector = selector_from_labels(spec.node_selector)
        required = (selector.requirements, *(term.labels for term in terms or ()))
        has_names = any(term.fields for term in terms or ())
        keys = None if has_names else tuple(sorted({requirement.key for each in required for requirement in each}))
        known = pod_class.memo["RequiredNodes"] = RequiredNodes(selector, terms, keys)
    return known


def preferred_nodes(pod_class: PodClass) -> tuple[tuple[int, NodeTerm], ...]:
    """Return the preferred terms of a pod class with their weights, compiled once."""
    known: tuple[tuple[int, NodeTerm], ...] | None = pod_class.memo.get("NodeAffinity.preferred")
    if known is None:
        preferred = pod_class.spec.node_affinity.preferred
        known = pod_class.memo["NodeAffinity.preferred"] = _compile_preferred(preferred)
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
            named = _named_nodes(term)
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


def _named_nodes(term: NodeTerm) -> set[str] | None:
    """Return the node names that a term's fields select; None if it does not select by name."""
    named = [set(field.values) for field in term.fields if field.key == "metadata.name" and field.operator == "In"]
    return set.intersection(*named) if named else None


_UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    """Filters by NoSchedule and NoExecute taints, scores by the number of untolerated PreferNoSchedule ones."""

    name = "TaintToleration"
    scope = Scope.NODE
    needs_pre_score = True

    def __init__(self, context: PluginContext) -> None:
        self.names_taints = not context.cluster.release.has(Behavior.TAINT_UNNAMED)
        # The statuses that name a taint, by code, and their codes.
        self._named: list[Status] = [SUCCESS]
        self._codes: dict[str, int] = {}

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        if self.names_taints:
            codes = view.by_taints(lambda taints: self._code_of(pod.spec.tolerations, taints))
            return Verdicts(codes, self._named.__getitem__)
        return Verdicts.where(kept_off(pod.spec.tolerations, view), _UNTOLERATED)

    def _code_of(self, tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> int:
        """Return the code that names the first taint that keeps the pod off; 0 for none."""
        taint = next(repelling_taints(tolerations, taints), None)
        if taint is None:
            return 0
        text = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        code = self._codes.setdefault(text, len(self._named))
        if code == len(self._named):
            self._named.append(unresolvable(text))
        return code

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        return SUCCESS

    def never_scores(self, pod_class: PodClass) -> bool:
        return False

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
        return view.by_taints(
            lambda taints: sum(
                taint.effect == "PreferNoSchedule" and not tolerated(tolerations, taint) for taint in taints
            )
        )

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        return default_normalize(scores, reverse=True)

    def normalize_within(self, raw: int, lowest: int, highest: int) -> int:
        return MAX_NODE_SCORE - (MAX_NODE_SCORE * raw // highest if highest else 0)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _lets_in),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
        )


def _lets_in(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether no taint of the node repels the pod, and the node is new or one did."""
    repels = [any(repelling_taints(pod.spec.tolerations, node.spec.taints)) for node in (event.old, event.new) if node]
    return not repels[-1] and all(repels[:-1])


_OTHER_NAME = unresolvable("node(s) didn't match the requested node name")


class NodeName(StatelessPlugin):
    """Compares `spec.nodeName` with the node; the name is the pod's, not its class's, so that nothing is cached."""

    name = "NodeName"
    scope = Scope.CLUSTER

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SUCCESS if pod.node_name else SKIP

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        wanted = np.array([value == pod.node_name for value in view.cluster.nodes.labels(NAME_FIELD).values])
        return Verdicts.where(~wanted[view.codes(NAME_FIELD)], _OTHER_NAME)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (EventToRegister(EventResource.NODE, ActionType.ADD),)


_UNSCHEDULABLE = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(StatelessPlugin):
    """Rejects cordoned nodes unless the pod tolerates the unschedulable taint."""

    name = "NodeUnschedulable"
    scope = Scope.NODE

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        cordoned = view.take(view.cluster.nodes.unschedulable)
        if not cordoned.any() or tolerated(pod.spec.tolerations, UNSCHEDULABLE_TAINT):
            return Verdicts.none(len(view))
        return Verdicts.where(cordoned, _UNSCHEDULABLE)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                lambda _, event: (
                    not event.new.spec.unschedulable and (event.old is None or event.old.spec.unschedulable)
                ),
            ),
            EventToRegister(
                EventResource.POD,
                ActionType.UPDATE_POD_TOLERATION,
                lambda _, event: tolerated(event.new.spec.tolerations, UNSCHEDULABLE_TAINT),
            ),
        )


RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_UNDECLARED = unresolvable("node(s) didn't match Pod's required features")


def required_features(spec: PodSpec) -> frozenset[str]:
    """Return the kubelet features that a node must declare to run such a pod."""
    found = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        found.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        found.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(found)


class NodeDeclaredFeatures(StatelessPlugin):
    """Compares the features that the pod needs with `status.declaredFeatures` of the node."""

    name = "NodeDeclaredFeatures"
    scope = Scope.NODE

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SKIP if self.never_filters(pod.pod_class) else SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        return not required_features(pod_class.spec)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        required = required_features(pod.spec)
        nodes = (view.cluster.nodes.nodes[row] for row in view.rows.tolist())
        lacking = (node is None or not required.issubset(node.status.declared_features) for node in nodes)
        return Verdicts.where(np.fromiter(lacking, dtype=np.bool_, count=len(view)), _UNDECLARED)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE,
                lambda _, it: it.old is None or it.old.status.declared_features != it.new.status.declared_features,
            ),
            EventToRegister(
                EventResource.POD,
                ActionType.UPDATE,
                lambda _, event: required_features(event.old.spec) != required_features(event.new.spec),
            ),
        )


_PORTS_TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Rejects nodes with pods whose host ports conflict with the pod's."""

    name = "NodePorts"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self._cluster = context.cluster

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SUCCESS if pod.pod_class.host_ports else SKIP

    def never_filters(self, pod_class: PodClass) -> bool:
        return not pod_class.host_ports

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Reject nodes where a pod holds a conflicting port.

        kube-scheduler keeps the ports of a node as a set: of two pods that hold the same port, the first to leave frees
        it. Simulated preemptions reproduce that.
        """
        taken = np.zeros(len(view), dtype=np.bool_)
        for wanted in pod.pod_class.host_ports:
            for held in self._cluster.classes.host_ports_like(wanted):
                if held.conflicts(wanted):
                    taken |= view.is_held(holds_host_port(held))
        return Verdicts.where(taken, _PORTS_TAKEN)

    def row_filter(self, pod_class: PodClass) -> FitsRow:
        cluster = self._cluster

        def fits(pod: PodRecord, row: int) -> bool:
            return not any(
                held.conflicts(wanted) and cluster.matcher(holds_host_port(held)).count.item(row)
                for wanted in pod.pod_class.host_ports
                for held in cluster.classes.host_ports_like(wanted)
            )

        return fits

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_port),
            EventToRegister(EventResource.NODE, ActionType.ADD),
        )


def _frees_a_port(pod: PodRecord, event: ClusterEvent) -> bool:
    held = event.old.pod_class.host_ports
    return any(port.conflicts(wanted) for port in held for wanted in pod.pod_class.host_ports)
