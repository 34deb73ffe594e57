"""A node's avoid list: the controllers whose pods should rather not run there, because one was evicted from there.

It stands in an annotation of the node, as Kubernetes' AvoidPods (core/v1). Source: controlled-rescheduling.md, /evict
subresource and PreferAvoidPods. Beside the entries stands what evictions left for replacements, which is Podium's own.
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

# How long evictions are told of beside the last one of their controller, and how many at most.
_EARLIER_NS = 3_600 * 10**9
_MOST_EARLIER = 32


class PodSignature(Narrow, frozen=True, kw_only=True):
    """Which pods an entry is about: those of a controller."""

    pod_controller: OwnerReference


class AwaitedPod(Narrow, frozen=True, kw_only=True):
    """The pod that is to have the room of one that was evicted, or in place of which one comes that is to have it."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AvoidFor:
    """How long who asks for an eviction wants a node to be avoided; None is as long as the DisruptionPolicy says.

    ``until_scheduled`` is the key of a pod ("" for none) that is to have the room: the entry goes when it has a node,
    or is gone. ``until_replaced`` is a pod that is evicted with this one, and whose replacement is to have the room:
    the entry goes when that has a node, or nobody waits for it any more, and until then it keeps its controller's pods
    off altogether. Its uid may be "" while there is such a pod. Such entries go with their time too.
    """

    expire_after_ns: int | None = None
    until_scheduled: str = ""
    until_replaced: AwaitedPod | None = None


class EarlierEviction(Narrow, frozen=True, kw_only=True):
    """An eviction of one of the controller's pods from the node, before the one that the entry is for."""

    eviction_time: str
    reason: str = ""


class AvoidEntry(Narrow, frozen=True, kw_only=True):
    """One controller on a node's avoid list (core/v1 PreferAvoidPodsEntry).

    An entry without a time, as people write them, does not expire, and is the oldest. Podium's own are `expire_after`,
    where the entry has a lifetime of its own, `until_scheduled`, `until_replaced`, and `earlier`: the evictions of the
    hour before, so that whoever limits evictions by the hour can count them.
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
        """Whose pods should keep off."""
        return self.pod_signature.pod_controller

    @property
    def eviction_ns(self) -> int | None:
        """When the pod was evicted, in nanoseconds; None where nobody says."""
        return None if self.eviction_time is None else parse_time(self.eviction_time)

    @property
    def evictions(self) -> tuple[EarlierEviction, ...]:
        """All the evictions that the entry tells of, the last one last."""
        if self.eviction_time is None:
            return self.earlier
        return *self.earlier, EarlierEviction(eviction_time=self.eviction_time, reason=self.reason)

    def expiry_ns(self, expire_after_ns: int) -> int | None:
        """When the entry's time is over; `expire_after_ns` is the lifetime of those that have none of their own."""
        if self.eviction_ns is None:
            return None
        return self.eviction_ns + (expire_after_ns if self.expire_after is None else parse_duration(self.expire_after))


def avoid_entry(controller: OwnerReference, reason: str, message: str, now: int) -> AvoidEntry:
    """The entry of a controller whose pod is evicted now."""
    signature = PodSignature(pod_controller=msgspec.structs.replace(controller, controller=True))
    return AvoidEntry(pod_signature=signature, eviction_time=format_time(now), reason=reason, message=message)


def entry_in_words(entry: AvoidEntry) -> str:
    """Who is avoided, and for how long where the entry says so itself."""
    lasting = "" if entry.expire_after is None else f" for {entry.expire_after}"
    until = awaited_in_words(entry)
    return f"{entry.controller.kind} {entry.controller.name}{lasting}{until and f' until {until}'}"


def awaited_in_words(entry: AvoidEntry) -> str:
    """What an entry waits for beside its time; "" for nothing."""
    if entry.until_replaced is not None:
        return f"the replacement of pod {entry.until_replaced.key} is scheduled"
    return "" if entry.until_scheduled is None else f"pod {entry.until_scheduled.key} is scheduled"


@dataclass(frozen=True, slots=True)
class AvoidList:
    """What the annotation of a node says: who should keep off it, and what its evictions left for replacements."""

    entries: tuple[AvoidEntry, ...] = ()
    replacements: tuple[Replacement, ...] = ()

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.entries or self.replacements)

    def written(self) -> str:
        """The annotation's text."""
        return written(self.entries, self.replacements)


@lru_cache(maxsize=8_192)
def avoid_list(text: str) -> AvoidList:
    """What an annotation's text says.

    What cannot be read is no entry: those without a controller's uid, those with a time that is none, and all of a text
    that is no such list.
    """
    try:
        listed = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return AvoidList()
    if not isinstance(listed, dict):
        return AvoidList()
    entries = (_read(item) for item in _items(listed, "preferAvoidPods"))
    replacements = (_read_replacement(item) for item in _items(listed, "replacements"))
    # Each eviction leaves one.
    by_pod = {left.evicted_pod.uid: left for left in replacements if left is not None}
    return AvoidList(tuple(entry for entry in entries if entry is not None), tuple(by_pod.values()))


def avoid_entries(text: str) -> tuple[AvoidEntry, ...]:
    """The entries of an annotation's text, as they stand there."""
    return avoid_list(text).entries


def with_entry(entries: Iterable[AvoidEntry], new: AvoidEntry, max_entries: int) -> list[AvoidEntry]:
    """The entries, oldest first, with the new one in place of any of its controller.

    Of more than ``max_entries`` the oldest go; of equally old ones, those that stood first.
    """
    listed = list(entries)
    kept = [entry for entry in listed if entry.controller.uid != new.controller.uid]
    before = [entry for entry in listed if entry.controller.uid == new.controller.uid]
    return sorted((*kept, _after(before, new)), key=_age)[-max_entries:]


def unexpired(entries: Iterable[AvoidEntry], expire_after_ns: int, now: int) -> list[AvoidEntry]:
    """The entries whose time is not over yet, in their order."""
    return [entry for entry in entries if (time := entry.expiry_ns(expire_after_ns)) is None or time > now]


def next_expiry_ns(entries: Iterable[AvoidEntry], expire_after_ns: int) -> int | None:
    """When the first of the entries expires; None where none does."""
    times = (entry.expiry_ns(expire_after_ns) for entry in entries)
    return min((time for time in times if time is not None), default=None)


def written(entries: Iterable[AvoidEntry], replacements: Iterable[Replacement] = ()) -> str:
    """The annotation's text for the entries, and for the replacements where there are any."""
    lists: dict[str, list[AvoidEntry] | list[Replacement]] = {"preferAvoidPods": list(entries)}
    left = list(replacements)
    if left:
        lists["replacements"] = left
    return msgspec.json.encode(lists).decode()


def _after(before: Iterable[AvoidEntry], new: AvoidEntry) -> AvoidEntry:
    """The new entry of a controller, with the evictions that its former ones tell of."""
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
        # Fails for a time or a lifetime that is none.
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
        # Fails for a time or a lifetime that is none.
        is_over = left.expiry_ns < left.eviction_ns
    except (msgspec.ValidationError, ValueError):
        return None
    return left if left.controller.uid and left.evicted_pod.uid and not is_over else None
