"""A node's avoid list: controllers whose pods should preferably not run there, because one was evicted from there.

It is in an annotation of the node, like Kubernetes' AvoidPods (core/v1). Source: controlled-rescheduling.md, /evict
subresource and PreferAvoidPods. Besides the entries it holds the eviction hints for replacements, which are Podium's
own: a replacement is scheduled as soon as it is created, so its hints must be written before, with the eviction ("to
force the evicted pod to the front of the scheduler queue, independently of its priority"). The API server writes all
that with the eviction; with an API server that does not support it, the evictor does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import msgspec

from podium.api.disruption_policy import AvoidLists
from podium.api.meta import APIStruct, Kubernetes, OwnerReference, list_at
from podium.api.pod import Pod
from podium.api.times import SECOND, format_duration, format_time, parse_duration, parse_time

Listed = TypeVar("Listed", "AvoidEntry", "Replacement")

PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""The annotation of a node that holds its avoid list."""

# How long an entry keeps earlier evictions of its controller, and their maximum number.
_EARLIER_NS = 3_600 * 10**9
_MOST_EARLIER = 32


class PodSignature(APIStruct, frozen=True, kw_only=True):
    """The pods that an entry concerns: those of a controller."""

    pod_controller: OwnerReference


class AwaitedPod(APIStruct, frozen=True, kw_only=True):
    """The pod that the room of an evicted pod is reserved for, or whose replacement it is reserved for."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionHints:
    """The hints that an evictor requests: whether and how long to avoid the node, and for the replacement.

    ``avoid_for_ns`` is the period for which the node is avoided; None means that of the DisruptionPolicy.
    ``until_scheduled`` is the key of a pod ("" for none) that the room is reserved for: the entry is removed when that
    pod has a node or is gone. ``until_replaced`` is a pod that is evicted together with this one, and whose replacement
    gets the room: the entry is removed when the replacement has a node or is no longer awaited, and until then it
    excludes its controller's pods entirely. Its uid may be "" while that pod exists. Such entries also expire.

    ``first`` moves the replacement to the front of the scheduling queue, regardless of its priority. Its priority does
    not change: it cannot preempt more pods than otherwise. ``node_name`` is a node that is expected to have room (""
    for none): the scheduler tries that node first, and reserves nothing there. With ``is_awaited`` the replacement gets
    nothing, but its arrival is recorded for avoid list entries that last until then.
    """

    avoid_node: bool = False
    avoid_for_ns: int | None = None
    until_scheduled: str = ""
    until_replaced: AwaitedPod | None = None
    first: bool = False
    node_name: str = ""
    is_awaited: bool = False

    def __bool__(self) -> bool:
        return self.avoid_node or self.is_about_replacement

    @property
    def is_about_replacement(self) -> bool:
        """Return whether there are hints for the replacement."""
        return self.first or bool(self.node_name) or self.is_awaited

    def with_replaced_uid(self, uid: str) -> EvictionHints:
        """Return the hints with the uid of the pod whose replacement is awaited, if there is one."""
        awaited = self.until_replaced
        return self if awaited is None else replace(self, until_replaced=msgspec.structs.replace(awaited, uid=uid))


class EarlierEviction(APIStruct, frozen=True, kw_only=True):
    """An eviction of one of the controller's pods from the node, before the one that the entry is for."""

    eviction_time: str
    reason: str = ""


class AvoidEntry(APIStruct, frozen=True, kw_only=True):
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
    def is_usable(self) -> bool:
        """Return whether all objects that it names have uids. Raises ValueError for an invalid time or lifetime."""
        self.expiry_ns(0)
        for eviction in self.earlier:
            parse_time(eviction.eviction_time)
        awaited = (self.until_scheduled, self.until_replaced)
        return bool(self.controller.uid) and all(pod is None or pod.uid for pod in awaited)

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
    """Return a text about the event that ends an entry before its expiry; "" for nothing."""
    if entry.until_replaced is not None:
        return f"the replacement of pod {entry.until_replaced.key} is scheduled"
    return "" if entry.until_scheduled is None else f"pod {entry.until_scheduled.key} is scheduled"


class AvoidList(msgspec.Struct, frozen=True):
    """The content of the annotation: the controllers to avoid, and the hints for replacements."""

    entries: tuple[AvoidEntry, ...] = ()
    replacements: tuple[Replacement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries or self.replacements)

    def written(self) -> str:
        lists: dict[str, tuple[AvoidEntry, ...] | tuple[Replacement, ...]] = {"preferAvoidPods": self.entries}
        if self.replacements:
            lists["replacements"] = self.replacements
        return msgspec.json.encode(lists).decode()


def avoid_list_text(node: Kubernetes) -> str:
    """Return the text of a node's avoid list; "" for none."""
    return node.metadata.annotations.get(PREFER_AVOID_PODS, "")


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
    # Each eviction records one replacement.
    by_pod = {left.evicted_pod.uid: left for left in _usable(list_at(listed, "replacements"), Replacement)}
    return AvoidList(tuple(_usable(list_at(listed, "preferAvoidPods"), AvoidEntry)), tuple(by_pod.values()))


def _usable(items: Iterable[object], type_: type[Listed]) -> Iterator[Listed]:
    for item in items:
        try:
            found = msgspec.convert(item, type_)
            if found.is_usable:
                yield found
        except (msgspec.ValidationError, ValueError):
            continue


def with_entry(entries: Iterable[AvoidEntry], new: AvoidEntry, max_entries: int) -> list[AvoidEntry]:
    """Return the entries, oldest first, with the new one replacing any of its controller, whose evictions it keeps.

    Beyond ``max_entries`` the oldest are dropped; of equally old ones, the first in order.
    """
    listed, now = list(entries), new.eviction_ns
    kept = [entry for entry in listed if entry.controller.uid != new.controller.uid]
    if now is not None:
        before = [entry for entry in listed if entry.controller.uid == new.controller.uid]
        former = [eviction for entry in before for eviction in entry.evictions]
        earlier = [eviction for eviction in former if parse_time(eviction.eviction_time) > now - _EARLIER_NS]
        new = msgspec.structs.replace(new, earlier=tuple(earlier[-_MOST_EARLIER:]))
    return sorted((*kept, new), key=lambda entry: -1 if entry.eviction_ns is None else entry.eviction_ns)[-max_entries:]


def unexpired(entries: Iterable[AvoidEntry], expire_after_ns: int, now: int) -> list[AvoidEntry]:
    """Return the entries that have not expired, in order."""
    return [entry for entry in entries if (time := entry.expiry_ns(expire_after_ns)) is None or time > now]


_WAIT_NS = 600 * SECOND
# Longer grace periods are not waited for.
_MAX_GRACE_SECONDS = 86_400
# The kinds whose replacement pods have the same name.
_KEEPS_NAMES = frozenset(("StatefulSet",))


class EvictedPod(APIStruct, frozen=True, kw_only=True):
    """The evicted pod."""

    name: str
    uid: str


class Replacement(APIStruct, frozen=True, kw_only=True):
    """The hints of one eviction for one pod: the first that the controller creates afterwards.

    It must be created within ``expire_after`` of the eviction; the hints are used up when it has a node. The
    replacement of a StatefulSet's pod has the same name.
    """

    controller: OwnerReference = msgspec.field(name="podController")
    evicted_pod: EvictedPod
    eviction_time: str
    expire_after: str
    first: bool = False
    node_name: str = ""

    @property
    def is_usable(self) -> bool:
        """Return whether it has uids, and did not expire before it began. Raises ValueError for an invalid time."""
        return self.expiry_ns >= self.eviction_ns and bool(self.controller.uid and self.evicted_pod.uid)

    @property
    def eviction_ns(self) -> int:
        """The eviction time in nanoseconds; a pod created in the same second may be the replacement."""
        return parse_time(self.eviction_time) // SECOND * SECOND

    @property
    def expiry_ns(self) -> int:
        """The time when the replacement is no longer awaited."""
        return self.eviction_ns + parse_duration(self.expire_after)

    def serves(self, name: str, uid: str, created_ns: int) -> bool:
        """Return whether a pod of the controller may be the replacement."""
        if uid == self.evicted_pod.uid or not self.eviction_ns <= created_ns <= self.expiry_ns:
            return False
        return self.controller.kind not in _KEEPS_NAMES or name == self.evicted_pod.name


def replacement(
    controller: OwnerReference, evicted: EvictedPod, wanted: EvictionHints, grace_seconds: int, now: int
) -> Replacement:
    """Return the hints for the replacement of a pod that is evicted now with that grace period."""
    waited_ns = min(max(grace_seconds, 0), _MAX_GRACE_SECONDS) * SECOND + _WAIT_NS
    return Replacement(
        controller=controller,
        evicted_pod=evicted,
        eviction_time=format_time(now),
        expire_after=format_duration(waited_ns),
        first=wanted.first,
        node_name=wanted.node_name,
    )


def replacement_in_words(left: Replacement) -> str:
    """Return a text that says which pod is the replacement, and what it gets."""
    gets = gets_in_words(left)
    if not gets:
        return f"the replacement of pod {left.evicted_pod.name} is awaited"
    return f"{gets} for the replacement of pod {left.evicted_pod.name}"


def gets_in_words(left: Replacement) -> str:
    """Return a text about the hints for a replacement; "" if it is only awaited."""
    gets = ["the front of the queue"] if left.first else []
    if left.node_name:
        gets.append(f"a try at {left.node_name}")
    return " and ".join(gets)


EVICTED = "EvictionByEvictionAPI"
"""The reason of hints from an eviction without a component, and of the evicted pod's DisruptionTarget."""


class RecordedHints(msgspec.Struct, frozen=True):
    """The hints that an eviction records; none if the pod has no controller, or is terminating already."""

    entry: AvoidEntry | None = None
    replacement: Replacement | None = None

    def __bool__(self) -> bool:
        return self.entry is not None or self.replacement is not None

    def added_to(self, before: AvoidList, limits: AvoidLists, now: int) -> AvoidList:
        """Return a node's list with these hints, and without expired entries."""
        entries = unexpired(before.entries, limits.expire_after_ns, now)
        replacements = [left for left in before.replacements if left.expiry_ns > now]
        if self.entry is not None:
            entries = with_entry(entries, self.entry, limits.max_entries)
        if self.replacement is not None:
            # Among equally old ones, the first in order are dropped.
            pod = self.replacement.evicted_pod.uid
            kept = (left for left in replacements if left.evicted_pod.uid != pod)
            replacements = sorted((*kept, self.replacement), key=lambda left: left.eviction_ns)[-limits.max_entries :]
        return AvoidList(tuple(entries), tuple(replacements))

    def taken_off(self, present: AvoidList, before: AvoidList) -> AvoidList:
        """Return a node's list without these hints after a failed eviction, and with the entry that they displaced."""
        controller = None if self.entry is None else self.entry.controller.uid
        displaced = [old for old in before.entries if old.controller.uid == controller]
        entries: list[AvoidEntry] = []
        for listed in present.entries:
            # The listed entry also contains the evictions before it.
            is_own = msgspec.structs.replace(listed, earlier=()) == self.entry
            entries += displaced if is_own else [listed]
        return AvoidList(tuple(entries), tuple(left for left in present.replacements if left != self.replacement))


def hints_to_record(
    pod: Pod, hints: EvictionHints, awaited: Pod | None, component: str, grace_seconds: int | None, now: int
) -> RecordedHints:
    """Return the hints of a pod's eviction at this time.

    ``awaited`` is the pod until whose scheduling the node is avoided; if it has a node already, nothing is avoided. A
    pod whose replacement is awaited must have its uid. ``grace_seconds`` None is the pod's own grace period. A
    terminating pod gets no hints for its replacement: those of its first eviction apply.
    """
    controller = pod.metadata.controller
    if controller is None:
        return RecordedHints()
    entry, left = None, None
    if hints.avoid_node and (awaited is None or not awaited.spec.node_name):
        lasts_ns, until = hints.avoid_for_ns, None
        if awaited is not None:
            meta = awaited.metadata
            until = AwaitedPod(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        entry = msgspec.structs.replace(
            avoid_entry(controller, component or EVICTED, f"Pod {pod.key} was evicted from here", now),
            expire_after=None if lasts_ns is None else format_duration(lasts_ns),
            until_scheduled=until,
            until_replaced=hints.until_replaced,
        )
    if hints.is_about_replacement and not pod.is_terminating:
        evicted = EvictedPod(name=pod.metadata.name, uid=pod.metadata.uid)
        grace = pod.spec.termination_grace_period_seconds if grace_seconds is None else grace_seconds
        left = replacement(controller, evicted, hints, grace, now)
    return RecordedHints(entry, left)
