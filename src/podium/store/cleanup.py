"""Garbage collection: background, foreground and orphan propagation.

The rules of pkg/controller/garbagecollector (attemptToDeleteItem, processDeletingDependentsItem, orphanDependents).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import msgspec

from podium.api.kinds import group_of
from podium.api.meta import OwnerReference, Raw, objects_at
from podium.api.workloads import JOB_TRACKING
from podium.store.custom_kinds import DEFINITION_FINALIZER
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored, with_conditions
from podium.store.verbs.deletion import FOREGROUND, NAMESPACE_FINALIZER, ORPHAN, Propagation
from podium.store.watch_log import WatchEvent

REMEMBERED_NS = 600 * 10**9
"""How long deleted objects are remembered; requests that still refer to them have been answered by then."""

_OWNERS = ("metadata", "ownerReferences")
_NO_PROBLEM = (
    ("DeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("DeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("DeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ("ContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("FinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


@dataclass(slots=True, eq=False)
class GarbageCollector:
    """A garbage collector that follows the store's log and lists the deletions and updates that are due.

    An owner is the object of the reference's API group, kind and name, in the dependent's namespace or cluster-scoped,
    if its uid is that of the reference. `absent_is_gone` says whether owners that never existed count as deleted, as in
    Kubernetes; in a partially known cluster they may exist. Deleted objects are remembered for `REMEMBERED_NS`, since a
    dependent may still be created for them. ``carry_out`` performs the steps.
    """

    store: Store
    carry_out: StepRunner
    _: KW_ONLY
    absent_is_gone: bool = True
    _version: int = 0
    _objects: dict[str, Stored] = field(default_factory=dict)
    # The uids of the dependents that refer to each owner.
    _owned: dict[str, dict[str, None]] = field(default_factory=dict)
    # The uids of deleted objects with the time when the deletion was seen, in this order.
    _gone: dict[str, int] = field(default_factory=dict)
    # The uids of the objects to be evaluated.
    _dirty: dict[str, None] = field(default_factory=dict)
    # While steps are listed, the references to owners that stay, by identity with the namespace: pods share them.
    _sound: set[tuple[int, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._begin(0)

    def collect(self, now: int) -> int:
        """Perform all due steps and those that follow from them; return the number of steps."""
        count = 0
        while steps := self.due(now):
            count += len(steps)
            for step in steps:
                self.carry_out(step, now)
        return count

    def look_again(self, uid: str) -> None:
        """Evaluate an object again, although nothing has happened to it."""
        self._dirty[uid] = None

    def due(self, now: int) -> list[Step]:
        """Return the steps that are due because of writes since the last call, in order; each step is returned once."""
        if self._version != self.store.version:
            self._catch_up(now)
        while self._gone and next(iter(self._gone.values())) + REMEMBERED_NS < now:
            del self._gone[next(iter(self._gone))]
        if not self._dirty:
            return []
        dirty, self._dirty, self._sound = self._dirty, {}, set()
        found = (self._objects[uid] for uid in dirty if uid in self._objects)
        return [step for stored in found for step in self._steps(stored)]

    def _catch_up(self, now: int) -> None:
        """Process the writes since the last call."""
        try:
            events = self.store.events_since(self._version)
        except StoreError as error:
            if error.reason != "Expired":
                raise
            self._begin(now)
            return
        for event in events:
            if _may_make_steps_due(event):
                self._observe(event.stored, event.type == "DELETED", now)
            else:
                self._objects[event.stored.uid] = event.stored
        self._version = events[-1].stored.version if events else self._version

    def _begin(self, now: int) -> None:
        """Rebuild the state from all objects."""
        before = self._objects
        self._objects, self._owned, self._dirty = {}, {}, {}
        self._version = self.store.version
        for stored in [each for kind in self.store.resources.all() for each in self.store.objects(kind.name)]:
            uid = stored.uid
            self._objects[uid], self._dirty[uid] = stored, None
            for owner in stored.object.metadata.owner_references:
                self._owned.setdefault(owner.uid, {})[uid] = None
        self._gone |= {uid: now for uid in before if uid not in self._objects}

    def _observe(self, stored: Stored, is_gone: bool, now: int) -> None:
        uid, before = stored.uid, self._objects.get(stored.uid)
        for owner in _owners(before) if before else []:
            left = self._owned.get(owner, {})
            left.pop(uid, None)
            if not left:
                self._owned.pop(owner, None)
            self._dirty[owner] = None
        for owner in () if is_gone else _owners(stored):
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
            kind = self.store.definitions.kind_of(stored) if DEFINITION_FINALIZER in meta.finalizers else ""
            if kind and not all(stored.object.is_terminating for stored in self.store.objects(kind)):
                return [DeleteStep(stored)]
            owned = [self._objects[uid] for uid in self._owned.get(stored.uid, ())]
            if ORPHAN in meta.finalizers:
                steps: list[Step] = []
                for dependent in owned:
                    left = [one for one in objects_at(dependent.raw, *_OWNERS) if one.get("uid") != stored.uid]
                    # A pod is not counted any more when its Job is gone.
                    kept = [one for one in dependent.object.metadata.finalizers if one != JOB_TRACKING]
                    steps.append(PatchStep(dependent, {"metadata": {"ownerReferences": left, "finalizers": kept}}))
                return [*steps, _without_finalizer(stored, ORPHAN)]
            references = (reference for one in owned for reference in objects_at(one.raw, *_OWNERS))
            is_blocked = any(one.get("uid") == stored.uid and one.get("blockOwnerDeletion") for one in references)
            return [_without_finalizer(stored, FOREGROUND)] if FOREGROUND in meta.finalizers and not is_blocked else []
        is_sound = not meta.owner_references or (id(meta.owner_references), meta.namespace) in self._sound
        return [] if is_sound else self._steps_for(stored)

    def _steps_for(self, stored: Stored) -> list[Step]:
        """Return the steps for an object that has owners."""
        references = stored.object.metadata.owner_references
        # Whether each owner exists and does not wait for its dependents to be deleted.
        owners = [(reference.uid, self._owner(stored, reference)) for reference in references]
        # Owners of an unknown kind cannot be looked up, nor namespaced ones of a cluster-scoped object: none of them
        # counts as gone, but for one of an unknown kind whose deletion was seen.
        is_scoped, find = bool(stored.object.metadata.namespace), self.store.resources.find
        kinds = {each.uid: find(each.api_version, each.kind) for each in references}
        absent = {uid for uid, kind in kinds.items() if kind and (self.absent_is_gone or uid in self._objects)}
        within_reach = (uid for uid, kind in kinds.items() if is_scoped or kind is None or not kind.namespaced)
        known = {uid for uid in within_reach if uid in absent or uid in self._gone}
        solid = [uid not in known if owner is None else not _waits(owner) for uid, owner in owners]
        if all(solid):
            self._sound.add((id(references), stored.object.metadata.namespace))
            return []
        if any(solid):
            kept = [one for one, is_solid in zip(objects_at(stored.raw, *_OWNERS), solid, strict=True) if is_solid]
            return [PatchStep(stored, {"metadata": {"ownerReferences": kept}})]
        waiting = any(owner is not None for _, owner in owners)
        dependents = [self._objects[uid] for uid in self._owned.get(stored.uid, ())]
        if waiting and dependents:
            deletion = DeleteStep(stored, "Foreground")
            if not any(map(_waits, dependents)):
                return [deletion]
            # Two objects that wait for each other would wait forever, so this one stops blocking its owners.
            unblocked = [{**one, "blockOwnerDeletion": False} for one in objects_at(stored.raw, *_OWNERS)]
            return [PatchStep(stored, {"metadata": {"ownerReferences": unblocked}}), deletion]
        finalizers = stored.object.metadata.finalizers
        if ORPHAN in finalizers:
            return [DeleteStep(stored, "Orphan")]
        return [DeleteStep(stored, "Foreground" if FOREGROUND in finalizers else "Background")]

    def _owner(self, stored: Stored, reference: OwnerReference) -> Stored | None:
        """Return the object with the reference's uid, if it also has its kind, name and namespace; otherwise None."""
        found = self._objects.get(reference.uid)
        if found is None:
            return None
        meta, resource = found.object.metadata, found.resource
        if (group_of(reference.api_version), reference.kind) != (resource.group, resource.kind):
            return None
        is_in_reach = meta.namespace in ("", stored.object.metadata.namespace)
        return found if is_in_reach and meta.name == reference.name else None


def _may_make_steps_due(event: WatchEvent) -> bool:
    """Return whether a write adds or removes an object with owners, or changes what steps depend on."""
    after, before = event.stored.object.metadata, event.previous
    if event.type == "DELETED" or before is None:
        return bool(event.type == "DELETED" or after.owner_references or after.deletion_timestamp is not None)
    was = before.object.metadata
    counted = (was.owner_references, was.finalizers, was.deletion_timestamp)
    return counted != (after.owner_references, after.finalizers, after.deletion_timestamp)


def _owners(stored: Stored) -> list[str]:
    return [owner.uid for owner in stored.object.metadata.owner_references]


def _waits(stored: Stored) -> bool:
    """Return whether the object is terminating and waits for its dependents."""
    return stored.object.is_terminating and FOREGROUND in stored.object.metadata.finalizers


def _without_finalizer(stored: Stored, finalizer: str) -> PatchStep:
    left = [one for one in stored.object.metadata.finalizers if one != finalizer]
    return PatchStep(stored, {"metadata": {"finalizers": left}})


@dataclass(slots=True, eq=False)
class NamespaceCleaner:
    """A controller that deletes the contents of terminating namespaces, then their finalizer.

    Pods are deleted first, each with its own grace period; everything else follows when no pod is left, so that running
    pods keep what they need. Objects with finalizers are waited for; conditions of the namespace name them.
    ``carry_out`` performs the steps.
    """

    store: Store
    carry_out: StepRunner
    _version: int = 0
    terminating: dict[str, bool] = field(default_factory=dict)
    """The terminating namespaces, each with whether the namespace or its contents have changed."""

    def collect(self, now: int) -> int:
        """Perform all due steps and those that follow from them; return the number of steps."""
        count = 0
        while name := self._next():
            count += self._work_on(name, now)
        return count

    def look_again(self, name: str) -> None:
        """Evaluate a namespace again, although nothing has happened in it."""
        if name in self.terminating:
            self.terminating[name] = True

    def _next(self) -> str:
        """Return the first changed terminating namespace by name; "" if there is none."""
        if self._version != self.store.version:
            self._observe()
        return min((name for name, is_touched in self.terminating.items() if is_touched), default="")

    def _observe(self) -> None:
        try:
            # While no namespace is terminating, neither the contents nor the number of writes matter.
            events = self.store.events_since(self._version, "" if self.terminating else "Namespace")
        except StoreError as error:
            if error.reason != "Expired":
                raise
            self.terminating = {one.key: True for one in self.store.objects("Namespace") if one.object.is_terminating}
            events = []
        for event in events:
            stored, is_gone = event.stored, event.type == "DELETED"
            if stored.kind != "Namespace":
                self.look_again(stored.object.metadata.namespace)
            elif is_gone:
                self.terminating.pop(stored.key, None)
            elif stored.object.is_terminating:
                self.terminating[stored.key] = True
        self._version = self.store.version

    def _work_on(self, name: str, now: int) -> int:
        self.terminating[name] = False
        namespace = self.store.find("Namespace", name)
        if namespace is None:
            return 0
        pods = self.store.objects("Pod", name)
        kinds = [resource.name for resource in self.store.resources.all() if resource.namespaced]
        contents = pods or [stored for kind in kinds for stored in self.store.objects(kind, name)]
        deletable = [stored for stored in contents if not stored.object.is_terminating]
        for stored in deletable:
            self.carry_out(DeleteStep(stored), now)
        before = namespace.raw.get("status", {}).get("conditions", [])
        remaining = [one for stored in contents if (one := self.store.find(stored.resource.name, stored.key))]
        if remaining or before:
            # As upstream, nothing is said of the contents while there are pods.
            after = with_conditions(before, _deletion_conditions([] if pods else remaining), now)
            if after != before:
                self.carry_out(PatchStep(namespace, {"status": {"conditions": after}}, "status"), now)
        if contents:
            return len(deletable)
        finalizers = namespace.raw.get("spec", {}).get("finalizers", [])
        left = [finalizer for finalizer in finalizers if finalizer != NAMESPACE_FINALIZER]
        if left == finalizers:
            return 0
        self.carry_out(FinalizeNamespace(namespace, left), now)
        return 1


def _deletion_conditions(remaining: list[Stored]) -> list[Raw]:
    """Return the conditions of a terminating namespace with these contents.

    The rules of pkg/controller/namespace/deletion/status_condition_utils.go. Discovery and deletion never fail.
    """
    instances = Counter(f"{stored.resource.plural}.{stored.resource.group} has" for stored in remaining)
    finalizers = Counter(f"{one} in" for stored in remaining for one in stored.object.metadata.finalizers)
    found = {type_: ("False", reason, message) for type_, reason, message in _NO_PROBLEM}
    for type_, reason, message, counts in (
        ("ContentRemaining", "SomeResourcesRemain", "Some resources are remaining", instances),
        (
            "FinalizersRemaining",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining",
            finalizers,
        ),
    ):
        if counts:
            listed = ", ".join(f"{name} {count} resource instances" for name, count in sorted(counts.items()))
            found[type_] = "True", reason, f"{message}: {listed}"
    return [
        {"type": f"Namespace{type_}", "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in found.items()
    ]


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """The deletion of an object, if it still has that uid."""

    stored: Stored
    propagation: Propagation = "Background"


@dataclass(frozen=True, slots=True)
class PatchStep:
    """A merge patch of an object or its status, if the object has not been written since."""

    stored: Stored
    patch: Raw
    subresource: Literal["", "status"] = ""


class FinalizeNamespace(msgspec.Struct, frozen=True):
    """The replacement of the finalizers in a namespace's spec, if it has not been written since."""

    stored: Stored
    finalizers: list[str]


Step = DeleteStep | PatchStep | FinalizeNamespace
StepRunner = Callable[[Step, int], None]
"""A function that performs one step. Raises StoreError for a refusal that no concurrent write explains."""
