"""Disruption rate limits as token buckets, and the caps of a DisruptionPolicy, which limit components with them.

Source: controlled-rescheduling.md, Disruption budget (a rate limit on disruptions; a quota for the components that
consume it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from podium.api.errors import shown
from podium.api.meta import Narrow, Raw
from podium.api.times import format_duration, format_exact_time, parse_duration, parse_time

MAX_DISRUPTIONS = "podium.dev/max-disruptions"
"""An annotation of a PodDisruptionBudget: how many of its pods may be disrupted per period, such as "1/1h"."""

DISRUPTION_RATE = "podium.dev/disruption-rate"
"""An annotation of a PodDisruptionBudget that replaces `status.disruptionRate` if another controller owns it."""

_FORM = re.compile(r"([0-9]{1,6})/(.{1,32})")


@dataclass(frozen=True, slots=True)
class Rate:
    """A burst of at most ``count``, then one in every ``count``-th part of ``period_ns``.

    The bucket holds ``count`` tokens and regains one every ``interval_ns``. Its whole state is the time ``full_ns`` at
    which it is full again; each token taken postpones that by one interval.
    """

    count: int
    period_ns: int

    @property
    def interval_ns(self) -> int:
        """The time in which the bucket regains one token."""
        return -(-self.period_ns // self.count)

    def tokens(self, full_ns: int, now: int) -> int:
        """Return the number of tokens now in a bucket that is full at ``full_ns``."""
        missing_ns = max(0, full_ns - now)
        return self.count + (-missing_ns // self.interval_ns)

    def taken(self, full_ns: int, now: int) -> int:
        """Return when the bucket is full again if one more token is taken now."""
        return max(full_ns, now) + self.interval_ns

    def next_ns(self, full_ns: int, now: int) -> int:
        """Return when a token is available: ``now`` if there is one."""
        return max(now, full_ns - (self.count - 1) * self.interval_ns)

    def carried_over(self, full_ns: int, before: Rate) -> int:
        """Return when the bucket is full with this rate, if with the rate ``before`` it was full at ``full_ns``.

        The time at which the bucket was empty is the same for both rates.
        """
        return full_ns - before.count * before.interval_ns + self.count * self.interval_ns

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.period_ns)}"


@lru_cache(maxsize=8_192)
def parse_rate(text: str) -> Rate:
    """Return the rate of a text such as "1/1h" or "5/10m". Raises ValueError for an invalid text."""
    found = _FORM.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise ValueError(f'{shown(text)} is no rate; write how many in how long, as in "1/1h"')
    period_ns = parse_duration(found[2])
    if period_ns <= 0:
        raise ValueError(f'{shown(text)}: the period is not longer than 0s; write it as in "1/1h"')
    return Rate(int(found[1]), period_ns)


MAX_BUCKETS = 1_000
"""The maximum number of non-full buckets in a status; beyond it, those that are full again soonest are omitted.

kube-apiserver's event rate limits similarly forget namespaces (plugin/pkg/admission/eventratelimit, cacheSize)."""


class CapScope(NamedTuple):
    """The scope of a cap: a component ("" for all of them together), cluster-wide or per namespace."""

    component: str
    by_namespace: bool


class CapBucket(NamedTuple):
    """The key of a token bucket: a component ("" for all), and a namespace ("" for the cluster)."""

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
    """A limit on disruptions of pods that have a budget: a rate such as "5/1h".

    It counts the disruptions of one component, or without one those of all together. `per` says whether it applies to
    the whole cluster, or to each namespace separately.
    """

    component: str | None = None
    max: str
    per: Literal["Cluster", "Namespace"] = "Cluster"

    @property
    def scope(self) -> CapScope:
        """The cap's scope; a policy has at most one cap for each."""
        return CapScope(self.component or "", self.per == "Namespace")

    @property
    def rate(self) -> Rate:
        """The rate. Raises ValueError for an invalid rate."""
        return parse_rate(self.max)

    def counts(self, component: str) -> bool:
        """Return whether disruptions by that component count."""
        return self.component is None or self.component == component

    def bucket(self, namespace: str) -> CapBucket:
        """Return the bucket from which a disruption in a namespace takes a token."""
        return CapBucket(self.component or "", namespace if self.per == "Namespace" else "")


class CapStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The usage of a cap: the token bucket of the rate is full again at `full_time`.

    `component` and `namespace` are set if the cap is for one component or per namespace.
    """

    component: str | None = None
    namespace: str | None = None
    full_time: str

    @property
    def bucket(self) -> CapBucket:
        """The key of the bucket."""
        return CapBucket(self.component or "", self.namespace or "")


def full_times(statuses: Iterable[CapStatus]) -> dict[CapBucket, int]:
    """Return when each bucket is full again; unlisted buckets are full."""
    return {status.bucket: parse_time(status.full_time) for status in statuses}


def written_buckets(full: Mapping[CapBucket, int], now: int) -> list[Raw]:
    """Return the buckets in the form of a status, by component and namespace: those that are not full at ``now``."""
    used = sorted((-full_ns, bucket) for bucket, full_ns in full.items() if full_ns > now)[:MAX_BUCKETS]
    return [_written(bucket, -full_ns) for full_ns, bucket in sorted(used, key=lambda found: found[1])]


def _written(bucket: CapBucket, full_ns: int) -> Raw:
    named = {"component": bucket.component, "namespace": bucket.namespace}
    return {**{name: value for name, value in named.items() if value}, "fullTime": format_exact_time(full_ns)}
