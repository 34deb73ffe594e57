"""Requested resources over time by hour, namespace and PriorityClass, as a basis for charges.

Source: controlled-rescheduling.md, Relationship of priority to quota ("charge" an amount proportional to the priority
of the resources).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from podium.api.meta import Raw, plain
from podium.api.pod import Pod
from podium.api.quantity import CPU, PODS
from podium.api.resource_requests import effective_spec, pod_requests
from podium.controllers.ledger.disruption import LedgerEntry

HOUR_NS = 3_600 * 10**9

Group = tuple[str, str, int]
"""A namespace, the name of a PriorityClass ("" for none), and a priority."""


class UsageEntry(LedgerEntry, frozen=True, kw_only=True):
    """The requests of the pods of one namespace and priority within one hour.

    `hour` is its start in seconds. `requested` has resource-hours: core-hours of `cpu`, unit-hours of others (bytes of
    memory), and `pods`.
    """

    hour: int
    namespace: str
    priority_class: str
    priority: int
    requested: dict[str, float]

    def to_dict(self) -> Raw:
        """Return the entry as JSON, with amounts rounded to nine digits."""
        found: Raw = plain(self)
        return {**found, "requested": {name: round(amount, 9) for name, amount in self.requested.items()}}


class _Meter:
    """The current requests of a group's pods, and the requests by hour since the last read."""

    __slots__ = ("by_hour", "rate", "since_ns")

    def __init__(self, now: int) -> None:
        self.rate: Counter[str] = Counter()
        self.since_ns = now
        # In units (milli of cpu) times nanoseconds.
        self.by_hour: dict[int, Counter[str]] = {}

    def settle(self, now: int) -> None:
        """Add the requests since the last time to their hours."""
        since_ns, self.since_ns = self.since_ns, max(now, self.since_ns)
        while since_ns < now and self.rate:
            hour = since_ns // HOUR_NS
            until_ns = min(now, (hour + 1) * HOUR_NS)
            requested = self.by_hour.setdefault(hour, Counter())
            for name, amount in self.rate.items():
                requested[name] += amount * (until_ns - since_ns)
            since_ns = until_ns


class Consumption:
    """Sums up the requests of pods from their binding to their end, whatever they really use.

    Hours begin at multiples of an hour after `start_ns`. An event costs time only for its pod's group.
    """

    def __init__(self, start_ns: int = 0) -> None:
        self._start_ns = start_ns
        self._meters: dict[Group, _Meter] = {}
        # By uid, the group and the counted requests of a pod.
        self._pods: dict[str, tuple[Group, Mapping[str, int]]] = {}

    def on_update(self, pod: Pod, now: int) -> None:
        """Take in an added or changed pod; times do not go back."""
        uid = pod.metadata.uid
        if not pod.spec.node_name or pod.is_terminal:
            self.remove(uid, now)
            return
        requests = pod_requests(effective_spec(pod))
        known = self._pods.get(uid)
        if known is not None:
            if known[1] is requests or known[1] == requests:
                return
            self.remove(uid, now)
        group = (pod.metadata.namespace, pod.spec.priority_class_name or "", pod.priority)
        meter = self._meters.get(group)
        if meter is None:
            meter = self._meters[group] = _Meter(now - self._start_ns)
        meter.settle(now - self._start_ns)
        rate = meter.rate
        for name, amount in requests.items():
            rate[name] += amount
        rate[PODS] += 1
        self._pods[uid] = group, requests

    def catch_up(self, pods: Iterable[Pod], now: int) -> None:
        """Take in all existing pods after missed changes; others have ended by now."""
        there = {pod.metadata.uid: pod for pod in pods}
        for uid in [uid for uid in self._pods if uid not in there]:
            self.remove(uid, now)
        for pod in there.values():
            self.on_update(pod, now)

    def remove(self, uid: str, now: int) -> None:
        """Remove a pod (uid) that has ended or is gone."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        group, requests = known
        meter = self._meters[group]
        meter.settle(now - self._start_ns)
        meter.rate.subtract(requests)
        meter.rate[PODS] -= 1
        meter.rate = +meter.rate

    def read(self, now: int) -> tuple[UsageEntry, ...]:
        """Return the requests up to now, by hour, namespace and priority, highest first."""
        for meter in self._meters.values():
            meter.settle(now - self._start_ns)
        found = [
            UsageEntry(
                hour=hour * 3_600,
                namespace=namespace,
                priority_class=priority_class,
                priority=priority,
                requested={
                    name: amount / (HOUR_NS * 1_000 if name == CPU else HOUR_NS)
                    for name, amount in sorted(requested.items())
                    if amount
                },
            )
            for (namespace, priority_class, priority), meter in self._meters.items()
            for hour, requested in meter.by_hour.items()
        ]
        return tuple(sorted(found, key=lambda used: (used.hour, used.namespace, -used.priority, used.priority_class)))

    def take(self, now: int) -> tuple[UsageEntry, ...]:
        """Return the requests since the last call, and drop them."""
        rows = self.read(now)
        for group in list(self._meters):
            self._meters[group].by_hour = {}
            if not self._meters[group].rate:
                del self._meters[group]
        return rows
