"""How many pods the controllers of pods want.

Source: pkg/controller/disruption/disruption.go (finders).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.kinds import group_of
from podium.api.meta import Kubernetes, Raw
from podium.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

_Scalable = Deployment | ReplicaSet | ReplicationController | StatefulSet


@dataclass(frozen=True, slots=True)
class _Scaled:
    """What wants ``replicas`` pods; ``deployment`` is the uid of the Deployment that says so in its stead, or ""."""

    replicas: int
    deployment: str


class Scales:
    """The scale of each controller; that of a Deployment's ReplicaSet is the Deployment's, and is unknown with it.

    Custom resources are taken to be scaled by `spec.replicas`, where they have it: their definition, which names the
    field, is not read.
    """

    def __init__(self) -> None:
        self._scaled: dict[str, _Scaled] = {}
        self._uids: dict[tuple[str, str, str], str] = {}
        # The ReplicaSets of each Deployment.
        self._sets: dict[str, dict[str, None]] = {}

    def put(self, object_: Kubernetes, raw: Raw) -> list[str]:
        """Take in an object as it is now; the uids of the controllers whose scale has changed."""
        scaled, uid, name = _read(object_, raw), object_.metadata.uid, _name(object_)
        known = self._uids.get(name, uid)
        if known == uid and self._scaled.get(uid) == scaled:
            return []
        changed = self._forget(known)
        if scaled is None:
            return changed
        self._uids[name] = uid
        self._scaled[uid] = scaled
        if scaled.deployment:
            self._sets.setdefault(scaled.deployment, {})[uid] = None
        return list(dict.fromkeys((*changed, uid, *self._sets.get(uid, ()))))

    def remove(self, object_: Kubernetes) -> list[str]:
        """Forget an object that is gone; the uids of the controllers whose scale has changed."""
        if self._uids.get(_name(object_)) != object_.metadata.uid:
            return []
        del self._uids[_name(object_)]
        return self._forget(object_.metadata.uid)

    def of(self, uid: str) -> tuple[str, int] | None:
        """The uid of what scales the controller, and how many pods it wants; None where there is no such scale."""
        scaled = self._scaled.get(uid)
        if scaled is None:
            return None
        if scaled.deployment:
            return self.of(scaled.deployment)
        return uid, scaled.replicas

    def _forget(self, uid: str) -> list[str]:
        scaled = self._scaled.pop(uid, None)
        if scaled is None:
            return []
        if scaled.deployment:
            sets = self._sets[scaled.deployment]
            del sets[uid]
            if not sets:
                del self._sets[scaled.deployment]
        return [uid, *self._sets.get(uid, ())]


def _read(object_: Kubernetes, raw: Raw) -> _Scaled | None:
    """The scale of an object; None for one that has none."""
    if isinstance(object_, _Scalable):
        parent = object_.metadata.controller if isinstance(object_, ReplicaSet) else None
        deployment = parent.uid if parent is not None and parent.kind == "Deployment" else ""
        return _Scaled(object_.spec.replicas, deployment)
    if type(object_) is not Kubernetes:
        return None
    spec = raw.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    return _Scaled(replicas, "") if isinstance(replicas, int) and not isinstance(replicas, bool) else None


def _name(object_: Kubernetes) -> tuple[str, str, str]:
    if type(object_) is Kubernetes:
        return group_of(object_.api_version), object_.kind, object_.key
    return "", type(object_).__name__, object_.key
