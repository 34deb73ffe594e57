"""Limits on how often something is disrupted: so many times in a period, kept as a token bucket.

Source: controlled-rescheduling.md, Disruption budget (a rate limit on disruptions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from podium.api.errors import shown
from podium.api.times import format_duration, parse_duration

MAX_DISRUPTIONS = "podium.dev/max-disruptions"
"""Annotation of a PodDisruptionBudget: how many of its pods may be disrupted in a period, such as "1/1h"."""

DISRUPTION_RATE = "podium.dev/disruption-rate"
"""Annotation of a PodDisruptionBudget that stands for `status.disruptionRate` where that is another controller's."""

_FORM = re.compile(r"([0-9]{1,6})/(.{1,32})")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``count`` times in a row, then once in every ``count``-th part of ``period_ns``.

    The bucket holds ``count`` tokens and gets one back in each ``interval_ns``. Its whole state is the time ``full_ns``
    at which it is full again; each token taken puts that off by one interval.
    """

    count: int
    period_ns: int

    @property
    def interval_ns(self) -> int:
        """How long the bucket takes to get one token back."""
        return -(-self.period_ns // self.count)

    def tokens(self, full_ns: int, now: int) -> int:
        """How many tokens there are now in a bucket that is full at ``full_ns``."""
        missing_ns = max(0, full_ns - now)
        return self.count + (-missing_ns // self.interval_ns)

    def taken(self, full_ns: int, now: int) -> int:
        """When the bucket is full again once one more token is taken now."""
        return max(full_ns, now) + self.interval_ns

    def next_ns(self, full_ns: int, now: int) -> int:
        """When there is a token: ``now`` where there is one."""
        return max(now, full_ns - (self.count - 1) * self.interval_ns)

    def carried_over(self, full_ns: int, before: Rate) -> int:
        """When the bucket is full again that was full at ``full_ns`` with another rate, and was empty when that was."""
        return full_ns - before.count * before.interval_ns + self.count * self.interval_ns

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.period_ns)}"


@lru_cache(maxsize=8_192)
def parse_rate(text: str) -> Rate:
    """The rate of a text such as "1/1h" or "5/10m". Raises ValueError for what is none."""
    found = _FORM.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise ValueError(f'{shown(text)} is no rate; write how many in how long, as in "1/1h"')
    period_ns = parse_duration(found[2])
    if period_ns <= 0:
        raise ValueError(f'{shown(text)}: the period is not longer than 0s; write it as in "1/1h"')
    return Rate(int(found[1]), period_ns)
