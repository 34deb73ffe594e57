"""The taint eviction controller: it deletes pods that do not tolerate their node's NoExecute taints.

Source: pkg/controller/tainteviction.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node, Taint
from podium.api.pod import Pod, PodCondition
from podium.cluster.view import tolerates
from podium.controllers.actions import Action, ReportStatus, deletion_of
from podium.controllers.controller import NO_CHANGE, PLACED, IdleDeferral
from podium.controllers.ledger.disruption import since, time_of
from podium.controllers.nodes.bound_pods import PodDeleter
from podium.decide.kubelet import is_static

_NAME = "taint-eviction-controller"
_REASON = "DeletionByTaintManager"
_MESSAGE = "Taint manager: deleting due to NoExecute taint"
_TARGET = PodCondition(type="DisruptionTarget", status="True", reason=_REASON, message=_MESSAGE)
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class _NoExecuteTaint:
    """A taint, its timeAdded ("" for none), and since when it counts."""

    taint: Taint
    added: str
    since_ns: int


class TaintEviction(PodDeleter):
    """Deletes each pod of a tainted node when it no longer tolerates one of the taints.

    Toleration seconds count from the later of the taint's addition and the pod's binding, so that a restart does not
    reset them. Static pods are ignored.
    """

    watches = frozenset(("Node", "Pod"))
    pod_aspects = PLACED
    idle_deferral = IdleDeferral(frozenset(("Pod",)))

    def __init__(self) -> None:
        super().__init__()
        self._taints: dict[str, tuple[_NoExecuteTaint, ...]] = {}
        # The pods on tainted nodes by key: the uid and since when they are there.
        self._came: dict[str, tuple[str, int]] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no node has NoExecute taints."""
        return not self._taints

    def _changed(self, object_: Kubernetes, raw: Raw, now: int) -> list[Action]:
        if isinstance(object_, Pod):
            self._pods.put(object_, raw)
            if object_.spec.node_name not in self._taints:
                return NO_CHANGE
            self._add(object_, raw, now)
        elif isinstance(object_, Node):
            self._set_taints(object_.metadata.name, self._no_execute_taints(object_, raw, now), now)
        return []

    def _gone(self, object_: Kubernetes, now: int) -> list[Action]:
        if isinstance(object_, Pod):
            self._pods.remove(object_.key)
            self._came.pop(object_.key, None)
            self._forget_deletion(object_.metadata.uid)
            self._forget(object_.key)
        elif isinstance(object_, Node):
            self._set_taints(object_.metadata.name, (), now)
        return []

    def _set_taints(self, name: str, taints: tuple[_NoExecuteTaint, ...], now: int) -> None:
        if taints != self._taints.pop(name, ()):
            for pod, raw in self._pods.on(name):
                self._add(pod, raw, now)
        if taints:
            self._taints[name] = taints

    def _add(self, pod: Pod, raw: Raw, now: int) -> None:
        """Check a pod of a tainted node; record once since when it is there."""
        uid, known = pod.metadata.uid, self._came.get(pod.key)
        if known is None or known[0] != uid:
            came_ns = since(raw, "PodScheduled") or time_of(pod.metadata.creation_timestamp)
            self._came[pod.key] = uid, _since_ns(came_ns, now)
        self._queue.add(pod.key)

    def _no_execute_taints(self, node: Node, raw: Raw, now: int) -> tuple[_NoExecuteTaint, ...]:
        """Return the node's NoExecute taints; known ones keep their time."""
        before = {(known.taint, known.added): known for known in self._taints.get(node.metadata.name, ())}
        listed = raw.get("spec", {}).get("taints") or []
        times = {(taint.get("key"), taint.get("effect")): taint.get("timeAdded") for taint in listed}
        found = []
        for taint in node.spec.taints:
            if taint.effect == "NoExecute":
                added = str(times.get((taint.key, taint.effect)) or "")
                new = _NoExecuteTaint(taint, added, _since_ns(time_of(added), now))
                found.append(before.get((taint, added), new))
        return tuple(found)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        found = self._pods.find(key)
        if found is None:
            return []
        pod = found.pod
        due_ns = self._due_ns(pod)
        if due_ns is None or due_ns > now:
            self._queue.add_at(key, due_ns)
            self._forget_deletion(pod.metadata.uid)
            return []
        target = pod.status.condition("DisruptionTarget")
        is_marked = target is not None and (target.status, target.reason) == ("True", _REASON)
        mark = None if is_marked else ReportStatus("Pod", key, pod.metadata.uid, _NAME, (_TARGET,))
        return self._delete(mark, deletion_of(pod, _NAME))

    def _due_ns(self, pod: Pod) -> int | None:
        """Return when the pod must be deleted, or None."""
        if pod.is_terminating or is_static(pod):
            return None
        times = []
        for known in self._taints.get(pod.spec.node_name, ()):
            matching = (toleration for toleration in pod.spec.tolerations if tolerates(toleration, known.taint))
            toleration = next(matching, None)
            if toleration is None:
                return 0
            if toleration.toleration_seconds is not None:
                from_ns = max(known.since_ns, self._came[pod.key][1])
                times.append(from_ns + toleration.toleration_seconds * _SECOND)
        return min(times, default=None)


def _since_ns(said_ns: int | None, now: int) -> int:
    """Return since when something counts that is first observed now; times in objects are truncated to seconds."""
    return now if said_ns is None else min(now, said_ns + _SECOND)
