"""The pods that are best moved within budgets come first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from podium.decide.rescheduling import planner
from podium.decide.rescheduling.certificate import best_leavers
from podium.decide.rescheduling.guards import BudgetRoom
from podium.framework.rescheduling.policy import Policy
from podium.framework.rescheduling.settings import MoveLimitSettings
from tests.builders import budget, node
from tests.decide.rescheduling.planning import NOW, Given, free_settings, given, moves, plan, web
from tests.decide.rescheduling.test_certificate import picture_of
from tests.plugins.rescheduling.pictures import policy_of


def underused() -> Policy:
    made: Policy = policy_of("MoveToUnderusedNodes")
    return made


def shared(*, allowed: int) -> list[Any]:
    """Return two over-used nodes: either of the first's pods relieves it, but the second has only pods of a budget."""
    held = {"labels": {"app": "held"}}
    return [
        *[node(name, cpu="10") for name in ("either", "only", "empty-1", "empty-2")],
        web("a-held", "either", cpu="3500m", **held),
        web("b-free", "either", cpu="3400m"),
        *[web(f"c-held-{number}", "only", cpu="3", **held) for number in range(2)],
        budget("held", "app=held", allowed),
    ]


def here(*, allowed: int) -> Given:
    return given(*shared(allowed=allowed))


def test_a_budget_goes_to_the_node_that_has_no_other_pod_to_give() -> None:
    found = plan(here(allowed=1), underused(), settings=free_settings(threshold=0.1))

    assert set(moves(found)) == {"b-free", "c-held-0"}
    assert found.after == {"MoveToUnderusedNodes": 0.0}


def test_pods_beyond_the_best_ones_follow_if_they_gain_enough() -> None:
    found = plan(here(allowed=0), underused(), settings=free_settings(threshold=0.1))

    assert set(moves(found)) == {"b-free"}


@pytest.mark.parametrize("kind", ["in_flight", "hourly", "without_budget"])
def test_the_best_leavers_are_not_looked_for_if_moves_are_limited(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()
    monkeypatch.setattr(planner, "best_leavers", lambda *inputs: asked.append(inputs))
    plan(here(allowed=1), underused(), settings=free_settings(threshold=0.1, **{kind: MoveLimitSettings(total=5)}))

    assert asked == []


@pytest.mark.parametrize(("allowed", "best"), [(0, {"b-free"}), (1, {"b-free", "c-held-0"})])
def test_no_pod_of_an_exhausted_budget_is_among_the_best_leavers(allowed: int, best: set[str]) -> None:
    there, settings = here(allowed=allowed), free_settings()
    picture, inputs = picture_of(shared(allowed=allowed)[:-1]), there.inputs()

    found = best_leavers(picture, [(underused(), 1.0)], 0.1, inputs, BudgetRoom(inputs, settings, NOW))

    assert {picture.cluster.placed[uid].name for uid in found} == best


def test_the_reserve_of_a_budget_is_not_for_the_best_leavers() -> None:
    there = here(allowed=1)
    room = cast("BudgetRoom", SimpleNamespace(reserve=lambda budget: 1))

    found = best_leavers(picture_of(shared(allowed=1)[:-1]), [(underused(), 1.0)], 0.1, there.inputs(), room)

    assert {uid.rpartition("/")[2] for uid in found} == {"b-free"}


def test_a_pod_that_fits_nowhere_else_is_not_among_the_best_leavers() -> None:
    """The larger pod relieves its node more, but the only other node of its pool has no room for it."""
    pool = {"pool": "full"}
    objects = [
        *[node(name, cpu="10", labels=pool) for name in ("over", "full")],
        *[node(name, cpu="10") for name in ("empty-1", "empty-2")],
        web("a-bound", "over", cpu="5200m", node_selector=pool),
        web("b-free", "over", cpu="3500m"),
        web("c-bound", "full", cpu="5", node_selector=pool),
    ]
    inputs, settings = given(*objects).inputs(), free_settings()

    found = best_leavers(picture_of(objects), [(underused(), 1.0)], 0.1, inputs, BudgetRoom(inputs, settings, NOW))

    assert {uid.rpartition("/")[2] for uid in found} == {"b-free"}
