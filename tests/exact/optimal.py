"""The optimal reachable placement, and the distance of another placement from it.

The objective is the sum of all policies' weighted objectives plus the threshold for each moved pod: the gain that a
plan must reach. The target of each replacement is chosen freely among the nodes that its filters allow.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.rescheduling.certificate import MoveLimit
from podium.decide.rescheduling.round_robin import PlannedMove
from podium.decide.transaction import ClusterTransaction
from podium.framework.handle import CycleState
from podium.framework.rescheduling.policy import Picture, Policy
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError
from tests.exact.linear_forms import (
    Contents,
    Cost,
    FilterRule,
    FilterRules,
    LinearForm,
    Movables,
    Pair,
)
from tests.exact.objectives import linear_form

MOST_CONTENTS = 20_000
"""The most node contents (combinations of pods) that a program distinguishes."""


class ExactPlanError(Exception):
    """The optimal placement cannot be computed; the message says why."""


@dataclass(frozen=True, slots=True)
class _Laid:
    """A cost, its weight, and the variable that bounds it from above each of its tangents."""

    cost: Cost
    weight: float
    variable: int


class Formulation:
    """The program of a placement: weighted objective forms, a price for each move, rules, and limits.

    Interchangeable pods share one integer variable for each row: their number there. Each cost is a variable above the
    tangents of its curve. `tighten` adds tangents where a solution lies below the curve, so that repeated solving
    converges to the curve.
    """

    def __init__(
        self,
        movables: Movables,
        price: float,
        forms: Sequence[tuple[LinearForm, float]],
        rules: Sequence[FilterRule],
        limits: Sequence[MoveLimit],
    ) -> None:
        """Build the program. Raises ExactPlanError for too many contents of nodes."""
        self.program = LinearProgram()
        self._movables = movables
        self._groups = alike(movables, [form for form, _ in forms], rules, [limit.pods for limit in limits])
        # Keyed by the first pod of a group, which represents the group.
        self._number: dict[Pair, int] = {}
        self._size: dict[str, int] = {}
        self._present: dict[Pair, float] = {}
        self._laid: list[_Laid] = []
        self._contents = 0
        for group in self._groups:
            uid, own, size = group[0].uid, group[0].row, len(group)
            self._size[uid] = size
            self._present[uid, own] = float(size)
            numbers = {row: self.program.count(size, 0.0 if row == own else price) for row in movables.rows[uid]}
            self._number |= {(uid, row): number for row, number in numbers.items()}
            self.program.row(dict.fromkeys(numbers.values(), 1.0), float(size), float(size))
        for form, weight in forms:
            self._add_form(form, weight)
        for rule in rules:
            self._add_rule(rule)
        for limit in limits:
            # All but that many stay in their rows.
            limited = [group[0] for group in self._groups if group[0].uid in limit.pods]
            total = sum(self._size[pod.uid] for pod in limited)
            if limit.most < total:
                staying = {self._number[pod.uid, pod.row]: -1.0 for pod in limited}
                self.program.row(staying, float(limit.most - total))

    def forbid(self, values: Sequence[float]) -> None:
        """Exclude the placement of a solution: at least one group must have fewer pods in some row."""
        fewer: dict[int, float] = {}
        for number in self._number.values():
            count = round(values[number])
            if count:
                chosen, most = self.program.count(1), self.program.uppers[number]
                self.program.row({number: 1.0, chosen: most - count + 1}, most)
                fewer[chosen] = -1.0
        if fewer:
            self.program.row(fewer, -1.0)

    def placed(self, values: Sequence[float]) -> list[Pair]:
        """Return the pods that a solution moves and their target rows; of interchangeable pods the first ones move."""
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
        """Add tangents where a solution lies below a curve by more than the tolerance.

        Return whether any were added.
        """
        found = False
        for laid in self._laid:
            entries = self._entries(laid.cost.added.items())
            amount = laid.cost.base + sum(added * round(values[number]) for number, added in entries.items())
            if laid.weight * (laid.cost.curve.value(amount) - values[laid.variable]) > tolerance:
                self._lay(laid, amount)
                found = True
        return found

    def _add_form(self, form: LinearForm, weight: float) -> None:
        self.program.offset += weight * form.base
        for number, price in self._entries(form.prices.items()).items():
            self.program.costs[number] += weight * price
        for use in form.uses:
            using = [self._number[pair] for pair in use.pairs if pair in self._number]
            if using and use.price * weight > 0:
                used = self.program.count(1, weight * use.price)
                for number in using:
                    self.program.row({number: 1.0, used: -self.program.uppers[number]}, 0.0)
        for cost in form.costs:
            if weight * cost.weight > 0:
                laid = _Laid(cost, weight * cost.weight, self.program.amount(weight * cost.weight))
                self._laid.append(laid)
                low, high = self._extent(cost)
                for knot in sorted({min(max(knot, low), high) for knot in cost.curve.knots}):
                    self._lay(laid, knot)
        for contents in form.contents:
            self._add_contents(contents, weight)

    def _add_rule(self, rule: FilterRule) -> None:
        """Require that a rule holds, or is violated no more than it is now."""
        weights = {pair: weight for pair, weight in rule.weights.items() if pair in self._number}
        present = sum(weight * self._present.get(pair, 0.0) for pair, weight in weights.items())
        most = max(rule.most, present)
        if sum(weight * self._size[uid] for (uid, _), weight in weights.items() if weight > 0) > most:
            self.program.row(self._entries(weights.items()), most)

    def _add_contents(self, contents: Contents, weight: float) -> None:
        """Add a choice among all possible contents of a node."""
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
                problem = f"the nodes can hold more different pods than can be told apart: {MOST_CONTENTS} in all"
                raise ExactPlanError(problem)
            choice = program.count(1, weight * contents.cost(counts))
            choices[choice] = 1.0
            for kind, count in enumerate(counts):
                numbers[kind][choice] = -float(count)
        program.row(choices, 1.0, 1.0)
        for entries in numbers.values():
            program.row(entries, 0.0, 0.0)

    def _lay(self, laid: _Laid, amount: float) -> None:
        """Keep the variable of a cost above its tangent at an amount."""
        slope = laid.cost.curve.slope(amount)
        intercept = laid.cost.curve.value(amount) - slope * amount
        entries = {number: slope * added for number, added in self._entries(laid.cost.added.items()).items()}
        entries = {number: entry for number, entry in entries.items() if entry}
        entries[laid.variable] = -1.0
        self.program.row(entries, -intercept - slope * laid.cost.base)

    def _entries(self, weights: Iterable[tuple[Pair, float]]) -> dict[int, float]:
        number = self._number
        return {number[pair]: weight for pair, weight in weights if weight and pair in number}

    def _extent(self, cost: Cost) -> tuple[float, float]:
        """Return the lowest and the highest amount that a cost can reach."""
        low = high = cost.base
        for uid, size in self._size.items():
            added = [cost.added.get((uid, row), 0.0) for row in self._movables.rows[uid]]
            low += size * min(added)
            high += size * max(added)
        return low, high


def _countings(contents: Contents, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the combinations of pods of each kind that fit, up to the maximum of each kind."""
    partial: list[tuple[int, ...]] = [()]
    while partial:
        counts = partial.pop()
        if len(counts) == len(most):
            yield counts
            continue
        rest = (0,) * (len(most) - len(counts) - 1)
        for count in range(most[len(counts)] + 1):
            if not contents.fits((*counts, count, *rest)):
                break
            partial.append((*counts, count))


def alike(
    movables: Movables, forms: Sequence[LinearForm], rules: Sequence[FilterRule], limited: Sequence[Collection[str]]
) -> list[tuple[PodRecord, ...]]:
    """Return the movable pods in groups: those in one row, with the same target rows, that all parts weigh equally.

    Groups are ordered by their first pod; a group keeps the order of its pods.
    """
    marks: defaultdict[str, list[Hashable]] = defaultdict(list)
    for number, weights in enumerate(_weights(forms, rules)):
        for (uid, row), weight in weights:
            marks[uid].append((number, row, weight))
    for number, pods in enumerate(limited):
        for uid in pods:
            marks[uid].append(("limit", number))
    for form in forms:
        for contents in form.contents:
            for uid, kind in contents.kinds.items():
                marks[uid].append((contents.row, kind))
    groups: defaultdict[Hashable, list[PodRecord]] = defaultdict(list)
    for pod in movables.pods:
        groups[pod.row, tuple(movables.rows[pod.uid]), frozenset(marks[pod.uid])].append(pod)
    return [tuple(group) for group in groups.values()]


def _weights(forms: Sequence[LinearForm], rules: Sequence[FilterRule]) -> Iterable[Iterable[tuple[Pair, float]]]:
    for form in forms:
        yield form.prices.items()
        for cost in form.costs:
            yield cost.added.items()
        for use in form.uses:
            yield ((pair, 1.0) for pair in use.pairs)
    for rule in rules:
        yield rule.weights.items()


@dataclass(slots=True)
class LinearProgram:
    """A program that minimizes ``offset`` plus the costs of variables, which are at least 0, under bounded rows.

    Rows are stored sparsely, one after another: the entries of row k begin at ``starts[k]``.
    """

    offset: float = 0.0
    costs: list[float] = field(default_factory=list)
    uppers: list[float] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    row_lowers: list[float] = field(default_factory=list)
    row_uppers: list[float] = field(default_factory=list)

    def count(self, upper: int, cost: float = 0.0) -> int:
        """Add an integer variable from 0 to ``upper``; return its index."""
        self.integers.append(len(self.costs))
        return self.amount(cost, float(upper))

    def amount(self, cost: float, upper: float = math.inf) -> int:
        """Add a continuous variable from 0 to ``upper``; return its index."""
        self.costs.append(cost)
        self.uppers.append(upper)
        return len(self.costs) - 1

    def row(self, entries: Mapping[int, float], upper: float, lower: float = -math.inf) -> None:
        """Require that the weighted sum of the entries lies within the bounds."""
        self.starts.append(len(self.columns))
        self.columns.extend(entries)
        self.values.extend(entries.values())
        self.row_lowers.append(lower)
        self.row_uppers.append(upper)


@dataclass(frozen=True, slots=True)
class Solution:
    """The best values found, their cost, and a lower bound on the cost.

    ``is_proven``: cost and bound are equal to the solver's precision.
    """

    values: tuple[float, ...]
    cost: float
    bound: float
    is_proven: bool


class Solver(Protocol):
    """A solver that returns the same solution for the same feasible program."""

    def solve(self, program: LinearProgram) -> Solution:
        """Return the optimal solution, or the best one found within the solver's limits."""


def movables_in(picture: Picture, rules: Collection[str]) -> Movables:
    """Return the movable pods, each with its own row and the rows that its filters allow if all movable pods were gone.

    Filters that ``rules`` replace are not evaluated. Pods with resource claims stay: the devices they would get depend
    on the order in which pods arrive.
    """
    pods = tuple(pod for pod in picture.movable_pods() if not pod.spec.resource_claims)
    transaction = ClusterTransaction(picture.cluster, {"": picture.kubelet})
    rows: dict[str, tuple[int, ...]] = {}
    with transaction:
        known: dict[tuple[int, str], frozenset[int]] = {}
        for pod, leaving in [(pod, transaction.take_off(pod.uid)) for pod in pods]:
            kind = (leaving.pod_class.id, leaving.scheduler_name)
            if kind not in known:
                known[kind] = _allowed(picture, leaving, rules)
            rows[pod.uid] = tuple(sorted(known[kind] | {picture.cluster.nodes.row_of[pod.node_name]}))
    return Movables(picture, tuple(picture.cluster.placed[pod.uid] for pod in pods), rows)


def judged_by(movables: Movables, plugin: str) -> frozenset[str]:
    """Return the movable pods (uids) whose scheduler's profile filters with a plugin."""
    picture = movables.picture
    runners: Mapping[str, Runner] = {**picture.runners, "": picture.kubelet}
    having = {name for name, runner in runners.items() if any(known.name == plugin for known in runner.profile.filter)}
    names = {pod.uid: pod.scheduler_name if pod.scheduler_name in picture.runners else "" for pod in movables.pods}
    return frozenset(uid for uid, name in names.items() if name in having)


def _allowed(picture: Picture, pod: PodRecord, rules: Collection[str]) -> frozenset[int]:
    """Return the rows that accept moved pods and pass the pod's filters; none if a filter fails with an error."""
    runner, state = picture.runner_of(pod), CycleState()
    try:
        pre_filter = runner.pre_filter(state, pod)
        if not pre_filter.status.is_success:
            return frozenset()
        state.skip_filter = state.skip_filter.union(rules)
        view = View(picture.cluster, pre_filter.rows)
        outcome = runner.filter_view(state, pod, view)
    except PluginError:
        return frozenset()
    rows = view.rows[outcome.refused == 0]
    present = picture.cluster.nodes.present[rows]
    return frozenset(rows[present & picture.targets[rows]].tolist())


TOLERANCE = 1e-6
"""Values that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """The parameters of an exact plan.

    ``threshold`` is the price of a move. ``rules`` replace filters, by plugin name; all other filters are evaluated for
    each pod separately. Questions with more than ``most_pairs`` pods times nodes are refused. ``most_rounds`` bounds
    how often a program is solved: a further round is more exact for smooth curves, or finds another placement if the
    first cannot be reached.
    """

    threshold: float
    limits: Sequence[MoveLimit] = ()
    rules: Mapping[str, FilterRules] = field(default_factory=dict)
    most_pairs: int = 10_000
    most_rounds: int = 20


@dataclass(frozen=True, slots=True, eq=False)
class OptimalPlan:
    """The best placement found, as moves in an order in which each pod fits.

    ``before`` and ``after`` are the objectives by policy; ``price`` is the threshold. No placement costs less than
    ``bound``. ``left_out`` names the policies that could not be counted, wholly or in part, and why. ``held`` are the
    movable pods that are kept in place, with the reason.
    """

    moves: tuple[PlannedMove, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]
    weights: Mapping[str, float]
    price: float
    bound: float
    left_out: Mapping[str, tuple[str, ...]]
    held: Mapping[str, str]
    rounds: int

    @property
    def cost_before(self) -> float:
        """The cost of the present placement."""
        return _weighed(self.before, self.weights)

    @property
    def cost(self) -> float:
        """The cost of the best placement, its moves included."""
        return self.cost_of(self.after, len(self.moves))

    @property
    def is_proven(self) -> bool:
        """Return whether no placement is better."""
        return self.cost - self.bound <= max(1.0, abs(self.bound)) * 1e-4

    def cost_of(self, objectives: Mapping[str, float], moves: int) -> float:
        """Return the cost of another placement, reached by this many moves, by the policies counted here."""
        return _weighed(objectives, self.weights) + self.price * moves

    def share_of(self, objectives: Mapping[str, float], moves: int) -> float:
        """Return the share of the possible gain that another placement reaches.

        The share is 1 if nothing can be gained.
        """
        possible = self.cost_before - self.cost
        if possible <= TOLERANCE:
            return 1.0
        return (self.cost_before - self.cost_of(objectives, moves)) / possible


def plan_optimal(
    picture: Picture, policies: Sequence[tuple[Policy, float]], question: ExactQuestion, solver: Solver
) -> OptimalPlan:
    """Return the best reachable placement by the policies and their weights.

    Raises ExactPlanError if the problem is too large, or if a policy's linear form contradicts its objective.
    """
    pods = sum(1 for _ in picture.movable_pods())
    if pods * len(picture.cluster.nodes) > question.most_pairs:
        raise ExactPlanError(
            f"{pods} pods that may move and {len(picture.cluster.nodes)} nodes are too many for an exact plan: "
            f"at most {question.most_pairs} pods times nodes"
        )
    return _Search(picture, policies, question, solver).run()


class _Search:
    """The state of one search."""

    def __init__(
        self, picture: Picture, policies: Sequence[tuple[Policy, float]], question: ExactQuestion, solver: Solver
    ) -> None:
        self._picture, self._question, self._solver = picture, question, solver
        self._movables = movables_in(picture, question.rules)
        known = [(policy, weight, linear_form(policy, self._movables)) for policy, weight in policies]
        self._counted = [(policy, weight) for policy, weight, form in known if form is not None]
        self._left_out: dict[str, tuple[str, ...]] = {
            policy.name: ("its objective has no linear form",) for policy, _, form in known if form is None
        }
        self._weights = {policy.name: weight for policy, weight in self._counted}
        self._before = self._objectives()
        forms = [(self._checked(policy.name, form), weight) for policy, weight, form in known if form is not None]
        rules = [
            rule
            for plugin, rules_of in question.rules.items()
            for rule in rules_of(self._movables, judged_by(self._movables, plugin))
        ]
        self._formulation = Formulation(self._movables, question.threshold, forms, rules, question.limits)
        self._best = self._before
        self._moves: tuple[PlannedMove, ...] = ()
        self._cost = _weighed(self._before, self._weights)

    def run(self) -> OptimalPlan:
        bound, rounds = 0.0, 0
        while rounds < self._question.most_rounds:
            rounds += 1
            solution = self._solver.solve(self._formulation.program)
            bound = max(bound, solution.bound)
            placed = self._formulation.placed(solution.values)
            tried = self._try(placed)
            is_rough = self._formulation.tighten(solution.values, TOLERANCE)
            if self._cost - bound <= TOLERANCE or not (is_rough or not tried):
                break
            if not tried:
                self._formulation.forbid(solution.values)
        held = {
            pod.key: "its claims for devices"
            for pod in self._picture.movable_pods()
            if pod.uid not in self._movables.rows
        }
        return OptimalPlan(
            self._moves,
            self._before,
            self._best,
            self._weights,
            self._question.threshold,
            min(bound, self._cost),
            self._left_out,
            held,
            rounds,
        )

    def _checked(self, name: str, form: LinearForm) -> LinearForm:
        """Return a policy's form, which equals the objective of the present placement, or is lower if partial.

        Raises ExactPlanError if it does not.
        """
        by_form, is_ = form.value({pod.uid: pod.row for pod in self._movables.pods}), self._before[name]
        differs = by_form - is_ if form.left_out else abs(by_form - is_)
        if differs > max(1.0, abs(is_)) * TOLERANCE:
            raise ExactPlanError(f"policy {name}: its objective is {is_:g}, and its linear form comes to {by_form:g}")
        if form.left_out:
            self._left_out[name] = form.left_out
        return form

    def _objectives(self) -> dict[str, float]:
        return {policy.name: policy.objective(self._picture) for policy, _ in self._counted}

    def _try(self, placed: Sequence[Pair]) -> bool:
        """Try the moves, and remember them if they are the best so far; return whether all pods found their places."""
        rows = dict(placed)
        transaction = ClusterTransaction(self._picture.cluster, {"": self._picture.kubelet, **self._picture.runners})
        with transaction:
            sources = {uid: self._picture.cluster.placed[uid].node_name for uid in rows}
            waiting = [transaction.take_off(uid) for uid in rows]
            moves: list[PlannedMove] = []
            while waiting:
                there = ((pod, np.array([rows[pod.uid]], dtype=np.int64)) for pod in waiting)
                fitting = next((pod for pod, at in there if len(transaction.fitting(pod, at))), None)
                if fitting is None:
                    return False
                waiting.remove(fitting)
                transaction.place(fitting, rows[fitting.uid])
                moves.append(PlannedMove(fitting, sources[fitting.uid], self._picture.node_name(rows[fitting.uid])))
            after = self._objectives()
        cost = _weighed(after, self._weights) + self._question.threshold * len(moves)
        if cost < self._cost - TOLERANCE:
            self._best, self._moves, self._cost = after, tuple(moves), cost
        return True


def _weighed(objectives: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * objectives[name] for name, weight in weights.items())
