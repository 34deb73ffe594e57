"""Invariants of random fleets of gangs with preemption beyond kube-scheduler's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from podium.decide.preempting.gang import gang_search
from podium.decide.preempting.gang.gang import Gang, GangTransaction, placements_hold
from podium.decide.preempting.gang.gang_search import plan_gang
from podium.decide.preempting.preemption_plan import GangPlan
from podium.framework.pre_filters import GroupHandle
from tests.sim.fleet_run import FleetRun
from tests.sim.fleet_stories import Feature

FEATURES = frozenset((Feature.GANGS, Feature.BUDGETS))
SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"acrossNodes": True, "keepAffinityPartners": True, "includeDependents": True},
    {"acrossNodes": True, "includeDependents": True, "bindFirst": True, "budgets": "Require"},
    {"acrossNodes": True, "keepAffinityPartners": True, "bindFirst": True},
)


class Plans:
    """Plans for gangs as a scheduler does, and looks at what comes of it; counts plans with victims."""

    def __init__(self) -> None:
        self.with_victims = 0

    def __call__(self, handle: GroupHandle, gang: Gang, *args: Any, **settings: Any) -> GangPlan:
        plan = plan_gang(handle, gang, *args, **settings)
        if plan.chosen is None:
            return plan
        way, row_of = plan.chosen, handle.cluster.nodes.row_of
        self.with_victims += bool(way.victims)
        uids = {victim.uid for victim in way.victims}
        assert way.depends_on.keys() <= uids
        assert all(victim.priority < gang.priority and victim.uid not in gang.own for victim in way.victims)
        with GangTransaction(handle, gang) as play:
            steps = [(member, row_of[name]) for member, name in way.placements]
            assert placements_hold(play, [tuple(way.victims)], steps), "the members do not fit"
        return plan


@pytest.mark.parametrize("settings", SETTINGS, ids="+".join)
def test_gang_plans_hold_and_fleets_settle(settings: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Plans()
    monkeypatch.setattr(gang_search, "plan_gang", plans)

    for seed in (801, 808):
        FleetRun(seed, is_faulty=seed % 2 == 0, features=FEATURES, preemption=settings).play()

    assert plans.with_victims


def test_group_and_member_priorities_may_order_two_pods_differently() -> None:
    """By its own priority the member of the group leaves room for a pod that the other one ignores."""
    settings = {
        "keepAffinityPartners": True,
        "includeDependents": True,
        "victimCost": ["Victims", "BudgetViolations", "QualityOfService"],
        "wholeGroups": True,
    }

    FleetRun(9505, features=FEATURES, preemption=settings).play()
