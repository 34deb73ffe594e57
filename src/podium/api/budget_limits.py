"""The disruption rate of a PodDisruptionBudget, and the bounds that the DisruptionPolicy sets to a budget.

The API server takes a token when a disruption begins; the budget controller keeps `available` in
`status.disruptionRate` current for readers. Both use these functions, so that they agree. Source:
controlled-rescheduling.md, Disruption budget ("disruption budgets need to be tied into quota, to prevent users from
saying none of their pods can ever be disrupted").
"""

from __future__ import annotations

import msgspec

from podium.api.disruption_policy import DISRUPTION_RATE, MAX_DISRUPTIONS, BudgetBound, Rate, parse_rate
from podium.api.errors import shown
from podium.api.meta import Raw
from podium.api.policy import DisruptionRateStatus, PodDisruptionBudget, PodDisruptionBudgetSpec
from podium.api.times import SECOND, format_exact_time, format_time, parse_time

# Sample pod counts for a budget whose number of pods is unknown.
_ANY_NUMBERS = (10, 10**9)


def pods_of_share(share: int | str, expected: int, *, rounds_up: bool = True) -> int:
    """Return a share of the expected pods, in pods or percent, as a number. Raises ValueError for other values."""
    if isinstance(share, int):
        return share
    digits = share.removesuffix("%")
    if digits == share or len(digits) > 16 or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f'{shown(share)} is neither a number of pods nor a percentage such as "30%"')
    hundredths = int(digits) * expected
    return -(-hundredths // 100) if rounds_up else hundredths // 100


def bounded_desired(desired: int, expected: int, bound: BudgetBound | None) -> int:
    """Return how many of the expected pods must be healthy, as the budget says or as a bound reduces it."""
    if bound is None or bound.min_disruptions is None:
        return desired
    return min(desired, max(0, expected - pods_of_share(bound.min_disruptions, expected)))


def bound_rate(bound: BudgetBound | None) -> Rate | None:
    """Return the minimum disruption rate of a bound; None if it has none."""
    return None if bound is None or bound.min_rate is None else parse_rate(bound.min_rate)


def raised(rate: Rate, least: Rate | None) -> Rate:
    """Return the budget's rate, or the minimum rate if the budget's regains tokens more slowly."""
    return least if least is not None and rate.interval_ns > least.interval_ns else rate


def strictness_problem(
    spec: PodDisruptionBudgetSpec, rate: Rate | None, bound: BudgetBound, expected: int | None
) -> str | None:
    """Return why a budget for so many pods is stricter than a bound allows; None if it is not.

    With ``expected`` None the number is unknown: the budget is too strict if it is so for any number.
    """
    least = bound_rate(bound)
    if rate is not None and raised(rate, least) != rate:
        return f"its rate of {rate} is stricter than minRate, {bound.min_rate}"
    numbers = _ANY_NUMBERS if expected is None else (expected,)
    if bound.min_disruptions is not None and all(_is_too_strict(spec, bound, number) for number in numbers):
        field, value = "maxUnavailable", spec.max_unavailable
        if value is None:
            field, value = "minAvailable", spec.min_available or 0
        over = "" if expected is None else f" of {expected} pods"
        return f"{field} {value}{over} is stricter than minDisruptions, {bound.min_disruptions}"
    return None


def _is_too_strict(spec: PodDisruptionBudgetSpec, bound: BudgetBound, expected: int) -> bool:
    if spec.max_unavailable is not None:
        desired = max(0, expected - pods_of_share(spec.max_unavailable, expected))
    else:
        desired = pods_of_share(spec.min_available or 0, expected)
    return bounded_desired(desired, expected, bound) < desired


_MOST_RECENT = 5
"""The maximum number of disruptions that the status of a budget lists."""


def annotated_rate(budget: PodDisruptionBudget) -> Rate | None:
    """Return the rate in the budget's annotation, None if it has none. Raises ValueError for an invalid rate."""
    text = budget.metadata.annotations.get(MAX_DISRUPTIONS)
    return None if text is None else parse_rate(text)


def rate_of(budget: PodDisruptionBudget) -> Rate | None:
    """Return the effective rate: the annotation's, or the minimum rate if the status says that it is stricter.

    None if there is none. Raises ValueError for an invalid rate.
    """
    rate, least = annotated_rate(budget), least_rate(budget)
    return None if rate is None else raised(rate, least)


def least_rate(budget: PodDisruptionBudget) -> Rate | None:
    """Return the minimum rate in the status; None if it has none."""
    status = budget.status.disruption_rate
    return None if status is None or status.at_least is None else parse_rate(status.at_least)


def full_ns(budget: PodDisruptionBudget, rate: Rate) -> int:
    """Return the time when the bucket of the budget's rate is full again, 0 if it was never used.

    When the annotation changes, tokens used with the previous rate still count.
    """
    status = budget.status.disruption_rate or _annotated_status(budget)
    if status is None or status.full_time is None:
        return 0
    full = parse_time(status.full_time)
    before = parse_rate(status.max)
    return full if before == rate else rate.carried_over(full, before)


def rate_status(budget: PodDisruptionBudget, now: int, least: Rate | None = None) -> Raw | None:
    """Return the current value for `status.disruptionRate`; None if there should be none.

    `least` is the minimum rate of the DisruptionPolicy. Without disruptions or changes of annotation and policy, only
    `available` changes over time.
    """
    own = annotated_rate(budget)
    if own is None:
        return None
    rate = raised(own, least)
    return _status(rate, full_ns(budget, rate), now, least if rate != own else None, last_disruptions(budget))


def rate_status_after(budget: PodDisruptionBudget, now: int, disruption: str = "") -> Raw | None:
    """Return `rate_status` after one more disruption has taken a token; without one the status stays the same.

    `disruption` describes it, such as "pod web-0 was evicted".
    """
    rate = rate_of(budget)
    if rate is None:
        return None
    full, last = full_ns(budget, rate), last_disruptions(budget)
    if rate.tokens(full, now) > 0:
        full = rate.taken(full, now)
        last += (f"{disruption} at {format_time(now)}",) if disruption else ()
    return _status(rate, full, now, least_rate(budget), last)


def last_disruptions(budget: PodDisruptionBudget) -> tuple[str, ...]:
    """Return the sentences about the pods whose disruptions took the tokens of the rate."""
    status = budget.status.disruption_rate
    return () if status is None else status.last_disruptions


def rate_annotation(rate: Rate, full: int, now: int) -> str:
    """Return the annotation that replaces the status of a budget: its rate, and when its bucket is full."""
    return msgspec.json.encode(_status(rate, full, now, None, ())).decode()


def rate_recheck_ns(budget: PodDisruptionBudget, now: int) -> int | None:
    """Return when to update `available` next, at least a second from now; None if it stays the same."""
    rate = rate_of(budget)
    full = 0 if rate is None else full_ns(budget, rate)
    if rate is None or full <= now:
        return None
    missing = rate.count - rate.tokens(full, now)
    return max(full - (missing - 1) * rate.interval_ns, now + SECOND)


def _annotated_status(budget: PodDisruptionBudget) -> DisruptionRateStatus | None:
    """Return the status in an annotation; None if it is absent or malformed."""
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


def _status(rate: Rate, full: int, now: int, least: Rate | None, last: tuple[str, ...]) -> Raw:
    available = max(0, rate.tokens(full, now))
    status: Raw = {"max": str(rate), "available": available}
    # Each missing token was taken by one disruption.
    recent = last[-min(rate.count - available, _MOST_RECENT) :] if available < rate.count else ()
    if recent:
        status["lastDisruptions"] = list(recent)
    if least is not None:
        status["atLeast"] = str(least)
    return {**status, "fullTime": format_exact_time(full)} if full else status
