"""How strict a disruption budget may be: the bounds of the DisruptionPolicy, applied to one budget.

Source: controlled-rescheduling.md, Disruption budget ("disruption budgets need to be tied into quota, to prevent users
from saying none of their pods can ever be disrupted").
"""

from __future__ import annotations

from podium.api.disruption_policy import BudgetBound
from podium.api.disruption_rate import Rate, parse_rate
from podium.api.errors import shown
from podium.api.policy import PodDisruptionBudgetSpec

# Numbers of pods for which a budget is judged that covers nobody knows how many.
_ANY_NUMBERS = (10, 10**9)


def pods_of_share(share: int | str, expected: int) -> int:
    """A number of pods; a percentage of those expected is rounded up. Raises ValueError for what is neither."""
    if isinstance(share, int):
        return share
    digits = share.removesuffix("%")
    if digits == share or len(digits) > 16 or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f'{shown(share)} is neither a number of pods nor a percentage such as "30%"')
    return -(-int(digits) * expected // 100)


def bounded_desired(desired: int, expected: int, bound: BudgetBound | None) -> int:
    """How many pods must be up, where a budget wants so many of those expected, and a bound may want fewer."""
    if bound is None or bound.min_disruptions is None:
        return desired
    return min(desired, max(0, expected - pods_of_share(bound.min_disruptions, expected)))


def bound_rate(bound: BudgetBound | None) -> Rate | None:
    """How often a bound wants disruptions to be allowed at least; None where it says nothing of that."""
    return None if bound is None or bound.min_rate is None else parse_rate(bound.min_rate)


def raised(rate: Rate, least: Rate | None) -> Rate:
    """The rate that a budget has, or the least one where disruptions would come back more slowly."""
    return least if least is not None and rate.interval_ns > least.interval_ns else rate


def strictness_problem(
    spec: PodDisruptionBudgetSpec, rate: Rate | None, bound: BudgetBound, expected: int | None
) -> str | None:
    """Why a budget over so many pods is stricter than a bound lets it be; None where it is not.

    With ``expected`` None, nobody knows how many pods: what is too strict for any number of them is too strict.
    """
    least = bound_rate(bound)
    if rate is not None and raised(rate, least) != rate:
        return f"its rate of {rate} is stricter than minRate, {bound.min_rate}"
    numbers = _ANY_NUMBERS if expected is None else (expected,)
    if bound.min_disruptions is not None and all(_is_too_strict(spec, bound, number) for number in numbers):
        field, value = _field(spec)
        over = "" if expected is None else f" of {expected} pods"
        return f"{field} {value}{over} is stricter than minDisruptions, {bound.min_disruptions}"
    return None


def _is_too_strict(spec: PodDisruptionBudgetSpec, bound: BudgetBound, expected: int) -> bool:
    if spec.max_unavailable is not None:
        desired = max(0, expected - pods_of_share(spec.max_unavailable, expected))
    else:
        desired = pods_of_share(spec.min_available or 0, expected)
    return bounded_desired(desired, expected, bound) < desired


def _field(spec: PodDisruptionBudgetSpec) -> tuple[str, int | str]:
    if spec.max_unavailable is not None:
        return "maxUnavailable", spec.max_unavailable
    return "minAvailable", spec.min_available or 0
