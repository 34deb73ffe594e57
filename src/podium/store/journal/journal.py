"""What is kept of a store beyond the process, and how a store begins with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from podium.api.meta import Raw
from podium.api.reading import read
from podium.store.api_resources import APIResources
from podium.store.definitions.definition import KIND
from podium.store.definitions.definitions import register
from podium.store.identities import Identities
from podium.store.log.watch_event import WatchEvent
from podium.store.log.watch_log import WatchLog
from podium.store.revisions import Recorder, Revisions
from podium.store.stored import Stored

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Saved:
    """A state of the objects, at `version`, and what was written since; each object with the name of its kind.

    `identities` is how many were drawn, and `given_uids` are those that objects brought along.
    """

    version: int
    objects: Sequence[tuple[str, Raw]]
    events: Sequence[tuple[EventType, str, Raw]]
    identities: int
    given_uids: Sequence[str]


class Journal(Recorder, Protocol):
    """Keeps every write, in order. The writes of a transaction are kept all or none."""

    def load(self) -> Saved:
        """What is kept so far."""
        ...


def revisions_of(journal: Journal | None, resources: APIResources, seed: int, log_capacity: int) -> Revisions:
    """The revisions that a journal keeps, or those of an empty store.

    Raises StoreError 404 for objects of kinds that are not in `resources`, InputError for what cannot be read.
    """
    identities = Identities(seed)
    if journal is None:
        return Revisions(WatchLog(log_capacity), identities)
    saved = journal.load()
    for uid in saved.given_uids:
        identities.give(uid)
    identities.count = saved.identities
    revisions = Revisions(WatchLog(log_capacity, saved.version), identities, journal)
    # Custom kinds are read once what defines them is.
    made = {register(resources, raw) for name, raw in saved.objects if name == KIND}
    for name, raw in saved.objects:
        revisions.put(_stored(name, raw, resources))
    for type_, name, raw in saved.events:
        if name == KIND:
            made.add(register(resources, raw))
        stored = _stored(name, raw, resources)
        revisions.replay(WatchEvent(type_, stored, revisions.of(name).get(stored.key)))
    defined = {register(resources, stored.raw) for stored in revisions.of(KIND).values()}
    for name in sorted(made - defined - {""}):
        resources.remove(name)
    return revisions


def _stored(name: str, raw: Raw, resources: APIResources) -> Stored:
    resource = resources.named(name)
    object_ = read(raw, resource.type)
    return Stored(raw, object_, int(raw["metadata"]["resourceVersion"]), resource, object_.key)
