"""Where each pod goes, what that costs, and what is allowed, as a program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from podium.decide.rescheduling.exact.program import Program
from podium.framework.rescheduling.linear import Cost, LinearForm, Movables, Pair, Rule, Use


@dataclass(frozen=True, slots=True)
class MoveLimit:
    """At most so many of some pods (uids) are moved."""

    pods: Collection[str]
    most: int


@dataclass(frozen=True, slots=True)
class _Laid:
    """A cost with its weight and the variable that stands for it, which is at least each tangent."""

    cost: Cost
    weight: float
    variable: int


class Formulation:
    """The program of a placement: forms with their weights, a price for each move, rules, and limits.

    Each cost is a variable above the tangents of its curve. `tighten` lays more of them where a solution went below the
    curve, so that solving again and again ends with the curve itself.
    """

    def __init__(self, movables: Movables, price: float) -> None:
        self.program = Program()
        self._movables = movables
        self._number: dict[Pair, int] = {}
        self._present: dict[Pair, float] = {}
        self._laid: list[_Laid] = []
        for pod in movables.pods:
            for row in movables.rows[pod.uid]:
                self._number[pod.uid, row] = self.program.choice(0.0 if row == pod.row else price)
            self._present[pod.uid, pod.row] = 1.0
            self.program.row({self._number[pod.uid, row]: 1.0 for row in movables.rows[pod.uid]}, 1.0, 1.0)

    def add_form(self, form: LinearForm, weight: float) -> None:
        """Let an objective count."""
        self.program.offset += weight * form.base
        for pair, price in form.prices.items():
            if pair in self._number:
                self.program.costs[self._number[pair]] += weight * price
        for use in form.uses:
            self._add_use(use, weight)
        for cost in form.costs:
            self._add_cost(cost, weight * cost.weight)

    def add_rule(self, rule: Rule) -> None:
        """Let a rule hold, or be broken no more than it is."""
        present = sum(weight * self._present.get(pair, 0.0) for pair, weight in rule.weights.items())
        weights = self._entries(rule.weights.items())
        most = max(rule.most, present)
        if sum(weight for weight in weights.values() if weight > 0) > most:
            self.program.row(weights, most)

    def add_limit(self, limit: MoveLimit) -> None:
        """Let at most so many of some pods move: all but as many of them are where they were."""
        own = {pod.uid: pod.row for pod in self._movables.pods if pod.uid in limit.pods}
        if limit.most < len(own):
            entries = {self._number[uid, row]: -1.0 for uid, row in own.items()}
            self.program.row(entries, float(limit.most - len(own)))

    def forbid(self, placed: Sequence[Pair]) -> None:
        """Let these pairs not hold all together."""
        self.program.row({self._number[pair]: 1.0 for pair in placed}, len(placed) - 1.0)

    def placed(self, values: Sequence[float]) -> list[Pair]:
        """The pods that a solution moves, and where to."""
        own = self._present
        return [pair for pair, number in self._number.items() if pair not in own and values[number] > 0.5]

    def tighten(self, values: Sequence[float], tolerance: float) -> bool:
        """Lay tangents where a solution is below a curve by more than the tolerance; whether there were any."""
        found = False
        for laid in self._laid:
            amount = self._amount(laid.cost, values)
            if laid.weight * (laid.cost.curve.value(amount) - values[laid.variable]) > tolerance:
                self._lay(laid, amount)
                found = True
        return found

    def _add_use(self, use: Use, weight: float) -> None:
        numbers = [self._number[pair] for pair in use.pairs if pair in self._number]
        if not numbers or use.price * weight <= 0:
            return
        used = self.program.amount(weight * use.price, 1.0)
        for number in numbers:
            self.program.row({number: 1.0, used: -1.0}, 0.0)

    def _add_cost(self, cost: Cost, weight: float) -> None:
        if weight <= 0:
            return
        laid = _Laid(cost, weight, self.program.amount(weight))
        self._laid.append(laid)
        low, high = self._extent(cost)
        for knot in sorted({min(max(knot, low), high) for knot in cost.curve.knots}):
            self._lay(laid, knot)

    def _lay(self, laid: _Laid, amount: float) -> None:
        """Keep a cost's variable above the tangent at an amount."""
        slope = laid.cost.curve.slope(amount)
        intercept = laid.cost.curve.value(amount) - slope * amount
        entries = {number: slope * added for number, added in self._entries(laid.cost.added.items()).items()}
        entries = {number: entry for number, entry in entries.items() if entry}
        entries[laid.variable] = -1.0
        self.program.row(entries, -intercept - slope * laid.cost.base)

    def _entries(self, weights: Iterable[tuple[Pair, float]]) -> dict[int, float]:
        number = self._number
        return {number[pair]: weight for pair, weight in weights if weight and pair in number}

    def _amount(self, cost: Cost, values: Sequence[float]) -> float:
        entries = self._entries(cost.added.items())
        return cost.base + sum(added for number, added in entries.items() if values[number] > 0.5)

    def _extent(self, cost: Cost) -> tuple[float, float]:
        """The least and the most that a cost's amount can come to."""
        lows: dict[str, float] = {}
        highs: dict[str, float] = {}
        for pod, row in self._movables.pairs():
            added = cost.added.get((pod.uid, row), 0.0)
            lows[pod.uid] = min(lows.get(pod.uid, added), added)
            highs[pod.uid] = max(highs.get(pod.uid, added), added)
        return cost.base + sum(lows.values()), cost.base + sum(highs.values())
