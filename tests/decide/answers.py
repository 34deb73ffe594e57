"""All decisions of a scheduler about a pod, for tests that compare two schedulers."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import full_outcome, place
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption


def answers(runner: Runner, record: PodRecord) -> dict[str, Any]:
    """All that a scheduler decides about a pod, by node name."""
    cluster = runner.cluster
    placement = place(runner, record, nominated_first=False)
    outcome = full_outcome(cluster, placement)
    found: dict[str, Any] = {
        "statuses": {name: outcome.status(row) for name, row in cluster.nodes.row_of.items()},
        "node": None if placement.row is None else cluster.nodes.name(placement.row),
        "nominated first": place(runner, record).row == cluster.nodes.row_of.get(record.nominated_node_name, -1),
    }
    if placement.totals is not None:
        names = [cluster.nodes.name(int(row)) for row in placement.feasible]
        found["totals"] = dict(zip(names, placement.totals.tolist(), strict=True))
        rated = runner.scoring.rated(placement.state, record, View(cluster, placement.feasible))
        assert placement.totals.tolist() == np.sum([each.weighted for each in rated], axis=0).tolist()
    if placement.row is None and cluster.nodes.row_of:
        plugin = runner.profile.post_filter[-1]
        assert isinstance(plugin, DefaultPreemption)
        plan = plugin.plan(placement.state, record, runner, outcome, detailed=True)
        brief = plugin.plan(placement.state, record, runner, outcome)
        found |= {
            "eligible": plan.reason or "yes",
            "message": plan.message,
            "selected": plan.selected,
            "criterion": plan.criterion,
            "candidates": {
                name: ([victim.uid for victim in one.victims], one.budget_violations)
                for name, one in plan.candidates.items()
            },
            "rejected": dict(plan.rejected),
            "chosen": plan.chosen and plan.chosen.node_name,
        }
        assert (brief.chosen, brief.reason, brief.message, brief.error) == (
            plan.chosen,
            plan.reason,
            plan.message,
            plan.error,
        )
    return found
