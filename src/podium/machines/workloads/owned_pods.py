"""The pods of each workload.

A pod belongs to the workload that its owner reference names as the controller, by uid. Controllers upstream adopt pods
that match their selector and have no controller, and let go of pods that match no longer; here neither happens: in the
dump of a cluster such pods belong to somebody else, or to nobody on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.times import parse_time

_SECOND = 10**9


@dataclass(frozen=True)
class OwnedPod:
    """A pod with the wire form of its status, of which its reading leaves out times, restarts and exit codes."""

    pod: Pod
    status: Raw

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @cached_property
    def is_active(self) -> bool:
        """Whether it has not ended and was not deleted (IsPodActive)."""
        return not self.pod.is_terminal and not self.pod.is_terminating

    @cached_property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        condition = self.pod.status.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def created_ns(self) -> int:
        """When it was created, in whole seconds; 0 where that is not known."""
        created = self.pod.metadata.creation_timestamp
        return parse_time(created) if created else 0

    def condition_since_ns(self, type_: str) -> int:
        """Since when the condition has its status; 0, for always, where it does not say that so that it can be read."""
        for condition in self.status.get("conditions", ()):
            if condition.get("type") == type_:
                return time_or_zero(condition.get("lastTransitionTime"))
        return 0

    def available_ns(self, min_ready_seconds: int) -> int | None:
        """When it counts as available: ready, and so for some seconds; None while it is not ready (IsPodAvailable)."""
        if not self.is_ready:
            return None
        return self.condition_since_ns("Ready") + min_ready_seconds * _SECOND if min_ready_seconds else 0


@dataclass(slots=True)
class OwnerPods:
    """Pods of one owner by uid: all that exist, the active ones, and the active ones that are ready."""

    all: dict[str, OwnedPod] = field(default_factory=dict)
    active: dict[str, OwnedPod] = field(default_factory=dict)
    ready: dict[str, OwnedPod] = field(default_factory=dict)

    def put(self, owned: OwnedPod) -> None:
        """Add or replace a pod."""
        uid = owned.uid
        self.all[uid] = owned
        for group, belongs in ((self.active, owned.is_active), (self.ready, owned.is_active and owned.is_ready)):
            if belongs:
                group[uid] = owned
            else:
                group.pop(uid, None)

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        for group in (self.all, self.active, self.ready):
            group.pop(uid, None)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What has happened to an owner's pod: as it was before, and as it is now; None where it was, or is, not there."""

    owner_uid: str
    before: OwnedPod | None
    after: OwnedPod | None

    @property
    def has_stopped(self) -> bool:
        """Whether the pod was active and is no longer."""
        return self.before is not None and self.before.is_active and (self.after is None or not self.after.is_active)


def time_or_zero(text: object) -> int:
    """The time that a status gives in a field that nobody has validated; 0 for what is none."""
    try:
        return parse_time(text) if isinstance(text, str) else 0
    except ValueError:
        return 0


_NO_PODS = OwnerPods()


class OwnedPods:
    """Pods by the uid of their controller, as far as that is of one of the kinds."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds
        self._by_owner: dict[str, OwnerPods] = {}
        # By the pod's key, its uid and its owner's.
        self._places: dict[str, tuple[str, str]] = {}

    def concern(self, pod: Pod) -> bool:
        """Whether the pod, or a namesake that is known, is one of these pods."""
        if pod.metadata.owner_references:
            owner = pod.metadata.controller
            if owner is not None and owner.kind in self._kinds:
                return True
        return bool(self._places) and pod.key in self._places

    def see(self, pod: Pod, raw: Raw) -> list[Sighting]:
        """Take in a pod as it is now, in the place of a namesake."""
        owner = pod.metadata.controller
        owner_uid = owner.uid if owner is not None and owner.kind in self._kinds else ""
        place = self._places.get(pod.key)
        sightings = []
        if place is not None and place != (pod.metadata.uid, owner_uid):
            sightings += self._remove(pod.key)
        if owner_uid:
            pods = self._by_owner.setdefault(owner_uid, OwnerPods())
            owned = OwnedPod(pod, raw.get("status", {}))
            sightings.append(Sighting(owner_uid, pods.all.get(owned.uid), owned))
            pods.put(owned)
            self._places[pod.key] = owned.uid, owner_uid
        return sightings

    def lose(self, pod: Pod) -> list[Sighting]:
        """A pod is gone, and with it any namesake that is still known."""
        return self._remove(pod.key) if pod.key in self._places else []

    def of(self, owner_uid: str) -> OwnerPods:
        """The owner's pods."""
        return self._by_owner.get(owner_uid, _NO_PODS)

    def named(self, key: str) -> OwnedPod | None:
        """The pod of that key, if one of the kinds owns it."""
        place = self._places.get(key)
        return None if place is None else self._by_owner[place[1]].all[place[0]]

    def _remove(self, key: str) -> list[Sighting]:
        uid, owner_uid = self._places.pop(key)
        pods = self._by_owner[owner_uid]
        before = pods.all[uid]
        pods.remove(uid)
        if not pods.all:
            del self._by_owner[owner_uid]
        return [Sighting(owner_uid, before, None)]
