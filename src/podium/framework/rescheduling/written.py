"""The fields of a ReschedulerConfiguration as they are written, and the settings that they come to."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from podium.api.errors import InputError, shown
from podium.framework.rescheduling.aggressiveness import SETTINGS_OF, Aggressiveness
from podium.framework.rescheduling.settings import (
    Guidance,
    Judgement,
    Limits,
    PolicySettings,
    ReschedulerSettings,
    Steering,
)
from podium.framework.rescheduling.written_scope import Span, WrittenScope, scope_of, span_ns
from podium.framework.settings.strict import Strict

DEFAULT_POLICIES = (
    "RepairViolations",
    "PrepareForMaintenance",
    "LeavePoorService",
    "MoveToUnderusedNodes",
    "SatisfyPreferences",
)
"""The policies that are on where a configuration lists none, in the order of their turns.

Those of the design's first version, and those that act only where somebody has announced something, or where a pod is
badly off as it is. What shifts pods for the sake of others, or for their age, is on where a configuration says so.
"""

UNLIMITED = "Unlimited"

_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Positive = Annotated[float, Meta(gt=0, le=1_000_000)]
_MOST_POLICIES = 100

T = TypeVar("T")


class WrittenPolicy(Strict, frozen=True, kw_only=True):
    """A policy that is on, unless it says otherwise; its arguments are for itself to read."""

    name: str
    enabled: bool = True
    weight: _Positive = 1.0
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class WrittenLimits(Strict, frozen=True, kw_only=True):
    """Numbers of pods, or Unlimited; None is what the aggressiveness says."""

    total: _Count | str | None = None
    node: _Count | str | None = None
    namespace: _Count | str | None = None
    owner: _Count | str | None = None


class WrittenLimitSets(Strict, frozen=True, kw_only=True):
    """The limits of moves under way, of those in an hour, and of those under way without a budget."""

    in_flight: WrittenLimits = WrittenLimits()
    hourly: WrittenLimits = WrittenLimits()
    without_budget: WrittenLimits = WrittenLimits()


class WrittenBudgets(Strict, frozen=True, kw_only=True):
    """What is left of what each budget allows."""

    reserve: _Count | None = None
    reserve_share: Annotated[float, Meta(ge=0, le=1)] | None = None


class Written(Strict, frozen=True, kw_only=True):
    """All that may be set; None is what the aggressiveness says."""

    aggressiveness: Literal["Cautious", "Moderate", "Bold"] = "Cautious"
    paused: bool = False
    policies: tuple[WrittenPolicy, ...] | None = None
    interval: Span | None = None
    threshold: _Positive | None = None
    limits: WrittenLimitSets = WrittenLimitSets()
    budgets: WrittenBudgets = WrittenBudgets()
    scope: WrittenScope = WrittenScope()
    guidance: Literal["Evict", "Hint", "Bind"] = "Evict"
    judgement: Literal["Placement", "Blind"] = "Placement"
    steering: Literal["AvoidList", "SoftTaint", "ScoresAlone"] = "AvoidList"
    goes_first: bool = False
    move_timeout: Span | None = None
    cool_down: Span | None = None
    max_trials: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


def settings_of(written: Written) -> ReschedulerSettings:
    """The settings that the fields come to. Raises InputError with the field's path for what is wrong in them."""
    usual = SETTINGS_OF[Aggressiveness(written.aggressiveness)]
    limits, budgets = written.limits, written.budgets
    return ReschedulerSettings(
        policies=_policies(written.policies),
        interval_ns=span_ns(written.interval, usual.interval_ns, ".interval"),
        threshold=_given(written.threshold, usual.threshold),
        in_flight=_limits(limits.in_flight, usual.in_flight, ".limits.inFlight"),
        hourly=_limits(limits.hourly, usual.hourly, ".limits.hourly"),
        without_budget=_limits(limits.without_budget, usual.without_budget, ".limits.withoutBudget"),
        budget_reserve=_given(budgets.reserve, usual.budget_reserve),
        budget_reserve_share=_given(budgets.reserve_share, usual.budget_reserve_share),
        scope=scope_of(written.scope, usual.scope, ".scope"),
        guidance=Guidance(written.guidance),
        judgement=Judgement(written.judgement),
        steering=Steering(written.steering),
        goes_first=written.goes_first,
        move_timeout_ns=span_ns(written.move_timeout, usual.move_timeout_ns, ".moveTimeout"),
        cool_down_ns=span_ns(written.cool_down, usual.cool_down_ns, ".coolDown"),
        max_trials=_given(written.max_trials, usual.max_trials),
        is_paused=written.paused,
    )


def _given(value: T | None, usual: T) -> T:
    return usual if value is None else value


def _limits(written: WrittenLimits, usual: Limits, path: str) -> Limits:
    return Limits(
        total=_limit(written.total, usual.total, f"{path}.total"),
        node=_limit(written.node, usual.node, f"{path}.node"),
        namespace=_limit(written.namespace, usual.namespace, f"{path}.namespace"),
        owner=_limit(written.owner, usual.owner, f"{path}.owner"),
    )


def _limit(value: int | str | None, usual: int | None, path: str) -> int | None:
    if isinstance(value, str):
        if value != UNLIMITED:
            raise InputError(f"{shown(value)} is neither a whole number nor {UNLIMITED}", path=path)
        return None
    return usual if value is None else value


def _policies(written: tuple[WrittenPolicy, ...] | None) -> tuple[PolicySettings, ...]:
    """Those that are on, in their order; each name once."""
    if written is None:
        return tuple(PolicySettings(name) for name in DEFAULT_POLICIES)
    if len(written) > _MOST_POLICIES:
        raise InputError(f"has {len(written)} policies; at most {_MOST_POLICIES} are possible", path=".policies")
    names: set[str] = set()
    for position, policy in enumerate(written):
        path = f".policies[{position}].name"
        if not policy.name:
            raise InputError("is empty; the name of a policy is needed", path=path)
        if policy.name in names:
            raise InputError(f"{shown(policy.name)} is listed twice; remove one", path=path)
        names.add(policy.name)
    return tuple(PolicySettings(policy.name, policy.weight, policy.args) for policy in written if policy.enabled)
