"""The node lifecycle controller: nodes that are not heard of are not ready, and what a node reports taints it.

Source: pkg/controller/nodelifecycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import NODE_NOT_READY, is_ready, unknown_conditions
from podium.api.pod import Pod
from podium.machines.actions import Action, PatchObject
from podium.machines.concerns import PLACED, Rest
from podium.machines.machine import UNMOVED
from podium.machines.nodes.bound_pods import BoundPod, BoundPods
from podium.machines.nodes.node_taints import EVICTING, TaintName, changed_taints, present_taints, wanted_taints
from podium.machines.nodes.zone_disruption import ZoneDisruption
from podium.machines.observations import Answered, Changed, Gone, NodeHeard, NodeSilent, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue
from podium.store.conditions import with_condition

_NAME = "node-lifecycle-controller"
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class NodeLifecycleSettings:
    """``grace_ns`` after a node was last heard of, it is taken not to be ready (--node-monitor-grace-period)."""

    grace_ns: int = 50 * _SECOND


@dataclass(slots=True)
class _Known:
    """A node as the API shows it.

    ``standing`` are the taints that were, at the start, not as the node's state wants them, with whether it wanted
    them. ``written_version`` is the version from which the node was written last.
    """

    node: Node
    raw: Raw
    standing: Mapping[TaintName, bool]
    written_version: str | None = None


class NodeLifecycle:
    """Keeps conditions, taints and the readiness of pods in line with how nodes are.

    A node that was silent for too long gets the status Unknown for its conditions; while it is not ready, so are its
    pods. Taints NoSchedule follow from its conditions and from whether it is unschedulable, and taints NoExecute from
    its readiness, zone by zone no faster than `ZoneDisruption` has it, and not at all while no node is ready.

    ``given`` are the nodes of the start by uid: whatever their taints are, they stand until what the node's state wants
    has changed.
    """

    watches = frozenset(("Node", "Pod"))
    heeded_pods = PLACED
    at_rest = Rest(frozenset(("Pod",)))

    def __init__(
        self, settings: NodeLifecycleSettings = NodeLifecycleSettings(), given: Mapping[str, Node] | None = None
    ) -> None:
        self._settings = settings
        self._given = given or {}
        self._nodes: dict[str, _Known] = {}
        # The names of those that are not ready.
        self._not_ready: set[str] = set()
        self._pods = BoundPods()
        self._silent: dict[str, int] = {}
        self._zones = ZoneDisruption()
        self._queue: WorkQueue[str] = WorkQueue()
        self._deadlines: Deadlines[str] = Deadlines()
        # By key, the version from which a pod was written last.
        self._written: dict[str, str] = {}

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to write."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            return [] if self._pod_changed(pod, observation.raw) else UNMOVED
        match observation:
            case Changed(object=Node() as node, raw=raw):
                self._node_changed(node, raw)
            case Gone(object=Node() as node):
                self._node_gone(node.metadata.name)
            case Gone(object=Pod() as pod):
                self._pods.remove(pod.key)
                self._written.pop(pod.key, None)
                return UNMOVED
            case NodeSilent() | NodeHeard():
                self._heard(observation)
            case Answered(action=PatchObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def deadline(self) -> Deadline:
        """When a node is to be looked at; that a write is refused once more is no news."""
        return soonest(self._queue.deadline(), self._deadlines.deadline())

    @property
    def rests(self) -> bool:
        """Pods are left alone while all nodes are ready."""
        return not self._not_ready

    def _node_changed(self, node: Node, raw: Raw) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        known = self._nodes.get(name)
        if known is None or known.node.metadata.uid != uid:
            given = self._given.get(uid)
            known = self._nodes[name] = _Known(node, raw, {} if given is None else _standing(given))
        wanted = wanted_taints(node)
        known.node, known.raw = node, raw
        (self._not_ready.discard if is_ready(node) else self._not_ready.add)(name)
        known.standing = {taint: was for taint, was in known.standing.items() if was == (taint in wanted)}
        self._queue.add(name)

    def _node_gone(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._not_ready.discard(name)
        self._deadlines.set(name, None)
        self._queue.forget(name)
        self._pace_changed(self._zones.remove(name))

    def _pod_changed(self, pod: Pod, raw: Raw) -> bool:
        """Take in a pod as it is now; whether its node is to be looked at."""
        self._pods.put(pod, raw)
        if pod.spec.node_name not in self._not_ready or not _says_ready(pod):
            return False
        self._queue.add(pod.spec.node_name)
        return True

    def _heard(self, observation: NodeSilent | NodeHeard) -> None:
        if isinstance(observation, NodeSilent):
            self._silent[observation.node] = observation.since_ns
        else:
            self._silent.pop(observation.node, None)
        self._queue.add(observation.node)

    def _answered(self, action: PatchObject, answered: Answered, now: int) -> None:
        name = action.key
        if action.kind == "Pod":
            found = self._pods.find(action.key)
            name = "" if found is None else found.pod.spec.node_name
        if name not in self._nodes:
            return
        self._queue.answer(name, answered, now)
        if answered.problem is None:
            return
        if action.kind == "Pod":
            self._written.pop(action.key, None)
        else:
            self._nodes[name].written_version = None

    def _pace_changed(self, has_changed: bool) -> None:
        if has_changed:
            for name in self._zones.unhealthy():
                self._queue.add(name)

    def _tick(self, now: int) -> list[Action]:
        while (due := self._deadlines.take_due(now)) is not None:
            self._queue.add(due)
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            if name in self._nodes:
                actions += self._look_at(self._nodes[name], now)
        return actions

    def _look_at(self, known: _Known, now: int) -> list[Action]:
        """What to write of a node and its pods, and when to look at it next."""
        node = known.node
        name = node.metadata.name
        silent_ns = self._silent.get(name)
        late_ns = None if silent_ns is None else silent_ns + self._settings.grace_ns
        is_late = late_ns is not None and late_ns <= now
        self._pace_changed(self._zones.put(node, is_healthy=is_ready(node) and not is_late))
        self._deadlines.set(name, None if is_late else late_ns)
        if known.written_version == node.metadata.resource_version:
            return []
        conditions = unknown_conditions(known.raw, now) if is_late else None
        if conditions is not None:
            return [self._patch_node(known, "status", {"conditions": conditions}, "no heartbeats")]
        unready = [] if is_ready(node) else [pod for pod in self._pods.on(name) if self._is_to_unready(pod)]
        return [*self._taint(known, now), *(self._unready(pod, now) for pod in unready)]

    def _taint(self, known: _Known, now: int) -> list[Action]:
        node, name = known.node, known.node.metadata.name
        wanted, present = wanted_taints(node), present_taints(node)
        if self._zones.is_total():
            wanted -= EVICTING
        changes = (wanted ^ present) - set(known.standing)
        if changes & wanted & EVICTING and not present & EVICTING:
            if self._zones.may_give_up(name, now):
                self._zones.give_up(name, now)
            else:
                changes -= EVICTING
                self._deadlines.set(name, self._zones.next_ns(name))
        if not changes:
            return []
        taints, message = changed_taints(known.raw.get("spec", {}).get("taints", []), changes, now)
        return [self._patch_node(known, "spec", {"taints": taints}, message)]

    def _patch_node(self, known: _Known, part: str, fields: Raw, message: str) -> PatchObject:
        meta = known.node.metadata
        known.written_version = meta.resource_version
        patch = {"metadata": {"resourceVersion": meta.resource_version}, part: fields}
        return PatchObject("Node", meta.name, meta.uid, patch, _NAME, "status" if part == "status" else "", message)

    def _is_to_unready(self, bound: BoundPod) -> bool:
        return _says_ready(bound.pod) and self._written.get(bound.pod.key) != bound.pod.metadata.resource_version

    def _unready(self, bound: BoundPod, now: int) -> PatchObject:
        """The pod is not ready, as far as anybody knows."""
        meta = bound.pod.metadata
        not_ready = {"type": "Ready", "status": "False", "reason": NODE_NOT_READY}
        changed = with_condition(bound.raw["status"]["conditions"], not_ready, now)
        self._written[bound.pod.key] = meta.resource_version
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "status": {"conditions": changed}}
        return PatchObject("Pod", bound.pod.key, meta.uid, patch, _NAME, "status", "its node is not ready")


def _standing(given: Node) -> dict[TaintName, bool]:
    wanted = wanted_taints(given)
    return {taint: taint in wanted for taint in wanted ^ present_taints(given)}


def _says_ready(pod: Pod) -> bool:
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True"
