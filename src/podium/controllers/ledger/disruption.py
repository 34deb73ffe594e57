"""The records of a ledger: disruptions, and the requested resources over time as a basis for charges.

Source: controlled-rescheduling.md, Relationship of priority to quota ("charge" an amount proportional to the priority
of the resources).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from podium.api.meta import Raw, objects_at, plain
from podium.api.pod import Pod
from podium.api.quantity import CPU, PODS
from podium.api.resource_requests import effective_spec, pod_requests
from podium.api.times import time_of
from podium.store.stored import condition_of

Cause = Literal[
    "preemption",
    "eviction",
    "drain",
    "autoscaler",
    "rescheduler",
    "gang-release",
    "pressure",
    "taint",
    "node-gone",
    "deletion",
]
"""The cause of a disruption.

An eviction is by a client, a gang release by an incomplete gang; pressure is a node's, as its kubelet observed it.
"""

Outcome = Literal["waiting", "placed", "elsewhere", "gone", "again"]

Seconds = int | float


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of records; the JSON has the fields in camelCase."""


class Beneficiary(LedgerEntry, frozen=True, kw_only=True):
    """The pod for which another one was disrupted. ``room`` is the node where it was to run.

    ``outcome``: it still waits, was placed there, was placed elsewhere, is gone without having run, or needed further
    victims. ``placed_after`` is in seconds since the disruption.
    """

    pod: str
    uid: str = ""
    owner: str = ""
    priority: int = 0
    room: str = ""
    outcome: Outcome = "waiting"
    node: str | None = None
    placed_after: Seconds | None = None


class ReplacementPod(LedgerEntry, frozen=True, kw_only=True):
    """The replacement of a victim; times in seconds since the disruption, None if not reached."""

    pod: str
    uid: str
    node: str | None = None
    placed_after: Seconds | None = None
    ready_after: Seconds | None = None


class Loss(LedgerEntry, frozen=True, kw_only=True):
    """The cost of a disruption.

    ``ran`` is how long the pod had run, in seconds; ``lost`` is the lost part: all, or since its last checkpoint
    (annotation podium.dev/checkpoint-time or -interval). ``requests`` are in cores and units; ``work`` is both
    multiplied, such as core-seconds. ``grace`` is the grace period, ``ended_after`` the time it took to end, or None.
    """

    ran: Seconds = 0
    lost: Seconds = 0
    requests: dict[str, int | float] = {}
    work: dict[str, int | float] = {}
    grace: Seconds | None = None
    ended_after: Seconds | None = None


class Alternatives(LedgerEntry, frozen=True, kw_only=True):
    """The number of candidates with the chosen one, and the first other nodes of equal cost."""

    candidates: int
    equals: tuple[str, ...] = ()


class Disruption(LedgerEntry, frozen=True, kw_only=True):
    """A pod that was made to end.

    ``time`` is in seconds since the start of a simulation, or since 1970. ``id`` is its number in the ledger. ``owner``
    is the workload as in `Deployment default/web`, "" for a pod without one. ``by`` is the responsible component,
    ``rule`` why it chose this pod, and ``plan`` the plan; "" if unknown.
    """

    id: int
    time: Seconds
    pod: str
    uid: str
    node: str
    cause: Cause
    priority: int = 0
    owner: str = ""
    by: str = ""
    rule: str = ""
    plan: str = ""
    alternatives: Alternatives | None = None
    beneficiary: Beneficiary | None = None
    loss: Loss = Loss()
    replacement: ReplacementPod | None = None

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]

    @property
    def in_vain(self) -> str:
        """Return why the disruption was in vain, "" if it was not or that is unknown.

        It was if the beneficiary ran elsewhere or never; without a beneficiary, if the replacement returned to the
        node. Pods of DaemonSets always return, deleted ones may be meant to, and a preemption's beneficiary may be
        unknown.
        """
        if (beneficiary := self.beneficiary) is not None:
            if beneficiary.outcome == "elsewhere":
                return f"{beneficiary.pod} was placed on {beneficiary.node}"
            if beneficiary.outcome == "again":
                return f"{beneficiary.pod} needed further victims"
            return f"{beneficiary.pod} was gone before it ran" if beneficiary.outcome == "gone" else ""
        replacement = self.replacement
        if replacement is None or replacement.node != self.node or self.owner.startswith("DaemonSet "):
            return ""
        if self.cause in ("deletion", "preemption"):
            return ""
        return f"{replacement.pod} came back to {self.node}"

    def to_dict(self) -> Raw:
        """Return the record as JSON, which `disruption_of` reads."""
        return {**plain(self), "inVain": self.in_vain or None}


class FollowUp(LedgerEntry, frozen=True, kw_only=True):
    """The data to continue a record after a restart.

    ``controller`` is the uid of the victim's controller, "" for none. ``is_followed``: the replacement has not come, or
    is not ready.
    """

    began_ns: int
    controller: str = ""
    is_followed: bool = True


class EarlierRecords(NamedTuple):
    """The incomplete records of an earlier instance, in their order, and the uids of known replacements."""

    followed: tuple[tuple[Disruption, FollowUp], ...] = ()
    replacements: frozenset[str] = frozenset()


def disruption_of(raw: object) -> Disruption:
    """Return the record in a result of `to_dict`. Raises msgspec.ValidationError if it is invalid."""
    return msgspec.convert(raw, Disruption)


# The number of remembered disruptions in vain, which count once however often they change.
_MOST = 10_000


class DisruptionTotals:
    """Counts records by cause as they come and change."""

    def __init__(self, last_id: int = 0) -> None:
        """Create it; ``last_id`` is the number of the last record that does not count."""
        self.last_id = last_id
        """The number of the last record."""
        self._known_in_vain: OrderedDict[int, None] = OrderedDict()
        self.disruptions: Counter[str] = Counter()
        self.in_vain: Counter[str] = Counter()
        self.lost_seconds: dict[str, float] = {}
        """Lost running time, in seconds."""

    def known(self, record: Disruption) -> None:
        """Record an earlier record: if it was in vain, that does not count."""
        if record.in_vain:
            self._remember(record.id)

    def put(self, record: Disruption) -> None:
        """Count a new or changed record."""
        if record.id > self.last_id:
            self.last_id = record.id
            self.disruptions[record.cause] += 1
            self.lost_seconds[record.cause] = self.lost_seconds.get(record.cause, 0) + record.loss.lost
        if record.in_vain and record.id not in self._known_in_vain:
            self._remember(record.id)
            self.in_vain[record.cause] += 1

    def _remember(self, number: int) -> None:
        self._known_in_vain[number] = None
        if len(self._known_in_vain) > _MOST:
            self._known_in_vain.popitem(last=False)


def since(raw: Raw | None, condition: str) -> int | None:
    """Return since when a condition of an object is true, in nanoseconds since 1970; None if false or unknown."""
    found = condition_of(objects_at(raw, "status", "conditions"), condition)
    return time_of(found.get("lastTransitionTime")) if found.get("status") == "True" else None


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
        if (known := self._pods.get(uid)) is not None:
            if known[1] is requests or known[1] == requests:
                return
            self.remove(uid, now)
        self.count(pod, requests, now)

    def count(self, pod: Pod, requests: Mapping[str, int], now: int) -> None:
        """Count a pod that has a node, with its requests, from now on; it must not be counted already."""
        group = (pod.metadata.namespace, pod.spec.priority_class_name or "", pod.priority)
        meter = self._meters.get(group)
        if meter is None:
            meter = self._meters[group] = _Meter(now - self._start_ns)
        meter.settle(now - self._start_ns)
        rate = meter.rate
        for name, amount in requests.items():
            rate[name] += amount
        rate[PODS] += 1
        self._pods[pod.metadata.uid] = group, requests

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
