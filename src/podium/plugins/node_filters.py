"""TaintToleration, NodeUnschedulable, NodeDeclaredFeatures, NodePorts: filters by properties of single nodes.

Source: pkg/scheduler/framework/plugins (tainttoleration, nodeunschedulable, nodedeclaredfeatures, nodeports); for
required features component-helpers/nodedeclaredfeatures/features, of which two concern the placement of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from podium.api.node import Taint
from podium.api.pod import PodSpec, Toleration
from podium.api.versions.behaviors import Behavior
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import holds_host_port
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import KEEPS_OFF, UNSCHEDULABLE_TAINT, View, kept_off, tolerated
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, FitsRow, PluginContext, Scope, StatelessPlugin
from podium.framework.scoring import default_normalize
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable

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
        taint = next((each for each in taints if each.effect in KEEPS_OFF and not tolerated(tolerations, each)), None)
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
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _is_tolerated),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
        )


def _is_tolerated(pod: PodRecord, event: ClusterEvent) -> bool:
    taints = event.new.spec.taints if event.new is not None else ()
    return all(taint.effect not in KEEPS_OFF or tolerated(pod.spec.tolerations, taint) for taint in taints)


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
                lambda _, event: event.new is not None and not event.new.spec.unschedulable,
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
        )


RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_RESTARTS_ALL = "RestartAllContainers"
_UNDECLARED = unresolvable("node(s) didn't match Pod's required features")


def required_features(spec: PodSpec) -> frozenset[str]:
    """Return the kubelet features that a node must declare to run such a pod."""
    found = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == _RESTARTS_ALL for rule in rules):
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
