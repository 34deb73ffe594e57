"""The taint eviction controller: pods leave nodes whose NoExecute taints they do not tolerate.

Source: pkg/controller/tainteviction.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.node import Node, Taint
from podium.api.pod import Pod, PodCondition
from podium.cluster.taints import tolerates
from podium.decide.critical_pods import is_static
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.concerns import PLACED, Rest
from podium.machines.ledger.transitions import since, time_of
from podium.machines.machine import UNMOVED
from podium.machines.nodes.bound_pods import BoundPods
from podium.machines.nodes.pod_deletions import PodDeletions
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue

_NAME = "taint-eviction-controller"
_REASON = "DeletionByTaintManager"
_MESSAGE = "Taint manager: deleting due to NoExecute taint"
_TARGET = PodCondition(type="DisruptionTarget", status="True", reason=_REASON, message=_MESSAGE)
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class _Driving:
    """A NoExecute taint, the time at which it was added by its own account ("" for none), and since when it counts."""

    taint: Taint
    added: str
    since_ns: int


class TaintEviction:
    """Deletes the pods of tainted nodes, each when it no longer tolerates one of the taints.

    A pod without toleration goes at once; one that tolerates a taint for some seconds goes when these are over, unless
    the taint goes before. The seconds count from when the taint was added, or the pod got its node if later,
    so that a machine that starts anew goes on counting. Pods of DaemonSets stay because of the tolerations that they
    come with. Static pods are left alone; those that have ended go as others do.
    """

    watches = frozenset(("Node", "Pod"))
    heeded_pods = PLACED
    at_rest = Rest(frozenset(("Pod",)))

    def __init__(self) -> None:
        self._taints: dict[str, tuple[_Driving, ...]] = {}
        # Of pods on tainted nodes, by key, the uid and since when they are there.
        self._came: dict[str, tuple[str, int]] = {}
        self._pods = BoundPods()
        self._deletions = PodDeletions()
        self._queue: WorkQueue[str] = WorkQueue()
        self._deadlines: Deadlines[str] = Deadlines()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to do."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            self._pods.put(pod, observation.raw)
            if pod.spec.node_name not in self._taints:
                return UNMOVED
            self._note(pod, observation.raw, now)
            self._queue.add(pod.key)
            return []
        match observation:
            case Changed(object=Node() as node, raw=raw):
                self._set_taints(node.metadata.name, self._driving(node, raw, now), now)
            case Gone(object=Node() as node):
                self._set_taints(node.metadata.name, (), now)
            case Gone(object=Pod() as pod):
                self._pods.remove(pod.key)
                self._came.pop(pod.key, None)
                self._deletions.forget(pod.metadata.uid)
                self._queue.forget(pod.key)
                self._deadlines.set(pod.key, None)
            case Answered(action=ReportStatus() | DeleteObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def deadline(self) -> Deadline:
        """When a pod is to be looked at; that its deletion is refused once more is no news."""
        return soonest(self._queue.deadline(), self._deadlines.deadline())

    @property
    def rests(self) -> bool:
        """Pods are left alone while no node has taints that drive them off."""
        return not self._taints

    def _set_taints(self, name: str, taints: tuple[_Driving, ...], now: int) -> None:
        if taints != self._taints.pop(name, ()):
            for found in self._pods.on(name):
                self._note(found.pod, found.raw, now)
                self._queue.add(found.pod.key)
        if taints:
            self._taints[name] = taints

    def _note(self, pod: Pod, raw: Raw, now: int) -> None:
        """Note since when a pod is on its node, once."""
        uid, known = pod.metadata.uid, self._came.get(pod.key)
        if known is None or known[0] != uid:
            came_ns = since(raw, "PodScheduled") or time_of(pod.metadata.creation_timestamp)
            self._came[pod.key] = uid, _since_ns(came_ns, now)

    def _driving(self, node: Node, raw: Raw, now: int) -> tuple[_Driving, ...]:
        """The node's taints that drive pods off; a taint that was there before counts on."""
        before = {(driving.taint, driving.added): driving for driving in self._taints.get(node.metadata.name, ())}
        times = {(taint.get("key"), taint.get("effect")): taint.get("timeAdded") for taint in _taints_of(raw)}
        found = []
        for taint in node.spec.taints:
            if taint.effect == "NoExecute":
                added = str(times.get((taint.key, taint.effect)) or "")
                new = _Driving(taint, added, _since_ns(time_of(added), now))
                found.append(before.get((taint, added), new))
        return tuple(found)

    def _answered(self, action: ReportStatus | DeleteObject, answered: Answered, now: int) -> None:
        goes_on = self._deletions.answered(answered)
        if self._pods.find(action.key) is None:
            return
        self._queue.answer(action.key, answered, now)
        if goes_on:
            self._queue.add(action.key)

    def _tick(self, now: int) -> list[Action]:
        while (due := self._deadlines.take_due(now)) is not None:
            self._queue.add(due)
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            found = self._pods.find(key)
            due_ns = None if found is None else self._due_ns(found.pod)
            if found is None:
                continue
            if due_ns is not None and due_ns <= now:
                actions += self._delete(found.pod)
            else:
                self._deadlines.set(key, due_ns)
                self._deletions.forget(found.pod.metadata.uid)
        return actions

    def _due_ns(self, pod: Pod) -> int | None:
        """When the pod has to go; None for never."""
        if pod.is_terminating or is_static(pod):
            return None
        times = []
        for driving in self._taints.get(pod.spec.node_name, ()):
            matching = (toleration for toleration in pod.spec.tolerations if tolerates(toleration, driving.taint))
            toleration = next(matching, None)
            if toleration is None:
                return 0
            if toleration.toleration_seconds is not None:
                from_ns = max(driving.since_ns, self._came[pod.key][1])
                times.append(from_ns + toleration.toleration_seconds * _SECOND)
        return min(times, default=None)

    def _delete(self, pod: Pod) -> list[ReportStatus | DeleteObject]:
        target = pod.status.condition("DisruptionTarget")
        is_marked = target is not None and (target.status, target.reason) == ("True", _REASON)
        uid = pod.metadata.uid
        mark = None if is_marked else ReportStatus("Pod", pod.key, uid, _NAME, (_TARGET,))
        return self._deletions.step(mark, DeleteObject("Pod", pod.key, uid, _NAME))


def _taints_of(raw: Raw) -> list[Raw]:
    found: list[Raw] = raw.get("spec", {}).get("taints") or []
    return found


def _since_ns(said_ns: int | None, now: int) -> int:
    """Since when something counts that is first seen now; what is said of that is cut off to whole seconds."""
    return now if said_ns is None else min(now, said_ns + _SECOND)
