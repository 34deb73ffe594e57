"""The cap on how often schedulers may disrupt pods that have a budget, as a scheduler knows it.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from podium.api.disruption_policy import SCHEDULER, DisruptionPolicy
from podium.api.disruption_rate import Rate


class DisruptionCap:
    """What the cluster's DisruptionPolicy leaves to schedulers at ``now``; without a ``rate`` there is no cap.

    ``full_ns`` is when the bucket is full again: as the API shows it, or later where disruptions that were begun here
    are on their way there.
    """

    def __init__(self) -> None:
        self.now = 0
        self.rate: Rate | None = None
        self.full_ns = 0

    def observe(self, policy: DisruptionPolicy | None) -> bool:
        """Take in the policy, None once it is gone; whether the cap is another one."""
        rate = None if policy is None else policy.cap_rate(SCHEDULER)
        full_ns = 0 if policy is None else policy.cap_full_ns(SCHEDULER)
        if rate == self.rate:
            self.full_ns = max(self.full_ns, full_ns)
            return False
        self.rate, self.full_ns = rate, full_ns
        return True

    @property
    def left(self) -> int | None:
        """How many tokens there are; None without a cap."""
        return None if self.rate is None else max(self.rate.tokens(self.full_ns, self.now), 0)

    def needed(self, victims: int) -> int:
        """How many tokens it takes to disrupt so many pods: a full bucket is enough for any number."""
        return 0 if self.rate is None else min(victims, self.rate.count)

    def allows(self, victims: int) -> bool:
        """Whether so many pods with a budget may be disrupted now."""
        return self.left is None or self.needed(victims) <= self.left

    def take(self, victims: int) -> None:
        """Take the tokens for the disruption of so many pods. Raises ValueError where there are too few."""
        if not self.allows(victims):
            raise ValueError(f"{victims} disruptions are more than the {self.left} that are left")
        if self.rate is not None:
            for _ in range(self.needed(victims)):
                self.full_ns = self.rate.taken(self.full_ns, self.now)

    def next_ns(self, victims: int) -> int:
        """When so many pods may be disrupted: now, or later."""
        if self.rate is None:
            return self.now
        return max(self.now, self.full_ns - (self.rate.count - self.needed(victims)) * self.rate.interval_ns)
