"""The ways out that a search has found for a gang, and which of them is the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.criteria import AFFINITY, Column
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.reprieve import come_alone, needed
from podium.decide.preempting.gang.units import Unit, Units
from podium.decide.preempting.gang.world import World
from podium.decide.preempting.trial_table import AFFINITY_KEPT
from podium.decide.preempting.victims import with_budgets

Rank = tuple[bool, tuple[int, ...], int]
"""What ways are compared by: whether victims leave a member alone, what they cost, and how many they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A way out with its rows; ``violating`` are the victims (uids) beyond what budgets allow.

    ``is_alone``: of the pods that a member requires to be near none is left.
    """

    victims: list[PodRecord]
    steps: list[Step]
    world: World
    cost: tuple[int, ...] = ()
    is_alone: bool = False
    violations: int = 0
    violating: frozenset[str] = frozenset()

    @property
    def rank(self) -> Rank:
        """The smaller the better."""
        return self.is_alone, self.cost, len(self.victims)


class Ways:
    """All that were found, but for those whose victims are more than budgets have to allow.

    Costs are worked out when everything is taken back. ``proven`` is the best of all there are, where it was found by
    trying these.
    """

    def __init__(self, play: Play, units: Units, costing: Costing, partners: Partners) -> None:
        self.proven: Found | None = None
        self._play = play
        self._units = units
        self._costing = costing
        self._partners = partners
        self._all: list[Found] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def best(self) -> Found:
        """The best one; of as good ones the first."""
        return self.proven or min(self._all, key=lambda found: found.rank)

    @property
    def best_rank(self) -> Rank | None:
        """What it comes to; None where there is none."""
        return self.best.rank if self._all else None

    @property
    def are_without_victims(self) -> bool:
        """Whether there is one for which nobody has to go."""
        return bool(self._all) and not self.best.victims

    @property
    def criteria(self) -> tuple[Column, ...]:
        """Those of a cost that is stated, with whether partners stay where that counts; () where none is."""
        stated = self._costing.stated
        if stated is None:
            return ()
        return (AFFINITY, *stated.criteria) if self._partners else stated.criteria

    def cost_of(self, found: Found) -> tuple[int, ...]:
        """What is told of the cost: whether partners stay before all else, where that counts."""
        return (int(found.is_alone), *found.cost) if self._partners and found.cost else found.cost

    @property
    def deciding(self) -> str:
        """The last criterion that told the best way from some others; "" for none."""
        best, deciding = self.cost_of(self.best), ""
        words = (AFFINITY_KEPT, *self._costing.words) if self._partners else self._costing.words
        left = [cost for found in self._all if found is not self.best and (cost := self.cost_of(found))]
        for index, word in enumerate(words if best else ()):
            kept = [cost for cost in left if cost[index] == best[index]]
            if len(kept) < len(left):
                left, deciding = kept, word
        return deciding

    def of_each_domain(self) -> list[Found]:
        """The best way of each domain but the best of all, its own too where it is another; the best first."""
        best, found = self.best, dict[str, Found]()
        for way in sorted(self._all, key=lambda way: (way.is_alone, way.cost, way.world.domain)):
            if way is not best and way.victims != best.victims:
                found.setdefault(way.world.domain, way)
        return list(found.values())

    def add(self, units: Sequence[Unit], steps: list[Step], world: World, in_doubt: set[int] | None) -> Found:
        """A way out, without victims that need not be; ``in_doubt`` None where that is known of all."""
        if in_doubt is not None and units:
            units = needed(self._play, self._units, self._to_spare(units), steps, in_doubt)
        found = self._weighed(units, steps, world)
        if not (self._costing.requires_budgets and found.violating):
            self._all.append(found)
        return found

    def _weighed(self, units: Sequence[Unit], steps: list[Step], world: World) -> Found:
        victims = self._units.gone(units)
        if not victims:
            return Found([], steps, world)
        costs, violations = self._costing.of([victims])
        names = frozenset(pod.uid for pod in self._violating(victims))
        is_alone = bool(self._partners) and come_alone(self._play, self._partners, victims, steps)
        cost = tuple(costs[:, 0].tolist())
        return Found(victims, steps, world, cost, is_alone, int(violations[0]), names)

    def _to_spare(self, units: Sequence[Unit]) -> list[Unit]:
        """Units in the order in which they are spared, the most important first.

        Whom members require to be near come before all others, and then those whose budgets are violated.
        """
        victims = self._units.gone(units)
        over = {pod.uid for pod in self._violating(victims)}
        near = {pod.uid for pod in victims if self._partners.are(pod)}
        in_order = self._units.of(victims)
        return sorted(
            in_order,
            key=lambda unit: (not any(pod.uid in near for pod in unit), not any(pod.uid in over for pod in unit)),
        )

    def _violating(self, victims: Sequence[PodRecord]) -> list[PodRecord]:
        slots = np.array([pod.slot for pod in victims], dtype=np.int64)
        starts = np.array([0, len(slots)], dtype=np.int64)
        found = with_budgets(self._play.cluster, np.zeros(1, dtype=np.int64), starts, slots).violating
        return [victim for victim, is_over in zip(victims, found.tolist(), strict=True) if is_over]
