"""How much of the cluster is requested, over time."""

from __future__ import annotations

from collections.abc import Collection

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.resources import PODS
from podium.sim.results.holdings import Holdings

_HOUR = 3600 * 10**9

Level = tuple[tuple[tuple[str, int], ...], tuple[int, ...]]
"""What is offered of each resource, by name, and how much is held of each, in the order in which they were first held.

Equal levels are equal shares; the shares of others may still be.
"""


class Usage:
    """Sums up, for each resource, what nodes offer and what the pods bound to them request, second by second.

    A pod counts from its binding to its removal or end.
    """

    def __init__(self, start_ns: int) -> None:
        self._holdings = Holdings()
        self._held = self._holdings.held.amounts
        self._start_ns = self._until_ns = start_ns
        self.node_count = 0
        """How many nodes there are."""
        # Times from the start, one for each node that came, less one for each that went.
        self._nodes_came_ns = 0
        # What is offered of each resource, by name; None until somebody asks for it after a node has changed.
        self._totals: tuple[tuple[str, int], ...] | None = None

    @property
    def node_hours(self) -> float:
        """How long there were nodes, each counted by itself, in hours."""
        elapsed_ns = self._until_ns - self._start_ns
        return round((self.node_count * elapsed_ns - self._nodes_came_ns) / _HOUR, 6)

    @property
    def level(self) -> Level:
        """How much is offered and requested just so."""
        if self._totals is None:
            offered = self._holdings.allocatable.amounts
            self._totals = tuple([(name, offered[name]) for name in sorted(offered) if offered[name] and name != PODS])
        return self._totals, tuple(self._held.values())

    def shares_at(self, level: Level) -> tuple[tuple[str, float], ...]:
        """For each resource that nodes offered then, by name: the share that was requested."""
        totals, amounts = level
        held = dict(zip(self._held, amounts, strict=False))
        return tuple([(name, round(held.get(name, 0) / total, 6)) for name, total in totals])

    def requested_shares(self) -> tuple[tuple[str, float], ...]:
        """For each resource that nodes offer, by name: the share that is requested just so."""
        return self.shares_at(self.level)

    def pods_on(self, node: str) -> Collection[str]:
        """The uids of the pods that count on a node."""
        return self._holdings.pods_on(node)

    def put_pod(self, pod: Pod, now: int) -> None:
        """A pod counts from now on; times do not go back."""
        requests = pod_requests(effective_spec(pod))
        self._holdings.put_pod(pod.metadata.uid, pod.spec.node_name, requests, now - self._start_ns)

    def remove_pod(self, uid: str, node: str, now: int) -> None:
        """A pod that counts on a node does so no longer."""
        self._holdings.remove_pod(uid, node, now - self._start_ns)

    def observe_node(self, node: Node, now: int, *, is_gone: bool) -> None:
        """A node has come, has changed or is gone."""
        elapsed_ns, before = now - self._start_ns, self.node_count
        self._totals = None
        if is_gone:
            self._holdings.remove_node(node.metadata.name, elapsed_ns)
        else:
            self._holdings.put_node(node.metadata.name, node_allocatable(node.status), elapsed_ns)
        self.node_count = self._holdings.node_count
        self._nodes_came_ns += (self.node_count - before) * elapsed_ns

    def pass_time(self, now: int) -> None:
        """Let what is requested now last until `now`."""
        self._until_ns = now

    def shares(self) -> dict[str, dict[str, float]]:
        """For each resource that nodes offer: the share requested on average over the time so far, and at its end."""
        elapsed_ns = self._until_ns - self._start_ns
        final, held = self._holdings.allocatable.amounts, self._held
        offered = self._holdings.offered_over_time(elapsed_ns)
        requested = self._holdings.held_over_time(elapsed_ns)
        if not any(offered.values()):
            offered, requested = final, held
        return {
            name: {
                "average": _share(requested.get(name, 0), offered[name]),
                "final": _share(held.get(name, 0), final[name]),
            }
            for name in sorted(final)
            if name != PODS and (offered[name] or final[name])
        }


def _share(amount: int, total: int) -> float:
    return round(amount / total, 6) if total else 0.0
