"""The objects of a cluster as they are read: one, all of a kind, pages of them, and what happens to them."""

from __future__ import annotations

from podium.store.api_resources import APIResources
from podium.store.errors import not_found
from podium.store.log.watch_event import WatchEvent
from podium.store.reads.listing import ListOptions, Page, check_version, list_page
from podium.store.reads.object_selector import ObjectSelector, read_object_selector
from podium.store.reads.watch import Watch, open_watch
from podium.store.revisions import NOTHING, Revisions
from podium.store.stored import Stored

EVERYTHING = ListOptions()


class StoredObjects:
    """Objects of the kinds in `resources`, each at its newest version, and the log of what happened to them."""

    def __init__(self, resources: APIResources, revisions: Revisions) -> None:
        self.resources = resources
        self.log = revisions.log
        """What was committed, for those who follow every write."""
        self._revisions = revisions
        self._objects = revisions.objects

    @property
    def version(self) -> int:
        """The last committed version; 0 before the first."""
        return self._revisions.version

    @property
    def oldest_version(self) -> int:
        """The version after which everything that happened is known."""
        return self.log.oldest

    def get(self, kind: str, key: str) -> Stored:
        """The object. Raises StoreError 404."""
        try:
            return self._objects[kind][key]
        except KeyError:
            raise not_found(self.resources.named(kind), key) from None

    def find(self, kind: str, key: str) -> Stored | None:
        """The object, or None."""
        return self._objects.get(kind, NOTHING).get(key)

    def objects(self, kind: str, namespace: str = "") -> list[Stored]:
        """The objects of a kind in a namespace, or for "" in all, by key. Raises StoreError 404 for an unknown kind."""
        self.resources.named(kind)
        return self._revisions.in_order(kind, namespace)

    def changes(self, kind: str) -> int:
        """How often an object of a kind has come, changed or gone, what was taken back counted twice."""
        return self._revisions.changes(kind)

    def count(self) -> int:
        """How many objects there are, of all kinds."""
        return sum(len(self._revisions.of(kind)) for kind in self._revisions.kinds())

    def check_version(self, text: str) -> None:
        """Raise StoreError 400 for what is no version, 504 for one to come."""
        check_version(self._revisions, text)

    def page(self, kind: str, namespace: str = "", options: ListOptions = EVERYTHING) -> Page:
        """A page of a kind's objects, of one namespace or for "" of all. Raises StoreError as `list_page` does."""
        return list_page(self._revisions, self._selector(kind, namespace, options), options)

    def watch(self, kind: str, namespace: str = "", options: ListOptions = EVERYTHING) -> Watch:
        """What happens to a kind's objects from now or a version on. Raises StoreError as `open_watch` does."""
        return open_watch(self._revisions, self._selector(kind, namespace, options), options)

    def events_since(self, version: int, kind: str = "") -> list[WatchEvent]:
        """What was committed after `version`, of one kind or for "" of all, in order.

        Raises StoreError 410 and 504 as `WatchLog.check` does.
        """
        return self.log.since(version, kind)

    def compact(self, version: int) -> None:
        """Forget what happened up to `version`: lists and watches of earlier versions are answered with 410."""
        self.log.compact(version)

    def _selector(self, kind: str, namespace: str, options: ListOptions) -> ObjectSelector:
        return read_object_selector(
            self.resources.named(kind), namespace, options.label_selector, options.field_selector
        )
