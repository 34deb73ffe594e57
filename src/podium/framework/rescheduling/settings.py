"""The settings of a rescheduler, and the fields of a ReschedulerConfiguration as written. Times are in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from podium.api import selectors
from podium.api.errors import InputError, shown
from podium.api.meta import Int32
from podium.api.names import label_name_problem
from podium.api.reading import Duration, Interval
from podium.api.times import SECOND
from podium.framework.settings.arguments import Strict

_MINUTE = 60 * SECOND


class Guidance(Enum):
    """The ways to guide an evicted pod's replacement to its node.

    EVICT leaves it to the scheduler, whose own scores must choose another node. HINT names the node that was found for
    it. BIND binds it there.
    """

    EVICT = "Evict"
    HINT = "Hint"
    BIND = "Bind"


class Steering(Enum):
    """The ways to keep a replacement off its predecessor's node if the rescheduler does not direct it.

    AVOID_LIST: its controller is on the node's avoid list, which the schedulers respect. SOFT_TAINT: the node has a
    PreferNoSchedule taint while the move lasts. SCORES_ALONE: nothing; the scheduler's own scores must prefer another
    node.
    """

    AVOID_LIST = "AvoidList"
    SOFT_TAINT = "SoftTaint"
    SCORES_ALONE = "ScoresAlone"


class MoveCriteria(Enum):
    """The criteria for a move.

    PLACEMENT: the pod must have a node to go to. BLIND: the target is not computed, as in the first version of the
    design; a replacement may stay pending and hold one unit of its budget.
    """

    PLACEMENT = "Placement"
    BLIND = "Blind"


@dataclass(frozen=True, slots=True)
class MoveLimitSettings:
    """The maximum number of moves: in total, and by source node, namespace and owner; None is unlimited."""

    total: int | None = None
    node: int | None = None
    namespace: int | None = None
    owner: int | None = None


Allowance = Literal["SystemCriticalPods", "PodsWithoutController", "LocalStorage", "WorkInProgress"]
Sparing = Literal["PodsWithVolumeClaims", "PodsWithDeviceClaims"]


class ScopeLimits(Strict, frozen=True, kw_only=True):
    """The fields of a scope that are used as they are written.

    ``allow`` includes pods that otherwise stay: those of system-critical priority, those without a controller, those
    with data on their node, and those of Jobs that do not state what a move costs. Of Jobs that state it, a pod may
    lose at most ``max_lost_work_ns``. Pods younger than ``minimum_age_ns`` stay. So do pods whose priority is not below
    ``priority_below`` (None: no bound), pods with claims of volumes or devices if ``spare`` names them, and pods whose
    owner has fewer than ``minimum_replicas``. So do pods of a workload that any component disrupted less than
    ``undisturbed_for_ns`` ago.
    """

    allow: tuple[Allowance, ...] = ()
    spare: tuple[Sparing, ...] = ()
    priority_below: Int32 | None = None
    minimum_replicas: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    minimum_age_ns: Duration = 5 * _MINUTE
    undisturbed_for_ns: Duration = 0
    max_lost_work_ns: Duration = 10 * _MINUTE


class ReschedulingScope(ScopeLimits, frozen=True, kw_only=True):
    """The pods that may be moved at all.

    They are in the namespaces ``included`` (empty: all) but not ``excluded``, match ``pods`` (None: any), and run on
    nodes that match ``nodes`` (None: any).
    """

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset(("kube-system",))
    pods: selectors.Selector | None = None
    nodes: selectors.Selector | None = None


_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Positive = Annotated[float, Meta(gt=0, le=1_000_000)]


class PolicySettings(Strict, frozen=True):
    """A policy by name, the weight of its objective, and its own arguments as written, which it reads itself."""

    name: str
    weight: _Positive = 1.0
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ReschedulerSettings:
    """The limits and the eagerness of a rescheduler.

    It looks for moves every ``interval_ns``. A move is worthwhile if the objective falls by ``threshold`` for each pod.
    ``in_flight`` limits moves under way, from the eviction until the replacement is ready; ``hourly`` limits those of
    the last hour; ``without_budget`` limits moves under way of pods without a budget. Of what each budget allows,
    ``budget_reserve`` disruptions are left to others, or that share of what it allows with all pods healthy, whichever
    is more.

    A move that is not complete after ``move_timeout_ns`` no longer counts as under way. If a replacement returned to
    the node that its predecessor was evicted from, that owner's pods there are left alone for ``cool_down_ns``.
    ``max_trials`` limits how many moves are tried each time. ``goes_first``: replacements go to the front of their
    scheduler's queue. ``is_paused`` stops all evictions.
    """

    policies: tuple[PolicySettings, ...]
    interval_ns: int = _MINUTE
    threshold: float = 0.5
    in_flight: MoveLimitSettings = MoveLimitSettings(total=5, node=1, namespace=2, owner=1)
    hourly: MoveLimitSettings = MoveLimitSettings(total=60, node=10, namespace=20, owner=4)
    without_budget: MoveLimitSettings = MoveLimitSettings(total=2, namespace=1, owner=1)
    budget_reserve: int = 1
    budget_reserve_share: float = 0.5
    scope: ReschedulingScope = ReschedulingScope()  # noqa: RUF009 - an immutable value
    guidance: Guidance = Guidance.EVICT
    steering: Steering = Steering.AVOID_LIST
    judgement: MoveCriteria = MoveCriteria.PLACEMENT
    goes_first: bool = False
    move_timeout_ns: int = 10 * _MINUTE
    cool_down_ns: int = 60 * _MINUTE
    max_trials: int = 200
    is_paused: bool = False


class Aggressiveness(Enum):
    """The levels of eagerness; each is a full set of numbers, any of which may be overridden."""

    CAUTIOUS = "Cautious"
    MODERATE = "Moderate"
    BOLD = "Bold"


_CAUTIOUS = ReschedulerSettings(policies=())

SETTINGS_OF: Mapping[Aggressiveness, ReschedulerSettings] = {
    Aggressiveness.CAUTIOUS: _CAUTIOUS,
    Aggressiveness.MODERATE: replace(
        _CAUTIOUS,
        interval_ns=30 * SECOND,
        threshold=0.25,
        in_flight=MoveLimitSettings(total=20, node=3, namespace=8, owner=2),
        hourly=MoveLimitSettings(total=240, node=40, namespace=80, owner=12),
        without_budget=MoveLimitSettings(total=8, namespace=3, owner=1),
        budget_reserve_share=0.25,
        max_trials=500,
    ),
    Aggressiveness.BOLD: replace(
        _CAUTIOUS,
        interval_ns=10 * SECOND,
        threshold=0.1,
        in_flight=MoveLimitSettings(total=100, node=10, namespace=40, owner=10),
        hourly=MoveLimitSettings(total=2_000, node=200, namespace=800, owner=100),
        without_budget=MoveLimitSettings(total=40, namespace=15, owner=4),
        budget_reserve=0,
        budget_reserve_share=0.0,
        max_trials=2_000,
    ),
}
"""The numbers of each level, without policies. Cautious is the default."""


class WrittenRequirement(selectors.LabelSelectorRequirement, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition on a label."""


class WrittenSelector(selectors.LabelSelector, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A label selector (meta/v1 LabelSelector) in which an unknown field is an error."""

    match_expressions: tuple[WrittenRequirement, ...] = ()


class WrittenNamespaces(Strict, frozen=True, kw_only=True):
    """Namespaces by name; without ``exclude``, kube-system is excluded unless it is included by name."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None


class WrittenScope(ScopeLimits, frozen=True, kw_only=True):
    """See `ReschedulingScope`."""

    namespaces: WrittenNamespaces = WrittenNamespaces()
    pod_selector: WrittenSelector | None = None
    node_selector: WrittenSelector | None = None


def scope_of(written: WrittenScope, path: str) -> ReschedulingScope:
    """Return the scope that the fields at a path define. Raises InputError for an invalid field."""
    usual = ReschedulingScope()
    included, excluded = _namespaces(written.namespaces, usual.excluded, f"{path}.namespaces")
    return msgspec.structs.replace(
        usual,
        **_written_values(written, usual),
        included=included,
        excluded=excluded,
        pods=label_selector(written.pod_selector, f"{path}.podSelector"),
        nodes=label_selector(written.node_selector, f"{path}.nodeSelector"),
    )


def _written_values(written: msgspec.Struct, usual: object) -> dict[str, Any]:
    """Return the written values by name, without those that are None or that the usual settings lack."""
    values = msgspec.structs.asdict(written).items()
    return {name: value for name, value in values if value is not None and hasattr(usual, name)}


def _namespaces(written: WrittenNamespaces, usual: frozenset[str], path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the included and the excluded namespaces; none is both."""
    included = names_of(written.include, f"{path}.include")
    if written.exclude is None:
        return included, usual - included
    excluded = names_of(written.exclude, f"{path}.exclude")
    both = sorted(included & excluded)
    if both:
        raise InputError(f"{shown(both[0])} is also included; leave it out of one of the two", path=f"{path}.exclude")
    return included, excluded


def names_of(names: tuple[str, ...], path: str) -> frozenset[str]:
    """Return the namespaces in a list at a path. Raises InputError for an invalid name."""
    for position, name in enumerate(names):
        problem = label_name_problem(name)
        if problem is not None:
            raise InputError(problem, path=f"{path}[{position}]")
    return frozenset(names)


def label_selector(written: WrittenSelector | None, path: str) -> selectors.Selector | None:
    """Return the selector at a path, None if there is none. Raises InputError for an invalid condition."""
    if written is None:
        return None
    for key, value in written.match_labels.items():
        if (problem := selectors.requirement_problem(key, "In", (value,))) is not None:
            raise InputError(problem[1], path=f"{path}.matchLabels")
    for position, condition in enumerate(written.match_expressions):
        if (problem := selectors.requirement_problem(condition.key, condition.operator, condition.values)) is not None:
            raise InputError(problem[1], path=f"{path}.matchExpressions[{position}].{problem[0]}")
    return selectors.compile_label_selector(written)


DEFAULT_POLICIES = (
    "RepairViolations",
    "PrepareForMaintenance",
    "LeavePoorService",
    "MoveToUnderusedNodes",
    "SatisfyPreferences",
)
"""The policies that are enabled if a configuration lists none, in order.

They are those of the design's first version, and those that act only on announcements or for pods that fare badly.
Policies that move pods for the benefit of others, or for their age, must be enabled explicitly."""

UNLIMITED = "Unlimited"

_MOST_POLICIES = 100


class WrittenLimits(Strict, frozen=True, kw_only=True):
    """Numbers of pods, or Unlimited; None is the aggressiveness level's number."""

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
    """The share of each budget's allowance that is left to others."""

    budget_reserve: _Count | None = msgspec.field(name="reserve", default=None)
    budget_reserve_share: Annotated[float, Meta(ge=0, le=1)] | None = msgspec.field(name="reserveShare", default=None)


class Written(Strict, frozen=True, kw_only=True):
    """All settings; None is the aggressiveness level's value."""

    aggressiveness: Aggressiveness = Aggressiveness.CAUTIOUS
    is_paused: bool = msgspec.field(name="paused", default=False)
    policies: tuple[PolicySettings, ...] | None = None
    interval_ns: Interval | None = None
    threshold: _Positive | None = None
    limits: WrittenLimitSets = WrittenLimitSets()
    budgets: WrittenBudgets = WrittenBudgets()
    scope: WrittenScope = WrittenScope()
    guidance: Guidance = Guidance.EVICT
    judgement: MoveCriteria = MoveCriteria.PLACEMENT
    steering: Steering = Steering.AVOID_LIST
    goes_first: bool = False
    move_timeout_ns: Interval | None = None
    cool_down_ns: Interval | None = None
    max_trials: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


def settings_of(written: Written) -> ReschedulerSettings:
    """Return the settings that the fields define. Raises InputError with the path of an invalid field."""
    usual, limits = SETTINGS_OF[written.aggressiveness], written.limits
    changes = _written_values(written, usual) | _written_values(written.budgets, usual)
    changes |= {
        "policies": _policies(written.policies),
        "in_flight": _limits(limits.in_flight, usual.in_flight, ".limits.inFlight"),
        "hourly": _limits(limits.hourly, usual.hourly, ".limits.hourly"),
        "without_budget": _limits(limits.without_budget, usual.without_budget, ".limits.withoutBudget"),
        "scope": scope_of(written.scope, ".scope"),
    }
    return replace(usual, **changes)


def _limits(written: WrittenLimits, usual: MoveLimitSettings, path: str) -> MoveLimitSettings:
    kinds = ("total", "node", "namespace", "owner")
    return MoveLimitSettings(*(_limit(getattr(written, it), getattr(usual, it), f"{path}.{it}") for it in kinds))


def _limit(value: int | str | None, usual: int | None, path: str) -> int | None:
    if isinstance(value, str):
        if value != UNLIMITED:
            raise InputError(f"{shown(value)} is neither a whole number nor {UNLIMITED}", path=path)
        return None
    return usual if value is None else value


def _policies(written: tuple[PolicySettings, ...] | None) -> tuple[PolicySettings, ...]:
    """Return the enabled policies, in order; each name occurs once."""
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
    return tuple(policy for policy in written if policy.enabled)
