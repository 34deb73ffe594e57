"""The conversion of watch events and lists into the observations of controllers.

Source: k8s.io/client-go/tools/cache (reflector, DeltaFIFO).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_group import GROUP_LABEL
from podium.api.reading import read
from podium.controllers import controller as aspect
from podium.controllers.observations import Changed, Deleted
from podium.store import api_resources, listing, watch_log
from podium.store.stored import Stored

ObjectObservation = Changed | Deleted


def observation_of(event: watch_log.WatchEvent) -> ObjectObservation:
    """Return the observation of a write for observers that see every write immediately."""
    stored = event.stored
    return Deleted(stored.object) if event.type == "DELETED" else Changed(stored.object, stored)


def aspects_of(event: watch_log.WatchEvent, store: listing.ReadableStore) -> int:
    """Return the aspects of a write to a store, which select its subscribers."""
    pod, before = event.stored.object, None if event.previous is None else event.previous.object
    both = (pod,) if before is None else (pod, before)
    aspects = aspect.EVERY if before is not None else aspect.EVERY | aspect.ADDED
    if isinstance(pod, Node):
        return aspects | aspect.AVOIDED * any(PREFER_AVOID_PODS in one.metadata.annotations for one in both)
    if not isinstance(pod, Pod):
        return aspects | aspect.ANY
    for shown in both:
        owner = shown.metadata.controller if shown.metadata.owner_references else None
        aspects |= aspect.UNOWNED if owner is None else aspect.OWNER_ASPECTS.get(owner.kind, 0)
    if pod.is_terminating:
        aspects |= aspect.PLACED if pod.spec.node_name else aspect.PLACED | aspect.UNPLACED
    if node_name := pod.spec.node_name:
        aspects |= aspect.PLACED
        is_placed_now = not isinstance(before, Pod) or before.spec.node_name != node_name
        if is_placed_now and store.find("Node", node_name) is None:
            aspects |= aspect.ON_MISSING_NODE
    of_group = pod.spec.scheduling_group is not None or GROUP_LABEL in pod.metadata.labels
    claiming = (one for one in pod.spec.volumes if one.ephemeral is not None or one.persistent_volume_claim is not None)
    if of_group or pod.spec.resource_claims or any(claiming):
        aspects |= aspect.CLAIMING
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return aspects | aspect.DISRUPTED
    return aspects


def first_seen(stored: Stored) -> Changed:
    """Return the observation of an object for a new watcher."""
    return Changed(stored.object, stored)


def received(resource: api_resources.APIResource, raw: Raw) -> Stored:
    """Return an object from its wire form in a list or a watch. Raises InputError for an unreadable object."""
    object_ = read(raw, resource.type)
    return Stored(raw, object_, int(object_.metadata.resource_version or 0), resource, object_.key)


def arrived(known: MutableMapping[str, Stored], type_: str, stored: Stored) -> ObjectObservation:
    """Return the observation of a watch event for a watcher that has seen the ``known`` objects, by key.

    A deletion reports the object that the watcher knew, even if an object of the same name replaced it meanwhile.
    """
    key = stored.key
    if type_ == "DELETED":
        shown = known.pop(key, stored)
        return Deleted(stored.object if shown.uid == stored.uid else shown.object)
    known[key] = stored
    return Changed(stored.object, stored)


def differences(known: Mapping[str, Stored], there: Mapping[str, Stored]) -> list[tuple[str, Stored]]:
    """Return the events that a list implies after an interrupted watch: deletions first, then changes.

    Both are in key order. An object replaced by another of the same name counts as changed.
    """
    gone = [("DELETED", stored) for key, stored in sorted(known.items()) if key not in there]
    return gone + [
        ("MODIFIED", stored)
        for key, stored in sorted(there.items())
        if key not in known or (known[key].uid, known[key].version) != (stored.uid, stored.version)
    ]
