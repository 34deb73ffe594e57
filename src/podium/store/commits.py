"""How a write becomes a version: alone or with others, with who owns its fields, and with what quotas count of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from podium.api.meta import Kubernetes, Raw
from podium.api.quota import ResourceQuota
from podium.store.admission.quota import Quotas
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.ownership.writer import Writer
from podium.store.revisions import Revisions
from podium.store.stored import Stored
from podium.store.stored_objects import StoredObjects
from podium.store.verbs.deletion import check_preconditions, deletion_metadata, is_due
from podium.store.verbs.namespaces import is_held
from podium.store.verbs.readings import rereading
from podium.store.verbs.replacement import identity


class Commits(StoredObjects):
    """Objects that are read and written; which writes there are, and what they may be, the store says.

    It says by `_let_go` too what follows when an object of a custom kind is gone.
    """

    def __init__(self, resources: APIResources, revisions: Revisions) -> None:
        super().__init__(resources, revisions)
        self._quotas = Quotas(revisions)
        self._writer: Writer | None = None

    def transaction(self, *, dry_run: bool = False) -> AbstractContextManager[None]:
        """Let the writes within become known together, or none of them after an error.

        A dry run makes them, so that they raise and return what they would, and leaves no trace of them.
        """
        return self._revisions.transaction(dry_run=dry_run)

    @contextmanager
    def written_by(self, writer: Writer) -> Iterator[None]:
        """Keep account of who owns the fields of the object that is written within."""
        self._writer = writer
        try:
            yield
        finally:
            self._writer = None

    def commit(self, resource: APIResource, previous: Stored | None, raw: Raw, object_: Kubernetes) -> Stored:
        """Write `raw`, whose reading is `object_`, at the next version; the previous object when nothing changes."""
        metadata, is_gone = raw["metadata"], False
        if "deletionTimestamp" in metadata:
            is_gone = previous is not None and is_due(metadata) and not is_held(resource, raw)
        if self._writer is not None and self._writer.writes(resource):
            raw = self._writer.recorded(None if previous is None else previous.raw, raw)
        if resource.type is ResourceQuota and isinstance(object_, ResourceQuota) and not is_gone:
            counted = self._quotas.counted(Stored(raw, object_, 0, resource, object_.key), object_)
            raw, object_ = counted, rereading(resource, object_, raw, counted)
        if previous is not None and not is_gone and raw == previous.raw:
            return previous
        if not self._objects.get("ResourceQuota") and not (is_gone and resource.is_custom):
            return self._revisions.write(resource, previous, raw, object_, is_gone=is_gone)
        with self.transaction():
            self._quotas.charge(previous, None if is_gone else Stored(raw, object_, 0, resource, object_.key))
            stored = self._revisions.write(resource, previous, raw, object_, is_gone=is_gone)
            if is_gone and resource.is_custom:
                self._let_go(resource)
            return stored

    def terminate(self, previous: Stored, raw: Raw, grace_seconds: int | None, now: int) -> Stored | None:
        """Write `raw` as deleted; None where it is gone with that."""
        metadata = deletion_metadata(previous.object, raw["metadata"], grace_seconds, now)
        after = {**raw, "metadata": metadata}
        object_ = rereading(previous.resource, previous.object, previous.raw, after)
        committed = self.commit(previous.resource, previous, after, object_)
        return self.find(previous.kind, previous.key) and committed

    def _expect(self, kind: str, key: str, uid: str, resource_version: str = "") -> Stored:
        stored = self.get(kind, key)
        if uid or resource_version:
            check_preconditions(stored, uid, resource_version)
        return stored

    def _precondition(self, raw: Raw) -> Stored:
        resource = self.resources.of(raw)
        return self._expect(resource.name, *identity(resource, raw))

    def _let_go(self, resource: APIResource) -> None:
        """An object of a custom kind is gone."""
        raise NotImplementedError
