"""How much of the cluster is requested, over time."""

from __future__ import annotations

from podium.api.node import Node
from podium.api.pod import TERMINAL_PHASES, Pod
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
        self._start_ns = self._until_ns = start_ns
        # Times from the start, one for each node that came, less one for each that went.
        self._nodes_came_ns = 0
        # What is offered of each resource, by name; None until somebody asks for it after a node has changed.
        self._totals: list[tuple[str, int]] | None = None

    @property
    def node_hours(self) -> float:
        """How long there were nodes, each counted by itself, in hours."""
        return round((self._holdings.node_count * self._elapsed_ns - self._nodes_came_ns) / _HOUR, 6)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self._holdings.node_count

    def requested_shares(self) -> tuple[tuple[str, float], ...]:
        """For each resource that nodes offer, by name: the share that is requested just so."""
        held = self._holdings.held.amounts
        if self._totals is None:
            offered = self._holdings.allocatable.amounts
            self._totals = [(name, offered[name]) for name in sorted(offered) if offered[name] and name != PODS]
        return tuple([(name, round(held.get(name, 0) / total, 6)) for name, total in self._totals])

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write at `now`; times do not go back."""
        object_ = event.stored.object
        if isinstance(object_, Pod):
            node_name = object_.spec.node_name
            if not node_name:
                return
            uid = object_.metadata.uid
            counts = event.type != "DELETED" and object_.status.phase not in TERMINAL_PHASES
            if counts is self._holdings.has_pod(uid):
                return
            self._until_ns = now
            if counts:
                self._holdings.put_pod(uid, node_name, held_by(object_), self._elapsed_ns)
            else:
                self._holdings.remove_pod(uid, self._elapsed_ns)
        elif isinstance(object_, Node):
            self._until_ns = now
            self._observe_node(object_, is_gone=event.type == "DELETED")

    def pass_time(self, now: int) -> None:
        """Let what is requested now last until `now`."""
        self._until_ns = now

    def shares(self) -> dict[str, dict[str, float]]:
        """For each resource that nodes offer: the share requested on average over the time so far, and at its end."""
        final, held = self._holdings.allocatable.amounts, self._holdings.held.amounts
        offered = self._holdings.allocatable.over_time(self._elapsed_ns)
        requested = self._holdings.held.over_time(self._elapsed_ns)
        if not any(offered.values()):
            offered, requested = final, held
        return {
            name: {"average": _share(requested[name], offered[name]), "final": _share(held[name], final[name])}
            for name in sorted(final)
            if name != PODS and (offered[name] or final[name])
        }

    @property
    def _elapsed_ns(self) -> int:
        return self._until_ns - self._start_ns

    def _observe_node(self, node: Node, *, is_gone: bool) -> None:
        before = self._holdings.node_count
        self._totals = None
        if is_gone:
            self._holdings.remove_node(node.metadata.name, self._elapsed_ns)
        else:
            self._holdings.put_node(node.metadata.name, node_allocatable(node.status), self._elapsed_ns)
        self._nodes_came_ns += (self._holdings.node_count - before) * self._elapsed_ns


def _share(amount: int, total: int) -> float:
    return round(amount / total, 6) if total else 0.0
