"""Whom nodes avoid, and what evictions left there for replacements, as results tell it."""

from __future__ import annotations

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidEntry, avoid_list, awaited_in_words
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.node import Node
from podium.sim.results.shown import Shown, shown_time


class Avoided(Shown, frozen=True, kw_only=True):
    """A controller on a node's avoid list, since when and ``until`` when (a time, or what has to happen)."""

    controller: str
    since: str | None = None
    until: str | None = None
    reason: str = ""


class LeftState(Shown, frozen=True, kw_only=True):
    """What an eviction left for the replacement of the ``pod``, since when and ``until`` when."""

    pod: str
    controller: str
    first: bool = False
    node_name: str = ""
    since: str
    until: str


class AvoidState(Shown, frozen=True, kw_only=True):
    """A node's avoid list, and what evictions from there left for replacements."""

    node: str
    entries: tuple[Avoided, ...]
    replacements: tuple[LeftState, ...] = ()


def avoid_state(node: Node, policy: DisruptionPolicy) -> AvoidState | None:
    """What a node's avoid list says; None where there is nothing on it."""
    lifetime = policy.spec.avoid_lists.expire_after_ns
    here = avoid_list(node.metadata.annotations.get(PREFER_AVOID_PODS, ""))
    if not here:
        return None
    return AvoidState(
        node=node.metadata.name,
        entries=tuple(
            Avoided(
                controller=f"{entry.controller.kind} {entry.controller.name}",
                since=entry.eviction_time,
                until=_until(entry, lifetime),
                reason=entry.reason,
            )
            for entry in here.entries
        ),
        replacements=tuple(
            LeftState(
                pod=left.evicted_pod.name,
                controller=f"{left.controller.kind} {left.controller.name}",
                first=left.first,
                node_name=left.node_name,
                since=left.eviction_time,
                until=shown_time(left.expiry_ns),
            )
            for left in here.replacements
        ),
    )


def _until(entry: AvoidEntry, lifetime_ns: int) -> str | None:
    """A time, and the pod that it may end with before."""
    expiry_ns = entry.expiry_ns(lifetime_ns)
    parts = ["" if expiry_ns is None else shown_time(expiry_ns), awaited_in_words(entry)]
    return " or ".join(filter(None, parts)) or None
