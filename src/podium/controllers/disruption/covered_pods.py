"""The pods that a disruption budget covers, and their controllers' scales.

Source: pkg/controller/disruption/disruption.go (getExpectedScale, countHealthyPods).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from podium.api.kinds import group_of
from podium.api.meta import Kubernetes, OwnerReference, Raw
from podium.api.pod import Pod
from podium.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from podium.controllers.indexes import MultiMap
from podium.store.verbs.eviction import is_ready


@dataclass(frozen=True, slots=True)
class Expected:
    """The number of pods that the controllers want; ``unknown`` is a controller without known scale, or None."""

    pods: int
    unknown: OwnerReference | None


class CoveredPods:
    """Pods of one namespace, with their counts: the healthy ones, those without a controller, and those by priority."""

    def __init__(self) -> None:
        self.by_name: dict[str, Pod] = {}
        self.healthy = 0
        self.unmanaged = 0
        self.priorities: Counter[int] = Counter()
        # By uid, the controllers, and the numbers of their pods.
        self._controllers: dict[str, OwnerReference] = {}
        self._covered: Counter[str] = Counter()
        self._expected: Expected | None = None

    def put(self, pod: Pod) -> None:
        self.remove(pod.metadata.name)
        self.by_name[pod.metadata.name] = pod
        self._count(pod, 1)

    def remove(self, name: str) -> None:
        """Stop counting a pod, if it is there."""
        pod = self.by_name.pop(name, None)
        if pod is not None:
            self._count(pod, -1)
            if not self.priorities[pod.priority]:
                del self.priorities[pod.priority]

    def first(self, controller: str | None = None) -> Pod | None:
        """Return the first pod by name, of a controller (uid, "" for none) if one is given; None without such pods."""
        found = (pod for pod in self.by_name.values() if controller is None or controller_uid(pod) == controller)
        return min(found, key=lambda pod: pod.metadata.name, default=None)

    def expected(self, scales: Scales) -> Expected:
        """Return how many pods there should be; cached until a controller comes or goes, or `forget_scale`."""
        if self._expected is None:
            wanted: dict[str, int] = {}
            unknown = []
            for uid, controller in self._controllers.items():
                scale = scales.of(uid)
                if scale is None:
                    unknown.append(controller)
                else:
                    wanted[scale[0]] = scale[1]
            first = min(unknown, key=lambda owner: (owner.kind, owner.name, owner.uid), default=None)
            self._expected = Expected(sum(wanted.values()), first)
        return self._expected

    def forget_scale(self) -> None:
        """Drop the cached number, because a scale has changed."""
        self._expected = None

    def _count(self, pod: Pod, number: int) -> None:
        self.healthy += number * is_healthy(pod)
        self.priorities[pod.priority] += number
        owner = pod.metadata.controller
        if owner is None:
            self.unmanaged += number
            return
        if owner.uid not in self._controllers:
            self._controllers[owner.uid] = owner
            self._expected = None
        self._covered[owner.uid] += number
        if not self._covered[owner.uid]:
            del self._controllers[owner.uid], self._covered[owner.uid]
            self._expected = None


def is_healthy(pod: Pod) -> bool:
    """Return whether a pod is ready and not terminating."""
    return is_ready(pod) and not pod.is_terminating


def controller_uid(pod: Pod) -> str:
    """Return the uid of the pod's controller, "" without one."""
    owner = pod.metadata.controller if pod.metadata.owner_references else None
    return "" if owner is None else owner.uid


_Scalable = Deployment | ReplicaSet | ReplicationController | StatefulSet


_Scaled = tuple[int, str]
"""The wanted replicas of a controller, and the uid of the Deployment that decides instead, or ""."""


class Scales:
    """The scale of each controller; a Deployment's ReplicaSet has the Deployment's.

    Custom resources are assumed to have `spec.replicas`; their definitions are not read.
    """

    def __init__(self) -> None:
        self._scaled: dict[str, _Scaled] = {}
        self._uids: dict[tuple[str, str, str], str] = {}
        # The ReplicaSets of each Deployment.
        self._sets: MultiMap[str, str] = MultiMap()

    def put(self, object_: Kubernetes, raw: Raw) -> list[str]:
        """Take in an object; return the uids of the controllers whose scale has changed."""
        scaled, uid, name = _read(object_, raw), object_.metadata.uid, _name(object_)
        known = self._uids.get(name, uid)
        if known == uid and self._scaled.get(uid) == scaled:
            return []
        changed = self._forget(known)
        if scaled is None:
            return changed
        self._uids[name] = uid
        self._scaled[uid] = scaled
        if scaled[1]:
            self._sets.add(scaled[1], uid)
        return list(dict.fromkeys((*changed, uid, *self._sets.get(uid, ()))))

    def remove(self, object_: Kubernetes) -> list[str]:
        """Forget an object; return the uids of the controllers whose scale has changed."""
        if self._uids.get(_name(object_)) != object_.metadata.uid:
            return []
        del self._uids[_name(object_)]
        return self._forget(object_.metadata.uid)

    def of(self, uid: str) -> tuple[str, int] | None:
        """Return the uid of the object that scales a controller, and the wanted pods; None if unknown."""
        scaled = self._scaled.get(uid)
        if scaled is None:
            return None
        replicas, deployment = scaled
        return self.of(deployment) if deployment else (uid, replicas)

    def _forget(self, uid: str) -> list[str]:
        scaled = self._scaled.pop(uid, None)
        if scaled is None:
            return []
        self._sets.discard(scaled[1], uid)
        return [uid, *self._sets.get(uid, ())]


def _read(object_: Kubernetes, raw: Raw) -> _Scaled | None:
    """Return the scale of an object, or None."""
    if isinstance(object_, _Scalable):
        parent = object_.metadata.controller if isinstance(object_, ReplicaSet) else None
        deployment = parent.uid if parent is not None and parent.kind == "Deployment" else ""
        return object_.spec.replicas, deployment
    if type(object_) is not Kubernetes:
        return None
    spec = raw.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    return (replicas, "") if isinstance(replicas, int) and not isinstance(replicas, bool) else None


def _name(object_: Kubernetes) -> tuple[str, str, str]:
    if type(object_) is Kubernetes:
        return group_of(object_.api_version), object_.kind, object_.key
    return "", type(object_).__name__, object_.key
