"""What follows from deletions: dependents that go with their owners, and namespaces that are emptied."""

from __future__ import annotations

from podium.store.controllers.garbage import GarbageCollector
from podium.store.controllers.namespace_contents import NamespaceCleaner
from podium.store.store import Store


class Collectors:
    """The garbage collector and the namespace controller of a store, where there are such."""

    def __init__(
        self, store: Store, *, has_garbage_collector: bool, has_namespace_controller: bool, absent_is_gone: bool
    ) -> None:
        self._store = store
        self._garbage = GarbageCollector(store, absent_is_gone=absent_is_gone) if has_garbage_collector else None
        self._namespaces = NamespaceCleaner(store) if has_namespace_controller else None
        # The version up to which nothing is left to be collected.
        self._collected = -1

    def collect(self, now: int) -> None:
        """Do what follows from what was written since the last call."""
        while self._store.version != self._collected:
            self._collected = self._store.version
            if self._garbage is not None:
                self._garbage.collect(now)
            if self._namespaces is not None:
                self._namespaces.clean(now)
