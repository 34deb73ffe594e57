"""Garbage collection: objects go with their owners, before them, or stay behind.

The rules of pkg/controller/garbagecollector (attemptToDeleteItem, processDeletingDependentsItem, orphanDependents).
"""

from __future__ import annotations

from podium.api.kinds import group_of
from podium.api.meta import OwnerReference, Raw
from podium.store.controllers.steps import CarryOut, Collect, OnRefusal, Rewrite, Step, take
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.deletion import FOREGROUND, ORPHAN

REMEMBERED_NS = 600 * 10**9
"""How long it is known of an object that it was there; whoever acts in its name has been answered by then."""


class GarbageCollector:
    """Knows who owns whom, from the store's log, and says what is to be done about it.

    An owner is the object of the reference's API group, kind and name, in the namespace of what it owns or in none, if
    that has the reference's uid. `absent_is_gone` says whether owners that were never there count as gone, as they do
    for Kubernetes; in a cluster that is known in part they may be alive. Who went is remembered for `REMEMBERED_NS`,
    since something may be made in its name that was on its way. What it wants done, ``carry_out`` does.
    """

    def __init__(self, store: Store, carry_out: CarryOut, *, absent_is_gone: bool = True) -> None:
        self._store = store
        self._carry_out = carry_out
        self._absent_is_gone = absent_is_gone
        self._version = 0
        self._objects: dict[str, Stored] = {}
        # The objects by uid that refer to each owner.
        self._owned: dict[str, dict[str, None]] = {}
        # The uids of objects that are gone, with when that was seen, in this order.
        self._gone: dict[str, int] = {}
        # The objects by uid whose case is to be judged.
        self._dirty: dict[str, None] = {}
        self._begin(0)

    def collect(self, now: int, on_refusal: OnRefusal | None = None) -> int:
        """Do what is to be done, and what follows from it; returns the number of steps.

        What is refused, and why, is told; without somebody to be told, the StoreError is raised.
        """
        count = 0
        while steps := self.due(now):
            count += len(steps)
            for step in steps:
                take(step, self._carry_out, now, on_refusal)
        return count

    def look_again(self, uid: str) -> None:
        """Judge an object once more, though nothing has happened to it."""
        self._dirty[uid] = None

    def due(self, now: int) -> list[Step]:
        """What is to be done by what was written since the last call, in order; each step is told once."""
        if self._version != self._store.version:
            self._catch_up(now)
        if self._gone:
            self._forget(now)
        if not self._dirty:
            return []
        dirty, self._dirty = self._dirty, {}
        found = (self._objects[uid] for uid in dirty if uid in self._objects)
        return [step for stored in found for step in self._steps(stored)]

    def _catch_up(self, now: int) -> None:
        """Take in what was written since the last call."""
        try:
            events = self._store.events_since(self._version)
        except StoreError as error:
            if error.reason != "Expired":
                raise
            self._begin(now)
            return
        for event in events:
            stored, before = event.stored, event.previous
            metadata, is_gone = stored.object.metadata, event.type == "DELETED"
            had_owners = before is not None and before.object.metadata.owner_references
            if is_gone or had_owners or metadata.owner_references or metadata.deletion_timestamp is not None:
                self._observe(stored, is_gone, now)
            else:
                # Nothing is to be done about it, whatever else changed: nothing takes a deletion back.
                self._objects[metadata.uid] = stored
        self._version = events[-1].stored.version if events else self._version

    def _begin(self, now: int) -> None:
        """Look at all objects anew."""
        before = self._objects
        self._objects, self._owned, self._dirty = {}, {}, {}
        self._version = self._store.version
        for resource in self._store.resources.all():
            for stored in self._store.objects(resource.name):
                self._observe(stored, False, now)
        self._gone |= {uid: now for uid in before if uid not in self._objects}

    def _forget(self, now: int) -> None:
        """Forget the objects that went long ago."""
        while self._gone and next(iter(self._gone.values())) + REMEMBERED_NS < now:
            del self._gone[next(iter(self._gone))]

    def _observe(self, stored: Stored, is_gone: bool, now: int) -> None:
        uid, before = stored.uid, self._objects.get(stored.uid)
        after = [] if is_gone else _owners(stored)
        for owner in _owners(before) if before else []:
            left = self._owned.get(owner, {})
            left.pop(uid, None)
            if not left:
                self._owned.pop(owner, None)
            self._dirty[owner] = None
        for owner in after:
            self._owned.setdefault(owner, {})[uid] = None
        if is_gone:
            self._objects.pop(uid, None)
            self._gone[uid] = now
        else:
            self._objects[uid] = stored
            self._dirty[uid] = None
        if is_gone or _waits(stored):
            self._dirty |= self._owned.get(uid, {})

    def _steps(self, stored: Stored) -> list[Step]:
        meta = stored.object.metadata
        if meta.deletion_timestamp is not None:
            if ORPHAN in meta.finalizers:
                return [*self._orphaned(stored), _without_finalizer(stored, ORPHAN)]
            if FOREGROUND in meta.finalizers and not self._blocking(stored):
                return [_without_finalizer(stored, FOREGROUND)]
            return []
        return self._judged(stored) if _owners(stored) else []

    def _judged(self, stored: Stored) -> list[Step]:
        """What becomes of an object that has owners."""
        references = stored.object.metadata.owner_references
        solid = [self._is_solid(stored, reference) for reference in references]
        if all(solid):
            return []
        if any(solid):
            kept = [one for one, is_solid in zip(_references(stored), solid, strict=True) if is_solid]
            return [Rewrite(stored, "ownerReferences", kept)]
        waiting = any(self._owner(stored, reference) is not None for reference in references)
        dependents = [self._objects[uid] for uid in self._owned.get(stored.uid, ())]
        if waiting and dependents:
            # Two that wait for one another would wait for ever: this one stops holding up its owners.
            circle = any(_waits(dependent) for dependent in dependents)
            unblocked = _unblocked(stored) if circle else _references(stored)
            return [
                *([Rewrite(stored, "ownerReferences", unblocked)] if unblocked != _references(stored) else []),
                Collect(stored, "Foreground"),
            ]
        finalizers = stored.object.metadata.finalizers
        if ORPHAN in finalizers:
            return [Collect(stored, "Orphan")]
        return [Collect(stored, "Foreground" if FOREGROUND in finalizers else "Background")]

    def _owner(self, stored: Stored, reference: OwnerReference) -> Stored | None:
        """The owner that a reference means; None where there is none."""
        found = self._objects.get(reference.uid)
        return found if found is not None and _is_meant(stored, reference, found) else None

    def _is_solid(self, stored: Stored, reference: OwnerReference) -> bool:
        """Whether the owner is there, and does not wait for what it owns to go."""
        owner = self._owner(stored, reference)
        if owner is not None:
            return not _waits(owner)
        was_there = reference.uid in self._objects or reference.uid in self._gone
        return not self._absent_is_gone and not was_there

    def _orphaned(self, stored: Stored) -> list[Step]:
        """Dependents that leave this owner behind."""
        steps: list[Step] = []
        for uid in self._owned.get(stored.uid, ()):
            dependent = self._objects[uid]
            left = [reference for reference in _references(dependent) if reference.get("uid") != stored.uid]
            steps.append(Rewrite(dependent, "ownerReferences", left))
        return steps

    def _blocking(self, stored: Stored) -> list[str]:
        """The dependents, by uid, that must be gone before this owner goes."""
        return [
            uid
            for uid in self._owned.get(stored.uid, ())
            for reference in _references(self._objects[uid])
            if reference.get("uid") == stored.uid and reference.get("blockOwnerDeletion")
        ]


def _references(stored: Stored) -> list[Raw]:
    references: list[Raw] = stored.raw["metadata"].get("ownerReferences", [])
    return references


def _owners(stored: Stored) -> list[str]:
    return [owner.uid for owner in stored.object.metadata.owner_references]


def _is_meant(stored: Stored, reference: OwnerReference, owner: Stored) -> bool:
    """Whether an object with the uid of a reference is also what the reference calls it."""
    meta, resource = owner.object.metadata, owner.resource
    if (group_of(reference.api_version), reference.kind) != (resource.group, resource.kind):
        return False
    return meta.name == reference.name and meta.namespace in ("", stored.object.metadata.namespace)


def is_alone(stored: Stored) -> bool:
    """Whether the object has no owners and is not deleted: of a change that leaves it so nothing follows."""
    metadata = stored.object.metadata
    return not metadata.owner_references and metadata.deletion_timestamp is None


def _waits(stored: Stored) -> bool:
    """Whether the object is deleted and waits for what it owns."""
    return stored.object.metadata.deletion_timestamp is not None and FOREGROUND in stored.object.metadata.finalizers


def _unblocked(stored: Stored) -> list[Raw]:
    return [{**reference, "blockOwnerDeletion": False} for reference in _references(stored)]


def _without_finalizer(stored: Stored, finalizer: str) -> Rewrite:
    return Rewrite(stored, "finalizers", [one for one in stored.object.metadata.finalizers if one != finalizer])
