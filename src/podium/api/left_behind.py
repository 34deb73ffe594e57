"""Eviction hints: what the eviction of a pod records on its node for the avoid list and the replacement.

The API server writes them with the eviction; with an API server that does not support them, the evictor does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from podium.api.avoid_list import AvoidEntry, AvoidFor, AvoidList, AwaitedPod, avoid_entry, unexpired, with_entry
from podium.api.disruption_policy import AvoidLists
from podium.api.pod import Pod
from podium.api.replacements import (
    EvictedPod,
    ForReplacement,
    Replacement,
    awaited_replacements,
    replacement,
    with_replacement,
)
from podium.api.times import format_duration

EVICTED = "EvictionByEvictionAPI"
"""The reason of hints from an eviction without a component, and of the evicted pod's DisruptionTarget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The hints that an evictor requests: whether and how long to avoid the node, and for the replacement."""

    avoid_node: bool = False
    avoid_for: AvoidFor = AvoidFor()  # noqa: RUF009 - an immutable value
    for_replacement: ForReplacement = ForReplacement()  # noqa: RUF009 - an immutable value

    def __bool__(self) -> bool:
        """Return whether there are any hints."""
        return self.avoid_node or bool(self.for_replacement)

    def until_replaced(self, uid: str) -> Wishes:
        """Return the hints with the uid of the pod whose replacement is awaited."""
        awaited = self.avoid_for.until_replaced
        if awaited is None:
            return self
        known = msgspec.structs.replace(awaited, uid=uid)
        return replace(self, avoid_for=replace(self.avoid_for, until_replaced=known))


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The hints that an eviction records; none if the pod has no controller, or is terminating already."""

    entry: AvoidEntry | None = None
    replacement: Replacement | None = None

    def __bool__(self) -> bool:
        """Return whether there are any hints."""
        return self.entry is not None or self.replacement is not None

    def added_to(self, before: AvoidList, limits: AvoidLists, now: int) -> AvoidList:
        """Return a node's list with these hints, and without expired entries."""
        entries = unexpired(before.entries, limits.expire_after_ns, now)
        replacements = awaited_replacements(before.replacements, now)
        if self.entry is not None:
            entries = with_entry(entries, self.entry, limits.max_entries)
        if self.replacement is not None:
            replacements = with_replacement(replacements, self.replacement, limits.max_entries)
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


def left_behind(
    pod: Pod, wishes: Wishes, awaited: Pod | None, component: str, grace_seconds: int | None, now: int
) -> LeftBehind:
    """Return the hints of a pod's eviction at this time.

    ``awaited`` is the pod until whose scheduling the node is avoided; if it has a node already, nothing is avoided. A
    pod whose replacement is awaited must have its uid. ``grace_seconds`` None is the pod's own grace period. A
    terminating pod gets no hints for its replacement: those of its first eviction apply.
    """
    controller = pod.metadata.controller
    if controller is None:
        return LeftBehind()
    entry, left = None, None
    if wishes.avoid_node and (awaited is None or not awaited.spec.node_name):
        lasts_ns, meta = wishes.avoid_for.expire_after_ns, None if awaited is None else awaited.metadata
        entry = msgspec.structs.replace(
            avoid_entry(controller, component or EVICTED, f"Pod {pod.key} was evicted from here", now),
            expire_after=None if lasts_ns is None else format_duration(lasts_ns),
            until_scheduled=None
            if meta is None
            else AwaitedPod(namespace=meta.namespace, name=meta.name, uid=meta.uid),
            until_replaced=wishes.avoid_for.until_replaced,
        )
    if wishes.for_replacement and not pod.is_terminating:
        evicted = EvictedPod(name=pod.metadata.name, uid=pod.metadata.uid)
        grace = pod.spec.termination_grace_period_seconds if grace_seconds is None else grace_seconds
        left = replacement(controller, evicted, wishes.for_replacement, grace, now)
    return LeftBehind(entry, left)
