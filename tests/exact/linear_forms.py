"""Objectives of policies as linear forms, and filters as rules, for the exact solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Picture

Pair = tuple[str, int]
"""A movable pod, by uid, and a row."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A convex, non-negative function of one number: its ``value``, and a ``slope`` (at a bend, of either side).

    It is approximated by tangents: first at the ``knots``, then wherever a solution lies. For integers, and for
    piecewise linear functions with a knot in each piece, the knots alone make it exact.
    """

    value: Callable[[float], float]
    slope: Callable[[float], float]
    knots: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """``weight`` times a curve of an amount: ``base`` plus what each pod adds by being in a row."""

    curve: Curve
    added: Mapping[Pair, float]
    base: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ResourceUse:
    """A price that is paid once if any of the pairs holds, such as for a node that is in use."""

    pairs: Sequence[Pair]
    price: float


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The cost of a node by its contents, if nothing simpler than a table of all possible contents describes it.

    ``kinds`` maps each pod that may be in the ``row`` to its kind. ``cost`` takes the number of pods of each kind, in
    the order of ``order``, for combinations that ``fits`` accepts; a combination that fits also fits without one of its
    pods.
    """

    row: int
    kinds: Mapping[str, Hashable]
    order: Sequence[Hashable]
    cost: Callable[[tuple[int, ...]], float]
    fits: Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True, eq=False)
class LinearForm:
    """An objective as the sum of ``base``, prices of pairs, costs, uses, and contents of nodes.

    ``left_out`` names the parts of the objective that the form lacks. The form must then not exceed the objective, so
    that a solution is still a lower bound.
    """

    base: float = 0.0
    prices: Mapping[Pair, float] = field(default_factory=dict)
    costs: Sequence[Cost] = ()
    uses: Sequence[ResourceUse] = ()
    contents: Sequence[Contents] = ()
    left_out: tuple[str, ...] = ()

    def value(self, rows: Mapping[str, int]) -> float:
        """Return the value of the form with the movable pods (by uid) in these rows."""

        def holds(pair: Pair) -> bool:
            return rows.get(pair[0]) == pair[1]

        total = self.base + sum(price for pair, price in self.prices.items() if holds(pair))
        total += sum(use.price for use in self.uses if any(map(holds, use.pairs)))
        for cost in self.costs:
            amount = cost.base + sum(added for pair, added in cost.added.items() if holds(pair))
            total += cost.weight * cost.curve.value(amount)
        for table in self.contents:
            found = Counter(kind for uid, kind in table.kinds.items() if rows.get(uid) == table.row)
            total += table.cost(tuple(found[kind] for kind in table.order))
        return total


def sum_of_forms(forms: Sequence[LinearForm]) -> LinearForm:
    """Return the sum of several forms; parts that any of them leaves out are named once."""
    prices: dict[Pair, float] = {}
    for form in forms:
        for pair, price in form.prices.items():
            prices[pair] = prices.get(pair, 0.0) + price
    return LinearForm(
        sum(form.base for form in forms),
        prices,
        [cost for form in forms for cost in form.costs],
        [use for form in forms for use in form.uses],
        [contents for form in forms for contents in form.contents],
        tuple(dict.fromkeys(words for form in forms for words in form.left_out)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Movables:
    """The movable pods, by key, then uid, and for each of them (by uid) its possible rows, ascending.

    A pod's own row is always among them. ``picture`` shows the present placement.
    """

    picture: Picture
    pods: Sequence[PodRecord]
    rows: Mapping[str, Sequence[int]]

    def pairs(self, pods: Iterable[PodRecord] | None = None) -> Iterable[tuple[PodRecord, int]]:
        """Yield each pod (of ``pods``, or of all) with each of its rows."""
        return ((pod, row) for pod in (self.pods if pods is None else pods) for row in self.rows[pod.uid])

    def staying(self) -> Iterable[PodRecord]:
        """Return the pods on nodes that cannot move."""
        return (pod for pod in self.picture.cluster.placed.values() if pod.row >= 0 and pod.uid not in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class FilterRule:
    """An upper bound on the weighted sum of pairs. A bound that is exceeded already may stay exceeded by as much."""

    weights: Mapping[Pair, float]
    most: float


FilterRules = Callable[[Movables, frozenset[str]], Iterable[FilterRule]]
"""Everything that a filter enforces, as rules for the pods (uids) that it judges."""
