"""Workloads and the objects that they own, as their controllers hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.api.workloads import Share
from podium.controllers.actions import owner_reference
from podium.controllers.indexes import MultiMap

Kind_co = TypeVar("Kind_co", bound=Kubernetes, covariant=True)


class WorkloadObject(Generic[Kind_co]):
    """An object with its wire form.

    ``label`` is its name as the cause of actions, such as `ReplicaSet default/web`. ``is_deleted``: it only waits for
    finalizers. ``spec``, ``template`` (of its pods), ``status`` and ``conditions`` are parts of the wire form.
    """

    __slots__ = ("conditions", "is_deleted", "label", "object", "raw", "spec", "status", "template", "uid")

    def __init__(self, object_: Kind_co, raw: Raw) -> None:
        self.object = object_
        self.raw = raw
        self.uid = object_.metadata.uid
        self.label = label_of(object_)
        self.is_deleted = object_.metadata.deletion_timestamp is not None
        self.spec: Raw = raw.get("spec", {})
        self.template: Raw = self.spec.get("template", {})
        self.status: Raw = raw.get("status", {})
        self.conditions: list[Raw] = self.status.get("conditions", [])

    def new_pod(self, template: Raw, metadata: Raw, labels: Mapping[str, str], spec: Raw | None = None) -> Raw:
        """Return a pod made from a template, with further labels, and ``spec`` instead of the template's.

        ``metadata`` has a name or `generateName`, and may replace annotations and finalizers of the template.
        """
        given = template.get("metadata", {})
        kept = {name: given[name] for name in ("annotations", "finalizers") if name in given}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **kept,
                **metadata,
                "namespace": self.object.metadata.namespace,
                "labels": {**given.get("labels", {}), **labels},
                "ownerReferences": [owner_reference(self.object)],
            },
            "spec": template.get("spec", {}) if spec is None else spec,
        }


def label_of(object_: Kubernetes) -> str:
    """Return the object's kind and key, such as `ReplicaSet default/web`."""
    return f"{type(object_).__name__} {object_.key}"


def pods_of_share(share: Share, wanted: int, *, rounds_up: bool) -> int:
    """Return a share as a number of pods (apimachinery's intstr, GetScaledValueFromIntOrPercent)."""
    if isinstance(share, int):
        return share
    hundredths = int(share.removesuffix("%")) * wanted
    return -(-hundredths // 100) if rounds_up else hundredths // 100


def condition_of(conditions: Iterable[Raw], type_: str) -> Raw:
    """Return the condition of a type, empty without one."""
    return next((condition for condition in conditions if condition.get("type") == type_), {})


def status_with(old: Raw, fields: Raw, always: Collection[str] = ()) -> Raw:
    """Return the status with these fields, without those that are None or empty, except ``always``."""
    kept = {name: value for name, value in old.items() if name not in fields}
    empty: tuple[object, ...] = (None, 0, "", [], {})
    return kept | {name: value for name, value in fields.items() if name in always or value not in empty}


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class OwnedChange(Generic[Item]):
    """A change of an owned object: its state before, None if it is new, and now; its last state if it ``is_gone``."""

    owner_uid: str
    before: Item | None
    now: Item
    is_gone: bool = False


Kind = TypeVar("Kind", bound=Kubernetes)


class OwnedObjects(Generic[Kind]):
    """Objects by key, and by the uid of their controller."""

    def __init__(self) -> None:
        self._objects: dict[str, WorkloadObject[Kind]] = {}
        # By the owner's uid, the keys of its objects.
        self._keys: MultiMap[str, str] = MultiMap()

    def see(self, object_: WorkloadObject[Kind]) -> list[OwnedChange[WorkloadObject[Kind]]]:
        """Take in an object; return the changes for its owner and for the owner of an object that it replaces."""
        key, owner = object_.object.key, object_.object.metadata.controller
        known = self._objects.get(key)
        is_same = known is not None and (known.uid, known.object.metadata.controller) == (object_.uid, owner)
        changes = [] if is_same else self.lose(object_.object)
        self._objects[key] = object_
        if owner is not None:
            self._keys.add(owner.uid, key)
            changes.append(OwnedChange(owner.uid, known if is_same else None, object_))
        return changes

    def lose(self, object_: Kubernetes) -> list[OwnedChange[WorkloadObject[Kind]]]:
        """Forget an object of that key; return the change for its owner."""
        known = self._objects.pop(object_.key, None)
        owner = known.object.metadata.controller if known is not None else None
        if known is None or owner is None:
            return []
        self._keys.discard(owner.uid, object_.key)
        return [OwnedChange(owner.uid, known, known, is_gone=True)]

    def of(self, owner_uid: str) -> list[WorkloadObject[Kind]]:
        """Return the objects of an owner, by key."""
        return [self._objects[key] for key in sorted(self._keys.get(owner_uid, ()))]

    def named(self, key: str) -> WorkloadObject[Kind] | None:
        """Return the object with that key, whatever its owner."""
        return self._objects.get(key)
