"""kube-scheduler's limits on the nodes that it examines, for decisions that were made among all nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from podium.api.basis import Caveat
from podium.cluster.arrays import Int64s
from podium.cluster.view import View
from podium.decide.placement import Placement
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.decide.sampling import enough_candidates, examine, mixed, nodes_to_find, turned, until_enough
from podium.framework.runner import Runner
from podium.plugins.default_preemption import UPSTREAM_MINIMUM

DRAWS = 500
"""The most searches that are drawn."""

Chances = Mapping[str, float]
"""The share of the searches that choose a node, by its name."""


@dataclass(frozen=True, slots=True)
class LimitedSearch:
    """A search that ends when it has found ``wanted`` of ``fitting`` nodes, out of ``number``.

    ``chances`` draws where it may begin; ``best`` are the nodes that are equally good if all are examined.
    """

    number: int
    fitting: int
    wanted: int
    best: int
    preempts: bool
    chances: Callable[[], Chances]

    def caveat(self) -> Caveat:
        """Return what the limit means for the decision."""
        examined = min(round(self.number * self.wanted / self.fitting), self.number)
        tie = f"; these {self.best:,} tie, and any may be taken" if self.best > 1 else ""
        what = "tries preemption on" if self.preempts else "examines"
        found = "candidates" if self.preempts else "nodes that fit"
        message = (
            f"kube-scheduler {what} about {examined:,} of {self.number:,} nodes, until it has {self.wanted:,} {found}: "
            f"the best of all {self.fitting:,} may not be among them{tie}"
        )
        return Caveat("nodes-examined", message, self.number - examined)


def limited_search(runner: Runner, placement: Placement, best: int) -> LimitedSearch | None:
    """Return the limit of the search for a node; None if it finds all feasible nodes, or if extenders take part."""
    profile, rows = runner.profile, placement.rows
    order = runner.cluster.nodes.tree_order()
    order = order if len(rows) >= len(order) else order[np.isin(order, rows)]
    wanted = nodes_to_find(profile.percentage_of_nodes_to_score or 0, len(order))
    if not profile.examines_all or len(placement.feasible) <= wanted or runner.extenders_of(placement.pod) is not None:
        return None
    outcome = placement.outcome

    def chances() -> Chances:
        starts = np.unique(np.linspace(0, len(order) - 1, min(DRAWS, len(order)), dtype=np.int64)).tolist()
        found: defaultdict[str, float] = defaultdict(float)
        for start in starts:
            feasible = examine(turned(order, start), outcome, rows, wanted).feasible
            _share(found, runner, feasible[_best_of(runner, placement, feasible)], 1 / len(starts))
        return found

    return LimitedSearch(len(order), len(placement.feasible), wanted, best, preempts=False, chances=chances)


def _best_of(runner: Runner, placement: Placement, rows: Int64s) -> Int64s:
    view = View(runner.cluster, rows)
    runner.scoring.prepare(placement.state, placement.pod, view)
    totals = runner.scoring.totals(placement.state, placement.pod, view)
    return np.flatnonzero(totals == totals.max())


def limited_candidates_of(runner: Runner, plan: PreemptionPlan) -> LimitedSearch | None:
    """Return the limit of the search for candidates; None if it finds all of them."""
    tried = len(plan.candidates) + len(plan.rejected)
    enough = enough_candidates(UPSTREAM_MINIMUM, tried)
    if not runner.profile.examines_all or len(plan.candidates) <= enough or plan.search is not None:
        return None

    def chances() -> Chances:
        nodes, found = runner.cluster.nodes, defaultdict[str, float](float)
        rows = np.array([nodes.row_of[name] for name in plan.candidates], dtype=np.int64)
        violates = np.array([each.budget_violations > 0 for each in plan.candidates.values()])
        costs = np.array([each.cost for each in plan.candidates.values()], dtype=np.int64)
        ranks = np.unique(costs, axis=0, return_inverse=True)[1].reshape(-1)
        for draw in range(DRAWS):
            order = np.argsort(mixed(nodes.name_hash[rows] + np.uint64(draw)), kind="stable")
            kept = until_enough(order, violates, enough)
            _share(found, runner, rows[kept[ranks[kept] == ranks[kept].min()]], 1 / DRAWS)
        return found

    return LimitedSearch(tried, len(plan.candidates), enough, len(plan.selected), preempts=True, chances=chances)


def _share(found: defaultdict[str, float], runner: Runner, rows: Int64s, chance: float) -> None:
    """Add the chance of a search, divided among the rows that are equally good."""
    for row in rows.tolist():
        found[runner.cluster.nodes.name(row)] += chance / len(rows)
