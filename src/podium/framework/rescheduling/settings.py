"""How a rescheduler works, as its configuration says. Times are in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from podium.api.selectors import Selector

_SECOND = 10**9
_MINUTE = 60 * _SECOND


class Guidance(Enum):
    """How an evicted pod's replacement comes to its place.

    EVICT leaves it to its scheduler, whose own scores must send it elsewhere. HINT names the place that was found for
    it. BIND binds it there.
    """

    EVICT = "Evict"
    HINT = "Hint"
    BIND = "Bind"


class Steering(Enum):
    """What keeps a replacement from coming back to the node that its predecessor left, where nobody guides it.

    AVOID_LIST: its controller stands on the node's avoid list, which the schedulers heed. SOFT_TAINT: the node has a
    PreferNoSchedule taint for the time of the move. SCORES_ALONE: nothing; its scheduler must rate another node higher
    as things are.
    """

    AVOID_LIST = "AvoidList"
    SOFT_TAINT = "SoftTaint"
    SCORES_ALONE = "ScoresAlone"


class Judgement(Enum):
    """By what a move is judged.

    PLACEMENT: the pod must have somewhere to go. BLIND: nobody asks where it goes, as in the first version of the
    design; a replacement may stay pending, and hold one unit of its budget.
    """

    PLACEMENT = "Placement"
    BLIND = "Blind"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many pods may be moved, in all and of each node (that they leave), namespace and owner; None: any number."""

    total: int | None = None
    node: int | None = None
    namespace: int | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which pods may be touched at all.

    Pods of the namespaces ``included`` (empty: of all) but not ``excluded``, that ``pods`` matches (None: any), on
    nodes that ``nodes`` matches (None: any). The ``allows_...`` let go what is otherwise left alone: pods of
    system-critical priority, pods without a controller, pods that keep data on their node, and pods of Jobs that do not
    say what a move costs them. Of Jobs that do, a pod may lose at most ``max_lost_work_ns``. Pods younger than
    ``minimum_age_ns`` stay; so do those of a priority that is not below ``priority_below`` (None: any goes), those with
    claims of volumes or devices where these are spared, and those whose owner has less than ``minimum_replicas``.
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


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """A policy by its name, how much its objective counts beside the others', and its own arguments, as written."""

    name: str
    weight: float = 1.0
    args: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ReschedulerSettings:
    """What a rescheduler may do, and how eagerly.

    Every ``interval_ns`` it looks for moves. One is worth it where the objective falls by ``threshold`` for each pod.
    ``in_flight`` are limits for moves under way, from the eviction until the replacement is ready; ``hourly`` for those
    of the last hour; ``without_budget`` for moves under way of pods that no budget protects. Of what each budget
    allows, ``budget_reserve`` disruptions are left, or that share of what it allows with all pods up, whichever is
    more.

    A move that is not over after ``move_timeout_ns`` counts no longer as under way. Where a replacement came back to
    the node that its predecessor was evicted from, that owner's pods there are left alone for ``cool_down_ns``.
    ``max_trials`` limits how many moves are tried each time. ``goes_first``: replacements go to the front of their
    scheduler's queue. ``is_paused`` stops all evictions.
    """

    policies: tuple[PolicySettings, ...]
    interval_ns: int = _MINUTE
    threshold: float = 0.5
    in_flight: Limits = Limits(total=5, node=1, namespace=2, owner=1)
    hourly: Limits = Limits(total=60, node=10, namespace=20, owner=4)
    without_budget: Limits = Limits(total=2, namespace=1, owner=1)
    budget_reserve: int = 1
    budget_reserve_share: float = 0.5
    scope: Scope = Scope()
    guidance: Guidance = Guidance.EVICT
    steering: Steering = Steering.AVOID_LIST
    judgement: Judgement = Judgement.PLACEMENT
    goes_first: bool = False
    move_timeout_ns: int = 10 * _MINUTE
    cool_down_ns: int = 60 * _MINUTE
    max_trials: int = 200
    is_paused: bool = False
