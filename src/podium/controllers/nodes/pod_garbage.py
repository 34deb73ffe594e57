"""The pod garbage collector: it deletes pods that no kubelet will end.

Source: pkg/controller/podgc.
"""

from __future__ import annotations

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node, is_ready
from podium.api.pod import Pod, PodCondition
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.controller import ENDING, NO_CHANGE, ON_MISSING_NODE, PLACED, IdleDeferral
from podium.controllers.nodes.bound_pods import PodDeleter
from podium.controllers.nodes.node_lifecycle import OUT_OF_SERVICE

_NAME = "pod-garbage-collector"
_ORPHAN = PodCondition(
    type="DisruptionTarget", status="True", reason="DeletionByPodGC", message="PodGC: node no longer exists"
)
_FAILED: Raw = {"phase": "Failed"}

QUARANTINE_NS = 40 * 10**9
"""How long a node must be missing before its pods are orphans."""


class PodGarbageCollector(PodDeleter):
    """Fails and force-deletes orphaned pods.

    These are the pods of nodes missing for `QUARANTINE_NS`; deleted pods on nodes that are not ready and tainted
    out-of-service; and deleted pods without a node.
    """

    watches = frozenset(("Node", "Pod"))
    pod_aspects = PLACED
    idle_deferral = IdleDeferral(frozenset(("Pod",)), except_pods=ENDING | ON_MISSING_NODE)

    def __init__(self) -> None:
        super().__init__()
        # By name, whether the node is out of service; by name of a missing node with pods, the end of its quarantine.
        self._nodes: dict[str, bool] = {}
        self._missing: dict[str, int] = {}
        # By key, deleted pods without a node.
        self._unbound: dict[str, Pod] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no pod is on a missing node, or deleted without a node."""
        return not self._missing and not self._unbound

    def _changed(self, object_: Kubernetes, raw: Raw, now: int) -> list[Action]:
        if isinstance(object_, Pod):
            return [] if self._pod_changed(object_, raw, now) else NO_CHANGE
        if isinstance(object_, Node):
            name = object_.metadata.name
            is_out = not is_ready(object_) and any(taint.key == OUT_OF_SERVICE for taint in object_.spec.taints)
            if is_out and not self._nodes.get(name):
                self._queue.add_all(found.pod.key for found in self._pods.on(name))
            self._nodes[name] = is_out
            if self._missing.pop(name, None) is not None:
                self._set_timers(name, None)
        return []

    def _pod_changed(self, pod: Pod, raw: Raw, now: int) -> bool:
        """Take in a pod; return whether it or others of its node may be due."""
        name, is_terminating = pod.spec.node_name, pod.is_terminating
        self._pods.put(pod, raw)
        if self._unbound:
            self._unbound.pop(pod.key, None)
        if is_terminating and not name:
            self._unbound[pod.key] = pod
        if is_terminating:
            self._queue.add(pod.key)
        if not name or name in self._nodes:
            return is_terminating
        if name in self._missing:
            self._queue.add_at(pod.key, self._missing[name])
        else:
            self._begin_quarantine(name, now)
        return True

    def _gone(self, object_: Kubernetes, now: int) -> list[Action]:
        if isinstance(object_, Pod):
            key, name = object_.key, object_.spec.node_name
            self._pods.remove(key)
            self._unbound.pop(key, None)
            self._forget_deletion(object_.metadata.uid)
            self._forget(key)
            if not self._pods.on(name):
                self._missing.pop(name, None)
        elif isinstance(object_, Node):
            self._nodes.pop(object_.metadata.name, None)
            self._begin_quarantine(object_.metadata.name, now)
        return []

    def _begin_quarantine(self, name: str, now: int) -> None:
        """Start the quarantine of a missing node with pods."""
        if name not in self._nodes and name not in self._missing and self._pods.on(name):
            self._missing[name] = now + QUARANTINE_NS
            self._set_timers(name, self._missing[name])

    def _set_timers(self, name: str, time_ns: int | None) -> None:
        for found in self._pods.on(name):
            self._queue.add_at(found.pod.key, time_ns)

    def _key_of(self, action: Action) -> str | None:
        if isinstance(action, ReportStatus | DeleteObject) and action.key in self._unbound:
            return action.key
        return super()._key_of(action)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        found = self._pods.find(key)
        pod = self._unbound.get(key) if found is None else found.pod
        why = None if pod is None else self._why(pod, now)
        if pod is None or why is None:
            return []
        message, conditions = why
        uid = pod.metadata.uid
        mark = None if pod.is_terminal else ReportStatus("Pod", key, uid, _NAME, conditions, _FAILED)
        return self._delete(mark, DeleteObject("Pod", key, uid, _NAME, 0, message))

    def _why(self, pod: Pod, now: int) -> tuple[str, tuple[PodCondition, ...]] | None:
        """Return why a pod is collected, in words and as conditions; None if it is not."""
        name = pod.spec.node_name
        if pod.is_terminal and pod.is_terminating and not pod.metadata.deletion_grace_period_seconds:
            # Only finalizers hold it.
            return None
        if not name:
            return "it never had a node", ()
        if name not in self._nodes:
            is_orphan = name in self._missing and self._missing[name] <= now
            return (f"its node {name} is gone", (_ORPHAN,)) if is_orphan else None
        if self._nodes[name] and pod.is_terminating:
            return f"its node {name} is out of service", ()
        return None
