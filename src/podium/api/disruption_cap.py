"""Caps of a DisruptionPolicy: how often components may disrupt, in the cluster or in each namespace.

Source: controlled-rescheduling.md, Disruption budget (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from podium.api.disruption_rate import Rate, parse_rate
from podium.api.meta import Narrow, Raw
from podium.api.times import format_exact_time, parse_time

MAX_BUCKETS = 1_000
"""How many buckets that are not full a status has; of more, those are left out that are full again soonest.

As the event rate limits of kube-apiserver forget namespaces (plugin/pkg/admission/eventratelimit, cacheSize).
"""


class CapScope(NamedTuple):
    """What a cap stands for: a component ("" for all of them together), in the cluster or in each namespace."""

    component: str
    by_namespace: bool


class CapBucket(NamedTuple):
    """Whose disruptions a token bucket counts: a component's ("" for all), in a namespace ("" for the cluster)."""

    component: str = ""
    namespace: str = ""

    @property
    def scope(self) -> CapScope:
        """The scope of the cap that the bucket belongs to."""
        return CapScope(self.component, bool(self.namespace))

    def __str__(self) -> str:
        if not self.component:
            return f"namespace {self.namespace}" if self.namespace else "all components"
        return f"component {self.component}" + (f" in namespace {self.namespace}" if self.namespace else "")


class Cap(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often pods that have a budget may be disrupted: a rate such as "5/1h".

    It counts what one component disrupts, or without one all of them together. `per` says whether it holds for the
    whole cluster, or for each namespace by itself.
    """

    component: str | None = None
    max: str
    per: Literal["Cluster", "Namespace"] = "Cluster"

    @property
    def scope(self) -> CapScope:
        """What it stands for; a policy has one cap for each."""
        return CapScope(self.component or "", self.per == "Namespace")

    @property
    def rate(self) -> Rate:
        """The rate. Raises ValueError for one that cannot be read."""
        return parse_rate(self.max)

    def counts(self, component: str) -> bool:
        """Whether disruptions by that component take of it."""
        return self.component is None or self.component == component

    def bucket(self, namespace: str) -> CapBucket:
        """The bucket that a disruption in a namespace takes of."""
        return CapBucket(self.component or "", namespace if self.per == "Namespace" else "")


class CapStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is used of a cap: the token bucket of the rate is full again at `full_time`.

    `component` and `namespace` are there where the cap is one component's, or one for each namespace.
    """

    component: str | None = None
    namespace: str | None = None
    full_time: str

    @property
    def bucket(self) -> CapBucket:
        """Whose bucket it is."""
        return CapBucket(self.component or "", self.namespace or "")


def full_times(statuses: Iterable[CapStatus]) -> dict[CapBucket, int]:
    """When each bucket is full again; those that are not listed are full."""
    return {status.bucket: parse_time(status.full_time) for status in statuses}


def written_buckets(full: Mapping[CapBucket, int], now: int) -> list[Raw]:
    """The buckets as a status has them, by component and namespace: those that are not full at ``now``."""
    used = sorted((-full_ns, bucket) for bucket, full_ns in full.items() if full_ns > now)[:MAX_BUCKETS]
    return [_written(bucket, -full_ns) for full_ns, bucket in sorted(used, key=lambda found: found[1])]


def _written(bucket: CapBucket, full_ns: int) -> Raw:
    named = {"component": bucket.component, "namespace": bucket.namespace}
    return {**{name: value for name, value in named.items() if value}, "fullTime": format_exact_time(full_ns)}
