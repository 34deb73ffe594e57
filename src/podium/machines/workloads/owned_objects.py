"""Objects of one kind that belong to workloads: ReplicaSets of Deployments, ControllerRevisions of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from podium.api.meta import Kubernetes
from podium.machines.workloads.workload import Workload

Kind = TypeVar("Kind", bound=Kubernetes)


@dataclass(frozen=True, slots=True)
class ObjectSighting(Generic[Kind]):
    """What an owner sees of something it owns: as it is, or as it was when it ``is_gone``."""

    owner_uid: str
    object: Workload[Kind]
    is_gone: bool = False


class OwnedObjects(Generic[Kind]):
    """Objects by key, and by the uid of their controller."""

    def __init__(self) -> None:
        self._objects: dict[str, Workload[Kind]] = {}
        # By the owner's uid, the keys of what it owns.
        self._keys: dict[str, dict[str, None]] = {}

    def see(self, object_: Workload[Kind]) -> list[ObjectSighting[Kind]]:
        """Take in an object as it is now, in the place of a namesake, or of what belonged to somebody else."""
        key, owner = object_.object.key, object_.object.metadata.controller
        known = self._objects.get(key)
        is_same = known is not None and (known.uid, known.object.metadata.controller) == (object_.uid, owner)
        sightings = [] if is_same else self.lose(object_.object)
        self._forget(key)
        self._objects[key] = object_
        if owner is not None:
            self._keys.setdefault(owner.uid, {})[key] = None
            sightings.append(ObjectSighting(owner.uid, object_))
        return sightings

    def lose(self, object_: Kubernetes) -> list[ObjectSighting[Kind]]:
        """An object is gone, and with it any namesake that is still known."""
        known = self._objects.get(object_.key)
        owner = known.object.metadata.controller if known is not None else None
        self._forget(object_.key)
        return [ObjectSighting(owner.uid, known, is_gone=True)] if known is not None and owner is not None else []

    def of(self, owner_uid: str) -> list[Workload[Kind]]:
        """What the owner owns, by key."""
        return [self._objects[key] for key in sorted(self._keys.get(owner_uid, ()))]

    def named(self, key: str) -> Workload[Kind] | None:
        """The object of that key, whoever owns it."""
        return self._objects.get(key)

    def _forget(self, key: str) -> None:
        known = self._objects.pop(key, None)
        owner = known.object.metadata.controller if known is not None else None
        if owner is not None:
            keys = self._keys[owner.uid]
            del keys[key]
            if not keys:
                del self._keys[owner.uid]
