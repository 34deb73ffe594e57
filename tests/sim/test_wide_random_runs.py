"""Invariants of random stories with preemption across nodes, after each step and at rest, with and without faults."""

import pytest

from tests.sim.random_run import RandomRun
from tests.sim.wide_judged_scheduler import WideJudgedScheduler

SETTINGS = (
    {"acrossNodes": True},
    {"acrossNodes": True, "keepAffinityPartners": True, "includeDependents": True},
    {"acrossNodes": True, "includeDependents": True},
)


@pytest.mark.parametrize("is_faulty", [False, True])
def test_the_invariants_hold_where_victims_may_be_anywhere(is_faulty: bool) -> None:
    before = WideJudgedScheduler.wide_plans

    for seed in range(18):
        run = RandomRun(seed, is_faulty, preemption=SETTINGS[seed % len(SETTINGS)])
        run.play()

    assert WideJudgedScheduler.wide_plans > before
