"""The queue without queueing hints, as in Kubernetes 1.31.

A rejected pod is retried after any event of a kind that its plugins registered. Instead of the hints, the scheduler
checks which pods an event about another pod, or about a node, concerns.

Source: Kubernetes 1.31, pkg/scheduler/scheduler.go (buildQueueingHintMap), eventhandlers.go (preCheckForNode,
AdmissionCheck) and internal/queue/scheduling_queue.go (isPodUpdated, getUnschedulablePodsWithCrossTopologyTerm).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from podium.api.node import Node
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, tolerated
from podium.controllers.scheduling.queue.hints import Registrations
from podium.framework.handle import CycleState
from podium.framework.plugin import ActionType, ClusterEvent, EventResource, EventToRegister, QueueingHint
from podium.framework.runner import Runner

_CHECKED = frozenset(("NodeResourcesFit", "NodeAffinity", "NodeName", "NodePorts"))
_SPREAD = "PodTopologySpread"
_AT_ONCE = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN


def without_hints(registrations: Registrations, cluster: Cluster) -> Registrations:
    """Return the registered events without their hints."""
    hints: dict[bool, QueueingHint] = {
        spreads: _cross_topology(cluster, is_spread=spreads) for spreads in (False, True)
    }

    def plain(plugin: str, event: EventToRegister) -> EventToRegister:
        is_of_pods = event.resource is EventResource.ASSIGNED_POD
        return replace(event, hint=hints[plugin == _SPREAD] if is_of_pods else None)

    return {
        scheduler: {plugin: tuple(plain(plugin, event) for event in events) for plugin, events in plugins.items()}
        for scheduler, plugins in registrations.items()
    }


def _cross_topology(cluster: Cluster, *, is_spread: bool) -> QueueingHint:
    """Return the check of which waiting pods a new or changed pod on a node concerns."""

    def concerns(pod: PodRecord, event: ClusterEvent) -> bool:
        if event.action & _AT_ONCE or event.new is None:
            return True
        if is_spread and event.new.namespace == pod.namespace:
            return True
        shown = event.new.pod_class
        return any(
            term.selects(shown.namespace, shown.labels, cluster.namespaces) for term in pod.pod_class.required_affinity
        )

    return concerns


def is_updated(old: PodRecord, new: PodRecord) -> bool:
    """Return whether more of a pod has changed than its status."""
    return (old.pod_class, old.annotations, old.gates, old.made_claims, old.priority, old.terminating) != (
        *(new.pod_class, new.annotations, new.gates, new.made_claims, new.priority, new.terminating),
    )


class NodeCheck:
    """Finds the pods that a new or changed node concerns: those that may fit there."""

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner]) -> None:
        self._cluster = cluster
        self._runners = runners

    def of(self, node: Node) -> Callable[[PodRecord], bool]:
        """Return the check of a node for one pod after another."""
        taints = [taint for taint in node.spec.taints if taint.effect == "NoSchedule"]
        row = self._cluster.nodes.row_of[node.metadata.name]

        def may_fit(pod: PodRecord) -> bool:
            if not all(tolerated(pod.spec.tolerations, taint) for taint in taints):
                return False
            runner, state = self._runners[pod.scheduler_name], CycleState()
            runner.pre_filter(state, pod)
            others = {plugin.name for plugin in runner.profile.filter if plugin.name not in _CHECKED}
            view = View(self._cluster, np.array([row], dtype=np.int64))
            return bool(runner.filter_view(state.skipping(others), pod, view).refused[0] == 0)

        return may_fit
