"""The settings of a rescheduler. Times are in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from podium.api.selectors import Selector

_SECOND = 10**9
_MINUTE = 60 * _SECOND


class Guidance(Enum):
    """How an evicted pod's replacement gets to its node.

    EVICT leaves it to the scheduler, whose own scores must choose another node. HINT names the node that was found for
    it. BIND binds it there.
    """

    EVICT = "Evict"
    HINT = "Hint"
    BIND = "Bind"


class Steering(Enum):
    """What keeps a replacement from returning to its predecessor's node, if the rescheduler does not direct it.

    AVOID_LIST: its controller is on the node's avoid list, which the schedulers respect. SOFT_TAINT: the node has a
    PreferNoSchedule taint while the move lasts. SCORES_ALONE: nothing; the scheduler's own scores must prefer another
    node.
    """

    AVOID_LIST = "AvoidList"
    SOFT_TAINT = "SoftTaint"
    SCORES_ALONE = "ScoresAlone"


class Judgement(Enum):
    """How a move is judged.

    PLACEMENT: the pod must have a node to go to. BLIND: the target is not computed, as in the first version of the
    design; a replacement may stay pending and hold one unit of its budget.
    """

    PLACEMENT = "Placement"
    BLIND = "Blind"


@dataclass(frozen=True, slots=True)
class MoveLimitSettings:
    """How many pods may be moved: in total, and by source node, namespace and owner; None is unlimited."""

    total: int | None = None
    node: int | None = None
    namespace: int | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class ReschedulingScope:
    """The pods that may be moved at all.

    They are in the namespaces ``included`` (empty: all) but not ``excluded``, match ``pods`` (None: any), and run on
    nodes that match ``nodes`` (None: any). The ``allows_...`` fields include pods that otherwise stay: those of
    system-critical priority, those without a controller, those with data on their node, and those of Jobs that do not
    state what a move costs. Of Jobs that state it, a pod may lose at most ``max_lost_work_ns``. Pods younger than
    ``minimum_age_ns`` stay. So do pods whose priority is not below ``priority_below`` (None: no bound), pods with
    claims of volumes or devices if these are spared, and pods whose owner has fewer than ``minimum_replicas``.
    So do pods of a workload of which a pod was disrupted less than ``undisturbed_ns`` ago, by any component.
    """

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset(("kube-system",))
    pods: Selector | None = None
    nodes: Selector | None = None
    allows_system_critical: bool = False
    allows_bare_pods: bool = False
    allows_local_storage: bool = False
    allows_work_in_progress: bool = False
    spares_volume_claims: bool = False
    spares_device_claims: bool = False
    priority_below: int | None = None
    minimum_replicas: int = 0
    max_lost_work_ns: int = 10 * _MINUTE
    minimum_age_ns: int = 5 * _MINUTE
    undisturbed_ns: int = 0


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """A policy by name, the weight of its objective, and its own arguments as written."""

    name: str
    weight: float = 1.0
    args: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ReschedulerSettings:
    """What a rescheduler may do, and how eagerly.

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
    scope: ReschedulingScope = ReschedulingScope()
    guidance: Guidance = Guidance.EVICT
    steering: Steering = Steering.AVOID_LIST
    judgement: Judgement = Judgement.PLACEMENT
    goes_first: bool = False
    move_timeout_ns: int = 10 * _MINUTE
    cool_down_ns: int = 60 * _MINUTE
    max_trials: int = 200
    is_paused: bool = False


class Aggressiveness(Enum):
    """How eagerly pods are moved; each level is a full set of numbers, any of which may be overridden."""

    CAUTIOUS = "Cautious"
    MODERATE = "Moderate"
    BOLD = "Bold"


_CAUTIOUS = ReschedulerSettings(policies=())

SETTINGS_OF: Mapping[Aggressiveness, ReschedulerSettings] = {
    Aggressiveness.CAUTIOUS: _CAUTIOUS,
    Aggressiveness.MODERATE: replace(
        _CAUTIOUS,
        interval_ns=30 * _SECOND,
        threshold=0.25,
        in_flight=MoveLimitSettings(total=20, node=3, namespace=8, owner=2),
        hourly=MoveLimitSettings(total=240, node=40, namespace=80, owner=12),
        without_budget=MoveLimitSettings(total=8, namespace=3, owner=1),
        budget_reserve=1,
        budget_reserve_share=0.25,
        max_trials=500,
    ),
    Aggressiveness.BOLD: replace(
        _CAUTIOUS,
        interval_ns=10 * _SECOND,
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
