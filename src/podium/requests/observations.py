"""What machines are told of the events of watches, and of lists: the one place where these become observations.

Source: k8s.io/client-go/tools/cache (reflector, DeltaFIFO).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.reading import read
from podium.machines.concerns import ADDED, ANY, ASTRAY, CLAIMING, DISRUPTED, ENDING, EVERY, OWNED, PLACED
from podium.machines.observations import Changed, Gone
from podium.store.api_resource import APIResource
from podium.store.log.watch_event import WatchEvent
from podium.store.stored import Stored

Seen = Changed | Gone


def observation_of(event: WatchEvent) -> Seen:
    """A write as whoever sees all of them at once is told of it."""
    stored = event.stored
    return Gone(stored.object) if event.type == "DELETED" else Changed(stored.object, stored.raw)


def aspects_of(event: WatchEvent, is_node: Callable[[str], bool]) -> int:
    """What a write is about, as far as that decides whom it concerns; ``is_node`` tells whether there is a node."""
    pod, previous = event.stored.object, event.previous
    if not isinstance(pod, Pod):
        return ANY | ADDED if previous is None else ANY
    before, metadata = previous.object if previous is not None else None, pod.metadata
    aspects = EVERY if before is not None else EVERY | ADDED
    if metadata.owner_references or (before is not None and before.metadata.owner_references):
        aspects |= OWNED
    if metadata.deletion_timestamp is not None:
        aspects |= ENDING | PLACED
    if node_name := pod.spec.node_name:
        aspects |= PLACED
        if (not isinstance(before, Pod) or before.spec.node_name != node_name) and not is_node(node_name):
            aspects |= ASTRAY
    if pod.spec.resource_claims or any(volume.ephemeral is not None for volume in pod.spec.volumes):
        aspects |= CLAIMING
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return aspects | DISRUPTED
    return aspects


def first_seen(stored: Stored) -> Changed:
    """An object as whoever begins to watch is told of it."""
    return Changed(stored.object, stored.raw)


def received(resource: APIResource, raw: Raw) -> Stored:
    """An object that comes in its wire form, from a list or a watch. Raises InputError for what cannot be read."""
    object_ = read(raw, resource.type)
    return Stored(raw, object_, int(object_.metadata.resource_version or 0), resource, object_.key)


def arrived(known: MutableMapping[str, Stored], type_: str, stored: Stored) -> Seen:
    """What a watcher is told of an event of the watch, to whom the ``known`` objects were shown, by key.

    What is gone is what it was shown, though a namesake may have come since.
    """
    key = stored.key
    if type_ == "DELETED":
        shown = known.pop(key, stored)
        return Gone(stored.object if shown.uid == stored.uid else shown.object)
    known[key] = stored
    return Changed(stored.object, stored.raw)


def differences(known: Mapping[str, Stored], there: Mapping[str, Stored]) -> list[tuple[str, Stored]]:
    """The events that a list stands for, after a watch that was broken: first what is gone, then what has changed.

    Both by key. A namesake of what is gone is told as a change.
    """
    gone = [("DELETED", stored) for key, stored in sorted(known.items()) if key not in there]
    return gone + [
        ("MODIFIED", stored)
        for key, stored in sorted(there.items())
        if key not in known or (known[key].uid, known[key].version) != (stored.uid, stored.version)
    ]
