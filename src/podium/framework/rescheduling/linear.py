"""A policy's objective, and a filter, in the form that a solver of mixed-integer programs understands.

What is chosen is where each pod that may move is at the end: for each such pod and each row one number, 1 where the
pod is and 0 elsewhere. A `Pair` is the name of such a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture

Pair = tuple[str, int]
"""A pod that may move, by uid, and a row."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A convex function of one number, nowhere below 0: its ``value``, and a ``slope`` (at a bend, of either side).

    It is laid out by tangents: first at the ``knots``, then wherever a solution turns out to be. With integers, or with
    straight pieces and a knot in each of them, the knots alone make it exact.
    """

    value: Callable[[float], float]
    slope: Callable[[float], float]
    knots: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """``weight`` times a curve of an amount: ``base``, and what each pod adds to it by being on a row."""

    curve: Curve
    added: Mapping[Pair, float]
    base: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A price that is paid once if any of the pairs holds: for a node that is in use, whoever uses it."""

    pairs: Sequence[Pair]
    price: float


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a node costs by what is on it, where that is no simpler than a table of all that can be there.

    ``kinds`` says of each pod that may be on the ``row`` of what kind it is. ``cost`` is asked for each number of pods
    of each kind, in the order of ``order``, of those that ``fits`` lets be together; what fits without a pod fits.
    """

    row: int
    kinds: Mapping[str, Hashable]
    order: Sequence[Hashable]
    cost: Callable[[tuple[int, ...]], float]
    fits: Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True, eq=False)
class LinearForm:
    """An objective as the sum of ``base``, prices of pairs, costs, uses, and contents of nodes.

    ``left_out`` says in words what the objective has beside that. Then the form must not come to more than the
    objective, so that what is found with it is still a bound.
    """

    base: float = 0.0
    prices: Mapping[Pair, float] = field(default_factory=dict)
    costs: Sequence[Cost] = ()
    uses: Sequence[Use] = ()
    contents: Sequence[Contents] = ()
    left_out: tuple[str, ...] = ()

    def value(self, rows: Mapping[str, int]) -> float:
        """What the form comes to with the pods that may move (by uid) in these rows."""

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
    """The sum of several forms; what is left out of any is left out, said once."""
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
    """Who may go where: the pods that may move, by key, then uid, and for each of them (by uid) the rows, ascending.

    A pod's own row is always among them. ``picture`` shows all where they are.
    """

    picture: Picture
    pods: Sequence[PodRecord]
    rows: Mapping[str, Sequence[int]]

    def pairs(self, pods: Iterable[PodRecord] | None = None) -> Iterable[tuple[PodRecord, int]]:
        """Each pod (of ``pods``, or of all) with each of its rows."""
        return ((pod, row) for pod in (self.pods if pods is None else pods) for row in self.rows[pod.uid])

    def staying(self) -> Iterable[PodRecord]:
        """The pods that cannot move, and are on a node."""
        return (pod for pod in self.picture.cluster.placed.values() if pod.row >= 0 and pod.uid not in self.rows)


@runtime_checkable
class LinearObjective(Protocol):
    """A policy that can say its objective as a `LinearForm`. It is no part of `Policy`: few decisions ask for it."""

    def linear(self, movables: Movables) -> LinearForm:
        """The objective of any placement of these pods, all others staying where they are."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """The sum of what the pairs weigh is at most so much; what breaks it already may do so as much as it does."""

    weights: Mapping[Pair, float]
    most: float


FilterRules = Callable[[Movables, frozenset[str]], Iterable[Rule]]
"""All that a filter has to say, as rules; the pods with these uids are those that it judges."""
