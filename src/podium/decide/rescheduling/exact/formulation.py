"""Where each pod goes, what that costs, and what is allowed, as a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from podium.decide.rescheduling.exact.groups import alike
from podium.decide.rescheduling.exact.program import Program
from podium.framework.rescheduling.linear import Contents, Cost, LinearForm, Movables, Pair, Rule, Use

MOST_CONTENTS = 20_000
"""So many contents of nodes are told apart in all."""


class TooManyContentsError(Exception):
    """The nodes can hold more different pods than can be told apart."""


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

    Pods that nothing tells apart have one number for each row: how many of them are there. Each cost is a variable
    above the tangents of its curve; `tighten` lays more of them where a solution went below the curve, so that solving
    again and again ends with the curve itself.
    """

    def __init__(
        self,
        movables: Movables,
        price: float,
        forms: Sequence[tuple[LinearForm, float]],
        rules: Sequence[Rule],
        limits: Sequence[MoveLimit],
    ) -> None:
        """Raises TooManyContentsError."""
        self.program = Program()
        self._movables = movables
        self._groups = alike(movables, [form for form, _ in forms], rules, [limit.pods for limit in limits])
        # By the first pod of a group, which stands for all.
        self._number: dict[Pair, int] = {}
        self._size: dict[str, int] = {}
        self._present: dict[Pair, float] = {}
        self._laid: list[_Laid] = []
        self._contents = 0
        for group in self._groups:
            self._add_group(group[0].uid, group[0].row, len(group), price)
        for form, weight in forms:
            self._add_form(form, weight)
        for rule in rules:
            self._add_rule(rule)
        for limit in limits:
            self._add_limit(limit)

    def forbid(self, values: Sequence[float]) -> None:
        """Let there be another placement than that of a solution: somewhere fewer pods of a group than there."""
        fewer: dict[int, float] = {}
        for number in self._number.values():
            count = round(values[number])
            if count:
                chosen = self.program.choice()
                most = self._most(number)
                self.program.row({number: 1.0, chosen: float(most - count + 1)}, float(most))
                fewer[chosen] = -1.0
        if fewer:
            self.program.row(fewer, -1.0)

    def placed(self, values: Sequence[float]) -> list[Pair]:
        """The pods that a solution moves, and where to; of those that are alike the first ones move."""
        found: list[Pair] = []
        for group in self._groups:
            first, own = group[0].uid, group[0].row
            waiting = [pod.uid for pod in group]
            for row in self._movables.rows[first]:
                if row != own:
                    for _ in range(round(values[self._number[first, row]])):
                        found.append((waiting.pop(0), row))
        return found

    def tighten(self, values: Sequence[float], tolerance: float) -> bool:
        """Lay tangents where a solution is below a curve by more than the tolerance; whether there were any."""
        found = False
        for laid in self._laid:
            entries = self._entries(laid.cost.added.items())
            amount = laid.cost.base + sum(added * round(values[number]) for number, added in entries.items())
            if laid.weight * (laid.cost.curve.value(amount) - values[laid.variable]) > tolerance:
                self._lay(laid, amount)
                found = True
        return found

    def _add_group(self, uid: str, own: int, size: int, price: float) -> None:
        program = self.program
        self._size[uid] = size
        self._present[uid, own] = float(size)
        numbers = {}
        for row in self._movables.rows[uid]:
            numbers[row] = self._number[uid, row] = program.count(size, 0.0 if row == own else price)
        program.row(dict.fromkeys(numbers.values(), 1.0), float(size), float(size))

    def _add_form(self, form: LinearForm, weight: float) -> None:
        self.program.offset += weight * form.base
        for number, price in self._entries(form.prices.items()).items():
            self.program.costs[number] += weight * price
        for use in form.uses:
            self._add_use(use, weight)
        for cost in form.costs:
            self._add_cost(cost, weight * cost.weight)
        for contents in form.contents:
            self._add_contents(contents, weight)

    def _add_rule(self, rule: Rule) -> None:
        """Let a rule hold, or be broken no more than it is."""
        weights = {pair: weight for pair, weight in rule.weights.items() if pair in self._number}
        present = sum(weight * self._present.get(pair, 0.0) for pair, weight in weights.items())
        most = max(rule.most, present)
        if sum(weight * self._size[uid] for (uid, _), weight in weights.items() if weight > 0) > most:
            self.program.row(self._entries(weights.items()), most)

    def _add_limit(self, limit: MoveLimit) -> None:
        """Let at most so many of some pods move: all but as many of them are where they were."""
        own = [group[0] for group in self._groups if group[0].uid in limit.pods]
        total = sum(self._size[pod.uid] for pod in own)
        if limit.most < total:
            self.program.row({self._number[pod.uid, pod.row]: -1.0 for pod in own}, float(limit.most - total))

    def _add_use(self, use: Use, weight: float) -> None:
        numbers = [self._number[pair] for pair in use.pairs if pair in self._number]
        if not numbers or use.price * weight <= 0:
            return
        used = self.program.choice(weight * use.price)
        for number in numbers:
            self.program.row({number: 1.0, used: -float(self._most(number))}, 0.0)

    def _add_cost(self, cost: Cost, weight: float) -> None:
        if weight <= 0:
            return
        laid = _Laid(cost, weight, self.program.amount(weight))
        self._laid.append(laid)
        low, high = self._extent(cost)
        for knot in sorted({min(max(knot, low), high) for knot in cost.curve.knots}):
            self._lay(laid, knot)

    def _add_contents(self, contents: Contents, weight: float) -> None:
        """A choice among all that can be on a node."""
        program = self.program
        numbers: defaultdict[int, dict[int, float]] = defaultdict(dict)
        most = [0] * len(contents.order)
        for group in self._groups:
            pair = (group[0].uid, contents.row)
            if pair in self._number and pair[0] in contents.kinds:
                kind = contents.order.index(contents.kinds[pair[0]])
                numbers[kind][self._number[pair]] = 1.0
                most[kind] += len(group)
        choices: dict[int, float] = {}
        for counts in _countings(contents, most):
            self._contents += 1
            if self._contents > MOST_CONTENTS:
                raise TooManyContentsError
            choice = program.choice(weight * contents.cost(counts))
            choices[choice] = 1.0
            for kind, count in enumerate(counts):
                numbers[kind][choice] = -float(count)
        program.row(choices, 1.0, 1.0)
        for entries in numbers.values():
            program.row(entries, 0.0, 0.0)

    def _lay(self, laid: _Laid, amount: float) -> None:
        """Keep a cost's variable above the tangent at an amount."""
        slope = laid.cost.curve.slope(amount)
        intercept = laid.cost.curve.value(amount) - slope * amount
        entries = {number: slope * added for number, added in self._entries(laid.cost.added.items()).items()}
        entries = {number: entry for number, entry in entries.items() if entry}
        entries[laid.variable] = -1.0
        self.program.row(entries, -intercept - slope * laid.cost.base)

    def _most(self, number: int) -> int:
        return int(self.program.uppers[number])

    def _entries(self, weights: Iterable[tuple[Pair, float]]) -> dict[int, float]:
        number = self._number
        return {number[pair]: weight for pair, weight in weights if weight and pair in number}

    def _extent(self, cost: Cost) -> tuple[float, float]:
        """The least and the most that a cost's amount can come to."""
        low = high = cost.base
        for uid, size in self._size.items():
            added = [cost.added.get((uid, row), 0.0) for row in self._movables.rows[uid]]
            low += size * min(added)
            high += size * max(added)
        return low, high


def _countings(contents: Contents, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All numbers of pods of each kind that fit, up to the most of each."""
    begun: list[tuple[int, ...]] = [()]
    while begun:
        counts = begun.pop()
        if len(counts) == len(most):
            yield counts
            continue
        rest = (0,) * (len(most) - len(counts) - 1)
        for count in range(most[len(counts)] + 1):
            if not contents.fits((*counts, count, *rest)):
                break
            begun.append((*counts, count))
