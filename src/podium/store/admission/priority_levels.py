"""The priority classes that a DisruptionPolicy orders, and the values of those that are not there yet.

Source: controlled-rescheduling.md, Specifying priorities (names in a total order, with room for new ones in between).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, pairwise

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Raw
from podium.api.policy import PriorityClass
from podium.store.admission.priority_classes import SYSTEM_CLASSES
from podium.store.api_resources import BUILT_IN
from podium.store.errors import StoreError, invalid

# New classes stand between these values; both ends stay free for others.
_TOP, _BOTTOM = 1_000_000_000, -1_000_000_000
_RESOURCE = BUILT_IN["podium.dev", "DisruptionPolicy"]


def missing_classes(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> list[Raw]:
    """The PriorityClasses that the policy's levels lack, highest first.

    Those that exist keep their values; between two of them, or between one and an end, new ones are spread evenly. The
    ends are 1000000000 and 0, or -1000000000 where there is no room above 0. Raises StoreError 422 for levels whose
    values stand in another order, and for two that have too little room between them.
    """
    values = _values(policy, {**SYSTEM_CLASSES, **{name: one.value for name, one in classes.items()}})
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"A level of DisruptionPolicy {policy.key}",
        }
        for name, value in values.items()
        if name not in classes and name not in SYSTEM_CLASSES
    ]


def _values(policy: DisruptionPolicy, known: Mapping[str, int]) -> dict[str, int]:
    """The values of all levels, highest first."""
    levels = policy.spec.levels
    for above, below in pairwise(name for name in levels if name in known):
        if known[above] <= known[below]:
            problem = f"{above} ({known[above]}) stands above {below} ({known[below]}), whose value is not less"
            raise _refused(policy, f"{problem}; change the order")
    values: dict[str, int] = {}
    for is_known, run in groupby(levels, known.__contains__):
        names = list(run)
        if is_known:
            values |= {name: known[name] for name in names}
            continue
        first, end = len(values), len(values) + len(names)
        between = (levels[first - 1] if first else "", levels[end] if end < len(levels) else "")
        values |= _spread(policy, names, between, known)
    return values


def _spread(
    policy: DisruptionPolicy, names: list[str], between: tuple[str, str], known: Mapping[str, int]
) -> dict[str, int]:
    """Values for new classes between those of two others; "" is the top or the bottom."""
    above, below = between
    upper = min(known[above], _TOP) if above else _TOP
    lower = known[below] if below else (0 if upper > len(names) else _BOTTOM)
    if upper - lower <= len(names):
        problem = (
            f"there is no room for {', '.join(names)} between {above or 'the highest value'} ({upper}) and "
            f"{below or 'the lowest'} ({lower})"
        )
        raise _refused(policy, problem)
    steps = len(names) + 1
    return {name: upper - (upper - lower) * (index + 1) // steps for index, name in enumerate(names)}


def _refused(policy: DisruptionPolicy, problem: str) -> StoreError:
    return invalid(_RESOURCE, policy.key, problem, "spec.priorities")
