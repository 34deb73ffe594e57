"""The best placement that moves could reach, and how far from it something else is.

What is made least is the sum of all policies' objectives, by their weights, and the threshold for each pod that is
moved: what a plan must gain. Where each pod's replacement goes is chosen freely, of the nodes that its filters allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.api.errors import PodiumError
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.exact.formulation import (
    MOST_CONTENTS,
    Formulation,
    MoveLimit,
    TooManyContentsError,
)
from podium.decide.rescheduling.exact.pairs import RulesByPlugin, judged_by, movables_in
from podium.decide.rescheduling.exact.program import Solver
from podium.decide.rescheduling.plan import Move
from podium.decide.scratch import Scratch
from podium.framework.errors import PluginError
from podium.framework.rescheduling.linear import LinearForm, LinearObjective, Pair
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy

TOLERANCE = 1e-6
"""What differs by less is the same."""


class ExactPlanError(PodiumError):
    """The best placement cannot be asked for: what stands in the way, in words."""


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """What is asked of the exact plan.

    ``threshold`` is the price of a move. ``rules`` speak for filters, by the plugin's name; all other filters are asked
    about each pod by itself. More than ``most_pairs`` pods times nodes are refused. ``most_rounds`` is how many times a
    program is solved; a further one is more exact where curves are smooth, or something else where what was found
    cannot be reached.
    """

    threshold: float
    limits: Sequence[MoveLimit] = ()
    rules: RulesByPlugin = field(default_factory=dict)
    most_pairs: int = 10_000
    most_rounds: int = 20


@dataclass(frozen=True, slots=True, eq=False)
class OptimalPlan:
    """The best placement that was found, by the moves that lead to it, in an order in which each pod fits.

    ``before`` and ``after`` are the objectives by policy; ``price`` is the threshold. No placement costs less than
    ``bound``. ``left_out`` are the policies that could not be counted, or of which something could not, and what.
    ``held`` are the pods that might be moved but are held where they are, with the reason.
    """

    moves: tuple[Move, ...]
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
        """What the present placement costs."""
        return _weighed(self.before, self.weights)

    @property
    def cost(self) -> float:
        """What the best placement costs, its moves included."""
        return self.cost_of(self.after, len(self.moves))

    @property
    def is_proven(self) -> bool:
        """Whether no placement is better."""
        return self.cost - self.bound <= max(1.0, abs(self.bound)) * 1e-4

    def cost_of(self, objectives: Mapping[str, float], moves: int) -> float:
        """What another placement costs, that so many moves lead to: the policies counted here, and the moves."""
        return _weighed(objectives, self.weights) + self.price * moves

    def share_of(self, objectives: Mapping[str, float], moves: int) -> float:
        """How much of what can be gained another placement gains: 1 is all, and all is gained where nothing can be."""
        possible = self.cost_before - self.cost
        if possible <= TOLERANCE:
            return 1.0
        return (self.cost_before - self.cost_of(objectives, moves)) / possible


def plan_optimal(
    picture: Picture, policies: Sequence[tuple[Policy, float]], question: ExactQuestion, solver: Solver
) -> OptimalPlan:
    """The best reachable placement by the policies, each with its weight.

    Raises ExactPlanError where there is too much to ask for, or where a policy's form belies its objective.
    """
    pods = sum(1 for _ in picture.movable_pods())
    if pods * len(picture.cluster.nodes) > question.most_pairs:
        raise ExactPlanError(
            f"{pods} pods that may move and {len(picture.cluster.nodes)} nodes are too many for an exact plan: "
            f"at most {question.most_pairs} pods times nodes"
        )
    return _Search(picture, policies, question, solver).run()


class _Search:
    """One question on its way to its answer."""

    def __init__(
        self, picture: Picture, policies: Sequence[tuple[Policy, float]], question: ExactQuestion, solver: Solver
    ) -> None:
        self._picture, self._question, self._solver = picture, question, solver
        self._movables = movables_in(picture, question.rules)
        self._counted = [(policy, weight) for policy, weight in policies if isinstance(policy, LinearObjective)]
        self._left_out: dict[str, tuple[str, ...]] = {
            policy.name: ("its objective has no linear form",)
            for policy, _ in policies
            if not isinstance(policy, LinearObjective)
        }
        self._weights = {policy.name: weight for policy, weight in self._counted}
        self._before = self._objectives()
        self._formulation = self._formulated()
        self._best = self._before
        self._moves: tuple[Move, ...] = ()
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

    def _formulated(self) -> Formulation:
        movables, question = self._movables, self._question
        forms = []
        for policy, weight in self._counted:
            form = policy.linear(movables)
            self._check(policy.name, form)
            forms.append((form, weight))
            if form.left_out:
                self._left_out[policy.name] = form.left_out
        rules = [rule for name, say in question.rules.items() for rule in say(movables, judged_by(movables, name))]
        try:
            return Formulation(movables, question.threshold, forms, rules, question.limits)
        except TooManyContentsError:
            raise ExactPlanError(
                f"the nodes can hold more different pods than can be told apart: {MOST_CONTENTS} in all"
            ) from None

    def _check(self, name: str, form: LinearForm) -> None:
        """A form must come to what the objective is, as things are; or to less, where it leaves something out."""
        said, is_ = form.value({pod.uid: pod.row for pod in self._movables.pods}), self._before[name]
        differs = said - is_ if form.left_out else abs(said - is_)
        if differs > max(1.0, abs(is_)) * TOLERANCE:
            raise ExactPlanError(f"policy {name}: its objective is {is_:g}, and its linear form comes to {said:g}")

    def _objectives(self) -> dict[str, float]:
        return {policy.name: policy.objective(self._picture) for policy, _ in self._counted}

    def _try(self, placed: Sequence[Pair]) -> bool:
        """Make the moves, and keep them in mind if none better are known; whether all pods found their places."""
        rows = dict(placed)
        scratch = Scratch(self._picture.cluster, {"": self._picture.kubelet, **self._picture.runners})
        with scratch:
            sources = {uid: self._picture.cluster.placed[uid].node_name for uid in rows}
            waiting = [scratch.take_off(uid) for uid in rows]
            moves: list[Move] = []
            while waiting:
                fitting = next((pod for pod in waiting if self._fits(scratch, pod, rows[pod.uid])), None)
                if fitting is None:
                    return False
                waiting.remove(fitting)
                scratch.place(fitting, rows[fitting.uid])
                moves.append(Move(fitting, sources[fitting.uid], self._picture.node_name(rows[fitting.uid])))
            after = self._objectives()
        cost = _weighed(after, self._weights) + self._question.threshold * len(moves)
        if cost < self._cost - TOLERANCE:
            self._best, self._moves, self._cost = after, tuple(moves), cost
        return True

    def _fits(self, scratch: Scratch, pod: PodRecord, row: int) -> bool:
        try:
            return len(scratch.fitting(pod, np.array([row], dtype=np.int64))) > 0
        except PluginError:
            return False


def _weighed(objectives: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * objectives[name] for name, weight in weights.items())
