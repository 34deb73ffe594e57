"""Invariants of random fleets with random preemption settings beyond kube-scheduler's.

No victim goes without need, none is as important as the preemptor, budgets that are required are kept by preemption,
who has just begun is spared, and no other way out is cheaper where all of them can be looked at.
"""

from tests.sim.fleets import preempting
from tests.sim.wide_judged_scheduler import WideJudgedScheduler

# The first ones have plans across nodes and plans to compare, and take little time; others follow if that changes.
SEEDS = (501, 503, 506, 508, *range(509, 520))
LEAST = 4


def test_the_invariants_hold_for_all_preemption_settings_and_faults() -> None:
    plans, compared = WideJudgedScheduler.wide_plans, WideJudgedScheduler.plans_compared

    for number, seed in enumerate(SEEDS, start=1):
        preempting(seed, is_faulty=seed % 4 != 0).play()
        has_both = WideJudgedScheduler.wide_plans > plans and WideJudgedScheduler.plans_compared > compared
        if has_both and number >= LEAST:
            break

    assert WideJudgedScheduler.wide_plans > plans
    assert WideJudgedScheduler.plans_compared > compared
