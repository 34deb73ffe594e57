"""How often the pods of a PodDisruptionBudget may be disrupted: its `status.disruptionRate`.

The API server takes a token for each disruption when it begins; the budget controller keeps `available` up to date for
those who read it. Both use these functions, so that they agree. Source: controlled-rescheduling.md, Disruption budget.
"""

from __future__ import annotations

import msgspec

from podium.api.budget_bound import raised
from podium.api.disruption_rate import DISRUPTION_RATE, MAX_DISRUPTIONS, Rate, parse_rate
from podium.api.meta import Raw
from podium.api.policy import DisruptionRateStatus, PodDisruptionBudget
from podium.api.times import format_exact_time, parse_time

_SECOND = 10**9


def annotated_rate(budget: PodDisruptionBudget) -> Rate | None:
    """The rate that the budget's annotation gives, None where there is none. Raises ValueError for what is no rate."""
    text = budget.metadata.annotations.get(MAX_DISRUPTIONS)
    return None if text is None else parse_rate(text)


def rate_of(budget: PodDisruptionBudget) -> Rate | None:
    """The rate that holds: the annotation's, or the least one that is allowed, if the status says that it is stricter.

    None where there is none. Raises ValueError for what is no rate.
    """
    rate, least = annotated_rate(budget), least_rate(budget)
    return None if rate is None else raised(rate, least)


def least_rate(budget: PodDisruptionBudget) -> Rate | None:
    """The rate that the status says the budget must have at least; None where it says nothing of that."""
    status = budget.status.disruption_rate
    return None if status is None or status.at_least is None else parse_rate(status.at_least)


def full_ns(budget: PodDisruptionBudget, rate: Rate) -> int:
    """When the bucket of the budget's rate is full again, 0 for one that no disruption used yet.

    When the annotation changes, what was used with the rate before still counts.
    """
    status = budget.status.disruption_rate or _annotated_status(budget)
    if status is None or status.full_time is None:
        return 0
    full = parse_time(status.full_time)
    before = parse_rate(status.max)
    return full if before == rate else rate.carried_over(full, before)


def rate_status(budget: PodDisruptionBudget, now: int, least: Rate | None = None) -> Raw | None:
    """What `status.disruptionRate` should say now; None where there should be none.

    `least` is the rate that the DisruptionPolicy wants the budget to have at least. As long as nothing is disrupted,
    and annotation and policy stay, only `available` changes with time.
    """
    own = annotated_rate(budget)
    if own is None:
        return None
    rate = raised(own, least)
    return _status(rate, full_ns(budget, rate), now, least if rate != own else None)


def rate_status_after(budget: PodDisruptionBudget, now: int) -> Raw | None:
    """As `rate_status`, once one more disruption has taken the token that there is; the same where there is none."""
    rate = rate_of(budget)
    if rate is None:
        return None
    full = full_ns(budget, rate)
    return _status(rate, rate.taken(full, now) if rate.tokens(full, now) > 0 else full, now, least_rate(budget))


def rate_annotation(rate: Rate, full: int, now: int) -> str:
    """The annotation that stands for the status of a budget with this rate, whose bucket is full again at a time."""
    return msgspec.json.encode(_status(rate, full, now, None)).decode()


def rate_recheck_ns(budget: PodDisruptionBudget, now: int) -> int | None:
    """When `available` is next to be written anew, a second from now at the earliest; None where it stays."""
    rate = rate_of(budget)
    full = 0 if rate is None else full_ns(budget, rate)
    if rate is None or full <= now:
        return None
    missing = rate.count - rate.tokens(full, now)
    return max(full - (missing - 1) * rate.interval_ns, now + _SECOND)


def _annotated_status(budget: PodDisruptionBudget) -> DisruptionRateStatus | None:
    """What an annotation says in place of the status; None where it says nothing, or nothing that can be read."""
    text = budget.metadata.annotations.get(DISRUPTION_RATE)
    if text is None:
        return None
    try:
        status = msgspec.json.decode(text, type=DisruptionRateStatus)
        parse_rate(status.max)
        parse_time(status.full_time or "")
    except (msgspec.DecodeError, ValueError):
        return None
    return status


def _status(rate: Rate, full: int, now: int, least: Rate | None) -> Raw:
    status: Raw = {"max": str(rate), "available": max(0, rate.tokens(full, now))}
    if least is not None:
        status["atLeast"] = str(least)
    return {**status, "fullTime": format_exact_time(full)} if full else status
