"""NodeDeclaredFeatures: a node must declare the features of its kubelet that a pod needs.

Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go and, for what needs what,
component-helpers/nodedeclaredfeatures/features. Of the features registered there two are needed to run a pod; the
others are asked about when a pod is updated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.api.pod import PodSpec
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable
from podium.framework.verdicts import Verdicts

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_RESTARTS_ALL = "RestartAllContainers"
_REFUSAL = unresolvable("node(s) didn't match Pod's required features")


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features that a node must declare to run such a pod."""
    found = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == _RESTARTS_ALL for rule in rules):
        found.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        found.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(found)


class NodeDeclaredFeatures:
    """Compares what the pod needs with `status.declaredFeatures` of the node."""

    name = "NodeDeclaredFeatures"
    scope = Scope.NODE

    def __init__(self, context: PluginContext) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods that need no feature."""
        return SKIP if self.never_filters(pod.pod_class) else SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those that need no feature."""
        return not required_features(pod_class.spec)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes that do not declare all that is needed."""
        required = required_features(pod.spec)
        nodes = (view.cluster.nodes.nodes[row] for row in view.rows.tolist())
        lacking = (node is None or not required.issubset(node.status.declared_features) for node in nodes)
        return Verdicts.where(np.fromiter(lacking, dtype=np.bool_, count=len(view)), _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node may come or declare other features, or the pod may need others."""
        return (
            EventToRegister(
                EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE, _declares_anew
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE, _needs_others),
        )


def _declares_anew(pod: PodRecord, event: ClusterEvent) -> bool:
    before = event.old
    return before is None or bool(before.status.declared_features != event.new.status.declared_features)


def _needs_others(pod: PodRecord, event: ClusterEvent) -> bool:
    return required_features(event.old.spec) != required_features(event.new.spec)
