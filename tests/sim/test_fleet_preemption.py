"""What holds in random fleets whose schedulers preempt beyond what kube-scheduler does, by settings that are drawn.

No victim goes without need, none is as important as the preemptor, budgets that are required are kept by preemption,
who has just begun is spared, and no other way out is cheaper where all of them can be looked at.
"""

import pytest

from tests.sim.fleet_run import FleetRun
from tests.sim.omitted import NOTHING, Omitted
from tests.sim.preemption_settings import drawn_preemption
from tests.sim.shortest_story import RecordProperty, play_all
from tests.sim.wide_judged_scheduler import WideJudgedScheduler

SEEDS, SLOW_SEEDS = range(500, 512), range(600, 602)


def fleet(seed: int, is_faulty: bool = True, omitted: Omitted = NOTHING, pace: int = 1) -> FleetRun:
    return FleetRun(seed, is_faulty, omitted, pace=pace, preemption=drawn_preemption(seed))


def test_the_invariants_hold_whatever_preemption_is_told_and_fails() -> None:
    plans, compared = WideJudgedScheduler.wide_plans, WideJudgedScheduler.plans_compared

    for seed in SEEDS:
        fleet(seed, is_faulty=seed % 4 != 0).play()

    assert WideJudgedScheduler.wide_plans > plans
    assert WideJudgedScheduler.plans_compared > compared


@pytest.mark.parametrize("seed", SLOW_SEEDS)
def test_the_invariants_hold_in_fleets_that_sleep_between_preemptions(seed: int) -> None:
    run = fleet(seed, pace=20)

    run.play()

    assert run.fault_hours > 1


@pytest.mark.fuzz
def test_the_invariants_hold_in_many_more_fleets(record_property: RecordProperty) -> None:
    play_all(fleet, lambda seed: seed % 4 != 0, record_property)


@pytest.mark.fuzz
def test_the_invariants_hold_in_many_more_fleets_that_sleep(record_property: RecordProperty) -> None:
    """Each sleeps through a month of faults."""

    def slow(seed: int, is_faulty: bool, omitted: Omitted) -> FleetRun:
        return fleet(seed, is_faulty, omitted, pace=10_000)

    play_all(slow, lambda _: True, record_property)
