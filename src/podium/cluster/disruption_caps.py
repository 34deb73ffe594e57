"""The caps on how often schedulers may disrupt pods that have a budget, as a scheduler knows them.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.disruption_cap import CapBucket, CapScope, full_times
from podium.api.disruption_policy import SCHEDULER, DisruptionPolicy
from podium.api.disruption_rate import Rate


class DisruptionCaps:
    """What the cluster's DisruptionPolicy leaves to schedulers at ``now``.

    Of each bucket that is not full it is known when it is full again: as the API shows it, or later where disruptions
    that were begun here are on their way there.
    """

    def __init__(self) -> None:
        self.now = 0
        self._rates: dict[CapScope, Rate] = {}
        self._full: dict[CapBucket, int] = {}

    def observe(self, policy: DisruptionPolicy | None) -> bool:
        """Take in the policy, None once it is gone; whether some cap is another one."""
        caps = () if policy is None else policy.spec.caps
        rates = {cap.scope: cap.rate for cap in caps if cap.counts(SCHEDULER)}
        before, self._rates = self._rates, rates
        shown = full_times(() if policy is None else policy.status.caps)
        kept = {bucket: own for bucket, own in self._full.items() if before[bucket.scope] == rates.get(bucket.scope)}
        self._full = {
            bucket: full_ns
            for bucket in (shown | kept)
            if bucket.scope in rates and (full_ns := max(shown.get(bucket, 0), kept.get(bucket, 0))) > self.now
        }
        return before != rates

    @property
    def limits(self) -> bool:
        """Whether schedulers have any cap."""
        return bool(self._rates)

    def known(self) -> Mapping[CapBucket, int]:
        """When the buckets are full again of which something was taken."""
        return self._full

    def assume(self, full: Mapping[CapBucket, int]) -> None:
        """Take it from somebody else when buckets are full again."""
        self._full = {bucket: full_ns for bucket, full_ns in full.items() if bucket.scope in self._rates}

    def used(self) -> list[CapBucket]:
        """The buckets that are not full, in order; any other allows whatever is asked for."""
        return sorted(bucket for bucket, full_ns in self._full.items() if full_ns > self.now)

    def rate(self, bucket: CapBucket) -> Rate:
        """The rate of a bucket."""
        return self._rates[bucket.scope]

    def left(self, bucket: CapBucket) -> int:
        """How many tokens there are."""
        return max(self.rate(bucket).tokens(self._full.get(bucket, 0), self.now), 0)

    def needs(self, by_namespace: Mapping[str, int]) -> dict[CapBucket, int]:
        """How many tokens of each bucket it takes to disrupt so many pods in each namespace.

        A full bucket is enough for any number.
        """
        found: dict[CapBucket, int] = {}
        for scope in self._rates:
            for namespace, pods in by_namespace.items():
                bucket = CapBucket(scope.component, namespace if scope.by_namespace else "")
                found[bucket] = found.get(bucket, 0) + pods
        return {bucket: min(pods, self.rate(bucket).count) for bucket, pods in sorted(found.items()) if pods}

    def shortage(self, needs: Mapping[CapBucket, int]) -> CapBucket | None:
        """The bucket that has too few tokens, of several the one that lacks them longest; None where none lacks any."""
        short = [bucket for bucket in sorted(needs) if needs[bucket] > self.left(bucket)]
        return max(short, key=lambda bucket: self.next_ns(bucket, needs[bucket]), default=None)

    def take(self, needs: Mapping[CapBucket, int]) -> None:
        """Take tokens. Raises ValueError where there are too few."""
        short = self.shortage(needs)
        if short is not None:
            raise ValueError(f"{needs[short]} disruptions are more than the {self.left(short)} that are left")
        for bucket, tokens in needs.items():
            for _ in range(tokens):
                self._full[bucket] = self.rate(bucket).taken(self._full.get(bucket, 0), self.now)

    def next_ns(self, bucket: CapBucket, victims: int) -> int:
        """When a bucket has enough for so many pods: now, or later."""
        rate = self.rate(bucket)
        needed = min(victims, rate.count)
        return max(self.now, self._full.get(bucket, 0) - (rate.count - needed) * rate.interval_ns)
