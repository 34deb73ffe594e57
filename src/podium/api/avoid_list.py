"""A node's avoid list: controllers whose pods should preferably not run there, because one was evicted from there.

It is in an annotation of the node, like Kubernetes' AvoidPods (core/v1). Source: controlled-rescheduling.md, /evict
subresource and PreferAvoidPods. Besides the entries it holds the eviction hints for replacements, which are Podium's
own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.meta import Narrow, OwnerReference
from podium.api.replacements import Replacement
from podium.api.times import format_time, parse_duration, parse_time

PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""The annotation of a node that holds its avoid list."""

# How long an entry keeps earlier evictions of its controller, and their maximum number.
_EARLIER_NS = 3_600 * 10**9
_MOST_EARLIER = 32


class PodSignature(Narrow, frozen=True, kw_only=True):
    """The pods that an entry concerns: those of a controller."""

    pod_controller: OwnerReference


class AwaitedPod(Narrow, frozen=True, kw_only=True):
    """The pod that the room of an evicted pod is reserved for, or whose replacement it is reserved for."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AvoidFor:
    """How long an evictor wants a node to be avoided; None means as long as the DisruptionPolicy says.

    ``until_scheduled`` is the key of a pod ("" for none) that the room is reserved for: the entry is removed when that
    pod has a node or is gone. ``until_replaced`` is a pod that is evicted together with this one, and whose replacement
    gets the room: the entry is removed when the replacement has a node or is no longer awaited, and until then it
    excludes its controller's pods entirely. Its uid may be "" while that pod exists. Such entries also expire.
    """

    expire_after_ns: int | None = None
    until_scheduled: str = ""
    until_replaced: AwaitedPod | None = None


class EarlierEviction(Narrow, frozen=True, kw_only=True):
    """An eviction of one of the controller's pods from the node, before the one that the entry is for."""

    eviction_time: str
    reason: str = ""


class AvoidEntry(Narrow, frozen=True, kw_only=True):
    """A controller on a node's avoid list (core/v1 PreferAvoidPodsEntry).

    An entry without a time, as users write it, does not expire and counts as the oldest. Podium adds these fields:
    `expire_after`, if the entry has its own lifetime, `until_scheduled`, `until_replaced`, and `earlier`: the evictions
    of the hour before, so that hourly limits can count them.
    """

    pod_signature: PodSignature
    eviction_time: str | None = None
    reason: str = ""
    message: str = ""
    expire_after: str | None = None
    until_scheduled: AwaitedPod | None = None
    until_replaced: AwaitedPod | None = None
    earlier: tuple[EarlierEviction, ...] = ()

    @property
    def controller(self) -> OwnerReference:
        """The controller whose pods should avoid the node."""
        return self.pod_signature.pod_controller

    @property
    def eviction_ns(self) -> int | None:
        """The time of the eviction in nanoseconds; None if it is not recorded."""
        return None if self.eviction_time is None else parse_time(self.eviction_time)

    @property
    def evictions(self) -> tuple[EarlierEviction, ...]:
        """All evictions that the entry records, the last one last."""
        if self.eviction_time is None:
            return self.earlier
        return *self.earlier, EarlierEviction(eviction_time=self.eviction_time, reason=self.reason)

    def expiry_ns(self, expire_after_ns: int) -> int | None:
        """Return the time when the entry expires; `expire_after_ns` is the default lifetime."""
        if self.eviction_ns is None:
            return None
        return self.eviction_ns + (expire_after_ns if self.expire_after is None else parse_duration(self.expire_after))


def avoid_entry(controller: OwnerReference, reason: str, message: str, now: int) -> AvoidEntry:
    """Return the entry of a controller whose pod is evicted now."""
    signature = PodSignature(pod_controller=msgspec.structs.replace(controller, controller=True))
    return AvoidEntry(pod_signature=signature, eviction_time=format_time(now), reason=reason, message=message)


def entry_in_words(entry: AvoidEntry) -> str:
    """Return a text that names the avoided controller, and the entry's own lifetime if it has one."""
    lasting = "" if entry.expire_after is None else f" for {entry.expire_after}"
    until = awaited_in_words(entry)
    return f"{entry.controller.kind} {entry.controller.name}{lasting}{until and f' until {until}'}"


def awaited_in_words(entry: AvoidEntry) -> str:
    """Return a text for what an entry waits for besides its expiry; "" for nothing."""
    if entry.until_replaced is not None:
        return f"the replacement of pod {entry.until_replaced.key} is scheduled"
    return "" if entry.until_scheduled is None else f"pod {entry.until_scheduled.key} is scheduled"


@dataclass(frozen=True, slots=True)
class AvoidList:
    """The content of the annotation: the controllers to avoid, and the hints for replacements."""

    entries: tuple[AvoidEntry, ...] = ()
    replacements: tuple[Replacement, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the list has any content."""
        return bool(self.entries or self.replacements)

    def written(self) -> str:
        """Return the annotation's text."""
        return written(self.entries, self.replacements)


@lru_cache(maxsize=8_192)
def avoid_list(text: str) -> AvoidList:
    """Return the content of an annotation's text.

    Malformed entries are ignored: those without a controller's uid, those with an invalid time, and the whole text if
    it is not such a list.
    """
    try:
        listed = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return AvoidList()
    if not isinstance(listed, dict):
        return AvoidList()
    entries = (_read(item) for item in _items(listed, "preferAvoidPods"))
    replacements = (_read_replacement(item) for item in _items(listed, "replacements"))
    # Each eviction records one.
    by_pod = {left.evicted_pod.uid: left for left in replacements if left is not None}
    return AvoidList(tuple(entry for entry in entries if entry is not None), tuple(by_pod.values()))


def avoid_entries(text: str) -> tuple[AvoidEntry, ...]:
    """Return the entries of an annotation's text, in order."""
    return avoid_list(text).entries


def with_entry(entries: Iterable[AvoidEntry], new: AvoidEntry, max_entries: int) -> list[AvoidEntry]:
    """Return the entries, oldest first, with the new one replacing any of its controller.

    Beyond ``max_entries`` the oldest are dropped; of equally old ones, the first in order.
    """
    listed = list(entries)
    kept = [entry for entry in listed if entry.controller.uid != new.controller.uid]
    before = [entry for entry in listed if entry.controller.uid == new.controller.uid]
    return sorted((*kept, _after(before, new)), key=_age)[-max_entries:]


def unexpired(entries: Iterable[AvoidEntry], expire_after_ns: int, now: int) -> list[AvoidEntry]:
    """Return the entries that have not expired, in order."""
    return [entry for entry in entries if (time := entry.expiry_ns(expire_after_ns)) is None or time > now]


def next_expiry_ns(entries: Iterable[AvoidEntry], expire_after_ns: int) -> int | None:
    """Return the time when the first entry expires; None if none does."""
    times = (entry.expiry_ns(expire_after_ns) for entry in entries)
    return min((time for time in times if time is not None), default=None)


def written(entries: Iterable[AvoidEntry], replacements: Iterable[Replacement] = ()) -> str:
    """Return the annotation's text for the entries, and for the replacements if there are any."""
    lists: dict[str, list[AvoidEntry] | list[Replacement]] = {"preferAvoidPods": list(entries)}
    left = list(replacements)
    if left:
        lists["replacements"] = left
    return msgspec.json.encode(lists).decode()


def _after(before: Iterable[AvoidEntry], new: AvoidEntry) -> AvoidEntry:
    """Return the new entry of a controller with the evictions that its former entries record."""
    now = new.eviction_ns
    if now is None:
        return new
    former = [eviction for entry in before for eviction in entry.evictions]
    earlier = [eviction for eviction in former if parse_time(eviction.eviction_time) > now - _EARLIER_NS]
    return msgspec.structs.replace(new, earlier=tuple(earlier[-_MOST_EARLIER:]))


def _age(entry: AvoidEntry) -> tuple[bool, int]:
    time = entry.eviction_ns
    return time is not None, time or 0


def _read(item: object) -> AvoidEntry | None:
    try:
        entry = msgspec.convert(item, AvoidEntry)
        # Raises ValueError for an invalid time or lifetime.
        entry.expiry_ns(0)
        for eviction in entry.earlier:
            parse_time(eviction.eviction_time)
        if any(awaited is not None and not awaited.uid for awaited in (entry.until_scheduled, entry.until_replaced)):
            return None
    except (msgspec.ValidationError, ValueError):
        return None
    return entry if entry.controller.uid else None


def _items(listed: dict[str, Any], name: str) -> list[object]:
    items = listed.get(name)
    return items if isinstance(items, list) else []


def _read_replacement(item: object) -> Replacement | None:
    try:
        left = msgspec.convert(item, Replacement)
        # Raises ValueError for an invalid time or lifetime.
        is_over = left.expiry_ns < left.eviction_ns
    except (msgspec.ValidationError, ValueError):
        return None
    return left if left.controller.uid and left.evicted_pod.uid and not is_over else None
