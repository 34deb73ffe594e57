"""How much of the cluster is requested, over time."""

from __future__ import annotations

from collections import Counter

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import node_allocatable
from podium.api.resources import PODS
from podium.sim.results.holdings import Holdings, held_by
from podium.store.log.watch_event import WatchEvent

_HOUR = 3600 * 10**9


class Usage:
    """Sums up, for each resource, what nodes offer and what the pods bound to them request, second by second.

    A pod counts from its binding to its removal or end.
    """

    def __init__(self, start_ns: int) -> None:
        self._holdings = Holdings()
        self._until_ns = start_ns
        self._offered: Counter[str] = Counter()
        self._requested: Counter[str] = Counter()
        self._nodes_ns = 0
        # What is offered of each resource, by name; None until somebody asks for it after a node has changed.
        self._totals: list[tuple[str, int]] | None = None

    @property
    def node_hours(self) -> float:
        """How long there were nodes, each counted by itself, in hours."""
        return round(self._nodes_ns / _HOUR, 6)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self._holdings.node_count

    def requested_shares(self) -> tuple[tuple[str, float], ...]:
        """For each resource that nodes offer, by name: the share that is requested just so."""
        held = self._holdings.held
        if self._totals is None:
            offered = self._holdings.allocatable
            self._totals = [(name, offered[name]) for name in sorted(offered) if offered[name] and name != PODS]
        return tuple([(name, round(held.get(name, 0) / total, 6)) for name, total in self._totals])

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write at `now`; times do not go back."""
        object_ = event.stored.object
        if isinstance(object_, Node):
            self.pass_time(now)
            self._totals = None
            if event.type == "DELETED":
                self._holdings.remove_node(object_.metadata.name)
            else:
                self._holdings.put_node(object_.metadata.name, node_allocatable(object_.status))
        elif isinstance(object_, Pod) and object_.spec.node_name:
            uid = object_.metadata.uid
            counts = event.type != "DELETED" and not object_.is_terminal
            if counts is self._holdings.has_pod(uid):
                return
            self.pass_time(now)
            if counts:
                self._holdings.put_pod(uid, object_.spec.node_name, held_by(object_))
            else:
                self._holdings.remove_pod(uid)

    def pass_time(self, now: int) -> None:
        """Let what is requested now last until `now`."""
        elapsed = now - self._until_ns
        if elapsed:
            self._until_ns = now
            self._nodes_ns += self._holdings.node_count * elapsed
            for sums, amounts in ((self._offered, self._holdings.allocatable), (self._requested, self._holdings.held)):
                for name, amount in amounts.items():
                    sums[name] += amount * elapsed

    def shares(self) -> dict[str, dict[str, float]]:
        """For each resource that nodes offer: the share requested on average over the time so far, and at its end."""
        final = self._holdings.allocatable
        offered = self._offered if any(self._offered.values()) else final
        requested = self._requested if any(self._offered.values()) else self._holdings.held
        return {
            name: {
                "average": _share(requested[name], offered[name]),
                "final": _share(self._holdings.held[name], final[name]),
            }
            for name in sorted(set(offered) | set(final))
            if name != PODS and (offered[name] or final[name])
        }


def _share(amount: int, total: int) -> float:
    return round(amount / total, 6) if total else 0.0
