"""How often the pods of a PodDisruptionBudget may be disrupted: its `status.disruptionRate`.

The API server takes a token for each disruption when it begins; the budget controller keeps `available` up to date for
those who read it. Both use these functions, so that they agree. Source: controlled-rescheduling.md, Disruption budget.
"""

from __future__ import annotations

from podium.api.disruption_rate import MAX_DISRUPTIONS, Rate, parse_rate
from podium.api.meta import Raw
from podium.api.policy import PodDisruptionBudget
from podium.api.times import format_exact_time, parse_time

_SECOND = 10**9


def rate_of(budget: PodDisruptionBudget) -> Rate | None:
    """The rate that the budget's annotation gives, None where there is none. Raises ValueError for what is no rate."""
    text = budget.metadata.annotations.get(MAX_DISRUPTIONS)
    return None if text is None else parse_rate(text)


def full_ns(budget: PodDisruptionBudget, rate: Rate) -> int:
    """When the bucket of the budget's rate is full again, 0 for one that no disruption used yet.

    When the annotation changes, what was used with the rate before still counts.
    """
    status = budget.status.disruption_rate
    if status is None or status.full_time is None:
        return 0
    full = parse_time(status.full_time)
    before = parse_rate(status.max)
    return full if before == rate else rate.carried_over(full, before)


def rate_status(budget: PodDisruptionBudget, now: int) -> Raw | None:
    """What `status.disruptionRate` should say now; None where there should be none.

    As long as nothing is disrupted, and the annotation stays, only `available` changes with time.
    """
    rate = rate_of(budget)
    return None if rate is None else _status(rate, full_ns(budget, rate), now)


def rate_status_after(budget: PodDisruptionBudget, now: int) -> Raw | None:
    """As `rate_status`, once one more disruption has taken the token that there is; the same where there is none."""
    rate = rate_of(budget)
    if rate is None:
        return None
    full = full_ns(budget, rate)
    return _status(rate, rate.taken(full, now) if rate.tokens(full, now) > 0 else full, now)


def rate_recheck_ns(budget: PodDisruptionBudget, now: int) -> int | None:
    """When `available` is next to be written anew, a second from now at the earliest; None where it stays."""
    rate = rate_of(budget)
    full = 0 if rate is None else full_ns(budget, rate)
    if rate is None or full <= now:
        return None
    missing = rate.count - rate.tokens(full, now)
    return max(full - (missing - 1) * rate.interval_ns, now + _SECOND)


def _status(rate: Rate, full: int, now: int) -> Raw:
    status = {"max": str(rate), "available": max(0, rate.tokens(full, now))}
    return {**status, "fullTime": format_exact_time(full)} if full else status
