"""What follows from deletions: dependents that go with their owners, and namespaces that are emptied."""

from __future__ import annotations

import logging

from podium.machines.parts.deadlines import Deadlines
from podium.requests.collecting import by_requests
from podium.requests.conversation import Ask
from podium.store.controllers.garbage import GarbageCollector
from podium.store.controllers.namespace_contents import NamespaceCleaner
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored

_LOG = logging.getLogger(__name__)
_TRIED_AGAIN_NS = 60 * 10**9


class Collectors:
    """The garbage collector and the namespace controller of a store, where there are such.

    What is refused, since it would break a rule that somebody has set meanwhile, is tried again after a minute.
    """

    def __init__(
        self,
        store: Store,
        ask: Ask,
        *,
        has_garbage_collector: bool,
        has_namespace_controller: bool,
        absent_is_gone: bool,
    ) -> None:
        self._store = store
        carry_out = by_requests(ask)
        garbage = GarbageCollector(store, carry_out, absent_is_gone=absent_is_gone) if has_garbage_collector else None
        self._garbage = garbage
        self._namespaces = NamespaceCleaner(store, carry_out) if has_namespace_controller else None
        # The version up to which nothing is left to be collected.
        self._collected = -1
        self._refused: list[Stored] = []
        # By uid, the objects that are looked at again; and by name, the namespaces.
        self._objects: Deadlines[str] = Deadlines()
        self._spaces: Deadlines[str] = Deadlines()

    def collect(self, now: int) -> None:
        """Do what follows from what was written since the last call, and what is to be tried again."""
        has_more = self._look_again(now)
        while has_more or self._store.version != self._collected:
            has_more = False
            self._collected = self._store.version
            if self._garbage is not None:
                self._garbage.collect(now, self._refuse)
                for stored in self._take_refused():
                    self._objects.set(stored.uid, now + _TRIED_AGAIN_NS)
            if self._namespaces is not None:
                self._namespaces.clean(now, self._refuse)
                for stored in self._take_refused():
                    self._spaces.set(stored.object.metadata.namespace, now + _TRIED_AGAIN_NS)

    def next_time(self) -> int | None:
        """When something is tried again, None for nothing."""
        times = [time for time in (self._objects.next_time(), self._spaces.next_time()) if time is not None]
        return min(times, default=None)

    def _look_again(self, now: int) -> bool:
        found = False
        while (uid := self._objects.take_due(now)) is not None:
            found = True
            if self._garbage is not None:
                self._garbage.look_again(uid)
        while (name := self._spaces.take_due(now)) is not None:
            found = True
            if self._namespaces is not None:
                self._namespaces.look_again(name)
        return found

    def _refuse(self, stored: Stored, error: StoreError) -> None:
        self._refused.append(stored)
        _LOG.warning("%s %s is to be collected, which is refused: %s", stored.kind, stored.key, error.message)

    def _take_refused(self) -> list[Stored]:
        refused, self._refused = self._refused, []
        return refused
