"""The changes of pods and nodes that are events, and the events that wake a pod, with queueing hints or without.

Without hints, as in Kubernetes 1.31, a rejected pod is retried after any event of a kind that its plugins registered.
Instead, the scheduler checks which pods an event about another pod, or about a node, concerns.

Source: pkg/scheduler/framework/events.go (PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange);
pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing, isEventOfInterest); Kubernetes 1.31,
pkg/scheduler/scheduler.go (buildQueueingHintMap), eventhandlers.go (preCheckForNode, AdmissionCheck) and
internal/queue/scheduling_queue.go (isPodUpdated, getUnschedulablePodsWithCrossTopologyTerm).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct

from podium.api.node import Node
from podium.api.versions.gates import Gate
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, tolerated
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.events import EVERY_EVENT, ActionType, ClusterEvent, EventResource, EventToRegister, QueueingHint
from podium.framework.extenders import EXTENDER
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.settings.registry import event_registrations
from podium.framework.verdicts import is_failure

NOTHING, _OTHER = ActionType(0), ActionType.UPDATE_POD_OTHER
# Module constants, because member access of an Enum is slow.
_ASSIGNED_POD, _ADD, _DELETE = EventResource.ASSIGNED_POD, ActionType.ADD, ActionType.DELETE
ASSIGNED_POD_DELETE = "AssignedPodDelete"


def assigned_event(before: PodRecord | None, after: PodRecord | None) -> ClusterEvent:
    """Return the event of a pod on a node that was added (``before`` None), changed, or has left (``after`` None)."""
    if before is None:
        return ClusterEvent(_ASSIGNED_POD, _ADD, None, after, "AssignedPodAdd")
    if after is None:
        return ClusterEvent(_ASSIGNED_POD, _DELETE, before, None, ASSIGNED_POD_DELETE)
    return ClusterEvent(_ASSIGNED_POD, pod_changes(before, after), before, after, "AssignedPodUpdate")


def pod_changes(old: PodRecord, new: PodRecord) -> ActionType:
    """Return the changes between two states of a pod; `ActionType.UPDATE_POD_OTHER` if no other flag applies.

    A scale-down is a smaller request of any resource. Gates count when the last one is removed.
    """
    if old is new:
        return _OTHER
    changes = NOTHING
    if old.gates and not new.gates:
        changes |= ActionType.UPDATE_POD_SCHEDULING_GATES
    if old.made_claims != new.made_claims:
        changes |= ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    before, after = old.pod_class, new.pod_class
    if before is not after:
        if before.labels != after.labels:
            changes |= ActionType.UPDATE_POD_LABEL
        if any(after.requests.get(resource, 0) < amount for resource, amount in before.requests.items()):
            changes |= ActionType.UPDATE_POD_SCALE_DOWN
        if before.spec.tolerations != after.spec.tolerations:
            changes |= ActionType.UPDATE_POD_TOLERATION
    return _OTHER if changes is NOTHING else changes


def node_changes(old: Node, new: Node) -> ActionType:
    """Return the changes between two states of a node; no flag if scheduling does not depend on any.

    As upstream, an uncordoned node counts as one with other taints.
    """
    changes = ActionType(0)
    if (old.status.allocatable or old.status.capacity) != (new.status.allocatable or new.status.capacity):
        changes |= ActionType.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        changes |= ActionType.UPDATE_NODE_LABEL
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        changes |= ActionType.UPDATE_NODE_TAINT
    elif old.spec != new.spec:
        changes |= ActionType.UPDATE_NODE_OTHER
    if old.status.declared_features != new.status.declared_features:
        changes |= ActionType.UPDATE_NODE_DECLARED_FEATURE
    if old.status.images != new.status.images:
        changes |= ActionType.UPDATE_NODE_OTHER
    return changes


# The registered events by scheduler name and plugin name.
Registrations = Mapping[str, Mapping[str, Sequence[EventToRegister]]]
Kind = tuple[EventResource, ActionType]
# Scheduler name, rejecting plugins, and the gate.
RejectionKey = tuple[str, tuple[str, ...], str]


class Wake(IntEnum):
    """Whether and when an event makes a pod worth another attempt."""

    NO = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


NO, AFTER_BACKOFF, AT_ONCE = Wake
"""Module constants, because member access of an Enum is slow."""


Hints = tuple[QueueingHint | None, ...]
"""The queueing hints for events of one kind; None among them always wakes."""


def wakes(hints: Hints, pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether a hint wakes the pod. A failing hint does: a failed attempt is better than a stuck pod."""
    for hint in hints:
        try:
            if hint is None or hint(pod, event):
                return True
        except BaseException as error:
            if not is_failure(error):
                raise
            return True
    return False


FEW = 16
"""The number of recent sets of plugins that are kept without pods."""


class Rejection(Struct, eq=False, weakref=True):
    """The plugins that hold some pods back, shared by all pods with the same plugins.

    ``registered`` are the events registered in a profile. The plugins are the rejecting ones and the gate ("" for
    none). With a gate, only events that the gating plugin registered count. A wildcard event wakes all pods, as does
    any event after an error.
    """

    registered: Mapping[str, Sequence[EventToRegister]]
    unschedulable: Sequence[str]
    gate: str
    _hints: dict[Kind, Hints] = {}
    _other_hints: dict[Kind, tuple[QueueingHint, ...]] = {}

    def hints(self, event: ClusterEvent) -> Hints:
        """Return the hints for an event; none if it can wake none of the pods."""
        kind = (event.resource, event.action)
        if kind not in self._hints:
            gate = self._of((self.gate,), event) if self.gate else ()
            if not (self.unschedulable or self.gate) or event.resource is EventResource.WILDCARD:
                self._hints[kind] = (None,)
            else:
                self._hints[kind] = () if self.gate and not gate else self._of(self.unschedulable, event) + gate
        return self._hints[kind]

    def other_hints(self, event: ClusterEvent) -> tuple[QueueingHint, ...]:
        """Return the hints for an event of the plugins that did not reject the pods."""
        kind = (event.resource, event.action)
        if kind not in self._other_hints:
            others = (plugin for plugin in self.registered if plugin not in self.unschedulable)
            self._other_hints[kind] = tuple(hint for hint in self._of(others, event) if hint is not None)
        return self._other_hints[kind]

    def _of(self, plugins: Iterable[str], event: ClusterEvent) -> Hints:
        return tuple(hint for plugin in plugins for hint in _matching_hints(self.registered.get(plugin, ()), event))


class Rejections:
    """One `Rejection` for each set of plugins, while it is in use or recent.

    Most pods are rejected by the same plugins as pods before. A plugin without registrations wakes no pod.
    """

    def __init__(self, registrations: Registrations) -> None:
        self._registrations = registrations
        self._known: WeakValueDictionary[RejectionKey, Rejection] = WeakValueDictionary()
        self._newest: dict[RejectionKey, Rejection] = {}
        self._of_interest: dict[Kind, bool] = {}

    def of(self, queued: QueuedPod, gate: str) -> Rejection:
        """Return the rejection of a pod's last attempt, with a gate ("" for none)."""
        key = (queued.record.scheduler_name, queued.unschedulable_plugins, gate)
        found = self._newest.get(key) or self._known.get(key)
        if found is None:
            registered = self._registrations.get(key[0], {})
            found = self._known[key] = self._newest[key] = Rejection(registered, queued.unschedulable_plugins, gate)
            if len(self._newest) > FEW:
                del self._newest[next(iter(self._newest))]
        return found

    def concern(self, event: ClusterEvent) -> bool:
        """Return whether any plugin registered such an event, or it is a wildcard."""
        kind = (event.resource, event.action)
        known = self._of_interest.get(kind)
        if known is None:
            known = self._of_interest[kind] = event.resource is EventResource.WILDCARD or any(
                _matching_hints(registered, event)
                for profile in self._registrations.values()
                for registered in profile.values()
            )
        return known


def _matching_hints(registered: Iterable[EventToRegister], event: ClusterEvent) -> Hints:
    """Return the hints of the registrations that match an event."""
    return tuple(some.hint for some in registered if event.concerns(ClusterEvent(some.resource, some.action)))


_CHECKED = frozenset(("NodeResourcesFit", "NodeAffinity", "NodeName", "NodePorts"))
_SPREAD = "PodTopologySpread"
_AT_ONCE = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN


def registrations_of(cluster: Cluster, runners: Mapping[str, Runner]) -> tuple[Registrations, bool]:
    """Return the events that schedulers' plugins registered, and whether their hints count in the cluster's release.

    Extenders register no events: any event wakes the pods that they rejected.
    """
    registered = {name: event_registrations(runner.profile) for name, runner in runners.items()}
    for name, runner in runners.items():
        if runner.extenders is not None:
            registered[name][EXTENDER] = EVERY_EVENT
    has_hints = cluster.release.enabled(Gate.QUEUEING_HINTS)
    return registered if has_hints else _without_hints(registered, cluster), has_hints


def _without_hints(registrations: Registrations, cluster: Cluster) -> Registrations:
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
    """Return a function that checks whether a new or changed pod on a node concerns a waiting pod."""

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


NodeCheck = Callable[[Node], Callable[[PodRecord], bool]]
"""A function that returns, for a new or changed node, a check of which pods it concerns."""


def check_of_node(cluster: Cluster, runners: Mapping[str, Runner], node: Node) -> Callable[[PodRecord], bool]:
    """Return a check of whether a pod may fit on a node."""
    taints = [taint for taint in node.spec.taints if taint.effect == "NoSchedule"]
    row = cluster.nodes.row_of[node.metadata.name]

    def may_fit(pod: PodRecord) -> bool:
        if not all(tolerated(pod.spec.tolerations, taint) for taint in taints):
            return False
        runner, state = runners[pod.scheduler_name], CycleState()
        runner.pre_filter(state, pod)
        others = {plugin.name for plugin in runner.profile.filter if plugin.name not in _CHECKED}
        view = View(cluster, np.array([row], dtype=np.int64))
        return bool(runner.filter_view(state.skipping(others), pod, view).refused[0] == 0)

    return may_fit
