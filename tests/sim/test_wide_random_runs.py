"""Invariants of random stories with preemption across nodes, after each step and at rest, with and without faults."""

import pytest

from tests.sim.omitted import NOTHING, Omitted
from tests.sim.random_run import RandomRun
from tests.sim.shortest_story import RecordProperty, play_all
from tests.sim.wide_judged_scheduler import WideJudgedScheduler

SETTINGS = (
    {"acrossNodes": True},
    {"acrossNodes": True, "keepAffinityPartners": True, "includeDependents": True},
    {"acrossNodes": True, "includeDependents": True},
)
# Two for each of the settings, of which one at least has plans across nodes, and none tries all sets for long.
SEEDS = (2, 3, 7, 9, 10, 17)


def wide(seed: int, is_faulty: bool, omitted: Omitted = NOTHING) -> RandomRun:
    return RandomRun(seed, is_faulty, omitted, preemption=SETTINGS[seed % len(SETTINGS)])


@pytest.mark.parametrize("is_faulty", [False, True])
def test_the_invariants_hold_where_victims_may_be_anywhere(is_faulty: bool) -> None:
    before = WideJudgedScheduler.wide_plans

    for seed in SEEDS:
        wide(seed, is_faulty).play()

    assert WideJudgedScheduler.wide_plans > before


@pytest.mark.fuzz
def test_the_invariants_hold_in_many_more_stories_where_victims_may_be_anywhere(
    record_property: RecordProperty,
) -> None:
    play_all(wide, lambda seed: seed % 2 == 0, record_property)
