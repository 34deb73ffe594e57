"""How objects are created, and what some of them bring along."""

from __future__ import annotations

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes, Raw
from podium.api.times import parse_time
from podium.store.admission.admission_control import Admission
from podium.store.admission.priority_levels import missing_classes
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.commits import Commits
from podium.store.definitions.definition import KIND as DEFINITION
from podium.store.definitions.definitions import Definitions
from podium.store.errors import already_exists, invalid
from podium.store.revisions import NOTHING, Revisions
from podium.store.stored import Stored
from podium.store.verbs.creation import as_new, read_with_metadata, with_first_status, with_metadata, with_uid
from podium.store.verbs.namespaces import account_of, as_new_namespace, check_namespace
from podium.store.verbs.readings import decoded, rereading, shared_spec_of
from podium.store.verbs.replacement import key_of

# The kinds of which an object that is created brings others along, or a kind.
_BRINGING = frozenset(("DisruptionPolicy", "Namespace", DEFINITION))


class Creations(Commits):
    """Objects that are read, written and created; with ``require_namespaces``, in existing namespaces alone."""

    def __init__(self, resources: APIResources, revisions: Revisions, *, require_namespaces: bool) -> None:
        super().__init__(resources, revisions)
        self._admission = Admission(revisions)
        self._definitions = Definitions(revisions, resources)
        self._definitions.follow()
        self._require_namespaces = require_namespaces

    def create(
        self,
        raw: Raw,
        *,
        now: int,
        reading: Kubernetes | None = None,
        is_new: bool = False,
        was_there: bool = False,
    ) -> Stored:
        """Add an object.

        Objects come from dumps too: a uid, times and a status that are given stay, but for one that `is_new`, as
        clients of the API create them. One with a uid, or that `was_there`, was in a cluster before: budgets that are
        stricter than they may be are let in then. `reading` is the typed reading of `raw` where the caller has it. A
        DisruptionPolicy brings along the PriorityClasses that its levels lack. Raises StoreError 409 for a key that is
        taken, and what admission and validation raise.
        """
        resource = self.resources.of(raw)
        if resource.name in _BRINGING:
            with self.transaction():
                stored = self._create(resource, raw, now, reading, is_new=is_new, was_there=was_there)
                self._bring_along(stored, now, is_new=is_new)
                return stored
        identities = self._revisions.identities
        mark = identities.mark()
        try:
            return self._create(resource, raw, now, reading, is_new=is_new, was_there=was_there)
        except BaseException:
            identities.rewind(mark)
            raise

    def _create(
        self, resource: APIResource, raw: Raw, now: int, reading: Kubernetes | None, *, is_new: bool, was_there: bool
    ) -> Stored:
        """Add the object alone. The identities that are drawn for it remain so, whatever becomes of it."""
        named = with_metadata(as_new(raw, resource) if is_new else raw, resource, now, self._free_name)
        is_special = resource.is_custom or resource.name in _BRINGING
        if is_special:
            named = self._shaped(resource, named, is_new=is_new)
        shared = shared_spec_of(resource, named)
        if reading is None or is_new:
            object_ = decoded(resource, named, shared, is_new=is_new)
        elif resource.is_custom:
            object_ = rereading(resource, reading, raw, named)
        else:
            object_ = read_with_metadata(reading, named)
        if is_special:
            named = self._judged(resource, named, now)
        key, uid = object_.key, object_.metadata.uid
        if resource.namespaced:
            namespace, must_exist = object_.metadata.namespace, self._require_namespaces
            check_namespace(self._revisions, resource, namespace, key, must_exist=must_exist)
        if key in self._objects.get(resource.name, NOTHING):
            raise already_exists(resource, key)
        raw, object_ = self._admission.admit(resource, named, object_, shared, was_there=was_there)
        if is_new:
            raw, object_ = with_first_status(raw, object_)
        if not uid:
            raw, object_ = with_uid(raw, object_, self._revisions.identities.uid())
        elif not self._revisions.identities.give(uid):
            raise invalid(resource, key, f"the uid {uid} was used before", "metadata.uid")
        return self.commit(resource, None, raw, object_)

    def _shaped(self, resource: APIResource, named: Raw, *, is_new: bool) -> Raw:
        """An object that is to be created, with what follows from its kind alone."""
        if resource.is_custom:
            self._definitions.check_creation(resource)
            return self._definitions.shaped(resource, named)
        return as_new_namespace(named) if is_new and resource.name == "Namespace" else named

    def _judged(self, resource: APIResource, named: Raw, now: int) -> Raw:
        """The same with what its definition, or what it defines, makes of it. Raises StoreError for what is wrong."""
        if resource.is_custom:
            self._definitions.check(resource, named, None)
        elif resource.name == DEFINITION:
            return self._definitions.judged(resource, named, None, now)
        return named

    def _bring_along(self, stored: Stored, now: int, *, is_new: bool) -> None:
        """Create what an object that was created brings along, and serve the kind that it defines."""
        self._complete_levels(stored)
        if is_new and stored.kind == "Namespace":
            self.create(account_of(stored.key), now=now, is_new=True)
        if stored.kind == DEFINITION:
            self._definitions.follow()

    def _complete_levels(self, stored: Stored) -> None:
        """Create the PriorityClasses that a DisruptionPolicy lacks."""
        if isinstance(stored.object, DisruptionPolicy):
            created = parse_time(stored.raw["metadata"]["creationTimestamp"])
            for raw in missing_classes(stored.object, self._admission.priority_classes()):
                self.create(raw, now=created)

    def _free_name(self, kind: str, namespace: str, base: str) -> str:
        while True:
            name = self._revisions.identities.name(base)
            if self.find(kind, key_of({"namespace": namespace, "name": name})) is None:
                return name
