"""Who has how much of which resource: what nodes offer, and what the pods on them hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping

Amounts = Mapping[str, int]
"""Amounts by resource: cpu in milli, all else in units."""


class Total:
    """Amounts by resource as they are, and summed up over time: each amount for as long as it stays."""

    __slots__ = ("_moments", "amounts")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        # By resource, the sum of what has come, each amount times when it came, less the same of what has gone: so much
        # the amounts there are would have summed up to more, had they been there from 0 on.
        self._moments: dict[str, int] = {}

    def book(self, amounts: Amounts, sign: int, now: int) -> None:
        """Let amounts come (1), or go (-1), at `now`."""
        total, moments = self.amounts, self._moments
        for name, amount in amounts.items():
            booked = sign * amount
            if name in total:
                total[name] += booked
                moments[name] += booked * now
            else:
                total[name], moments[name] = booked, booked * now

    def over_time(self, now: int) -> dict[str, int]:
        """The amounts that there were from 0 to `now`, summed up over that time."""
        moments = self._moments
        return {name: amount * now - moments[name] for name, amount in self.amounts.items()}


class Holdings:
    """The books of all nodes, and their totals. Pods may hold more than there is, and be on nodes unknown so far.

    What happens does so at a time, `now`, in any unit; times do not go back.
    """

    def __init__(self) -> None:
        self._allocatable: dict[str, Amounts] = {}
        # By node, what each pod there holds, by uid.
        self._on: dict[str, dict[str, Amounts]] = {}
        self.allocatable = Total()
        self.held = Total()

    @property
    def node_count(self) -> int:
        """How many nodes are known."""
        return len(self._allocatable)

    def pods_on(self, name: str) -> Collection[str]:
        """The uids of the pods that are booked on the node."""
        return self._on.get(name, ())

    def put_node(self, name: str, allocatable: Amounts, now: int = 0) -> None:
        """Add a node, or change what it offers."""
        if name in self._allocatable:
            self.allocatable.book(self._allocatable[name], -1, now)
        else:
            self._book_pods_on(name, 1, now)
        self._allocatable[name] = allocatable
        self.allocatable.book(allocatable, 1, now)

    def remove_node(self, name: str, now: int = 0) -> None:
        """Take a node out of the totals; its pods stay booked on it."""
        self.allocatable.book(self._allocatable.pop(name), -1, now)
        self._book_pods_on(name, -1, now)

    def put_pod(self, uid: str, node_name: str, amounts: Amounts, now: int = 0) -> None:
        """Book a pod on a node. Raises ValueError if it is booked there already."""
        pods = self._on.get(node_name)
        if pods is None:
            pods = self._on[node_name] = {}
        elif uid in pods:
            raise ValueError(f"pod {uid} is booked already")
        pods[uid] = amounts
        if node_name in self._allocatable:
            self.held.book(amounts, 1, now)

    def remove_pod(self, uid: str, node_name: str, now: int = 0) -> None:
        """Give back what a pod holds on a node where it is booked."""
        pods = self._on[node_name]
        amounts = pods.pop(uid)
        if not pods:
            del self._on[node_name]
        if node_name in self._allocatable:
            self.held.book(amounts, -1, now)

    def _book_pods_on(self, name: str, sign: int, now: int) -> None:
        for amounts in self._on.get(name, {}).values():
            self.held.book(amounts, sign, now)
