"""Who has how much of which resource: what nodes offer, and what the pods on them hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests
from podium.api.resources import PODS

Amounts = Mapping[str, int]
"""Amounts by resource: cpu in milli, all else in units."""


def held_by(pod: Pod) -> Amounts:
    """What a pod holds on its node: what it requests, and one of the node's places for pods."""
    return {**pod_requests(effective_spec(pod)), PODS: 1}


class Total:
    """Amounts by resource as they are, and summed up over time: each amount for as long as it stays."""

    __slots__ = ("_moments", "amounts")

    def __init__(self) -> None:
        self.amounts: Counter[str] = Counter()
        # By resource, the sum of what has come, each amount times when it came, less the same of what has gone: so much
        # the amounts there are would have summed up to more, had they been there from 0 on.
        self._moments: Counter[str] = Counter()

    def book(self, amounts: Amounts, sign: int, now: int) -> None:
        """Let amounts come (1), or go (-1), at `now`."""
        total, moments = self.amounts, self._moments
        for name, amount in amounts.items():
            booked = sign * amount
            total[name] = total.get(name, 0) + booked
            moments[name] = moments.get(name, 0) + booked * now

    def over_time(self, now: int) -> Counter[str]:
        """The amounts that there were from 0 to `now`, summed up over that time."""
        moments = self._moments
        return Counter({name: amount * now - moments[name] for name, amount in self.amounts.items()})


class Holdings:
    """The books of all nodes, and their totals. Pods may hold more than there is, and be on nodes unknown so far.

    What happens does so at a time, `now`, in any unit; times do not go back.
    """

    def __init__(self) -> None:
        self._allocatable: dict[str, Amounts] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._pods: dict[str, tuple[str, Amounts]] = {}
        self.allocatable = Total()
        self.held = Total()

    @property
    def node_count(self) -> int:
        """How many nodes are known."""
        return len(self._allocatable)

    def has_node(self, name: str) -> bool:
        """Whether the node is known."""
        return name in self._allocatable

    def put_node(self, name: str, allocatable: Amounts, now: int = 0) -> None:
        """Add a node, or change what it offers."""
        if name in self._allocatable:
            self.allocatable.book(self._allocatable[name], -1, now)
        else:
            self.held.book(self._held.get(name, {}), 1, now)
        self._allocatable[name] = allocatable
        self.allocatable.book(allocatable, 1, now)

    def remove_node(self, name: str, now: int = 0) -> None:
        """Take a node out of the totals; its pods stay booked on it."""
        self.allocatable.book(self._allocatable.pop(name), -1, now)
        self.held.book(self._held.get(name, {}), -1, now)

    def has_pod(self, uid: str) -> bool:
        """Whether the pod is booked."""
        return uid in self._pods

    def put_pod(self, uid: str, node_name: str, amounts: Amounts, now: int = 0) -> None:
        """Book a pod on a node. Raises ValueError if it is booked already."""
        if uid in self._pods:
            raise ValueError(f"pod {uid} is booked already")
        self._pods[uid] = (node_name, amounts)
        held = self._held.get(node_name)
        if held is None:
            held = self._held[node_name] = {}
        _book(held, amounts, 1)
        if node_name in self._allocatable:
            self.held.book(amounts, 1, now)

    def remove_pod(self, uid: str, now: int = 0) -> None:
        """Give back what a pod holds, if it is booked."""
        node_name, amounts = self._pods.pop(uid, ("", {}))
        if amounts:
            held = self._held.get(node_name, {})
            _book(held, amounts, -1)
            if not any(held.values()):
                self._held.pop(node_name, None)
            if node_name in self._allocatable:
                self.held.book(amounts, -1, now)

    def shortage(self, node_name: str, amounts: Amounts) -> tuple[str, int, int] | None:
        """The first resource, by name, of which the node has too little left: its name, what is held, what there is.

        None when the pod fits. What a pod does not ask for is never short, as for the scheduler.
        """
        held, allocatable = self._held.get(node_name, {}), self._allocatable[node_name]
        for name, amount in sorted(amounts.items()):
            if amount and held.get(name, 0) + amount > allocatable.get(name, 0):
                return name, held.get(name, 0), allocatable.get(name, 0)
        return None


def _book(sums: dict[str, int], amounts: Amounts, sign: int) -> None:
    """As `Counter.update` and `subtract` do, which take several times as long for a few amounts."""
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + sign * amount
