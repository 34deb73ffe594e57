"""Invariants of random fleets after each step and at rest: all controllers, with and without faults.

Each seed is a story of its own, with some features and some faults. A run that fails tells its seed and options, and
all that happened; a long fuzzing run tells the shortest story that still fails, too.
"""

from collections import Counter

import pytest

from tests.sim.faults import Fault
from tests.sim.fleet_run import FleetRun
from tests.sim.fleet_stories import CALM, Feature
from tests.sim.fleets import FLEETS, MONTHS, sleeping
from tests.sim.shortest_story import RecordProperty, Shortening, play_all

# These have all features but PRESSURE, and take little time.
PLAIN_SEEDS = (0, 1, 2, 4, 5, 9, 10)
# The first four have all faults and features, and take little time; others follow if that changes.
FAULTY_SEEDS = (104, 103, 124, 101, 110, 115, *range(116, 124))
LEAST_FAULTY = 6
CALM_SEEDS = range(200, 204)
HAPPENS = {
    "Crashed",
    "Failed",
    "Killing",
    "Nominated",
    "NodeDown",
    "Preempted",
    "Scheduled",
    "TriggeredScaleUp",
    "Evict done",
    "Evict 429",
    "drained",
}


def played(seed: int, *, is_faulty: bool) -> FleetRun:
    run = FleetRun(seed, is_faulty)
    run.play()
    return run


@pytest.mark.parametrize("seed", PLAIN_SEEDS)
def test_the_invariants_hold_in_every_fleet(seed: int) -> None:
    run = played(seed, is_faulty=False)

    assert run.simulation.history.events


def test_the_invariants_hold_and_every_fault_and_feature_occurs() -> None:
    fired, happened, features = Counter[Fault](), Counter[str](), set[Feature]()

    for number, seed in enumerate(FAULTY_SEEDS, start=1):
        run = played(seed, is_faulty=True)
        fired.update(run.faults.fired)
        features |= run.features
        happened.update(run.happened)
        happened.update(event.reason for event in run.simulation.history.events)
        happened.update(report.state for report in run.simulation.player.drain_reports())
        has_all = all(fired[fault] for fault in Fault) and features == set(Feature) and happened.keys() >= HAPPENS
        if has_all and number >= LEAST_FAULTY:
            break

    assert all(fired[fault] > 0 for fault in Fault), fired
    assert features == set(Feature)
    assert not HAPPENS - happened.keys(), happened


@pytest.mark.parametrize("seed", CALM_SEEDS)
def test_budgets_hold_when_pods_are_disrupted_by_evictions_alone(seed: int) -> None:
    run = FleetRun(seed, is_faulty=True, features=CALM)

    run.play()

    assert run.happened["Evict done"]


def test_a_seed_gives_the_same_fleet_again() -> None:
    assert played(FAULTY_SEEDS[0], is_faulty=True).digest == played(FAULTY_SEEDS[0], is_faulty=True).digest


def test_the_shrinker_drops_objects_that_the_failure_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_where_something_is_applied(run: FleetRun) -> None:
        assert not [step for step in run.story.steps if "apply" in step]

    monkeypatch.setattr(FleetRun, "play", fails_where_something_is_applied)
    seed = next(seed for seed in PLAIN_SEEDS if any("apply" in step for step in FleetRun(seed).story.steps))

    shortest = Shortening(FleetRun, seed, is_faulty=True).shorten()

    assert (len(shortest.story.steps), len(shortest.story.objects), shortest.faults.rates) == (1, 0, {})


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("all machines", 301), ("all machines", 302), ("wide preemption", 600)],
)
def test_the_invariants_hold_in_fleets_that_sleep_between_events(kind: str, seed: int) -> None:
    run = FLEETS[kind](seed, pace=20)

    run.play()

    assert run.fault_hours > 1


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", FLEETS)
def test_the_invariants_hold_in_many_more_fleets(kind: str, record_property: RecordProperty) -> None:
    play_all(FLEETS[kind], lambda seed: seed % 4 != 0, record_property)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", FLEETS)
def test_the_invariants_hold_in_many_more_fleets_that_sleep(kind: str, record_property: RecordProperty) -> None:
    play_all(sleeping(FLEETS[kind], MONTHS), lambda _: True, record_property)
