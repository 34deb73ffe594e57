"""The pod garbage collector: it deletes pods that no kubelet will ever end.

Source: pkg/controller/podgc.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import is_ready
from podium.api.pod import Pod, PodCondition
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.concerns import ASTRAY, ENDING, PLACED, Rest
from podium.machines.machine import UNMOVED
from podium.machines.nodes.bound_pods import BoundPods
from podium.machines.nodes.node_taints import OUT_OF_SERVICE
from podium.machines.nodes.pod_deletions import PodDeletions
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue

_NAME = "pod-garbage-collector"
_ORPHAN = PodCondition(
    type="DisruptionTarget", status="True", reason="DeletionByPodGC", message="PodGC: node no longer exists"
)
_FAILED: Raw = {"phase": "Failed"}

QUARANTINE_NS = 40 * 10**9
"""How long a node must have been missing until its pods are taken to be orphans."""


class PodGarbageCollector:
    """Lets pods fail that have not ended, and deletes them with no grace period.

    They are the pods of nodes that have been missing for `QUARANTINE_NS`; the deleted ones of nodes that are not ready
    and are tainted out-of-service; and the deleted ones that have no node.
    """

    watches = frozenset(("Node", "Pod"))
    heeded_pods = PLACED
    at_rest = Rest(frozenset(("Pod",)), but_pods=ENDING | ASTRAY)

    def __init__(self) -> None:
        # By name, whether the node is out of service.
        self._nodes: dict[str, bool] = {}
        # By name of a node that is missing and has pods, when the quarantine ends.
        self._missing: dict[str, int] = {}
        self._pods = BoundPods()
        # By key, deleted pods without a node.
        self._unbound: dict[str, Pod] = {}
        self._deletions = PodDeletions()
        self._queue: WorkQueue[str] = WorkQueue()
        # By node, the end of its quarantine.
        self._deadlines: Deadlines[str] = Deadlines()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to do."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            return [] if self._pod_changed(pod, observation.raw, now) else UNMOVED
        match observation:
            case Changed(object=Node() as node):
                self._node_changed(node)
            case Gone(object=Node() as node):
                self._nodes.pop(node.metadata.name, None)
                self._look_for(node.metadata.name, now)
            case Gone(object=Pod() as pod):
                self._pod_gone(pod)
            case Answered(action=ReportStatus() | DeleteObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def deadline(self) -> Deadline:
        """When pods are to be looked at; that a deletion is refused once more is no news."""
        return soonest(self._queue.deadline(), self._deadlines.deadline())

    @property
    def rests(self) -> bool:
        """Pods are left alone while none is on a node that is missing, or deleted without ever having had one."""
        return not self._missing and not self._unbound

    def _node_changed(self, node: Node) -> None:
        name = node.metadata.name
        is_out = not is_ready(node) and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        if is_out and not self._nodes.get(name):
            self._add_all(name)
        self._nodes[name] = is_out
        self._missing.pop(name, None)
        self._deadlines.set(name, None)

    def _pod_changed(self, pod: Pod, raw: Raw, now: int) -> bool:
        """Take in a pod as it is now; whether there may be something to do for it or for others of its node."""
        name, is_terminating = pod.spec.node_name, pod.is_terminating
        self._pods.put(pod, raw)
        if self._unbound:
            self._unbound.pop(pod.key, None)
        if is_terminating and not name:
            self._unbound[pod.key] = pod
        if is_terminating or name in self._missing:
            self._queue.add(pod.key)
        if not name or name in self._nodes:
            return is_terminating
        self._look_for(name, now)
        return True

    def _pod_gone(self, pod: Pod) -> None:
        name = pod.spec.node_name
        self._pods.remove(pod.key)
        self._unbound.pop(pod.key, None)
        self._deletions.forget(pod.metadata.uid)
        self._queue.forget(pod.key)
        if name in self._missing and not self._pods.on(name):
            del self._missing[name]
            self._deadlines.set(name, None)

    def _look_for(self, name: str, now: int) -> None:
        """Begin the quarantine of a node that is missing, if it has pods."""
        if name not in self._nodes and name not in self._missing and self._pods.on(name):
            self._missing[name] = now + QUARANTINE_NS
            self._deadlines.set(name, self._missing[name])

    def _add_all(self, name: str) -> None:
        for pod in self._pods.on(name):
            self._queue.add(pod.pod.key)

    def _answered(self, action: ReportStatus | DeleteObject, answered: Answered, now: int) -> None:
        key = action.key
        goes_on = self._deletions.answered(answered)
        if key not in self._unbound and self._pods.find(key) is None:
            return
        self._queue.answer(key, answered, now)
        if goes_on:
            self._queue.add(key)

    def _tick(self, now: int) -> list[Action]:
        while (name := self._deadlines.take_due(now)) is not None:
            self._add_all(name)
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            found = self._pods.find(key)
            pod = self._unbound.get(key) if found is None else found.pod
            why = None if pod is None else self._why(pod, now)
            if pod is not None and why is not None:
                actions += self._collect(pod, *why)
        return actions

    def _why(self, pod: Pod, now: int) -> tuple[str, tuple[PodCondition, ...]] | None:
        """Why a pod is to be collected, in words and as conditions of the pod; None if it is not."""
        name = pod.spec.node_name
        if pod.is_terminal and pod.is_terminating and not pod.metadata.deletion_grace_period_seconds:
            # Nothing holds it but its finalizers.
            return None
        if not name:
            return "it never had a node", ()
        if name not in self._nodes:
            is_orphan = name in self._missing and self._missing[name] <= now
            return (f"its node {name} is gone", (_ORPHAN,)) if is_orphan else None
        if self._nodes[name] and pod.is_terminating:
            return f"its node {name} is out of service", ()
        return None

    def _collect(
        self, pod: Pod, message: str, conditions: tuple[PodCondition, ...]
    ) -> list[ReportStatus | DeleteObject]:
        uid = pod.metadata.uid
        mark = None if pod.is_terminal else ReportStatus("Pod", pod.key, uid, _NAME, conditions, _FAILED)
        return self._deletions.step(mark, DeleteObject("Pod", pod.key, uid, _NAME, 0, message))
