"""The sum of what all policies say of a placement, by their weights: the one number that moves must make smaller.

As no plan is made that does not make it smaller by the threshold, policies cannot work against each other, and without
outside change the moves come to an end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from podium.api.errors import shown
from podium.decide.rescheduling.policy_errors import CallingPolicy, PolicyError
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy

ROUNDING = 1e-9
"""Sums of the same numbers in another order may differ by so much, for each pod in quite the wrong place."""

_UNSTABLE = 1e-6


class Objectives:
    """What some policies say of a picture."""

    def __init__(self, policies: Sequence[tuple[Policy, float]], picture: Picture) -> None:
        self._policies = policies
        self._picture = picture

    def total(self) -> float:
        """The weighted sum. Raises PolicyError for a policy that fails, or whose objective is none."""
        return sum(weight * self._of(policy) for policy, weight in self._policies)

    def weighted(self, each: Mapping[str, float]) -> float:
        """The weighted sum of the objectives that `each` told."""
        return sum(weight * each[policy.name] for policy, weight in self._policies)

    def each(self) -> dict[str, float]:
        """The objectives by policy, each by itself."""
        return {policy.name: self._of(policy) for policy, _ in self._policies}

    def require_same(self, before: dict[str, float]) -> None:
        """Raise PolicyError for a policy that says something else now, though the picture is the same."""
        for name, found in self.each().items():
            known = before[name]
            if abs(found - known) > _UNSTABLE * max(1.0, known):
                raise PolicyError(name, f"its objective is {found} where it was {known}, and nothing has changed")

    def _of(self, policy: Policy) -> float:
        with CallingPolicy(policy.name, "objective"):
            found: object = policy.objective(self._picture)
            # Numpy's numbers are as good as Python's.
            number = float(found) if isinstance(found, int | float | np.number) else None
        if number is None or not isfinite(number) or number < 0:
            problem = f"its objective is {shown(found)}; it must be a number of 0 or more, and 0 as good as can be"
            raise PolicyError(policy.name, problem)
        return number
