"""Who has how much of which resource: what nodes offer, and what the pods on them hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

Amounts = Mapping[str, int]
"""Amounts by resource: cpu in milli, all else in units."""

_Booked = tuple[Amounts, int]
"""Amounts, and since when they count."""


class Total:
    """Amounts by resource as they are, and summed up over time: each amount for as long as it stays."""

    __slots__ = ("_gone", "amounts")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        # By resource, the sum of what has gone, each amount times how long it was there.
        self._gone: dict[str, int] = {}

    def come(self, amounts: Amounts) -> None:
        """Let amounts come."""
        total = self.amounts
        for name, amount in amounts.items():
            if name in total:
                total[name] += amount
            else:
                total[name], self._gone[name] = amount, 0

    def go(self, amounts: Amounts, lasted: int) -> None:
        """Let amounts go that were there for so long."""
        total, gone = self.amounts, self._gone
        for name, amount in amounts.items():
            total[name] -= amount
            gone[name] += amount * lasted

    def over_time(self, present: Iterable[_Booked], now: int) -> dict[str, int]:
        """The amounts that there were up to `now`, summed up over that time; those that are `present` are there yet."""
        sums = dict(self._gone)
        for amounts, since in present:
            for name, amount in amounts.items():
                sums[name] += amount * (now - since)
        return sums


class Holdings:
    """The books of all nodes, and their totals. Pods may hold more than there is, and be on nodes unknown so far.

    What happens does so at a time, `now`, in any unit; times do not go back.
    """

    def __init__(self) -> None:
        self._allocatable: dict[str, _Booked] = {}
        # By node, what each pod there holds, by uid.
        self._on: dict[str, dict[str, _Booked]] = {}
        self.allocatable = Total()
        self.held = Total()

    @property
    def node_count(self) -> int:
        """How many nodes are known."""
        return len(self._allocatable)

    def pods_on(self, name: str) -> Collection[str]:
        """The uids of the pods that are booked on the node."""
        return self._on.get(name, ())

    def offered_over_time(self, now: int) -> dict[str, int]:
        """What nodes have offered up to `now`, by resource, summed up over that time."""
        return self.allocatable.over_time(self._allocatable.values(), now)

    def held_over_time(self, now: int) -> dict[str, int]:
        """What pods have held on known nodes up to `now`, by resource, summed up over that time."""
        known = (pods.values() for name, pods in self._on.items() if name in self._allocatable)
        return self.held.over_time(chain.from_iterable(known), now)

    def put_node(self, name: str, allocatable: Amounts, now: int = 0) -> None:
        """Add a node, or change what it offers."""
        before = self._allocatable.get(name)
        if before is not None:
            self.allocatable.go(before[0], now - before[1])
        else:
            pods = self._on.get(name, {})
            for uid, (amounts, _) in pods.items():
                pods[uid] = (amounts, now)
                self.held.come(amounts)
        self._allocatable[name] = (allocatable, now)
        self.allocatable.come(allocatable)

    def remove_node(self, name: str, now: int = 0) -> None:
        """Take a node out of the totals; its pods stay booked on it."""
        amounts, since = self._allocatable.pop(name)
        self.allocatable.go(amounts, now - since)
        for amounts, since in self._on.get(name, {}).values():
            self.held.go(amounts, now - since)

    def put_pod(self, uid: str, node_name: str, amounts: Amounts, now: int = 0) -> None:
        """Book a pod on a node. Raises ValueError if it is booked there already."""
        pods = self._on.get(node_name)
        if pods is None:
            pods = self._on[node_name] = {}
        elif uid in pods:
            raise ValueError(f"pod {uid} is booked already")
        pods[uid] = (amounts, now)
        if node_name in self._allocatable:
            self.held.come(amounts)

    def remove_pod(self, uid: str, node_name: str, now: int = 0) -> None:
        """Give back what a pod holds on a node where it is booked."""
        pods = self._on[node_name]
        amounts, since = pods.pop(uid)
        if not pods:
            del self._on[node_name]
        if node_name in self._allocatable:
            self.held.go(amounts, now - since)
